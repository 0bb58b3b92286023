//! A matrix product with bias and relu as one stage against the quickest product and then the quickest group, in turns:
//! `cargo run --release -p steersman-cpu --example epilogue_speed -- 512x64x2048 1024x1024x1024`
//!
//! Prints microseconds of each way (least of all rounds) and the ratio of the sequence to the one stage.

use std::sync::Arc;
use std::time::Instant;
use steersman_core::expr::Expr;
use steersman_core::{Address, BinaryOp, DType, DeviceId, Io, Kernel, Operand, Params, UnaryOp, Workload};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::threads::Team;
use steersman_cpu::{fused, matmul};

const ROUNDS: usize = 25;

/// One way: a kernel with parameters, and the least time so far.
struct Contender {
    kernel: Arc<dyn Kernel>,
    params: Params,
    least: f64,
}

fn contenders(kernels: &[Arc<dyn Kernel>], w: &Workload) -> Vec<Contender> {
    let takes = kernels.iter().filter(|k| k.supports(w).is_ok() && !k.name().ends_with("scalar"));
    let all = takes.flat_map(|k| k.params(w).into_iter().map(|p| (k.clone(), p)));
    all.map(|(kernel, params)| Contender { kernel, params, least: f64::INFINITY }).collect()
}

fn time(c: &mut Contender, w: &Workload, inputs: &[Address], output: Address, calls: usize) {
    let started = Instant::now();
    for _ in 0..calls {
        // SAFETY: memory below has the workload's shapes.
        let ran = unsafe { c.kernel.run(w, c.params, Io::new(inputs, output)) };
        ran.unwrap_or_else(|e| panic!("{}: {e}", c.kernel.name()));
    }
    c.least = c.least.min(started.elapsed().as_secs_f64() / calls as f64);
}

fn best(list: &[Contender]) -> &Contender {
    list.iter().min_by(|a, b| a.least.total_cmp(&b.least)).expect("someone takes it")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Arc::new(Host::detect());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(threads)), host };
    let (products, groups) = (matmul::candidates::kernels(&ctx, None), fused::kernels(&ctx));
    let mut b = Expr::builder([DType::F32; 3]);
    let (product, bias) = (b.product(0, 1)?, b.input(2)?);
    let sum = b.binary(BinaryOp::Add, product, bias)?;
    let active = b.unary(UnaryOp::Relu, sum)?;
    b.output(active)?;
    let expr = Arc::new(b.finish()?);
    println!(
        "{:>16} {:>10} {:>10} {:>10} {:>7}  kernels",
        "m x k x n", "product µs", "group µs", "one µs", "ratio"
    );
    for text in std::env::args().skip(1) {
        let sizes: Vec<usize> = text.split('x').map(str::parse).collect::<Result<_, _>>()?;
        let [m, k, n] = sizes[..] else { return Err(format!("{text} is not MxKxN").into()) };
        let operand = |d: &[usize]| Operand::new(DType::F32, d);
        let w = Workload::fused(&expr, &[m, n], [operand(&[m, k])?, operand(&[k, n])?, operand(&[n])?])?;
        let (Some(product), Some(rest)) = (w.product(), w.behind_product()) else { return Ok(()) };
        let filled = |n: usize| (0..n).map(|i| (i % 13) as f32 - 6.0).collect::<Vec<f32>>();
        let (a, b, bias) = (filled(m * k), filled(k * n), filled(n));
        let (mut c, mut d) = (filled(m * n), filled(m * n));
        let (c, d) = (Address::host(c.as_mut_ptr()), Address::host(d.as_mut_ptr()));
        let [a, b, bias] = [&a, &b, &bias].map(|v| Address::host(v.as_ptr()));
        let mut first = contenders(&products, product);
        let mut then = contenders(&groups, rest);
        let mut one = contenders(&groups, &w);
        let calls = (1e8 / w.flops().max(1e4)).clamp(1.0, 1000.0) as usize;
        for round in 0..ROUNDS {
            first.iter_mut().for_each(|x| time(x, product, &[a, b], c, calls));
            then.iter_mut().for_each(|x| time(x, rest, &[c, bias], d, calls));
            one.iter_mut().for_each(|x| time(x, &w, &[a, b, bias], d, calls));
            // Whoever is far behind is not asked again; a round or two may have been disturbed.
            for list in [&mut first, &mut then, &mut one].into_iter().filter(|_| round >= 4) {
                let least = best(list).least;
                list.retain(|x| x.least < 1.5 * least);
            }
        }
        // The two in a row: the group finds in cache what the product has left there.
        let (p, g) = (best(&first), best(&then));
        let (mut row, mut pair) = (f64::INFINITY, (0.0, 0.0));
        for _ in 0..ROUNDS * 4 {
            let (mut p, mut g) = (
                Contender { least: f64::INFINITY, kernel: p.kernel.clone(), ..*p },
                Contender { least: f64::INFINITY, kernel: g.kernel.clone(), ..*g },
            );
            time(&mut p, product, &[a, b], c, 1);
            time(&mut g, rest, &[c, bias], d, 1);
            if p.least + g.least < row {
                (row, pair) = (p.least + g.least, (p.least, g.least));
            }
            let fastest =
                one.iter_mut().min_by(|x, y| x.least.total_cmp(&y.least)).expect("someone takes it");
            time(fastest, &w, &[a, b, bias], d, 1);
        }
        let o = best(&one);
        if std::env::var_os("ALL").is_some() {
            for x in first.iter().chain(&then).chain(&one) {
                println!("  {} {} {:.1}", x.kernel.name(), x.params, x.least * 1e6);
            }
        }
        println!(
            "{text:>16} {:>10.1} {:>10.1} {:>10.1} {:>7.3}  {} {}, {} {} | {} {}",
            pair.0 * 1e6,
            pair.1 * 1e6,
            o.least * 1e6,
            row / o.least,
            p.kernel.name(),
            p.params,
            g.kernel.name(),
            g.params,
            o.kernel.name(),
            o.params
        );
    }
    Ok(())
}
