//! The three streams whose rate is measured: reading, copying, and reading two while writing one.

use std::hint::black_box;

use crate::isa::{Body, Isa};

/// A way to go through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Read,
    Copy,
    Triad,
}

impl Stream {
    pub(super) const ALL: [Stream; 3] = [Stream::Read, Stream::Copy, Stream::Triad];

    /// Arrays it goes through at once.
    fn arrays(self) -> usize {
        match self {
            Stream::Read => 1,
            Stream::Copy => 2,
            Stream::Triad => 3,
        }
    }

    /// Elements in each of its arrays when they share `elements` between them.
    pub(super) fn array_len(self, elements: usize) -> usize {
        const LINE: usize = 16;
        const PAGE: usize = 1024;
        let len = elements / self.arrays() / LINE * LINE;
        // Arrays a multiple of a page apart get in each other's way: a load that looks like it
        // follows a store to the same place in another page has to wait for it.
        if self != Stream::Read && len % PAGE < PAGE / 8 && len > PAGE { len - 17 * LINE } else { len }
    }

    /// Bytes that one pass over `elements` moves.
    pub(super) fn bytes(self, elements: usize) -> usize {
        self.arrays() * self.array_len(elements) * size_of::<f32>()
    }
}

/// Goes `passes` times through memory.
pub(super) struct Pass<'a> {
    pub(super) stream: Stream,
    pub(super) memory: &'a mut [f32],
    pub(super) passes: usize,
}

impl Body for Pass<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let len = self.stream.array_len(self.memory.len());
        let (first, rest) = self.memory.split_at_mut(len);
        for _ in 0..self.passes {
            match self.stream {
                Stream::Read => {
                    black_box(first.iter().fold(0u32, |all, x| all ^ x.to_bits()));
                }
                Stream::Copy => first.copy_from_slice(&rest[..len]),
                Stream::Triad => {
                    let scale = black_box(0.5f32);
                    let (b, c) = rest.split_at(len);
                    for ((a, b), c) in first.iter_mut().zip(b).zip(c) {
                        *a = b + scale * c;
                    }
                }
            }
            // Otherwise passes that write the same again would be left out.
            black_box(first.as_mut_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Level;

    #[test]
    fn each_stream_writes_what_its_name_says() {
        for (stream, expected) in [(Stream::Read, 0.0), (Stream::Copy, 4.0), (Stream::Triad, 7.0)] {
            let mut memory = vec![0.0; 4096];
            let len = stream.array_len(memory.len());
            memory.iter_mut().skip(len).take(len).for_each(|x| *x = 4.0);
            memory.iter_mut().skip(2 * len).for_each(|x| *x = 6.0);
            Level::best().dispatch(Pass { stream, memory: &mut memory, passes: 1 });
            assert!(memory[..len].iter().all(|&x| x == expected), "{stream:?}");
        }
    }

    #[test]
    fn arrays_fit_in_their_share_and_do_not_lie_pages_apart() {
        for stream in Stream::ALL {
            for elements in [48, 4096, 8192, 12_288, 100_000, 1 << 20] {
                let len = stream.array_len(elements);
                assert!(len > 0 && len * stream.arrays() <= elements);
                assert!(stream == Stream::Read || len < 1024 || len % 1024 >= 128, "{stream:?} {len}");
            }
        }
    }
}
