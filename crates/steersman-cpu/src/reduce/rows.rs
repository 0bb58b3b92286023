//! Elements that lie side by side, many to one output.

use super::fold::Fold;
use super::turned::{Turned, folded, turned};
use crate::isa::{Isa, Level};
use std::hint::black_box;

/// A reduction of runs of elements that lie side by side.
pub(super) trait Rows: Copy + Send + Sync {
    type In: Copy;
    /// What is known of some of the elements.
    type Part: Copy + Send;
    type Out: Copy;

    /// Of no elements.
    fn start(self) -> Self::Part;

    /// With `n` more elements, the first of which has index `at`.
    ///
    /// # Safety
    /// `x` must be readable for `n` elements.
    unsafe fn more<I: Isa>(self, part: Self::Part, x: *const Self::In, n: usize, at: usize) -> Self::Part;

    /// Of the elements of both, `b`'s being the later ones.
    fn join(self, a: Self::Part, b: Self::Part) -> Self::Part;

    /// The result of `n` elements.
    fn finish(self, part: Self::Part, n: usize) -> Self::Out;

    /// All of `rows` rows of `n` elements, one after another, if rows this short have a way of their own.
    ///
    /// # Safety
    /// `x` must be readable for `rows * n` elements and `out` writable for `rows`.
    #[inline(always)]
    unsafe fn short<I: Isa>(
        self,
        _x: *const Self::In,
        _n: usize,
        _rows: usize,
        _out: *mut Self::Out,
    ) -> bool {
        false
    }
}

/// Rows up to this length have a way of their own ([`Rows::short`]) where their fold does.
pub(super) const SHORTEST: usize = 8;

/// A fold over rows.
#[derive(Clone, Copy)]
pub(super) struct Folded<F, const W: usize>(pub F);

impl<F: Fold<W>, const W: usize> Rows for Folded<F, W> {
    type In = F::In;
    type Part = F::Total;
    type Out = F::Out;

    #[inline(always)]
    fn start(self) -> F::Total {
        self.0.total()
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(self, part: F::Total, x: *const F::In, n: usize, _at: usize) -> F::Total {
        // SAFETY: the caller's promise, passed on.
        self.0.join(part, unsafe { fold::<I, F, W>(self.0, x, n) })
    }

    #[inline(always)]
    fn join(self, a: F::Total, b: F::Total) -> F::Total {
        self.0.join(a, b)
    }

    #[inline(always)]
    fn finish(self, part: F::Total, n: usize) -> F::Out {
        self.0.finish(part, n)
    }

    #[inline(always)]
    unsafe fn short<I: Isa>(self, x: *const F::In, n: usize, rows: usize, out: *mut F::Out) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            if !F::SHORT || n > SHORTEST {
                return turned::<I, _, W>(self, x, n, rows, out);
            }
            match n {
                1 => short::<I, F, W, 1>(self.0, x, rows, out),
                2 => short::<I, F, W, 2>(self.0, x, rows, out),
                3 => short::<I, F, W, 3>(self.0, x, rows, out),
                4 => short::<I, F, W, 4>(self.0, x, rows, out),
                5 => short::<I, F, W, 5>(self.0, x, rows, out),
                6 => short::<I, F, W, 6>(self.0, x, rows, out),
                7 => short::<I, F, W, 7>(self.0, x, rows, out),
                8 => short::<I, F, W, 8>(self.0, x, rows, out),
                _ => return false,
            }
        }
        true
    }
}

impl<F: Fold<W>, const W: usize> Turned<W> for Folded<F, W> {
    const LONGEST: usize = folded(size_of::<F::In>());
    const FEWEST: usize = W;

    #[inline(always)]
    fn together<I: Isa>(self, columns: &[[F::In; W]]) -> [F::Out; W] {
        let f = self.0;
        let mut lanes = columns[0].map(|x| f.lift(x));
        for &column in &columns[1..] {
            f.block::<I>(&mut lanes, column);
        }
        lanes.map(|a| f.finish(f.widen(f.total(), a), columns.len()))
    }
}

/// Rows of `N` elements: several rows at once, which the compiler makes of the loop since `N` is known.
#[inline(always)]
unsafe fn short<I: Isa, F: Fold<W>, const W: usize, const N: usize>(
    f: F,
    x: *const F::In,
    rows: usize,
    out: *mut F::Out,
) {
    for i in 0..rows {
        // SAFETY: `i < rows`, and the caller vouches for `rows` rows of `N`.
        unsafe {
            let row = *(x.add(i * N) as *const [F::In; N]);
            let mut a = f.lift(row[0]);
            for &v in &row[1..] {
                a = f.step::<I>(a, v);
            }
            *out.add(i) = f.finish(f.widen(f.total(), a), N);
        }
    }
}

/// One step of a block of lanes with the elements at `x`.
#[inline(always)]
unsafe fn step<I: Isa, F: Fold<W>, const W: usize>(f: F, lanes: &mut [F::Lane; W], x: *const F::In) {
    // SAFETY: the caller vouches for `W` elements.
    f.block::<I>(lanes, unsafe { (x as *const [F::In; W]).read() });
}

