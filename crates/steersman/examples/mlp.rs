//! A small neural network that learns which points lie in a circle: forward, backward and step in plain ops.

mod program;

use program::{Flags, report, runtime, time};
use steersman::core::DType;
use steersman::{Array, Axis, Error, Runtime, Seed};

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

fn main() -> Result<(), Error> {
    let flags = Flags::parse(&[("points", 2048), ("hidden", 32), ("steps", 400)]);
    let rt = runtime()?;
    let x = rt.uniform([flags.get("points"), 2], Seed(9)) * 4.0 - 2.0;
    let y = (&x * &x).sum(Axis(1)).expand(1).lt(1.5).cast(DType::F32);
    rt.eval_all(&[&x, &y])?;
    let (mut first, mut last) = (0.0, 0.0);
    let (right, times) = time(|| {
        let mut net = Net::new(&rt, flags.get("hidden"));
        for step in 0..flags.get("steps") {
            let (next, loss) = net.step(&x, &y, 1.0);
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
        Ok(f64::from(guess.eq(&y).cast(DType::F32).mean(..).item::<f32>()?))
    })?;
    report(&flags, "mlp", right, 1.0, 0.1, &times, &[("first_loss", first), ("last_loss", last)]);
    if last > first / 2.0 {
        eprintln!("mlp: the loss only fell from {first} to {last}");
        std::process::exit(1);
    }
    Ok(())
}
