//! Every kernel for moves writes what the definition says; see `conformance/bodies/moves.rs`.

#[path = "conformance/bodies/moves.rs"]
mod bodies;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use std::sync::{Arc, LazyLock};
use steersman_core::{Address, DType, DeviceId, Io, Kernel, Params, Workload};
use steersman_cpu::{context::Context, host::Host, moves, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    // Where nothing is known of caches they are taken to be small, and small results are streamed past them.
    let host = Arc::new(Host { caches: Vec::new(), ..Host::detect() });
    Some(moves::kernels(&Context { device: DeviceId(0), team, host }))
});

/// Larger than the caches, with rows of the result that begin at cache lines.
const STREAMED: [&str; 4] = [
    "transpose f32 1024x512",
    "transpose u8 2048x1024",
    "transpose f64 3x256x208 perm=0,2,1",
    "copy f32 700001",
];
/// As large, but with rows that begin anywhere.
const OFF_THE_LINES: &str = "transpose f32 1023x1025";

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    large: &[STREAMED[0], STREAMED[1], STREAMED[2], STREAMED[3], OFF_THE_LINES],
    types: &DType::ALL,
    cases: 300,
};

fn kernels() -> &'static [Arc<dyn Kernel>] {
    KERNELS.as_ref().expect("there is always a CPU")
}

#[test]
fn results_larger_than_the_caches_are_streamed() {
    for text in STREAMED {
        let w: Workload = text.parse().expect("a workload");
        let streams = kernels().iter().filter(|k| k.name() == "cpu/move-stream" && k.supports(&w).is_ok());
        assert_eq!(streams.count(), cfg!(target_arch = "x86_64") as usize, "{text}");
    }
}

#[test]
fn rows_off_the_cache_lines_are_not_streamed() {
    let w: Workload = OFF_THE_LINES.parse().expect("a workload");
    let refused: Vec<String> =
        kernels().iter().filter_map(|k| k.supports(&w).err()).map(|r| r.to_string()).collect();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(refused, ["rows of the result do not begin at cache lines"]);
    }
}

/// Bytes around a result that nobody may touch.
const GUARD: usize = 128;

#[test]
fn narrow_matrices_are_turned_round_and_nothing_beside_them_is_written() {
    for dtype in [DType::U8, DType::F16, DType::F32, DType::F64] {
        let size = dtype.size();
        for narrow in 2..=17usize {
            for long in [2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 33, 50, 64, 100, 131] {
                turned(dtype, size, narrow, long);
                turned(dtype, size, long, narrow);
            }
        }
    }
}

fn turned(dtype: DType, size: usize, rows: usize, cols: usize) {
    let w: Workload = format!("transpose {dtype} {rows}x{cols}").parse().expect("a workload");
    let bytes = rows * cols * size;
    let x: Box<[u8]> = (0..bytes).map(|i| (i * 31 + i / 256) as u8).collect();
    for kernel in kernels().iter().filter(|k| k.supports(&w).is_ok()) {
        for threads in [1, 2, 3] {
            let mut y = vec![0xaa_u8; bytes + 2 * GUARD];
            let (from, to) = (Address::host(x.as_ptr()), Address::host(y[GUARD..].as_mut_ptr()));
            let params = Params { threads, ..Params::SERIAL };
            // SAFETY: both are as large as the workload says; elements are moved by their size, wherever they lie.
            let ran = unsafe { kernel.run(&w, params, Io::new(&[from], to)) };
            assert!(ran.is_ok(), "{} on {w}", kernel.name());
            let (before, rest) = y.split_at(GUARD);
            let (result, after) = rest.split_at(bytes);
            assert!(
                before.iter().chain(after).all(|b| *b == 0xaa),
                "{} t{threads} beside {w}",
                kernel.name()
            );
            for (i, element) in result.chunks_exact(size).enumerate() {
                let (r, c) = (i % rows, i / rows);
                let want = &x[(r * cols + c) * size..][..size];
                assert_eq!(element, want, "{} t{threads} on {w}, element {i}", kernel.name());
            }
        }
    }
}