#[inline(always)]
fn merge<F: Fold<W>, const W: usize>(f: F, a: [F::Lane; W], b: [F::Lane; W]) -> [F::Lane; W] {
    let mut out = a;
    for j in 0..W {
        out[j] = f.merge(a[j], b[j]);
    }
    out
}

/// The total of `n` elements at `x`.
#[inline(always)]
unsafe fn fold<I: Isa, F: Fold<W>, const W: usize>(f: F, x: *const F::In, n: usize) -> F::Total {
    // Setting up all blocks and joining them takes 12 ns, longer than so few elements in four registers.
    if F::PLAIN.is_none() && n < FEW * blocks_of::<I>() * W && n > 0 {
        // SAFETY: the caller's promise, passed on; this is compiled for `I` and runs nowhere else.
        if let Some(lane) = unsafe { f.tail::<I>(x, n) } {
            return f.widen(f.total(), lane);
        }
    }
    if I::LEVEL == Level::Avx512 && F::PLAIN.is_none() && n > LONG {
        // Blocks as long as a cache line that begin within one are all across two.
        let first = x.align_offset(LINE);
        // SAFETY: as above.
        if (1..W).contains(&first)
            && let Some(lane) = unsafe { f.tail::<I>(x, first) }
        {
            // SAFETY: as many elements are left.
            return f
                .join(f.widen(f.total(), lane), unsafe { in_blocks::<I, F, W>(f, x.add(first), n - first) });
        }
    }
    // SAFETY: the caller's promise, passed on.
    unsafe { in_blocks::<I, F, W>(f, x, n) }
}

/// Elements of a row that is begun at a cache line.
const LONG: usize = 1024;
/// Bytes of a cache line.
const LINE: usize = 64;

/// The total of `n` elements at `x`, block by block.
#[inline(always)]
unsafe fn in_blocks<I: Isa, F: Fold<W>, const W: usize>(f: F, x: *const F::In, n: usize) -> F::Total {
    // SAFETY: the caller's promise, passed on.
    let (total, at) = unsafe {
        match F::PLAIN {
            Some(most) => plain::<I, F, W>(f, x, n, most),
            None => blocks::<I, F, W>(f, x, n),
        }
    };
    if at == n {
        return total;
    }
    // SAFETY: as above; this is compiled for `I` and runs nowhere else.
    unsafe {
        if let Some(lane) = f.tail::<I>(x.add(at), n - at) {
            return f.widen(total, lane);
        }
        match F::PLAIN {
            Some(_) => f.widen(total, plain_rest::<I, F, W>(f, x, n, at)),
            None => f.join(total, rest::<I, F, W>(f, x, n, at)),
        }
    }
}

/// Elements, in steps of all blocks, below which blocks do not pay: each lane of the four registers that
/// [`Fold::tail`] takes has 17 at most.
const FEW: usize = 8;

/// Elements of this size in a row from which it is folded in blocks.
pub(super) fn blocks_from(level: Level, size: usize) -> usize {
    let few = if matches!(level, Level::Avx2 | Level::Avx512) { FEW } else { 1 };
    few * level.vector_bytes() / 8 * (64 / size.max(1))
}

/// Blocks of lanes in flight.
#[inline(always)]
fn blocks_of<I: Isa>() -> usize {
    I::VECTOR_BYTES / 8
}

/// Elements a plain loop takes at least, and a multiple of which it takes.
const STRIDE: usize = 256;

/// The total of those of `n` elements that fill strides, in chunks of at most `most`, and where they end.
#[inline(always)]
unsafe fn plain<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    x: *const F::In,
    n: usize,
    most: usize,
) -> (F::Total, usize) {
    let (mut total, mut at) = (f.total(), 0);
    while n - at >= STRIDE {
        let len = ((n - at) / STRIDE * STRIDE).min(most);
        // SAFETY: the chunk lies below `n`, for which the caller vouches.
        let chunk = unsafe { std::slice::from_raw_parts(x.add(at), len) };
        total = f.widen(total, chunk.iter().fold(f.lane(), |a, &x| f.step::<I>(a, x)));
        at += len;
        if f.settled(total) {
            return (total, n);
        }
    }
    (total, at)
}

