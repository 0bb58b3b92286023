//! Operands that share a shape, folded into the fewest nested loops.

use smallvec::SmallVec;

/// Loops outermost first, and each operand's strides in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nest {
    pub dims: SmallVec<[u32; 4]>,
    pub strides: SmallVec<[SmallVec<[i32; 4]>; 4]>,
}

/// How an operand's element is found from the flat position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Path {
    /// It is the position.
    Flat,
    /// Always the same one.
    Fixed,
    /// By the loops' indices.
    Strided,
}

/// Positions must stay clear of 32 bits when the last invocation steps on.
pub(crate) const MOST: usize = 1 << 31;

impl Nest {
    /// Of operands with these strides over `dims`, with loops joined where every operand goes on evenly.
    pub fn new<'a>(dims: &[usize], operands: impl Iterator<Item = &'a [isize]>) -> Nest {
        let all: SmallVec<[&[isize]; 4]> = operands.collect();
        let mut nest = Nest { dims: SmallVec::new(), strides: SmallVec::new() };
        nest.strides.resize(all.len(), SmallVec::new());
        for (axis, &d) in dims.iter().enumerate().filter(|(_, d)| **d != 1) {
            let joins = !nest.dims.is_empty()
                && all.iter().zip(&nest.strides).all(|(s, done)| {
                    done.last().is_some_and(|&outer| outer as isize == s[axis] * d as isize)
                });
            match nest.dims.last_mut() {
                Some(last) if joins => *last *= d as u32,
                _ => nest.dims.push(d as u32),
            }
            for (s, done) in all.iter().zip(&mut nest.strides) {
                if joins {
                    done.pop();
                }
                done.push(s[axis] as i32);
            }
        }
        nest
    }

    /// Elements of each operand.
    pub fn elements(&self) -> u32 {
        self.dims.iter().product()
    }

    /// How operand `k` is walked.
    pub fn path(&self, k: usize) -> Path {
        let s = &self.strides[k];
        match s.as_slice() {
            // One element: whichever way, so the way that shares its shader with larger arrays.
            [] => Path::Flat,
            _ if s.iter().all(|&s| s == 0) => Path::Fixed,
            [1] => Path::Flat,
            _ => Path::Strided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_operands_become_one_loop_and_broadcasts_keep_theirs() {
        let nest = Nest::new(&[4, 1, 6], [&[6isize, 6, 1][..], &[6, 0, 1]].into_iter());
        assert_eq!((nest.dims.as_slice(), nest.path(0), nest.path(1)), (&[24][..], Path::Flat, Path::Flat));
        let nest = Nest::new(&[4, 6], [&[6isize, 1][..], &[0, 1], &[0, 0]].into_iter());
        assert_eq!(nest.dims.as_slice(), [4, 6]);
        assert_eq!([0, 1, 2].map(|k| nest.path(k)), [Path::Strided, Path::Strided, Path::Fixed]);
        let nest = Nest::new(&[4, 6], [&[-6isize, -1][..]].into_iter());
        assert_eq!((nest.dims.as_slice(), nest.strides[0].as_slice()), (&[24][..], &[-1][..]));
    }
}
