//! Finds three clouds of points with k-means, written with plain array ops.

mod program;

use program::{Flags, report, runtime, start, time};
use steersman::core::DType;
use steersman::{Array, Axis, Error, Runtime, Seed};

const CENTRES: [f32; 6] = [0.0, 0.0, 8.0, 1.0, 3.0, 9.0];

/// Points around the centres, a third of them around each.
fn points(rt: &Runtime, each: usize) -> Result<Array, Error> {
    let centres = rt.from_slice(&CENTRES, [3, 1, 2])?;
    Ok((rt.normal([3, each, 2], Seed(3)) + &centres).reshape([3 * each, 2]))
}

/// Squared distance of every point to every centre.
fn distances(points: &Array, centres: &Array) -> Array {
    let squares = |a: &Array| (a * a).sum(Axis(1));
    squares(points).expand(1) - 2.0 * points.matmul(&centres.t()) + squares(centres)
}

/// One round: every point to its nearest centre, every centre to the middle of its points.
fn round(rt: &Runtime, points: &Array, centres: &Array) -> Array {
    let nearest = distances(points, centres).argmin(Axis(1));
    let belongs = nearest.expand(1).eq(rt.arange(0i64, 3, 1)).cast(DType::F32);
    let sums = belongs.t().matmul(points);
    let counts = belongs.sum(Axis(0));
    sums / counts.expand(1)
}

fn main() -> std::process::ExitCode {
    start("kmeans", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("points", 300_000), ("rounds", 12)]);
    let rt = runtime()?;
    let points = points(&rt, flags.get("points").div_ceil(3))?;
    points.eval()?;
    let mut found = Vec::new();
    let (spread, times) = time(|| {
        // One point of each cloud to start from, so that the clouds keep their order.
        let each = points.shape()[0] as isize / 3;
        let rows: Vec<Array> = (0..3).map(|c| points.index(0, c * each)).collect();
        let mut centres = rt.stack(&rows.iter().collect::<Vec<_>>(), 0);
        for _ in 0..flags.get("rounds") {
            centres = round(&rt, &points, &centres);
        }
        let spread = distances(&points, &centres).min(Axis(1)).mean(..);
        rt.eval_all(&[&centres, &spread])?;
        found = centres.to_vec::<f32>()?;
        Ok(f64::from(spread.item::<f32>()?))
    })?;
    // Points lie about their centre with deviation 1 in both directions: 2 in all.
    let far = found.iter().zip(CENTRES).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let worst = ("farthest_centre", f64::from(far));
    // Means of so many points lie so far off by chance (five deviations), and few points lie nearer to their own middle.
    let each = points.shape()[0] as f64 / 3.0;
    let within = 0.01 + 10.0 / (3.0 * each).sqrt() + 2.0 / each;
    report(&flags, "kmeans", spread, 2.0, within, &times, &[worst]);
    if f64::from(far) > 0.03 + 5.0 / each.sqrt() {
        eprintln!("kmeans: a centre is {far} away from where it should be");
        std::process::exit(1);
    }
    Ok(())
}
