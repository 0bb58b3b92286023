//! A few elements with an operand that starts over, such as three weights for each of ten pixels, or with one element for
//! each row.
//!
//! Such an operand is laid out in a row first, and one loop does the rest. To plan loops for it takes longer than all the
//! work: of 6×1 and one f32 `add` took 110 ns, of 3×2 and two 150 to 175, where it now takes 30 to 55 (Xeon); of 2×4 and two
//! rows of one f64 `sub` took 110, of 10×2 and ten f32 `div` 120, of 100×4 and a hundred f64 `mul` 317, now 38, 45 and 155 (Zen 5).

use super::copy::start_over;
use super::plan::OUT;
use super::row::Rows;
use std::mem::MaybeUninit;
use steersman_core::{Io, Operand, Workload};

/// Most elements.
const FEW: usize = 512;
/// Inputs there may be: conditions are of another size.
const INPUTS: usize = 2;

/// Room for that many elements of any type.
type Room = MaybeUninit<[u64; FEW]>;

/// Does it, if it is of this kind; whether it was.
///
/// # Safety
/// `io` must be valid for the workload, whose elements have the size that `rows` are for.
pub unsafe fn run(w: &Workload, rows: Rows, io: Io<'_>) -> bool {
    let (out, n, size) = (w.output(), w.output().elements(), w.dtype().size());
    if n > FEW || w.inputs().len() != INPUTS || !out.is_contiguous() || io.inputs.contains(&io.output) {
        return false;
    }
    let mut room: [Room; INPUTS] = [const { Room::uninit() }; INPUTS];
    let mut at = [std::ptr::null::<u8>(); OUT];
    for (k, o) in w.inputs().iter().enumerate() {
        let from = io.inputs[k].as_ptr::<u8>();
        let Some(Lie { times, period }) = lie(&out.dims, o) else { return false };
        at[k] = if period == n && times == 1 {
            from
        } else {
            let to = room[k].as_mut_ptr().cast::<u8>();
            // SAFETY: the operand has `period / times` elements one after another, the room is for `FEW` of 8 bytes.
            unsafe {
                match size {
                    _ if times == 1 => std::ptr::copy_nonoverlapping(from, to, period * size),
                    1 => each_so_often::<u8>(from, to, times, period),
                    2 => each_so_often::<u16>(from, to, times, period),
                    4 => each_so_often::<u32>(from, to, times, period),
                    _ => each_so_often::<u64>(from, to, times, period),
                }
                start_over(to, period * size, n * size);
            }
            to
        };
    }
    // SAFETY: each argument has `n` elements, and none of them is the output's memory.
    unsafe { (rows.each)(at[0], at[1], at[2], io.output.as_mut_ptr(), n) };
    true
}

/// Writes elements one after another, each so many times, until there are `n`.
///
/// # Safety
/// There must be as many elements as that takes, and room for `n`.
unsafe fn each_so_often<T: Copy>(from: *const u8, to: *mut u8, times: usize, n: usize) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for row in 0..n / times {
        // SAFETY: by contract.
        unsafe {
            let x = from.add(row).read_unaligned();
            for i in 0..times {
                to.add(row * times + i).write(x);
            }
        }
    }
}

/// How an operand lies along the elements of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lie {
    /// For so many of them each of its elements stays.
    times: usize,
    /// After so many it starts over.
    period: usize,
}

/// How it lies, if its elements are one after another.
fn lie(dims: &[usize], o: &Operand) -> Option<Lie> {
    let mut lie = Lie { times: 1, period: 1 };
    let mut starts_over = false;
    for (&n, &stride) in dims.iter().zip(&o.strides).rev().filter(|(n, _)| **n != 1) {
        match stride {
            0 if lie.period == lie.times => {
                lie = Lie { times: lie.times * n, period: lie.period * n };
            }
            0 => starts_over = true,
            _ if starts_over || stride * lie.times as isize != lie.period as isize => return None,
            _ => lie.period *= n,
        }
    }
    Some(lie)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lies(text: &str) -> Vec<Option<(usize, usize)>> {
        let w: Workload = text.parse().unwrap();
        w.inputs().iter().map(|o| lie(&w.output().dims, o).map(|l| (l.times, l.period))).collect()
    }

    #[test]
    fn how_often_each_element_comes_and_after_how_many_they_start_over() {
        assert_eq!(lies("add f32 4x3 3"), [Some((1, 12)), Some((1, 3))]);
        assert_eq!(lies("add f32 6x1 1"), [Some((1, 6)), Some((6, 6))]);
        assert_eq!(lies("add f32 4x3 4x1"), [Some((1, 12)), Some((3, 12))], "each stays for a row");
        assert_eq!(lies("add f32 2x4x3 4x3"), [Some((1, 24)), Some((1, 12))]);
        assert_eq!(
            lies("add f32 2x4x3 4x1"),
            [Some((1, 24)), Some((3, 12))],
            "and starts over with each of two"
        );
        assert_eq!(lies("add f32 2x4x3 2x1x1"), [Some((1, 24)), Some((12, 24))]);
        assert_eq!(lies("add f32 2x4x3 2x1x3"), [Some((1, 24)), None], "rows that stay for four");
        assert_eq!(lies("add f32 4x3:1,4 3"), [None, Some((1, 3))], "transposed");
    }
}
