//! `.npy` files: how numpy keeps one array. Versions 1 to 3 are read, version 1 is written.
//!
//! Little-endian `f2 f4 f8 i4 i8 u1 b1`, in C or Fortran order. numpy has no bfloat16, so neither has this.

mod header;

use crate::replace::replace;
use header::Header;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use steersman_core::{DType, Operand, Strides, WorkloadError};

/// An array as it was in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Shape; empty for a scalar.
    pub dims: Vec<usize>,
    /// Whether the first index moves fastest.
    pub fortran: bool,
    /// The elements in memory order.
    pub bytes: Vec<u8>,
}

/// What is wrong with a file.
#[derive(Debug)]
pub struct NpyError {
    path: PathBuf,
    problem: String,
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl Array {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Array, NpyError> {
        let wrong = |problem: String| NpyError { path: path.to_path_buf(), problem };
        let bytes = fs::read(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        Array::parse(bytes).map_err(wrong)
    }

    fn parse(mut bytes: Vec<u8>) -> Result<Array, String> {
        let (header, start) = Header::parse(&bytes)?;
        let elements = header.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let want = elements.and_then(|n| n.checked_mul(header.dtype.size()));
        let have = bytes.len() - start;
        let shape = show(&header.dims);
        match want {
            Some(want) if want == have => {}
            Some(want) if want > have => {
                return Err(format!("is cut short: shape {shape} needs {want} bytes, {have} are there"));
            }
            Some(want) => return Err(format!("holds {} bytes too many for shape {shape}", have - want)),
            None => return Err(format!("claims a shape that no memory holds: {shape}")),
        }
        bytes.drain(..start);
        if header.dtype == DType::Bool {
            // Kernels rely on 0 and 1; numpy itself takes anything else for true.
            bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(Array { dtype: header.dtype, dims: header.dims, fortran: header.fortran, bytes })
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<(), NpyError> {
        let wrong = |problem: String| NpyError { path: path.to_path_buf(), problem };
        let header = Header { dtype: self.dtype, dims: self.dims.clone(), fortran: self.fortran };
        let mut bytes = header.write().map_err(wrong)?;
        bytes.extend_from_slice(&self.bytes);
        replace(path, &bytes).map_err(|e| wrong(format!("cannot be written: {e}")))
    }

    /// The array as a workload's operand, Fortran order as strides. A scalar is one element there, as it is written.
    pub fn operand(&self) -> Result<Operand, WorkloadError> {
        if self.dims.is_empty() {
            return Operand::new(self.dtype, &[1]);
        }
        if !self.fortran {
            return Operand::new(self.dtype, &self.dims);
        }
        let mut step = 1isize;
        let mut strides = Strides::new();
        for &d in &self.dims {
            strides.push(step);
            step = step.saturating_mul(d.max(1) as isize);
        }
        Operand::strided(self.dtype, &self.dims, strides)
    }
}

/// A shape as the text form writes it.
pub fn show(dims: &[usize]) -> String {
    match dims {
        [] => "1".to_string(),
        _ => dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Whether numpy has this element type; if not, why not.
pub fn writable(dtype: DType) -> Result<(), String> {
    header::descr(dtype).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn refusal(bytes: Vec<u8>) -> String {
        Array::parse(bytes).expect_err("it should have been refused")
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let path = std::env::temp_dir().join(format!("steer-npy-{}.npy", std::process::id()));
        for dims in [vec![], vec![0], vec![3], vec![2, 3], vec![1, 1, 1, 2]] {
            for dtype in DType::ALL.into_iter().filter(|d| *d != DType::BF16) {
                let n = dims.iter().product::<usize>() * dtype.size();
                let bytes = (0..n).map(|i| (i % 2) as u8).collect();
                let a = Array { dtype, dims: dims.clone(), fortran: false, bytes };
                a.write(&path).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(fs::read(&path).expect("written just now").len() % 64, n % 64, "data is aligned");
                assert_eq!(Array::read(&path).unwrap_or_else(|e| panic!("{e}")), a);
            }
        }
        let _ = fs::remove_file(path);
    }

    #[test]
    fn a_file_of_numpy_itself_is_read() {
        // np.save of np.asfortranarray([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
        let text = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }          \n";
        let data: Vec<u8> = [1i32, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_le_bytes()).collect();
        let a = Array::parse(file(text, &data)).expect("a right file");
        assert_eq!((a.dtype, a.dims.as_slice(), a.fortran), (DType::I32, &[2, 3][..], true));
        assert_eq!(a.operand().expect("a right shape").strides.as_slice(), [1, 2]);
        // np.save of np.array([3000000000, 4294967295], dtype=np.uint32)
        let text = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }          \n";
        let data: Vec<u8> = [3_000_000_000u32, u32::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        let a = Array::parse(file(text, &data)).expect("a right file");
        assert_eq!((a.dtype, a.dims.as_slice(), a.bytes), (DType::U32, &[2][..], data));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        let dict = |descr: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n")
        };
        let cases = [
            (b"hello".to_vec(), "not a .npy file"),
            (file("", b""), "header"),
            (file(&dict("'>f4'", "(1,)"), &[0; 4]), "big-endian"),
            (file(&dict("'<c8'", "(1,)"), &[0; 8]), "'<c8'"),
            (file(&dict("[('a', '<f4')]", "(1,)"), &[0; 4]), "records"),
            (file(&dict("'<f4'", "(2,)"), &[0; 4]), "cut short"),
            (file(&dict("'<f4'", "(1,)"), &[0; 5]), "1 bytes too many"),
            (file(&dict("'<f4'", "(-1,)"), &[0; 4]), "shape"),
            (file(&dict("'<f4'", "(99999999999, 99999999999)"), &[0; 4]), "no memory holds"),
            (b"\x93NUMPY\x09\x00\x10\x00".to_vec(), "version 9"),
            (b"\x93NUMPY\x01\x00\xff\xff{}".to_vec(), "cut short"),
        ];
        for (bytes, want) in cases {
            let got = refusal(bytes);
            assert!(got.contains(want), "{got:?} should say {want:?}");
        }
    }

    #[test]
    fn bfloat16_is_refused_because_numpy_has_none() {
        assert!(writable(DType::BF16).expect_err("no bfloat16").contains("bfloat16"));
    }
}
