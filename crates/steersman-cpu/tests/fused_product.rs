//! A group that starts with a matrix product gives what the product and then the group give: any shape, layout, type
//! and thread count.

#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::{Lie, Memory, Random, distance, lie, shape, show};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::expr::Expr;
use steersman_core::{
    Address, Axes, BinaryOp, DType, DeviceId, Io, Kernel, Operand, Params, ReduceOp, UnaryOp, Workload,
};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::threads::Team;
use steersman_cpu::{fused, matmul};

static CONTEXT: LazyLock<Context> = LazyLock::new(|| Context {
    device: DeviceId(0),
    team: Arc::new(Team::new(3)),
    host: Arc::new(Host::detect()),
});
static FUSED: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| fused::kernels(&CONTEXT));
static PRODUCTS: LazyLock<Vec<Arc<dyn Kernel>>> =
    LazyLock::new(|| matmul::candidates::kernels(&CONTEXT, None));

fn run(kernel: &dyn Kernel, w: &Workload, p: Params, data: &[&Memory], scalars: &[u64]) -> Vec<Memory> {
    let mut outs: Vec<Memory> = w.outputs().iter().map(Memory::marked).collect();
    let inputs: Vec<Address> = data.iter().map(|m| m.address()).collect();
    let outputs: Vec<Address> = outs.iter_mut().map(|o| o.address_mut()).collect();
    let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars };
    // SAFETY: memory was made for these operands.
    unsafe { kernel.run(w, p, io) }.unwrap_or_else(|e| panic!("{} {p} on {w}: {e}", kernel.name()));
    for (o, m) in w.outputs().iter().zip(&outs) {
        assert!(!m.gaps_touched(o), "{} {p} on {w} wrote outside its output", kernel.name());
    }
    outs
}

/// relu(a·b + bias) · residual − s, and for floats the square of the product too.
fn group(dtype: DType, both: bool) -> Arc<Expr> {
    let mut b = Expr::builder([dtype, dtype, dtype, dtype]);
    let made = (|| {
        let (bias, residual) = (b.input(0)?, b.input(3)?);
        let product = b.product(1, 2)?;
        let shifted = b.binary(BinaryOp::Add, product, bias)?;
        let active = if dtype.is_float() { b.unary(UnaryOp::Relu, shifted)? } else { shifted };
        let scaled = b.binary(BinaryOp::Mul, active, residual)?;
        let s = b.scalar(0, dtype)?;
        let last = b.binary(BinaryOp::Sub, scaled, s)?;
        if both {
            let square = b.binary(BinaryOp::Mul, product, product)?;
            let above = b.binary(BinaryOp::Gt, square, s)?;
            b.output(above)?;
        }
        b.output(last)?;
        b.finish()
    })();
    Arc::new(made.expect("types agree"))
}

/// Every kernel that takes the group against its own parts one after the other; returns how many there were.
fn check(w: &Workload, data: &[Memory], random: &mut Random) -> Result<usize, String> {
    let (product, rest) = (w.product().expect("a product"), w.behind_product().expect("a rest"));
    let one = Operand::new(w.product().expect("a product").dtype(), &[]).expect("a number");
    let scalars = [Memory::random(&one, random).element(&one, 0)];
    let mut seen = 0;
    for kernel in FUSED.iter().filter(|k| k.supports(w).is_ok()) {
        seen += 1;
        let name = kernel.name().trim_end_matches("+fused");
        let isa = name.rsplit('-').next().unwrap_or_default();
        let by = |list: &[Arc<dyn Kernel>], name: &str| -> Arc<dyn Kernel> {
            list.iter().find(|k| k.name() == name).unwrap_or_else(|| panic!("{name}")).clone()
        };
        let first = by(&PRODUCTS, if isa == "scalar" { "cpu/matmul-naive" } else { name });
        let then = by(&FUSED, &format!("cpu/fused-{isa}"));
        for p in kernel.params(w).into_iter().chain([Params::threads(2), Params::threads(3)]) {
            // Cut for as many threads, so that leftover columns are the same and sums in the same order.
            let cut = if isa == "scalar" { Params::SERIAL } else { p };
            let multiplied = run(&*first, product, cut, &[&data[1], &data[2]], &[]).remove(0);
            let want = run(&*then, rest, Params::SERIAL, &[&multiplied, &data[0], &data[3]], &scalars);
            let got = run(&**kernel, w, p, &data.iter().collect::<Vec<&Memory>>(), &scalars);
            for ((o, want), got) in w.outputs().iter().zip(&want).zip(&got) {
                for (i, (e, g)) in want.elements(o).zip(got.elements(o)).enumerate() {
                    if distance(o.dtype, e, g) > 0.0 {
                        let (g, e) = (show(o.dtype, g), show(o.dtype, e));
                        return Err(format!("{} {p} on {w}: element {i} is {g}, not {e}", kernel.name()));
                    }
                }
            }
        }
    }
    Ok(seen)
}

