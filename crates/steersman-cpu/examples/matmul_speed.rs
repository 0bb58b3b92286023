//! Own products against their peers, interleaved in one process: prints times and the ratio of the
//! best peer to our best (above 1 is ours).
//!
//! `cargo run --release -p steersman-cpu --features faer --example matmul_speed -- [f32|f64|all] [shapes|-] [blas.so ...]`
//!
//! Shapes are `64` or `8x4096x4096`, separated by commas. In the environment: `LAYOUT` is `nn`, `nt`,
//! `tn` or `tt` (which operands are transposed), `BLOCKS` is `mc,kc,nc` of the packed product,
//! `LEVEL` is `sse2`, `avx2` or `avx512` (ours only), `THREADS`
//! is 1 or 2 (ours, split over a helper that spins, and the BLAS libraries).

use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use steersman_cpu::isa::Level;
use steersman_cpu::matmul::blas::Blas;
use steersman_cpu::matmul::{
    Blocks, Float, Gemm, Scratch, Walk, by_gemm_crate, by_matrixmultiply, gemv, packed, small, split,
};

/// A second thread that spins for work, so that handing over costs a fraction of a microsecond.
#[derive(Default)]
struct Helper {
    /// Odd while there is work.
    turn: AtomicUsize,
    stop: AtomicBool,
    /// Whether it may spin: it would take a core from a peer's own threads.
    awake: AtomicBool,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Helper {
    fn spin(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            if self.turn.load(Ordering::Acquire) % 2 == 1 {
                let work = self.work.lock().expect("no work panics").take().expect("an odd turn has work");
                work();
                self.turn.fetch_add(1, Ordering::Release);
            }
            if self.awake.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
    }

    /// Runs `product` on both halves of `g` at the same time.
    fn both<T: Float>(&self, g: &Gemm<T>, walk: Walk, product: impl Fn(&Gemm<T>) + Copy + Send + 'static) {
        let parts: Vec<Gemm<T>> = split(g, 2, 16, walk).collect();
        if let Some(&part) = parts.get(1) {
            *self.work.lock().expect("no work panics") = Some(Box::new(move || product(&part)));
            self.turn.fetch_add(1, Ordering::Release);
        }
        parts.first().inspect(|part| product(part));
        while self.turn.load(Ordering::Acquire) % 2 == 1 {
            std::hint::spin_loop();
        }
    }
}

type Product<'a, T> = Box<dyn FnMut(&Gemm<T>) + 'a>;

/// Something that multiplies, and whether it is ours.
struct Entry<'a, T> {
    name: String,
    own: bool,
    run: Product<'a, T>,
}

/// What differs between f32 and f64 here.
trait Peer: Float {
    const NAME: &'static str;
    unsafe fn blas(blas: &Blas, g: &Gemm<Self>);
    #[cfg(feature = "faer")]
    unsafe fn faer(g: &Gemm<Self>);
}

macro_rules! peer {
    ($t:ident, $blas:ident) => {
        impl Peer for $t {
            const NAME: &'static str = stringify!($t);
            unsafe fn blas(blas: &Blas, g: &Gemm<Self>) {
                // SAFETY: the caller's promise is the same.
                unsafe { blas.$blas(g) }.expect("row-major operands are accepted");
            }
            #[cfg(feature = "faer")]
            unsafe fn faer(g: &Gemm<Self>) {
                // SAFETY: the caller vouches for the operands at these strides.
                unsafe {
                    let a = faer::MatRef::from_raw_parts(g.a, g.m, g.k, g.a_rs, g.a_cs);
                    let b = faer::MatRef::from_raw_parts(g.b, g.k, g.n, g.b_rs, g.b_cs);
                    let c = faer::MatMut::from_raw_parts_mut(g.c, g.m, g.n, g.c_rs, 1);
                    faer::linalg::matmul::matmul(c, faer::Accum::Replace, a, b, 1.0, faer::Par::Seq);
                }
            }
        }
    };
}
peer!(f32, sgemm);
peer!(f64, dgemm);

