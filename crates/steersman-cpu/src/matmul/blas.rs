//! The machine's own BLAS, if it has one: OpenBLAS, MKL, BLIS or Accelerate, loaded at run time.
//!
//! ```
//! use steersman_cpu::matmul::blas::Blas;
//! match Blas::find(None) {
//!     Some(blas) => println!("{} runs here", blas.identity()),
//!     None => println!("no BLAS installed"),
//! }
//! ```

use super::Gemm;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

const ROW_MAJOR: c_int = 101;
const PLAIN: c_int = 111;
const TRANSPOSED: c_int = 112;

/// `cblas_sgemm` and `cblas_dgemm` with 32-bit sizes.
type CblasGemm<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    *const T,
    c_int,
    T,
    *mut T,
    c_int,
);
type SetThreads = unsafe extern "C" fn(c_int);
/// MKL's returns the previous setting.
type SetThreadsLocal = unsafe extern "C" fn(c_int) -> c_int;

/// What is tried, in order, when no path is given. Only names whose CBLAS takes 32-bit sizes.
const NAMES: &[&str] = if cfg!(target_os = "macos") {
    &["/System/Library/Frameworks/Accelerate.framework/Accelerate", "libopenblas.dylib"]
} else if cfg!(windows) {
    &["mkl_rt.2.dll", "libopenblas.dll"]
} else {
    &[
        "libmkl_rt.so.3",
        "libmkl_rt.so.2",
        "libmkl_rt.so",
        "libopenblas.so.0",
        "libopenblas.so",
        "libblis.so.4",
    ]
};

/// How the number of threads is set.
enum Threads {
    /// For the whole library.
    Library(SetThreads),
    /// For the calling thread only.
    Local(SetThreadsLocal),
    /// The library has no such setting.
    Fixed,
}

/// Why a product could not be handed to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An operand has neither contiguous rows nor contiguous columns.
    Layout,
    /// A size or stride does not fit the library's 32-bit integers.
    Size,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refused::Layout => "BLAS needs an operand's rows or its columns to be contiguous",
            Refused::Size => "BLAS takes sizes and strides of at most 2147483647",
        })
    }
}

impl std::error::Error for Refused {}

/// A loaded BLAS library.
pub struct Blas {
    sgemm: CblasGemm<f32>,
    dgemm: CblasGemm<f64>,
    threads: Threads,
    name: String,
    version: String,
    /// Keeps the functions above mapped.
    _library: Library,
}

impl std::fmt::Debug for Blas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blas").field("identity", &self.identity()).finish_non_exhaustive()
    }
}

impl Blas {
    /// Loads the library at `path`, or else the first of the well-known names that is installed.
    pub fn find(path: Option<&Path>) -> Option<Blas> {
        match path {
            Some(path) => Blas::load(path).ok(),
            None => NAMES.iter().find_map(|name| Blas::load(Path::new(name)).ok()),
        }
    }

    /// Loads the library at `path`.
    ///
    /// # Errors
    /// If there is none, or it has not the functions that are called.
    pub fn load(path: &Path) -> Result<Blas, libloading::Error> {
        // SAFETY: a library of this name is a BLAS; its initialisers are what any program that links
        // it runs. The symbols have the types CBLAS and the libraries' own headers declare.
        unsafe {
            let library = Library::new(path)?;
            let sgemm = *library.get::<CblasGemm<f32>>(c"cblas_sgemm")?;
            let dgemm = *library.get::<CblasGemm<f64>>(c"cblas_dgemm")?;
            let threads = if let Ok(set) = library.get::<SetThreadsLocal>(c"MKL_Set_Num_Threads_Local") {
                Threads::Local(*set)
            } else if let Ok(set) = library.get::<SetThreads>(c"openblas_set_num_threads") {
                Threads::Library(*set)
            } else if let Ok(set) = library.get::<SetThreads>(c"bli_thread_set_num_threads") {
                Threads::Library(*set)
            } else {
                Threads::Fixed
            };
            let (name, version) = identify(&library, path);
            Ok(Blas { sgemm, dgemm, threads, name, version, _library: library })
        }
    }

    /// The library's name: `OpenBLAS`, `MKL`, `BLIS`, `Accelerate`, or its file name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the library says about its version; empty where it says nothing.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Name and version: two libraries that may differ in speed differ here.
    pub fn identity(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_owned()
    }

    /// Sets how many threads the coming products use. False if the library cannot be told.
    ///
    /// MKL keeps this apart for each calling thread; OpenBLAS and BLIS have one setting for all.
    pub fn set_threads(&self, threads: usize) -> bool {
        let count = c_int::try_from(threads.max(1)).unwrap_or(c_int::MAX);
        // SAFETY: plain setters of the loaded library.
        unsafe {
            match self.threads {
                Threads::Library(set) => set(count),
                Threads::Local(set) => {
                    set(count);
                }
                Threads::Fixed => return false,
            }
        }
        true
    }

    /// Computes `c = a · b` in f32.
    ///
    /// # Errors
    /// If the library cannot take the operands' layout or size; `c` is untouched then.
    ///
    /// # Safety
    /// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
    pub unsafe fn sgemm(&self, g: &Gemm<f32>) -> Result<(), Refused> {
        // SAFETY: the caller's promise is the same.
        unsafe { call(self.sgemm, g, 1.0, 0.0) }
    }

