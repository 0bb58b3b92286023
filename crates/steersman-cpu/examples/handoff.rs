//! What handing work to another thread costs: `cargo run --release -p steersman-cpu --example handoff`.

use std::time::{Duration, Instant};

use steersman_cpu::threads::Team;

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!("{cores} cores; round trip of an empty body");
    for parts in [2, cores.max(2)] {
        let team = Team::new(parts);
        let _ = team.run(parts, &|_| ());
        let (hot, hot_p90) = round_trips(&team, parts, 100_000, Duration::ZERO);
        let (cold, cold_p90) = round_trips(&team, parts, 300, Duration::from_millis(1));
        println!("{parts} parts   hot  {hot:6.2} µs median {hot_p90:6.2} µs p90");
        println!("{parts} parts   cold {cold:6.2} µs median {cold_p90:6.2} µs p90");
        if parts == cores {
            break;
        }
    }
}

/// Median and 90th percentile in microseconds, over `rounds` runs with `pause` before each.
fn round_trips(team: &Team, parts: usize, rounds: usize, pause: Duration) -> (f64, f64) {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            let start = Instant::now();
            let outcome = team.run(parts, &|_| ());
            let time = start.elapsed().as_secs_f64() * 1e6;
            assert!(outcome.is_parallel());
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[rounds / 2], times[rounds * 9 / 10])
}
