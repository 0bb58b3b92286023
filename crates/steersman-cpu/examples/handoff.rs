//! What handing work to another thread costs: `cargo run --release -p steersman-cpu --example handoff`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use steersman_cpu::threads::Team;

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let team = Team::new(2);
    println!("{cores} cores, team of 2, µs                           median     p90");
    report("hot: round trip of an empty body", samples(100_000, Duration::ZERO, || empty(&team)));
    let pause = Duration::from_millis(1);
    report("after 1 ms: round trip of an empty body", samples(500, pause, || empty(&team)));
    report("after 1 ms: until the worker has begun", samples(500, pause, || begun(&team)));
    report("hot: until the worker has begun", samples(20_000, Duration::ZERO, || begun(&team)));
    let all = Team::new(cores);
    let doubled = std::iter::successors(Some(2), |t| Some(2 * t)).take_while(|t| *t <= cores);
    for threads in doubled {
        let ten = || busy(&all, threads);
        report(&format!("hot: {threads} parts of 10 µs each"), samples(2000, Duration::ZERO, ten));
        report(&format!("after 1 ms: {threads} parts of 10 µs each"), samples(500, pause, ten));
    }
}

/// One part a thread, each of which takes 10 µs.
fn busy(team: &Team, threads: usize) {
    let _ = team.run(threads, &|_| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(10) {
            std::hint::spin_loop();
        }
    });
}

fn report(what: &str, mut micros: Vec<f64>) {
    micros.sort_by(f64::total_cmp);
    let (median, p90) = (micros[micros.len() / 2], micros[micros.len() * 9 / 10]);
    println!("{what:<44} {median:7.2} {p90:7.2}");
}

fn samples(rounds: usize, pause: Duration, once: impl Fn()) -> Vec<f64> {
    (0..rounds)
        .map(|_| {
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            let start = Instant::now();
            once();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect()
}

fn empty(team: &Team) {
    let _ = team.run(2, &|_| ());
}

/// Part 0 holds on until part 1 has begun, so it cannot be done for the worker.
fn begun(team: &Team) {
    let begun = AtomicBool::new(false);
    let _ = team.run(2, &|part| {
        if part == 1 {
            begun.store(true, Relaxed);
        }
        while !begun.load(Relaxed) {
            std::hint::spin_loop();
        }
    });
}