/// The shapes of the comparison, or those asked for: `64,8x4096x4096`.
fn shapes(filter: &str) -> Vec<(usize, usize, usize)> {
    let cubes = [1, 10, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 512, 1024, 2048];
    let flat = [(1, 4096, 4096), (4096, 4096, 1), (8, 4096, 4096), (4096, 64, 4096)];
    if filter.is_empty() || filter == "-" {
        return cubes.into_iter().map(|s| (s, s, s)).chain(flat).collect();
    }
    let shape = |text: &str| match text.split('x').map(str::parse).collect::<Result<Vec<_>, _>>().as_deref() {
        Ok([s]) => Some((*s, *s, *s)),
        Ok([m, k, n]) => Some((*m, *k, *n)),
        _ => None,
    };
    filter.split(',').filter_map(shape).collect()
}

fn bench<T: Peer>(filter: &str, layout: &str, libraries: &[Blas], helper: Option<&Helper>) {
    let asked = std::env::var("LEVEL").unwrap_or_default();
    let level = Level::present().find(|level| level.name() == asked).unwrap_or(Level::best());
    let mut blocks = Blocks::for_caches(32 << 10, 1 << 20, 16 << 20, size_of::<T>(), level);
    if let Ok(given) = std::env::var("BLOCKS") {
        let sizes: Vec<usize> = given.split(',').filter_map(|s| s.parse().ok()).collect();
        blocks = Blocks { mc: sizes[0], kc: sizes[1], nc: sizes[2] };
    }
    println!("{blocks:?}");
    for (m, k, n) in shapes(filter) {
        let shape = format!("{m}x{k}x{n}");
        let fill =
            |len: usize| (0..len).map(|i| T::from_f64((i * 37 % 101) as f64 / 101.0)).collect::<Vec<_>>();
        let (a, b) = (fill(m * k), fill(k * n));
        let mut c = vec![T::from_f64(0.0); m * n + 16];
        let offset = c.as_ptr().align_offset(64);
        let g = Gemm {
            m,
            k,
            n,
            a: a.as_ptr(),
            a_rs: if layout.starts_with('t') { 1 } else { k as isize },
            a_cs: if layout.starts_with('t') { m as isize } else { 1 },
            b: b.as_ptr(),
            b_rs: if layout.ends_with('t') { 1 } else { n as isize },
            b_cs: if layout.ends_with('t') { k as isize } else { 1 },
            c: c[offset..].as_mut_ptr(),
            c_rs: n as isize,
        };
        let mut entries: Vec<Entry<T>> = Vec::new();
        let mut add = |name: &str, own: bool, run: Product<'_, T>| {
            // SAFETY: lifetimes only: the closures end with this loop body.
            let run = unsafe { std::mem::transmute::<Product<'_, T>, Product<'_, T>>(run) };
            entries.push(Entry { name: name.to_owned(), own, run });
        };
        // SAFETY (all below): g describes the three vectors above.
        let run_small = move |g: &Gemm<T>| unsafe { small(level, g) };
        let run_packed =
            move |g: &Gemm<T>| Scratch::with_local(|scratch| unsafe { packed(level, g, blocks, scratch) });
        let run_gemv = move |g: &Gemm<T>| unsafe { gemv(level, g) };
        if let Some(helper) = helper {
            add("small", true, Box::new(move |g| helper.both(g, Walk::Down, run_small)));
            add("packed", true, Box::new(move |g| helper.both(g, Walk::Along, run_packed)));
            if m == 1 || n == 1 {
                add("gemv", true, Box::new(move |g| helper.both(g, Walk::Down, run_gemv)));
            }
        }
        if m * k * n <= 1 << 31 {
            add("small", true, Box::new(run_small));
        }
        if m * k * n >= 1000 {
            add("packed", true, Box::new(run_packed));
        }
        if m == 1 || n == 1 {
            add("gemv", true, Box::new(run_gemv));
        }
        add("gemm", false, Box::new(|g| unsafe { by_gemm_crate(g) }));
        #[cfg(feature = "faer")]
        add("faer", false, Box::new(|g| unsafe { T::faer(g) }));
        add("matrixmultiply", false, Box::new(|g| unsafe { by_matrixmultiply(g) }));
        for blas in libraries {
            add(blas.name(), false, Box::new(move |g| unsafe { T::blas(blas, g) }));
        }
        let times = measure(&mut entries, &g, helper);
        let best = |own: bool| {
            let of = entries.iter().zip(&times).filter(|(e, _)| e.own == own);
            of.map(|(e, t)| (*t, e.name.clone())).min_by(|x, y| x.0.total_cmp(&y.0)).expect("one of each")
        };
        let (ours, theirs) = (best(true), best(false));
        print!("{} {shape:>14} ", T::NAME);
        for (e, t) in entries.iter().zip(&times) {
            print!(" {}={}", e.name, show(*t));
        }
        let rate = 2.0 * (m * k * n) as f64 / ours.0 / 1e9;
        println!("  | {} / {} = {:.2}  {rate:.0} GF/s", theirs.1, ours.1, theirs.0 / ours.0);
    }
}

