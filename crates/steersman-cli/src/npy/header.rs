//! The header: a magic word, a version, a length, and a Python dictionary as text.

use steersman_core::DType;

const MAGIC: &[u8] = b"\x93NUMPY";

/// What the dictionary says.
#[derive(Debug)]
pub(super) struct Header {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub fortran: bool,
}

impl Header {
    /// The header, and where the data starts.
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err("is not a .npy file; write one with numpy.save".into());
        };
        let (length, before) = match rest {
            [1, _, a, b, ..] => (u16::from_le_bytes([*a, *b]) as usize, 10),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
            [v, ..] if !(1..=3).contains(v) => {
                return Err(format!("is of .npy version {v}; 1 to 3 are known"));
            }
            _ => return Err("is cut short: its header ends too soon".into()),
        };
        let start = before + length;
        let Some(text) = bytes.get(before..start) else {
            return Err(format!("is cut short: its header of {length} bytes ends too soon"));
        };
        let text = std::str::from_utf8(text).map_err(|_| "has a header that is not text".to_string())?;
        let field = |key: &str| {
            let at = text.find(&format!("'{key}'")).map(|i| &text[i + key.len() + 2..]);
            at.and_then(|t| t.trim_start().strip_prefix(':')).map(str::trim_start)
        };
        let (Some(descr), Some(order), Some(shape)) =
            (field("descr"), field("fortran_order"), field("shape"))
        else {
            return Err("has a header without descr, fortran_order or shape".into());
        };
        let fortran = match order {
            t if t.starts_with("True") => true,
            t if t.starts_with("False") => false,
            _ => return Err("has a header whose fortran_order is neither True nor False".into()),
        };
        Ok((Header { dtype: dtype(descr)?, dims: dims(shape)?, fortran }, start))
    }

    /// The whole header as bytes; the data then starts at a multiple of 64, as numpy likes it.
    pub fn write(&self) -> Result<Vec<u8>, String> {
        let list: String = self.dims.iter().map(|d| format!("{d}, ")).collect();
        // Python writes (3,) for one dimension and () for none.
        let list = if self.dims.len() == 1 { list.trim_end() } else { list.trim_end_matches(", ") };
        let order = if self.fortran { "True" } else { "False" };
        let descr = descr(self.dtype)?;
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({list}), }}");
        let unpadded = MAGIC.len() + 4 + text.len() + 1;
        text += &" ".repeat(unpadded.next_multiple_of(64) - unpadded);
        text.push('\n');
        let length =
            u16::try_from(text.len()).map_err(|_| "has too many dimensions for a .npy header".to_string())?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(text.as_bytes());
        Ok(bytes)
    }
}

/// numpy's name of an element type.
pub(super) fn descr(dtype: DType) -> Result<&'static str, String> {
    Ok(match dtype {
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::F16 => "<f2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
        DType::BF16 => return Err("numpy has no bfloat16, so .npy cannot hold it; use f32 or f16".into()),
    })
}

fn dtype(text: &str) -> Result<DType, String> {
    if text.starts_with('[') {
        return Err("holds records; save one plain array per file".into());
    }
    let Some(name) = text.strip_prefix('\'').and_then(|t| t.split('\'').next()) else {
        return Err("has a header whose descr is not text".into());
    };
    if let Some(kind) = name.strip_prefix('>') {
        return Err(format!("is big-endian ('{name}'); save it with a.astype('<{kind}')"));
    }
    let kind = name.strip_prefix(['<', '|', '=']);
    let same = |d: &DType| kind.is_some_and(|k| descr(*d).is_ok_and(|n| n.get(1..) == Some(k)));
    DType::ALL.into_iter().find(same).ok_or_else(|| {
        format!("holds '{name}'; only f2 f4 f8 i4 i8 u1 u4 b1 are known: convert it with a.astype(...)")
    })
}

fn dims(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || "has a header whose shape is not a list of sizes".to_string();
    let inner = text.strip_prefix('(').and_then(|t| t.split_once(')')).ok_or_else(wrong)?.0;
    let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
    // Python 2 wrote long integers as 3L.
    parts.map(|p| p.trim_end_matches('L').parse().map_err(|_| wrong())).collect()
}
