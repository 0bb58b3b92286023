use crate::{runtime, runtime_with};
use steersman::{Array, Error, Over};

#[test]
fn a_chain_of_a_million_nodes_is_built_read_and_dropped() {
    let rt = runtime();
    let mut x = rt.from_vec(vec![0.0f64; 4], [4]).unwrap();
    for _ in 0..1_000_000 {
        x = &x + 1.0;
    }
    // On a thread with a small stack, so that recursion of any depth would show.
    let read = move || {
        assert_eq!(x.to_vec::<f64>().unwrap(), [1e6; 4]);
        drop(x);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(read).unwrap().join().unwrap();
}

#[test]
fn a_million_nodes_never_read_are_dropped_too() {
    let rt = runtime();
    let x = rt.from_vec(vec![0.0f32; 4], [4]).unwrap();
    let mut y = x.clone();
    for i in 0..1_000_000 {
        y = if i % 2 == 0 { y.reshape([2, 2]).t() } else { &y.reshape([4]) + &x };
    }
    std::thread::Builder::new().stack_size(256 << 10).spawn(move || drop(y)).unwrap().join().unwrap();
}

#[test]
fn a_deep_and_shared_graph_is_walked_once() {
    let rt = runtime();
    let mut x = rt.from_vec(vec![1.0f64; 2], [2]).unwrap();
    // As a tree it would have 2^200 leaves.
    for _ in 0..200 {
        x = (&x + &x) * 0.5;
    }
    assert_eq!(x.to_vec::<f64>().unwrap(), [1.0; 2]);
}

#[test]
fn dead_values_are_dropped_early_and_replaced_in_place() {
    let rt = runtime();
    let n = 512;
    let x = rt.from_vec(vec![1.0f32; n * n], [n, n]).unwrap();
    let mut y: Array = x.clone();
    for _ in 0..10 {
        y = y.matmul(&x) * (1.0 / n as f32);
    }
    let plan = rt.explain(&y).unwrap();
    let one = n * n * 4;
    assert!(plan.peak_bytes <= 2 * one, "{} arrays at once: {plan}", plan.peak_bytes as f64 / one as f64);
    assert!(plan.stages.iter().any(|s| s.in_place || s.workload.contains("matmul(")), "{plan}");
    assert!((y.max(..).item::<f32>().unwrap() - 1.0).abs() < 1e-4);
}

#[test]
fn a_value_that_is_looked_at_twice_is_not_replaced_in_place() {
    let rt = runtime();
    let n = 96;
    let x = rt.from_vec((0..n * n).map(|i| (i % 17) as f32).collect(), [n, n]).unwrap();
    let unit = rt.eye::<f32>(n);
    let want: Vec<f32> = (0..n * n)
        .map(|i| ((i % 17) + ((i % n) * n + i / n) % 17 + ((n - 1 - i / n) * n + i % n) % 17) as f32)
        .collect();
    // The product is nobody's but this plan's, and is read straight, turned and upside down at once.
    let product = x.matmul(&unit);
    let sum = &product + product.t() + product.flip(0);
    drop(product);
    assert!(sum.to_vec::<f32>().unwrap() == want);
    let product = x.matmul(&unit);
    let sum = &product + product.t();
    drop(product);
    let plain: Vec<f32> = (0..n * n).map(|i| ((i % 17) + ((i % n) * n + i / n) % 17) as f32).collect();
    assert!(sum.to_vec::<f32>().unwrap() == plain);
}

/// The program of the example `image_4k`: images normalised one by one and bent, and how far they changed.
fn change(images: &Array) -> Array {
    let each = || Over::axes([1, 2]).keep();
    let centred = images - &images.mean(each());
    let deviation = ((&centred * &centred).mean(each()) + 1e-6).sqrt();
    let bent = (centred / deviation * 1.0123 - 0.02).maximum(0.0).pow(1.8);
    let off = bent - images;
    (&off * &off).mean(..)
}

#[test]
fn the_image_program_needs_no_more_than_1_2_times_its_input_beside_it() {
    let dims = [4, 540, 960];
    let input: usize = dims.iter().product::<usize>() * 4;
    let images = |rt: &steersman::Runtime| {
        let pixels = (0..input / 4).map(|i| (i * 37 % 256) as f32 / 256.0).collect();
        rt.from_vec(pixels, dims).unwrap()
    };
    // The vector is the program's own; the limit is on what the runtime adds.
    let rt = runtime_with(&[("memory.limit", &(input * 12 / 10).to_string())]);
    let result = change(&images(&rt));
    let plan = rt.explain(&result).unwrap();
    assert_eq!(plan.input_bytes, input);
    assert!((input + plan.peak_bytes) as f64 <= 2.2 * input as f64, "{plan}");
    assert!(result.item::<f32>().unwrap() > 0.0);
    // With the middle held by someone it is kept, and the same limit is too low for two of them.
    let images = images(&rt);
    let (one, two) = (images.exp(), images.sin());
    // (Unless they are kept on a device, whose memory has a limit of its own.)
    let away = rt.explain_all(&[&one, &two]).is_ok_and(|p| !p.device_peak_bytes.is_empty());
    let outcome = rt.eval_all(&[&one, &two]);
    assert!(away || matches!(outcome, Err(Error::PlanTooLarge { .. })), "{outcome:?}");
    assert!(change(&images).item::<f32>().is_ok(), "what was given stays usable");
}
