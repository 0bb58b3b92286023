//! A few elements with an operand that starts over, such as three weights for each of ten pixels.
//!
//! What starts over is laid out in a row first, and one loop does the rest. To plan loops for it takes longer than all the
//! work: of 6×1 and one f32 `add` took 110 ns, of 3×2 and two 150 to 175, where it now takes 30 to 55 (Xeon).

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
        let Some(period) = period(&out.dims, o) else { return false };
        at[k] = if period == n {
            from
        } else {
            let to = room[k].as_mut_ptr().cast::<u8>();
            // SAFETY: the operand has `period` elements one after another, the room is for `FEW` of 8 bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(from, to, period * size);
                start_over(to, period * size, n * size);
            }
            to
        };
    }
    // SAFETY: each argument has `n` elements, and none of them is the output's memory.
    unsafe { (rows.each)(at[0], at[1], at[2], io.output.as_mut_ptr(), n) };
    true
}

/// After how many elements one after another the operand starts over, if it is like that.
fn period(dims: &[usize], o: &Operand) -> Option<usize> {
    let mut period = 1;
    let mut starts_over = false;
    for (&n, &stride) in dims.iter().zip(&o.strides).rev().filter(|(n, _)| **n != 1) {
        match stride {
            0 => starts_over = true,
            _ if starts_over || stride != period as isize => return None,
            _ => period *= n,
        }
    }
    Some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(text: &str) -> Vec<Option<usize>> {
        let w: Workload = text.parse().unwrap();
        w.inputs().iter().map(|o| period(&w.output().dims, o)).collect()
    }

    #[test]
    fn what_starts_over_after_how_many() {
        assert_eq!(periods("add f32 4x3 3"), [Some(12), Some(3)]);
        assert_eq!(periods("add f32 6x1 1"), [Some(6), Some(1)]);
        assert_eq!(periods("add f32 4x3 4x1"), [Some(12), None], "each stays for a row");
        assert_eq!(periods("add f32 2x4x3 4x3"), [Some(24), Some(12)]);
        assert_eq!(periods("add f32 4x3:1,4 3"), [None, Some(3)], "transposed");
    }
}