fn show(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0}ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2}us", s * 1e6),
        s => format!("{:.2}ms", s * 1e3),
    }
}

/// Best time of each, over many interleaved rounds. The best, not the median: other programs share
/// this machine.
fn measure<T: Peer>(entries: &mut [Entry<T>], g: &Gemm<T>, helper: Option<&Helper>) -> Vec<f64> {
    let mut best = vec![f64::MAX; entries.len()];
    // BLAS pools spin on for up to a fifth of a second after a call: few long turns with pauses.
    let (turns, most) = if helper.is_some() { (10, 2) } else { (1, 300) };
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < most.min(5) || (started.elapsed().as_secs_f64() < 0.6 && rounds < most) {
        for (at, entry) in entries.iter_mut().enumerate() {
            if let Some(helper) = helper {
                helper.awake.store(entry.own, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(250));
            }
            // The first calls of a turn bring the operands back from whatever ran before.
            (entry.run)(black_box(g));
            let once = Instant::now();
            (entry.run)(black_box(g));
            let calls = (20e-6 / once.elapsed().as_secs_f64().max(20e-9)).ceil() as usize;
            for _ in 0..turns {
                let started = Instant::now();
                for _ in 0..calls {
                    (entry.run)(black_box(g));
                }
                best[at] = best[at].min(started.elapsed().as_secs_f64() / calls as f64);
            }
        }
        rounds += 1;
    }
    best
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dtype = arguments.first().map_or("all", String::as_str);
    let filter = arguments.get(1).map_or("", String::as_str);
    let layout = std::env::var("LAYOUT").unwrap_or_default();
    let mut libraries: Vec<Blas> =
        arguments.iter().skip(2).filter_map(|path| Blas::find(Some(Path::new(path)))).collect();
    if libraries.is_empty() {
        libraries.extend(Blas::find(None));
    }
    let threads = if std::env::var("THREADS").is_ok_and(|t| t == "2") { 2 } else { 1 };
    for blas in &libraries {
        blas.set_threads(threads);
        println!("{}", blas.identity());
    }
    let helper = Helper::default();
    std::thread::scope(|scope| {
        if threads == 2 {
            scope.spawn(|| helper.spin());
        }
        let helping = (threads == 2).then_some(&helper);
        if dtype != "f64" {
            bench::<f32>(filter, &layout, &libraries, helping);
        }
        if dtype != "f32" {
            bench::<f64>(filter, &layout, &libraries, helping);
        }
        helper.stop.store(true, Ordering::Relaxed);
    });
}