    /// Computes `c = a · b` in f64.
    ///
    /// # Errors
    /// If the library cannot take the operands' layout or size; `c` is untouched then.
    ///
    /// # Safety
    /// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
    pub unsafe fn dgemm(&self, g: &Gemm<f64>) -> Result<(), Refused> {
        // SAFETY: the caller's promise is the same.
        unsafe { call(self.dgemm, g, 1.0, 0.0) }
    }
}

/// Whether the library can take this product, and why not; cheap enough to ask before every call.
///
/// # Errors
/// If an operand's layout or size is beyond CBLAS.
pub fn accepts<T>(g: &Gemm<T>) -> Result<(), Refused> {
    arguments(g).map(|_| ())
}

/// The transposes and leading dimensions CBLAS takes, as `(op a, lda, op b, ldb, ldc)`.
fn arguments<T>(g: &Gemm<T>) -> Result<(c_int, c_int, c_int, c_int, c_int), Refused> {
    for size in [g.m, g.k, g.n] {
        c_int::try_from(size).map_err(|_| Refused::Size)?;
    }
    let (op_a, lda) = operand(g.m, g.k, g.a_rs, g.a_cs)?;
    let (op_b, ldb) = operand(g.k, g.n, g.b_rs, g.b_cs)?;
    let (_, ldc) = operand(g.m, g.n, g.c_rs, 1)?;
    Ok((op_a, lda, op_b, ldb, ldc))
}

/// One operand's transpose and leading dimension. The stride of an axis of one element is free.
fn operand(rows: usize, columns: usize, rs: isize, cs: isize) -> Result<(c_int, c_int), Refused> {
    let (op, length, stride) = if columns <= 1 || cs == 1 {
        (PLAIN, columns, if rows <= 1 { columns as isize } else { rs })
    } else if rows <= 1 || rs == 1 {
        (TRANSPOSED, rows, cs)
    } else {
        return Err(Refused::Layout);
    };
    if stride < length as isize {
        return Err(Refused::Layout);
    }
    let leading = c_int::try_from(stride.max(1)).map_err(|_| Refused::Size)?;
    Ok((op, leading))
}

unsafe fn call<T: Copy>(gemm: CblasGemm<T>, g: &Gemm<T>, one: T, zero: T) -> Result<(), Refused> {
    let (op_a, lda, op_b, ldb, ldc) = arguments(g)?;
    if g.m == 0 || g.n == 0 {
        return Ok(());
    }
    let (m, n, k) = (g.m as c_int, g.n as c_int, g.k as c_int);
    // SAFETY: the caller vouches for the operands; `arguments` described them as CBLAS reads them.
    unsafe { gemm(ROW_MAJOR, op_a, op_b, m, n, k, one, g.a, lda, g.b, ldb, zero, g.c, ldc) };
    Ok(())
}

/// Name and version by the libraries' own calls.
///
/// # Safety
/// `library` is the BLAS at `path`.
unsafe fn identify(library: &Library, path: &Path) -> (String, String) {
    // SAFETY: types as in the libraries' headers; the strings are static or the buffer's.
    unsafe {
        if let Ok(config) = library.get::<unsafe extern "C" fn() -> *const c_char>(c"openblas_get_config") {
            let text = CStr::from_ptr(config()).to_string_lossy().into_owned();
            return ("OpenBLAS".to_owned(), text.trim_start_matches("OpenBLAS ").trim().to_owned());
        }
        if let Ok(version) =
            library.get::<unsafe extern "C" fn(*mut c_char, c_int)>(c"MKL_Get_Version_String")
        {
            let mut buffer = [0u8; 256];
            version(buffer.as_mut_ptr().cast(), 255);
            let text = String::from_utf8_lossy(&buffer);
            return ("MKL".to_owned(), text.trim_matches(['\0', ' ']).to_owned());
        }
        if let Ok(version) =
            library.get::<unsafe extern "C" fn() -> *const c_char>(c"bli_info_get_version_str")
        {
            return ("BLIS".to_owned(), CStr::from_ptr(version()).to_string_lossy().into_owned());
        }
    }
    let file = path.file_name().map_or_else(String::new, |f| f.to_string_lossy().into_owned());
    (file, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposes_follow_from_strides() {
        assert_eq!(operand(3, 5, 5, 1), Ok((PLAIN, 5)));
        assert_eq!(operand(3, 5, 8, 1), Ok((PLAIN, 8)));
        assert_eq!(operand(3, 5, 1, 3), Ok((TRANSPOSED, 3)));
        assert_eq!(operand(1, 5, 77, 1), Ok((PLAIN, 5)));
        assert_eq!(operand(1, 5, 77, 2), Ok((TRANSPOSED, 2)));
        assert_eq!(operand(3, 1, 4, 9), Ok((PLAIN, 4)));
    }

    #[test]
    fn layouts_cblas_cannot_express_are_refused() {
        assert_eq!(operand(3, 5, 10, 2), Err(Refused::Layout));
        assert_eq!(operand(3, 5, 4, 1), Err(Refused::Layout), "overlapping rows");
        assert_eq!(operand(3, 5, -5, 1), Err(Refused::Layout), "rows in reverse");
        assert_eq!(operand(2, 2, 1 << 40, 1), Err(Refused::Size));
    }
}
