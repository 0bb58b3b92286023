//! Three ways to sort, one function: which is quickest depends on the size and on the machine.
//!
//! `cargo run --release --example adaptive_sort`

use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman::Adaptive;
use steersman_core::{Engine, Seconds};

/// Least significant digit first, 11 bits at a time: three passes for any input.
fn radix(v: &mut Vec<u32>) {
    const BITS: u32 = 11;
    let mut other = vec![0; v.len()];
    for shift in [0, BITS, 2 * BITS] {
        let digit = |x: u32| (x >> shift) as usize & ((1 << BITS) - 1);
        let mut starts = [0usize; 1 << BITS];
        for &x in v.iter() {
            starts[digit(x)] += 1;
        }
        let mut at = 0;
        for s in &mut starts {
            at += std::mem::replace(s, at);
        }
        for &x in v.iter() {
            let to = &mut starts[digit(x)];
            other[*to] = x;
            *to += 1;
        }
        std::mem::swap(v, &mut other);
    }
}

/// Both halves at once, then merged.
fn parallel(v: &mut Vec<u32>) {
    let middle = v.len() / 2;
    let (left, right) = v.split_at_mut(middle);
    std::thread::scope(|s| {
        s.spawn(|| left.sort_unstable());
        right.sort_unstable();
    });
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let take_left = left[i] <= right[j];
        merged.push(if take_left { left[i] } else { right[j] });
        i += usize::from(take_left);
        j += usize::from(!take_left);
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    *v = merged;
}

/// The same for the same size, so that results can be compared.
fn shuffled(n: usize) -> Vec<u32> {
    let mut x = n as u64 | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 16) as u32
    };
    (0..n).map(|_| next()).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Arc::new(Engine::default());
    let sort = Adaptive::new("sort/u32", &engine)
        .variant("std", |v: &mut Vec<u32>| v.sort_unstable())
        .variant("radix", radix)
        .variant_threads("parallel", 2, parallel)
        .size(|v| v.len())
        .check(|a, b| a == b)
        .build()?;

    let sizes = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let started = Instant::now();
    let found = sort.calibrate(&sizes, shuffled, Duration::from_millis(1500));
    println!("{} runs measured in {:.1} s\n", found.samples, started.elapsed().as_secs_f64());

    print!("{:>9}", "size");
    sort.names().for_each(|name| print!("{name:>11}"));
    println!("   chosen");
    for row in &found.rows {
        print!("{:>9}", row.size);
        row.times.iter().for_each(|t| print!("{:>11}", t.map_or("-".to_string(), |t| t.to_string())));
        println!("   {}", row.chosen.as_deref().unwrap_or("-"));
    }

    println!();
    for (size, name) in sort.crossovers(sizes[0], sizes[sizes.len() - 1]) {
        println!("{name} from {size}");
    }

    let mut calls = 0;
    let (started, mut spent) = (Instant::now(), Duration::ZERO);
    while started.elapsed() < Duration::from_millis(500) {
        let mut data = shuffled(10 + (calls * 7919) % 50_000);
        let before = Instant::now();
        sort.call(&mut data);
        spent += before.elapsed();
        if !data.is_sorted() {
            return Err(format!("a slice of {} came back unsorted", data.len()).into());
        }
        calls += 1;
    }
    println!(
        "\n{calls} calls of mixed sizes, all sorted, {} each",
        Seconds(spent.as_secs_f64() / calls as f64)
    );
    Ok(())
}
