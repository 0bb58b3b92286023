//! Where the smallest or largest element is: the first one, and the first NaN before any number.

use super::columns::{Columns, Index, Room};
use super::element::{Brain, Half};
use super::fold::{Extreme, Fold};
use super::rows::{Folded, Rows};
use super::turned::{SEARCHED, Turned, turned};
use crate::isa::Isa;
use std::marker::PhantomData;

/// The index of the first smallest or, with `MAX`, largest.
#[derive(Clone, Copy)]
pub(super) struct Arg<T, const W: usize, const MAX: bool>(pub PhantomData<T>);

/// An element to compare.
pub(super) trait Ordered: Copy + Send + Sync {
    /// What it is compared as.
    type Key: Copy + Send + PartialOrd;
    fn key(self) -> Self::Key;
}

macro_rules! ordered {
    ($($t:ty, $key:ty, |$x:ident| $get:expr;)+) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key { let $x = self; $get }
        }
    )+};
}

ordered! {
    f32, f32, |x| x;
    f64, f64, |x| x;
    Half, f32, |x| x.get();
    Brain, f32, |x| x.get();
    i32, i32, |x| x;
    u32, u32, |x| x;
    i64, i64, |x| x;
    u8, u8, |x| x;
}

/// An element and where it is.
#[derive(Clone, Copy)]
pub(super) struct Found<K> {
    key: K,
    /// `u64::MAX` as long as there was none.
    at: u64,
}

const NOWHERE: u64 = u64::MAX;

/// NaN does not equal itself, nothing else does not.
#[inline(always)]
#[allow(clippy::eq_op)]
fn is_nan<K: PartialOrd>(k: K) -> bool {
    k != k
}

/// Whether `b` takes the place of an earlier `a`.
#[inline(always)]
fn beats<K: PartialOrd + Copy, const MAX: bool>(b: K, a: K) -> bool {
    let better = if MAX { b > a } else { b < a };
    better | (is_nan(b) & !is_nan(a))
}

#[inline(always)]
fn join<K: PartialOrd + Copy, const MAX: bool>(a: Found<K>, b: Found<K>) -> Found<K> {
    if a.at == NOWHERE {
        return b;
    }
    if b.at == NOWHERE {
        return a;
    }
    // Parts of a split row come in any order: among equals the lower index wins.
    let equal = a.key == b.key || is_nan(a.key) && is_nan(b.key);
    let second = beats::<K, MAX>(b.key, a.key) || equal && b.at < a.at;
    if second { b } else { a }
}

/// Elements searched at a time: their extreme is found first, and where it is only if it is a new one.
const BLOCK: usize = 4096;

impl<T, K, const W: usize, const MAX: bool> Rows for Arg<T, W, MAX>
where
    T: Ordered<Key = K> + 'static,
    K: Copy + Send + PartialOrd,
    Extreme<T, MAX>: Fold<W, In = T, Lane = K, Total = K>,
{
    type In = T;
    type Part = Found<K>;
    type Out = i64;

    #[inline(always)]
    fn start(self) -> Found<K> {
        Found { key: Extreme::<T, MAX>(PhantomData).total(), at: NOWHERE }
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(self, mut part: Found<K>, x: *const T, n: usize, at: usize) -> Found<K> {
        let extreme = Folded::<_, W>(Extreme::<T, MAX>(PhantomData));
        let mut from = 0;
        // The best block so far, looked through only at the end.
        let mut best: Option<(usize, usize)> = None;
        while from < n {
            let len = BLOCK.min(n - from);
            // SAFETY: the block lies below `n`, for which the caller vouches.
            let key = unsafe { Rows::more::<I>(extreme, Rows::start(extreme), x.add(from), len, 0) };
            if part.at == NOWHERE || beats::<K, MAX>(key, part.key) {
                part = Found { key, at: 0 };
                best = Some((from, len));
                if is_nan(key) {
                    break;
                }
            }
            from += len;
        }
        if let Some((from, len)) = best {
            // SAFETY: as above.
            let block = unsafe { std::slice::from_raw_parts(x.add(from), len) };
            part.at = (at + from + first::<I, T>(block, part.key)) as u64;
        }
        part
    }

    #[inline(always)]
    fn join(self, a: Found<K>, b: Found<K>) -> Found<K> {
        join::<K, MAX>(a, b)
    }

    #[inline(always)]
    fn finish(self, part: Found<K>, _n: usize) -> i64 {
        part.at as i64
    }

    #[inline(always)]
    unsafe fn short<I: Isa>(self, x: *const T, n: usize, rows: usize, out: *mut i64) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { turned::<I, _, TOGETHER>(self, x, n, rows, out) }
    }
}

/// Rows turned over at once.
const TOGETHER: usize = 16;