fn workload(
    dtype: DType,
    both: bool,
    (batch, m, k, n): (&[usize], usize, usize, usize),
    lies: &[Lie],
) -> Workload {
    let dims = |rows: usize, columns: usize| [batch, &[rows, columns]].concat();
    let whole = dims(m, n);
    let operands = [
        lies[0].operand(dtype, &whole, true),
        lies[1].operand(dtype, &dims(m, k), true),
        lies[2].operand(dtype, &dims(k, n), true),
        lies[3].operand(dtype, &whole, true),
    ];
    let w = Workload::fused(&group(dtype, both), &whole, operands).expect("operands of these shapes");
    match both {
        // The flags may lie as they like; the other result holds the product.
        true => w.with_nth_output(0, lies[4].operand(DType::Bool, &whole, false)).expect("the same shape"),
        false => w,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_product_with_a_group_gives_what_they_give_apart(
        seed in any::<u64>(),
        dims in shape(),
        k in prop_oneof![1 => Just(0usize), 9 => 1..70usize],
        dtype in prop::sample::select(vec![
            DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I64,
        ]),
        both in any::<bool>(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let dims = [vec![1; 2usize.saturating_sub(dims.len())], dims].concat();
        let (batch, last) = dims.split_at(dims.len() - 2);
        let w = workload(dtype, both, (batch, last[0], k, last[1]), &lies);
        let mut random = Random::new(seed);
        let data: Vec<Memory> = w.inputs().iter().map(|o| Memory::random(o, &mut random)).collect();
        let seen = check(&w, &data, &mut random).map_err(TestCaseError::fail)?;
        prop_assert!(seen > 0, "nobody takes {w}");
    }
}

fn plain() -> Vec<Lie> {
    let zero = || Lie {
        order: vec![0, 1, 2, 3],
        gaps: vec![0; 4],
        backwards: vec![false; 4],
        repeats: vec![false; 4],
    };
    (0..5).map(|_| zero()).collect()
}

/// Contiguous single precision numbers so small and whole that sums are exact in any order: rows left over by other
/// blocks may be added up differently.
fn whole_numbers(o: &Operand, random: &mut Random) -> Memory {
    let mut memory = Memory::marked(o);
    for i in 0..o.elements() {
        // SAFETY: memory was made for this operand.
        unsafe { memory.address_mut().as_mut_ptr::<f32>().add(i).write(random.below(9) as f32 - 4.0) };
    }
    memory
}

#[test]
fn products_of_many_blocks_agree_too() {
    for (m, k, n) in [(300, 20, 3000), (1500, 3, 200), (70, 900, 70), (64, 64, 9000)] {
        for both in [false, true] {
            let w = workload(DType::F32, both, (&[], m, k, n), &plain());
            let mut random = Random::new(7);
            let data: Vec<Memory> = w.inputs().iter().map(|o| whole_numbers(o, &mut random)).collect();
            assert!(check(&w, &data, &mut random).unwrap() > 2, "vector kernels take {w}");
        }
    }
}

#[test]
fn what_cannot_hold_the_product_is_refused_with_a_reason() {
    let kernel = FUSED.iter().find(|k| k.name().starts_with("cpu/matmul-small")).expect("such a kernel");
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let product = b.product(0, 1).unwrap();
    let less = b.binary(BinaryOp::Lt, product, product).unwrap();
    let mut sums = b.clone();
    b.output(less).unwrap();
    sums.reduce(ReduceOp::Sum, Axes::NONE, product).unwrap();
    for (b, why) in [(b, "hold it"), (sums, "reduce")] {
        let operands =
            || [Operand::new(DType::F32, &[8, 8]).unwrap(), Operand::new(DType::F32, &[8, 8]).unwrap()];
        let w = Workload::fused(&Arc::new(b.finish().unwrap()), &[8, 8], operands()).unwrap();
        let refusal = kernel.supports(&w).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
}
