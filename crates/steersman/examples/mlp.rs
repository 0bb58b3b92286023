//! A small neural network that learns which points lie in a circle: forward, backward and step in plain ops, against the
//! same in plain loops.

mod program;

use program::{Flags, report, runtime, start, time};
use steersman::core::DType;
use steersman::{Array, Axis, Error, Runtime, Seed};

/// How far down the gradient one step goes.
const RATE: f64 = 1.0;

/// Weights and biases of two layers.
#[derive(Clone)]
struct Net([Array; 4]);

impl Net {
    fn new(rt: &Runtime, hidden: usize) -> Net {
        Net([
            rt.normal([2, hidden], Seed(1)),
            rt.zeros::<f32>([hidden]),
            rt.normal([hidden, 1], Seed(2)) * (1.0 / (hidden as f64).sqrt()),
            rt.zeros::<f32>([1]),
        ])
    }

    /// Hidden layer and probability.
    fn forward(&self, x: &Array) -> (Array, Array) {
        let [w1, b1, w2, b2] = &self.0;
        let hidden = (x.matmul(w1) + b1).tanh();
        let p = (hidden.matmul(w2) + b2).sigmoid();
        (hidden, p)
    }

    /// One step down the gradient of the cross-entropy, which is written out by hand.
    fn step(&self, x: &Array, y: &Array, rate: f64) -> (Net, Array) {
        let [w1, b1, w2, b2] = &self.0;
        let (hidden, p) = self.forward(x);
        let loss = loss(&p, y);
        let n = x.shape()[0] as f64;
        let d_out = (&p - y) * (1.0 / n);
        let d_hidden = d_out.matmul(&w2.t()) * (1.0 - &hidden * &hidden);
        let next = [
            w1 - rate * x.t().matmul(&d_hidden),
            b1 - rate * d_hidden.sum(Axis(0)),
            w2 - rate * hidden.t().matmul(&d_out),
            b2 - rate * d_out.sum(Axis(0)),
        ];
        (Net(next), loss)
    }
}

fn loss(p: &Array, y: &Array) -> Array {
    let p = p.clamp(1e-6, 1.0 - 1e-6);
    -(y * p.ln() + (1.0 - y) * (1.0 - &p).ln()).mean(..)
}

/// The same training by plain loops in f64: the loss before the last step.
fn reference(x: &[f32], y: &[f32], net: [Vec<f32>; 4], steps: usize) -> f64 {
    let [mut w1, mut b1, mut w2, mut b2] = net.map(|p| p.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let (hidden, n) = (b1.len(), y.len() as f64);
    let mut loss = 0.0;
    for _ in 0..steps {
        loss = 0.0;
        let (mut g1, mut h1) = (vec![0.0; 2 * hidden], vec![0.0; hidden]);
        let (mut g2, mut h2) = (vec![0.0; hidden], 0.0);
        let mut a = vec![0.0; hidden];
        for (point, &y) in x.chunks(2).zip(y) {
            let (u, v, y) = (f64::from(point[0]), f64::from(point[1]), f64::from(y));
            let mut out = b2[0];
            for k in 0..hidden {
                a[k] = (u * w1[k] + v * w1[hidden + k] + b1[k]).tanh();
                out += a[k] * w2[k];
            }
            let p = 1.0 / (1.0 + (-out).exp());
            let held = p.clamp(1e-6, 1.0 - 1e-6);
            loss -= (y * held.ln() + (1.0 - y) * (1.0 - held).ln()) / n;
            let d = (p - y) / n;
            h2 += d;
            for k in 0..hidden {
                g2[k] += a[k] * d;
                let d = d * w2[k] * (1.0 - a[k] * a[k]);
                g1[k] += u * d;
                g1[hidden + k] += v * d;
                h1[k] += d;
            }
        }
        let down = |p: &mut [f64], g: &[f64]| p.iter_mut().zip(g).for_each(|(p, g)| *p -= RATE * g);
        down(&mut w1, &g1);
        down(&mut b1, &h1);
        down(&mut w2, &g2);
        down(&mut b2, &[h2]);
    }
    loss
}

fn main() -> std::process::ExitCode {
    start("mlp", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("points", 2048), ("hidden", 32), ("steps", 400)]);
    let rt = runtime()?;
    let x = rt.uniform([flags.get("points"), 2], Seed(9)) * 4.0 - 2.0;
    let y = (&x * &x).sum(Axis(1)).expand(1).lt(1.5).cast(DType::F32);
    rt.eval_all(&[&x, &y])?;
    let (mut first, mut right) = (0.0, 0.0);
    let (last, times) = time(|| {
        let mut last = 0.0;
        let mut net = Net::new(&rt, flags.get("hidden"));
        for step in 0..flags.get("steps") {
            let (next, loss) = net.step(&x, &y, RATE);
            let mut all: Vec<&Array> = next.0.iter().collect();
            all.push(&loss);
            rt.eval_all(&all)?;
            last = f64::from(loss.item::<f32>()?);
            if step == 0 {
                first = last;
            }
            net = next;
        }
        let guess = net.forward(&x).1.gt(0.5).cast(DType::F32);
        right = f64::from(guess.eq(&y).cast(DType::F32).mean(..).item::<f32>()?);
        Ok(last)
    })?;
    let start = Net::new(&rt, flags.get("hidden")).0;
    let start = [start[0].to_vec()?, start[1].to_vec()?, start[2].to_vec()?, start[3].to_vec()?];
    let reference = reference(&x.to_vec::<f32>()?, &y.to_vec::<f32>()?, start, flags.get("steps"));
    let within = 1e-3 * reference.max(0.1);
    report(&flags, "mlp", last, reference, within, &times, &[("first_loss", first), ("right", right)]);
    // As many points, neurons and steps as by default are enough to learn it.
    let enough = flags.get("points") >= 2048 && flags.get("hidden") >= 32 && flags.get("steps") >= 400;
    if enough && (last > first / 2.0 || right < 0.9) {
        eprintln!("mlp: the loss only fell from {first} to {last}, and {right} of the points are told right");
        std::process::exit(1);
    }
    Ok(())
}