/// The total of those of `n` elements that fill all blocks, and where they end.
///
/// Eight registers of lanes hide the latency of a step: 8 blocks of 64 bytes with AVX-512, 4 with
/// AVX2, 2 with SSE2 or NEON.
#[inline(always)]
unsafe fn blocks<I: Isa, F: Fold<W>, const W: usize>(f: F, x: *const F::In, n: usize) -> (F::Total, usize) {
    let blocks = blocks_of::<I>();
    if n < blocks * W {
        return (f.total(), 0);
    }
    let mut totals = [f.total(); W];
    let mut at = 0;
    // SAFETY: every read lies below `n`, for which the caller vouches.
    unsafe {
        while n - at >= blocks * W {
            let rounds = ((n - at) / (blocks * W)).min(F::ROUNDS);
            let none = [f.lane(); W];
            let (mut a, mut b, mut c, mut d) = (none, none, none, none);
            let (mut e, mut g, mut h, mut i) = (none, none, none, none);
            for _ in 0..rounds {
                let p = x.add(at);
                step::<I, F, W>(f, &mut a, p);
                step::<I, F, W>(f, &mut b, p.add(W));
                if blocks >= 4 {
                    step::<I, F, W>(f, &mut c, p.add(2 * W));
                    step::<I, F, W>(f, &mut d, p.add(3 * W));
                }
                if blocks >= 8 {
                    step::<I, F, W>(f, &mut e, p.add(4 * W));
                    step::<I, F, W>(f, &mut g, p.add(5 * W));
                    step::<I, F, W>(f, &mut h, p.add(6 * W));
                    step::<I, F, W>(f, &mut i, p.add(7 * W));
                }
                at += blocks * W;
            }
            a = merge(f, a, b);
            if blocks >= 4 {
                a = merge(f, a, merge(f, c, d));
            }
            if blocks >= 8 {
                a = merge(f, a, merge(f, merge(f, e, g), merge(f, h, i)));
            }
            // Through memory: the compiler then keeps lanes in whole registers. Left to itself it takes the
            // conversion to totals for the pattern and sums f32 in quarters of them, at a third of the speed.
            let a = black_box(a);
            for j in 0..W {
                totals[j] = f.widen(totals[j], a[j]);
            }
        }
    }
    (all(f, totals), at)
}

/// The total of the elements from `at` to `n`, fewer than fill all blocks.
#[inline(always)]
unsafe fn rest<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    x: *const F::In,
    n: usize,
    mut at: usize,
) -> F::Total {
    let mut lanes = [f.lane(); W];
    let mut totals = [f.total(); W];
    // SAFETY: every read lies below `n`, for which the caller vouches.
    unsafe {
        while n - at >= W {
            step::<I, F, W>(f, &mut lanes, x.add(at));
            at += W;
        }
        let mut lanes = black_box(lanes);
        for (j, lane) in lanes.iter_mut().enumerate().take(n - at) {
            *lane = f.step::<I>(*lane, *x.add(at + j));
        }
        for j in 0..W {
            totals[j] = f.widen(totals[j], lanes[j]);
        }
    }
    all(f, totals)
}

/// The elements from `at` to `n`, fewer than a stride, in one lane.
///
/// What does not fill a block is read with the elements before it, which are then left out.
#[inline(always)]
unsafe fn plain_rest<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    x: *const F::In,
    n: usize,
    mut at: usize,
) -> F::Lane {
    // SAFETY: every read lies below `n`, for which the caller vouches, and starts no earlier than `x`.
    unsafe {
        if n >= W {
            let mut lanes = [f.lane(); W];
            while n - at >= W {
                step::<I, F, W>(f, &mut lanes, x.add(at));
                at += W;
            }
            if at < n {
                let mut more = lanes;
                step::<I, F, W>(f, &mut more, x.add(n - W));
                let known = if F::TWICE { 0 } else { W - (n - at) };
                for j in 0..W {
                    lanes[j] = if j >= known { more[j] } else { lanes[j] };
                }
            }
            return black_box(lanes).into_iter().fold(f.lane(), |a, b| f.merge(a, b));
        }
        match n {
            32.. if W > 32 => pair::<F, W, 32>(f, x, n),
            16.. if W > 16 => pair::<F, W, 16>(f, x, n),
            8.. if W > 8 => pair::<F, W, 8>(f, x, n),
            4.. => pair::<F, W, 4>(f, x, n),
            _ => (1..n).fold(f.lift(*x), |a, j| f.step::<I>(a, *x.add(j))),
        }
    }
}

/// From `H` to `2 * H` elements, as two runs of `H` that may overlap.
#[inline(always)]
unsafe fn pair<F: Fold<W>, const W: usize, const H: usize>(f: F, x: *const F::In, n: usize) -> F::Lane {
    // SAFETY: both runs lie below `n`, for which the caller vouches.
    let (one, two) = unsafe { (*(x as *const [F::In; H]), *(x.add(n - H) as *const [F::In; H])) };
    let known = if F::TWICE { 0 } else { 2 * H - n };
    let mut lanes = one.map(|x| f.lift(x));
    for j in 0..H {
        let both = f.merge(lanes[j], f.lift(two[j]));
        lanes[j] = if j >= known { both } else { lanes[j] };
    }
    lanes.into_iter().fold(f.lane(), |a, b| f.merge(a, b))
}

/// One total of all, halving: shorter than one after another, and more exact.
#[inline(always)]
fn all<F: Fold<W>, const W: usize>(f: F, mut totals: [F::Total; W]) -> F::Total {
    let mut half = W / 2;
    while half > 0 {
        for j in 0..half {
            totals[j] = f.join(totals[j], totals[j + half]);
        }
        half /= 2;
    }
    totals[0]
}
