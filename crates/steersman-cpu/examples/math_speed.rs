//! Nanoseconds per element of every function at every level this CPU has, and how often that is faster than a
//! loop over the scalar `std` function, all interleaved in one run on data that stays in the first-level cache.
//!
//! `cargo run --release -p steersman-cpu --example math_speed [name-part]`

use std::hint::black_box;
use std::time::Instant;
use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math;

const ELEMENTS: usize = 4096;
const ROUNDS: usize = 60;
const REPEATS: usize = 8;

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
    ($filter:expr; $($t:ty: $name:ident, $from:expr, $to:expr, $std:expr;)+) => {$(
        if stringify!($name).contains($filter) {
            struct Map<'a>(&'a [$t], &'a mut [$t]);
            impl Body for Map<'_> {
                type Out = ();
                #[inline(always)]
                fn run<I: Isa>(self) {
                    for (x, y) in self.0.iter().zip(self.1.iter_mut()) {
                        *y = math::$name::<I>(*x);
                    }
                }
            }
            let step = ($to - $from) / ELEMENTS as $t;
            let xs: Vec<$t> = (0..ELEMENTS).map(|i| $from + step * ((i * 2477) % ELEMENTS) as $t).collect();
            let runs: Vec<f64> = {
                let scalar: fn($t) -> $t = $std;
                let mut ys = vec![0.0; ELEMENTS];
                let mut by_std = || for (x, y) in xs.iter().zip(black_box(&mut ys)) { *y = scalar(*x) };
                let mut by_level: Vec<_> = Level::present().map(|level| {
                    let (xs, mut ys) = (xs.clone(), vec![0.0; ELEMENTS]);
                    move || level.dispatch(Map(black_box(&xs), black_box(&mut ys)))
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
        f32: exp_f32, -80.0, 80.0, f32::exp;
        f32: expm1_f32, -5.0, 5.0, f32::exp_m1;
        f32: ln_f32, 0.01, 100.0, f32::ln;
        f32: log1p_f32, -0.9, 100.0, f32::ln_1p;
        f32: log2_f32, 0.01, 100.0, f32::log2;
        f32: sin_f32, -100.0, 100.0, f32::sin;
        f32: cos_f32, -100.0, 100.0, f32::cos;
        f32: tan_f32, -100.0, 100.0, f32::tan;
        f32: tanh_f32, -5.0, 5.0, f32::tanh;
        f32: sigmoid_f32, -20.0, 20.0, |x| 1.0 / (1.0 + (-x).exp());
        f32: silu_f32, -20.0, 20.0, |x| x / (1.0 + (-x).exp());
        f64: exp_f64, -80.0, 80.0, f64::exp;
        f64: expm1_f64, -5.0, 5.0, f64::exp_m1;
        f64: ln_f64, 0.01, 100.0, f64::ln;
        f64: log1p_f64, -0.9, 100.0, f64::ln_1p;
        f64: log2_f64, 0.01, 100.0, f64::log2;
        f64: sin_f64, -100.0, 100.0, f64::sin;
        f64: cos_f64, -100.0, 100.0, f64::cos;
        f64: tan_f64, -100.0, 100.0, f64::tan;
        f64: tanh_f64, -5.0, 5.0, f64::tanh;
        f64: sigmoid_f64, -20.0, 20.0, |x| 1.0 / (1.0 + (-x).exp());
        f64: silu_f64, -20.0, 20.0, |x| x / (1.0 + (-x).exp());
    }
}
