//! Nanoseconds per element of every function at every level this CPU has, and how often that is faster than a
//! loop over the scalar `std` function, all interleaved in one run on data that stays in the first-level
//! cache.
//!
//! `cargo run --release -p steersman-cpu --example math_speed [name-part]`

use std::hint::black_box;
use std::time::Instant;
use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math;

const ELEMENTS: usize = 4096;
const ROUNDS: usize = 60;
const REPEATS: usize = 8;

/// The error function by the C library.
fn erf(x: f64) -> f64 {
    unsafe extern "C" {
        fn erf(x: f64) -> f64;
    }
    // SAFETY: a pure function of the C library `std` links against.
    unsafe { erf(x) }
}

/// The exact gelu by the C library.
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

/// The fastest of the rounds for each contender, the contenders taking turns; in ns per element.
fn race(contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    for _ in 0..ROUNDS {
        for (run, best) in contenders.iter_mut().zip(&mut best) {
            let start = Instant::now();
            for _ in 0..REPEATS {
                run();
            }
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / (ELEMENTS * REPEATS) as f64);
        }
    }
    best
}

macro_rules! measure {
    ($filter:expr; $($t:ty: $name:ident($x:ident $(, $w:ident)?), $from:expr, $to:expr, $std:expr;)+) => {$(
        if stringify!($name).contains($filter) {
            struct Map<'a>(&'a [$t], &'a [$t], &'a mut [$t]);
            impl Body for Map<'_> {
                type Out = ();
                #[inline(always)]
                fn run<I: Isa>(self) {
                    for ((&$x, &_second), y) in self.0.iter().zip(self.1).zip(self.2.iter_mut()) {
                        $(let $w = _second;)?
                        *y = math::$name::<I>($x $(, $w)?);
                    }
                }
            }
            let step = ($to - $from) / ELEMENTS as $t;
            let xs: Vec<$t> = (0..ELEMENTS).map(|i| $from + step * ((i * 2477) % ELEMENTS) as $t).collect();
            let seconds: Vec<$t> = xs.iter().rev().copied().collect();
            let runs: Vec<f64> = {
                let scalar: fn($t, $t) -> $t = $std;
                let mut ys = vec![0.0; ELEMENTS];
                let mut by_std = || {
                    for ((x, w), y) in xs.iter().zip(&seconds).zip(black_box(&mut ys)) {
                        *y = scalar(*x, *w);
                    }
                };
                let mut by_level: Vec<_> = Level::present().map(|level| {
                    let (xs, seconds, mut ys) = (xs.clone(), seconds.clone(), vec![0.0; ELEMENTS]);
                    move || level.dispatch(Map(black_box(&xs), &seconds, black_box(&mut ys)))
                }).collect();
                let mut all: Vec<&mut dyn FnMut()> = vec![&mut by_std];
                all.extend(by_level.iter_mut().map(|f| f as &mut dyn FnMut()));
                race(&mut all)
            };
            print!("{:<14} std {:7.3}", stringify!($name), runs[0]);
            for (level, ns) in Level::present().zip(&runs[1..]) {
                print!("   {} {:7.3} ({:4.1}x)", level.name(), ns, runs[0] / ns);
            }
            println!();
        }
    )+};
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let filter = filter.as_str();
    println!("ns per element, {ELEMENTS} elements in cache; in brackets, times faster than scalar std");
    measure! { filter;
        f32: exp_f32(x), -80.0, 80.0, |x, _| x.exp();
        f32: expm1_f32(x), -5.0, 5.0, |x, _| x.exp_m1();
        f32: sigmoid_f32(x), -20.0, 20.0, |x, _| 1.0 / (1.0 + (-x).exp());
        f32: silu_f32(x), -20.0, 20.0, |x, _| x / (1.0 + (-x).exp());
        f32: ln_f32(x), 0.01, 100.0, |x, _| x.ln();
        f32: log1p_f32(x), -0.9, 100.0, |x, _| x.ln_1p();
        f32: log2_f32(x), 0.01, 100.0, |x, _| x.log2();
        f32: sin_f32(x), -100.0, 100.0, |x, _| x.sin();
        f32: cos_f32(x), -100.0, 100.0, |x, _| x.cos();
        f32: tan_f32(x), -100.0, 100.0, |x, _| x.tan();
        f32: asin_f32(x), -1.0, 1.0, |x, _| x.asin();
        f32: acos_f32(x), -1.0, 1.0, |x, _| x.acos();
        f32: atan_f32(x), -5.0, 5.0, |x, _| x.atan();
        f32: sinh_f32(x), -5.0, 5.0, |x, _| x.sinh();
        f32: cosh_f32(x), -5.0, 5.0, |x, _| x.cosh();
        f32: tanh_f32(x), -5.0, 5.0, |x, _| x.tanh();
        f32: erf_f32(x), -4.0, 4.0, |x, _| erf(x.into()) as f32;
        f32: gelu_f32(x), -6.0, 6.0, |x, _| gelu(x.into()) as f32;
        f32: rsqrt_f32(x), 0.01, 100.0, |x, _| 1.0 / x.sqrt();
        f32: floor_f32(x), -100.0, 100.0, |x, _| x.floor();
        f32: round_f32(x), -100.0, 100.0, |x, _| x.round_ties_even();
        f32: pow_f32(x, w), 0.1, 10.0, |x, w| x.powf(w);
        f32: atan2_f32(x, w), -5.0, 5.0, |x, w| x.atan2(w);
        f32: rem_f32(x, w), 0.1, 10.0, |x, w| x % w;
        f32: min_f32(x, w), -5.0, 5.0, |x, w| if x.is_nan() { x } else { x.min(w) };
        f64: exp_f64(x), -80.0, 80.0, |x, _| x.exp();
        f64: expm1_f64(x), -5.0, 5.0, |x, _| x.exp_m1();
        f64: sigmoid_f64(x), -20.0, 20.0, |x, _| 1.0 / (1.0 + (-x).exp());
        f64: silu_f64(x), -20.0, 20.0, |x, _| x / (1.0 + (-x).exp());
        f64: ln_f64(x), 0.01, 100.0, |x, _| x.ln();
        f64: log1p_f64(x), -0.9, 100.0, |x, _| x.ln_1p();
        f64: log2_f64(x), 0.01, 100.0, |x, _| x.log2();
        f64: sin_f64(x), -100.0, 100.0, |x, _| x.sin();
        f64: cos_f64(x), -100.0, 100.0, |x, _| x.cos();
        f64: tan_f64(x), -100.0, 100.0, |x, _| x.tan();
        f64: asin_f64(x), -1.0, 1.0, |x, _| x.asin();
        f64: acos_f64(x), -1.0, 1.0, |x, _| x.acos();
        f64: atan_f64(x), -5.0, 5.0, |x, _| x.atan();
        f64: sinh_f64(x), -5.0, 5.0, |x, _| x.sinh();
        f64: cosh_f64(x), -5.0, 5.0, |x, _| x.cosh();
        f64: tanh_f64(x), -5.0, 5.0, |x, _| x.tanh();
        f64: erf_f64(x), -4.0, 4.0, |x, _| erf(x);
        f64: gelu_f64(x), -6.0, 6.0, |x, _| gelu(x);
        f64: rsqrt_f64(x), 0.01, 100.0, |x, _| 1.0 / x.sqrt();
        f64: floor_f64(x), -100.0, 100.0, |x, _| x.floor();
        f64: round_f64(x), -100.0, 100.0, |x, _| x.round_ties_even();
        f64: pow_f64(x, w), 0.1, 10.0, |x, w| x.powf(w);
        f64: atan2_f64(x, w), -5.0, 5.0, |x, w| x.atan2(w);
        f64: rem_f64(x, w), 0.1, 10.0, |x, w| x % w;
        f64: min_f64(x, w), -5.0, 5.0, |x, w| if x.is_nan() { x } else { x.min(w) };
    }
}
