//! Memory behind operands of any layout, filled with values that find mistakes.

use steersman_core::{Address, DType, Operand, rounded_to_odd};

/// A small generator: the same seed gives the same operands.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }

    /// A float: mostly of ordinary size, sometimes any at all, sometimes one of those that are easily
    /// forgotten.
    fn real(&mut self) -> f64 {
        const EDGES: [f64; 20] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            2.5,
            -3.5,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-40,
            -1e-310,
            88.8,
            -104.5,
            3e38,
            -1e300,
            1e9,
            65519.0,
            8388609.0,
        ];
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
        match self.below(16) {
            0 => EDGES[self.below(EDGES.len())],
            1 => unit * 10f64.powi(self.below(600) as i32 - 300),
            2 => unit * 10f64.powi(self.below(70) as i32 - 35),
            3 => (unit * 100.0).round(),
            4..=9 => unit,
            _ => unit * 20.0,
        }
    }

    fn integer(&mut self, bits: u32) -> u64 {
        let any = self.next();
        match self.below(8) {
            0 => 0,
            1 => 1 << (bits - 1),
            2 => u64::MAX,
            3 => any,
            _ => (any % 41).wrapping_sub(20),
        }
    }

    /// The bits of an element.
    fn element(&mut self, dtype: DType) -> u64 {
        match dtype {
            DType::F64 => self.real().to_bits(),
            DType::F32 => (self.real() as f32).to_bits().into(),
            DType::F16 => half::f16::from_f32(rounded_to_odd(self.real())).to_bits().into(),
            DType::BF16 => half::bf16::from_f32(rounded_to_odd(self.real())).to_bits().into(),
            DType::I64 => self.integer(64),
            DType::I32 | DType::U32 => u64::from(self.integer(32) as u32),
            DType::U8 => u64::from(self.integer(8) as u8),
            DType::Bool => self.next() >> 63,
        }
    }
}

/// Bytes in which one operand lies, with a margin on both sides.
#[derive(Clone)]
pub struct Memory {
    lines: Vec<[u64; 8]>,
    /// Bytes from the start to the first element: not at the front if a stride is negative.
    first: usize,
}

const MARGIN: usize = 64;
const MARK: u8 = 0xa5;

impl Memory {
    /// Memory for an operand, every byte a mark.
    pub fn marked(o: &Operand) -> Memory {
        let reach = |negative: bool| -> usize {
            let far = o.dims.iter().zip(&o.strides).filter(|(d, s)| **d > 0 && (**s < 0) == negative);
            far.map(|(&d, &s)| (d - 1) * s.unsigned_abs()).sum::<usize>() * o.dtype.size()
        };
        // The first element stays aligned as the operand promises: whole lines before it.
        let first = (MARGIN + reach(true)).next_multiple_of(64);
        let bytes = first + reach(false) + o.dtype.size() + MARGIN;
        // A vector of lines has only the alignment of u64: one more line to align within.
        let mut memory =
            Memory { lines: vec![[u64::from_ne_bytes([MARK; 8]); 8]; bytes.div_ceil(64) + 1], first };
        memory.first += memory.lines.as_ptr().cast::<u8>().align_offset(64);
        memory
    }

    /// Memory for an operand with random elements; bytes between them are marks.
    pub fn random(o: &Operand, random: &mut Random) -> Memory {
        Memory::filled(o, || random.element(o.dtype))
    }

    /// Memory for an operand with elements of these bits, in logical order.
    pub fn filled(o: &Operand, mut element: impl FnMut() -> u64) -> Memory {
        let mut memory = Memory::marked(o);
        let offsets: Vec<isize> = offsets(o).collect();
        for offset in offsets {
            let bits = element().to_le_bytes();
            let at = memory.byte(o, offset);
            memory.bytes_mut()[at..at + o.dtype.size()].copy_from_slice(&bits[..o.dtype.size()]);
        }
        memory
    }

    pub fn address(&self) -> Address {
        Address::host(self.bytes()[self.first..].as_ptr())
    }

    pub fn address_mut(&mut self) -> Address {
        let first = self.first;
        Address::host(self.bytes_mut()[first..].as_mut_ptr())
    }

    /// The bits of every element in logical order.
    pub fn elements(&self, o: &Operand) -> impl Iterator<Item = u64> {
        offsets(o).map(|offset| self.at(o, offset))
    }

    /// The bits of the `i`th element in logical order.
    pub fn element(&self, o: &Operand, i: usize) -> u64 {
        offsets(o).nth(i).map_or(0, |offset| self.at(o, offset))
    }

    /// Whether a byte that belongs to no element is no mark any more.
    pub fn gaps_touched(&self, o: &Operand) -> bool {
        let mut own = vec![false; self.bytes().len()];
        for offset in offsets(o) {
            let at = self.byte(o, offset);
            own[at..at + o.dtype.size()].fill(true);
        }
        self.bytes().iter().zip(own).any(|(&b, own)| !own && b != MARK)
    }

    fn at(&self, o: &Operand, offset: isize) -> u64 {
        let at = self.byte(o, offset);
        let mut bits = [0; 8];
        bits[..o.dtype.size()].copy_from_slice(&self.bytes()[at..at + o.dtype.size()]);
        u64::from_le_bytes(bits)
    }

    fn byte(&self, o: &Operand, offset: isize) -> usize {
        self.first
            .checked_add_signed(offset * o.dtype.size() as isize)
            .expect("memory was made for this operand")
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: plain integers, any byte of which may be read.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 64) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: plain integers, of which any bytes make one.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * 64) }
    }
}

/// Where each element is, in elements from the first, in logical order.
fn offsets(o: &Operand) -> impl Iterator<Item = isize> {
    let (dims, strides) = (o.dims.clone(), o.strides.clone());
    (0..o.elements()).map(move |mut i| {
        let mut offset = 0;
        for (&d, &s) in dims.iter().zip(&strides).rev() {
            offset += (i % d) as isize * s;
            i /= d;
        }
        offset
    })
}
