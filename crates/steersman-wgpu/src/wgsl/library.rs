//! Functions in WGSL, pulled in by those who call them.

/// A file of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Library {
    Bits = 1,
    Half = 2,
    Exp = 4,
    Log = 8,
    Trig = 16,
    Inverse = 32,
    Erf = 64,
    Rem = 128,
    Pow = 256,
    Random = 512,
    Wide = 1024,
    Integer = 2048,
    Double = 4096,
}

use Library::*;

/// Each library with its text and what it needs itself, needed ones first.
const ALL: [(Library, &str, &[Library]); 13] = [
    (Bits, include_str!("library/bits.wgsl"), &[]),
    (Half, include_str!("library/half.wgsl"), &[Bits]),
    (Exp, include_str!("library/exp.wgsl"), &[Bits]),
    (Log, include_str!("library/log.wgsl"), &[Bits]),
    (Trig, include_str!("library/trig.wgsl"), &[Bits]),
    (Inverse, include_str!("library/inverse.wgsl"), &[Bits]),
    (Erf, include_str!("library/erf.wgsl"), &[Bits, Exp]),
    (Rem, include_str!("library/rem.wgsl"), &[Bits]),
    (Pow, include_str!("library/pow.wgsl"), &[Bits, Exp, Log]),
    (Random, include_str!("library/random.wgsl"), &[Bits, Trig, Log]),
    (Wide, include_str!("library/wide.wgsl"), &[Bits, Trig]),
    (Integer, include_str!("library/integer.wgsl"), &[Bits]),
    (Double, include_str!("library/double.wgsl"), &[]),
];

/// The bit beside the libraries'.
const F16: u16 = 1 << 15;

/// The libraries a source wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted(u16);

impl Wanted {
    /// This one too, and what it needs.
    pub fn add(&mut self, library: Library) {
        self.0 |= library as u16;
        for (l, _, needs) in ALL {
            if l == library {
                needs.iter().for_each(|n| self.0 |= *n as u16);
            }
        }
    }

    /// What another source wants, too.
    pub fn merge(&mut self, other: Wanted) {
        self.0 |= other.0;
    }

    /// Buffers of f16 as such, for which the language has to be told.
    pub fn add_f16(&mut self) {
        self.0 |= F16;
    }

    /// Their text.
    pub fn text(self) -> String {
        let enabled = if self.0 & F16 != 0 { Some("enable f16;\n") } else { None };
        enabled.into_iter().chain(self.libraries()).collect()
    }

    fn libraries(self) -> impl Iterator<Item = &'static str> {
        ALL.iter().filter(move |(l, ..)| self.0 & *l as u16 != 0).map(|(_, text, _)| *text)
    }
}