impl<T, K, const W: usize, const MAX: bool> Turned<TOGETHER> for Arg<T, W, MAX>
where
    T: Ordered<Key = K> + 'static,
    K: Copy + Send + PartialOrd,
    Extreme<T, MAX>: Fold<W, In = T, Lane = K, Total = K>,
{
    const LONGEST: usize = SEARCHED;
    const FEWEST: usize = 2;

    #[inline(always)]
    fn together<I: Isa>(self, columns: &[[T; TOGETHER]]) -> [i64; TOGETHER] {
        let mut keys = columns[0].map(T::key);
        let mut places = [0u32; TOGETHER];
        for (at, column) in columns.iter().enumerate().skip(1) {
            for ((key, place), x) in keys.iter_mut().zip(&mut places).zip(column) {
                let x = x.key();
                let new = beats::<K, MAX>(x, *key);
                *key = if new { x } else { *key };
                *place = if new { at as u32 } else { *place };
            }
        }
        places.map(i64::from)
    }
}

/// Elements that are looked through to the end rather than until it is found, where a vector compares many: how soon that
/// is cannot be foretold, and being wrong costs more. (On a Xeon 645 rows of 153 f32 took 47 µs with a way out and 26
/// without, 300 of 50 15.6 and 7.1, 300 of 60 f64 20.4 and 10.5, 300 of 30 f32 10.0 and 11.3; with half as many lanes all
/// were a loss.)
const THROUGH: std::ops::RangeInclusive<usize> = 48..=512;

/// The first place of `key`, which is there.
#[inline(always)]
fn first<I: Isa, T: Ordered>(block: &[T], key: T::Key) -> usize {
    let hit = |x: &T| (x.key() == key) | (is_nan(x.key()) & is_nan(key));
    if I::VECTOR_BYTES >= 64 && THROUGH.contains(&block.len()) {
        let mut at = u32::MAX;
        for (i, x) in block.iter().enumerate() {
            at = at.min(if hit(x) { i as u32 } else { u32::MAX });
        }
        return at as usize;
    }
    // Many at a time without a branch, then the one among them.
    let mut from = 0;
    for chunk in block.chunks_exact(64) {
        if chunk.iter().fold(0u32, |any, x| any | hit(x) as u32) != 0 {
            break;
        }
        from += 64;
    }
    from + block[from..].iter().position(hit).unwrap_or(0)
}

/// Rows whose indices are counted in one short integer before they meet the cells.
const SHORT: usize = 1 << 15;

impl<T, K, const W: usize, const MAX: bool> Columns for Arg<T, W, MAX>
where
    T: Ordered<Key = K> + 'static,
    K: Copy + Send + PartialOrd,
    Extreme<T, MAX>: Fold<W, In = T, Lane = K, Total = K>,
{
    type In = T;
    type Cell = Found<K>;
    type Out = i64;
    const TOGETHER: usize = W;

    #[inline(always)]
    fn start(self) -> Found<K> {
        Rows::start(self)
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(
        self,
        cells: &mut [Found<K>],
        x: *const T,
        rows: usize,
        stride: isize,
        index: Index,
    ) {
        let columns = cells.len();
        let (mut keys, mut places) = (Room::new(), Room::new());
        let keys = keys.of(columns, Extreme::<T, MAX>(PhantomData).total());
        let places = places.of(columns, 0u32);
        let mut row = 0;
        while row < rows {
            let count = (rows - row).min(SHORT);
            // SAFETY: rows below `rows`, columns below `cells.len()`.
            let line = |r: usize| unsafe {
                std::slice::from_raw_parts(x.offset((row + r) as isize * stride), columns)
            };
            for (key, x) in keys.iter_mut().zip(line(0)) {
                *key = x.key();
            }
            places.fill(0);
            for r in 1..count {
                for ((key, place), x) in keys.iter_mut().zip(&mut *places).zip(line(r)) {
                    let x = x.key();
                    let new = beats::<K, MAX>(x, *key);
                    *key = if new { x } else { *key };
                    *place = if new { r as u32 } else { *place };
                }
            }
            for ((cell, &key), &place) in cells.iter_mut().zip(&*keys).zip(&*places) {
                let at = index.first + (row + place as usize) * index.step;
                *cell = join::<K, MAX>(*cell, Found { key, at: at as u64 });
            }
            row += count;
        }
    }

    #[inline(always)]
    fn join(self, a: Found<K>, b: Found<K>) -> Found<K> {
        join::<K, MAX>(a, b)
    }

    #[inline(always)]
    fn later(self, cell: Found<K>, by: usize) -> Found<K> {
        Found { at: cell.at.saturating_add(by as u64), ..cell }
    }

    #[inline(always)]
    fn finish(self, cell: Found<K>, _n: usize) -> i64 {
        cell.at as i64
    }
}
