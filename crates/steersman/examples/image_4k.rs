//! Normalises a batch of images, bends their contrast and says how far they changed, at 4K by default.
//!
//! `cargo run --release --example image_4k -- --batch 4 --height 2160 --width 3840 --json`

mod program;

use program::{Flags, report, runtime, start, time};
use steersman::{Array, Error, Over};

fn pixel(index: usize) -> f64 {
    let word = (index as u32).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    f64::from(word) / 2f64.powi(32)
}

/// Mean squared change of images that are normalised one by one and bent.
fn change(images: &Array) -> Array {
    let each = || Over::axes([1, 2]).keep();
    let centred = images - &images.mean(each());
    let deviation = ((&centred * &centred).mean(each()) + 1e-6).sqrt();
    let bent = (centred / deviation * 1.0123 - 0.02).maximum(0.0).pow(1.8);
    let off = bent - images;
    (&off * &off).mean(..)
}

/// The same by plain loops in f64.
fn reference(batch: usize, size: usize) -> f64 {
    let mut total = 0.0;
    for b in 0..batch {
        let pixels = || (0..size).map(|i| pixel(b * size + i));
        let mean = pixels().sum::<f64>() / size as f64;
        let variance = pixels().map(|x| (x - mean) * (x - mean)).sum::<f64>() / size as f64;
        let deviation = (variance + 1e-6).sqrt();
        total += pixels()
            .map(|x| {
                let bent = ((x - mean) / deviation * 1.0123 - 0.02).max(0.0).powf(1.8);
                (bent - x) * (bent - x)
            })
            .sum::<f64>();
    }
    total / (batch * size) as f64
}

fn main() -> std::process::ExitCode {
    start("image_4k", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("batch", 4), ("height", 2160), ("width", 3840)]);
    let (batch, height, width) = (flags.get("batch"), flags.get("height"), flags.get("width"));
    let rt = runtime()?;
    let size = batch.checked_mul(height).and_then(|n| n.checked_mul(width)).unwrap_or(usize::MAX);
    let mut pixels: Vec<f32> = Vec::new();
    pixels.try_reserve_exact(size).map_err(|why| Error::Memory {
        workload: format!("{batch} images of {height} by {width}"),
        why: why.to_string(),
    })?;
    pixels.extend((0..size).map(|i| pixel(i) as f32));
    let images = rt.from_vec(pixels, [batch, height, width])?;
    let (result, times) = time(|| Ok(f64::from(change(&images).item::<f32>()?)))?;
    let plan = rt.explain(&change(&images))?;
    if !flags.json {
        println!("{plan}");
    }
    let peak = (plan.input_bytes + plan.peak_bytes) as f64;
    let more = [("input_bytes", plan.input_bytes as f64), ("peak_bytes", peak)];
    let reference = reference(batch, height * width);
    report(&flags, "image_4k", result, reference, 1e-4 * reference, &times, &more);
    Ok(())
}
