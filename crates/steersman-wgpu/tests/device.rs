//! What an open adapter promises: memory within its limit, order, batches, and errors instead of panics.

mod hosted;

use hosted::{found, gpu, open};
use std::sync::Arc;
use steersman_core::memory::{Block, Lent, MemoryError};
use steersman_core::{Address, DeviceId, Io, Kernel, Memory, Params, Ran, Workload};
use steersman_wgpu::{DeviceOptions, Gpu};

fn limited(bytes: usize) -> Option<Arc<Gpu>> {
    open(DeviceOptions { memory_limit: Some(bytes), ..DeviceOptions::default() })
}

fn kernel(gpu: &Arc<Gpu>, name: &str) -> Arc<dyn Kernel> {
    let all = gpu.kernels(DeviceId(1));
    let found = all.iter().find(|k| k.name().split_once('/').is_some_and(|(_, n)| n == name));
    found.unwrap_or_else(|| panic!("there is no kernel {name}")).clone()
}

fn floats(gpu: &Gpu, at: Address, n: usize) -> Vec<f32> {
    let mut bytes = vec![0u8; n * 4];
    gpu.download(at, &mut bytes).expect("a download");
    bytes.chunks_exact(4).map(|c| f32::from_ne_bytes([c[0], c[1], c[2], c[3]])).collect()
}

fn filled(gpu: &Arc<Gpu>, values: &[f32]) -> Block {
    let block = gpu.clone().take(values.len() * 4).expect("a small block");
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    gpu.upload(&bytes, block.address()).expect("an upload");
    block
}

/// Runs `op` on blocks of so many floats.
fn apply(kernel: &dyn Kernel, op: &str, n: usize, inputs: &[&Block], output: &Block) -> Ran {
    let shapes = vec![n.to_string(); inputs.len()].join(" ");
    let w: Workload = format!("{op} f32 {shapes}").parse().expect("a workload");
    let addresses: Vec<Address> = inputs.iter().map(|b| b.address()).collect();
    // SAFETY: the blocks hold so many floats.
    unsafe { kernel.run(&w, Params::SERIAL, Io::new(&addresses, output.address())) }.expect("a run")
}

/// Holds a device to it whose memory the host sees, and one that gets its bytes through staging, as most do.
fn both_ways(promise: fn(&Arc<Gpu>)) {
    for staged in [false, true] {
        let Some(gpu) = open(DeviceOptions { staged, ..DeviceOptions::default() }) else { return };
        promise(&gpu);
    }
}

#[test]
fn adapters_say_what_they_are() {
    for f in found() {
        assert!(!f.identity.part.is_empty() && !f.identity.driver.is_empty());
        assert!(["vulkan", "metal", "dx12"].contains(&f.identity.family.as_str()), "{:?}", f.identity);
        assert_eq!(f.identity.memory, None, "wgpu cannot tell");
        assert!(f.identity.isa.is_sorted());
        // What other work its kernels would be given with another of these.
        for what in [
            "vendor-",
            "device-",
            "binding-",
            "buffer-",
            "buffers-",
            "uniform-",
            "groups-",
            "workgroup-memory-",
        ] {
            assert!(f.identity.isa.iter().any(|i| i.starts_with(what)), "{what}: {:?}", f.identity);
        }
    }
    assert!(found().is_sorted_by_key(|f| f.software), "software comes last");
}

#[test]
fn two_devices_of_a_family_can_be_told_apart() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let Some(gpu) = gpu() else { return };
    shared(&gpu);
    let names = |all: Vec<Arc<dyn Kernel>>| -> Vec<String> { all.iter().map(|k| k.name().into()).collect() };
    let (one, two) = (names(gpu.kernels(DeviceId(1))), names(gpu.kernels_as(DeviceId(2), "second")));
    assert!(one.len() == two.len() && two.iter().all(|n| n.starts_with("second/") && !one.contains(n)));
}

#[test]
fn blocks_are_counted_reused_and_limited() {
    let Some(gpu) = limited(1 << 20) else { return };
    let a = gpu.clone().take(300_000).expect("fits");
    let b = gpu.clone().take(300_000).expect("fits");
    assert!(gpu.in_use() >= 600_000 && gpu.in_use() <= 700_000);
    let (first, held) = (a.address(), gpu.counts().held);
    match gpu.clone().take(600_000).err() {
        Some(MemoryError::Full { need: 600_000, limit, .. }) => assert_eq!(limit, 1 << 20),
        other => panic!("{other:?}"),
    }
    drop(a);
    let c = gpu.clone().take(299_000).expect("the block given back");
    assert_eq!((c.address(), gpu.counts().held), (first, held), "no new buffer");
    drop((b, c));
    assert_eq!(gpu.in_use(), 0);
    let large = gpu.clone().take(900_000).expect("kept blocks make room");
    assert!(gpu.counts().held <= 1 << 20);
    assert_eq!(large.bytes(), 900_000);
}

#[test]
fn a_block_beyond_one_binding_is_too_large() {
    let Some(gpu) = limited(usize::MAX >> 8) else { return };
    match gpu.clone().take(1 << 45).err() {
        Some(MemoryError::TooLarge { need, most }) => assert!(need == 1 << 45 && most >= 1 << 20),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operand_beyond_one_binding_is_refused_with_the_reason() {
    let Some(gpu) = gpu() else { return };
    let isa = &gpu.identity().isa;
    let binding =
        isa.iter().find_map(|i| i.strip_prefix("binding-")?.parse::<usize>().ok()).expect("its limit");
    let n = binding / 8 + 1;
    if 2 * n >= 1 << 31 {
        return;
    }
    for (text, name) in [(format!("copy f64 {n}"), "copy"), (format!("sum f32 {}", 2 * n), "reduce-two-pass")]
    {
        let why = kernel(&gpu, name).supports(&text.parse().expect("a workload")).expect_err("too large");
        assert!(why.to_string().contains("one binding"), "{why}");
    }
    assert!(kernel(&gpu, "copy").supports(&"copy f64 1000".parse().expect("a workload")).is_ok());
}

#[test]
fn bytes_come_back_as_they_went_wherever_they_lie() {
    both_ways(any_bytes);
}

fn any_bytes(gpu: &Arc<Gpu>) {
    let block = gpu.clone().take(1000).expect("a small block");
    let mut model = vec![7u8; 1000];
    gpu.upload(&model, block.address()).expect("an upload");
    for (at, n) in [(0usize, 1usize), (3, 2), (5, 3), (8, 4), (11, 100), (997, 3), (2, 1)] {
        let bytes: Vec<u8> = (0..n).map(|i| (at * 31 + i * 7) as u8).collect();
        model[at..at + n].copy_from_slice(&bytes);
        gpu.upload(&bytes, Address(block.address().0 + at as u64)).expect("an upload");
    }
    let mut back = vec![0u8; 1000];
    gpu.download(block.address(), &mut back).expect("a download");
    assert_eq!(back, model);
    let mut some = [0u8; 5];
    gpu.download(Address(block.address().0 + 9), &mut some).expect("a download");
    assert_eq!(some, model[9..14]);
}

#[test]
fn large_blocks_come_back_in_pieces() {
    both_ways(large_block);
}

fn large_block(gpu: &Arc<Gpu>) {
    let bytes: Vec<u8> = (0..40_000_003u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let block = gpu.clone().take(bytes.len()).expect("fits one binding");
    gpu.upload(&bytes, block.address()).expect("an upload");
    let mut back = vec![0u8; bytes.len()];
    gpu.download(block.address(), &mut back).expect("a download");
    assert!(back == bytes);
}

#[test]
fn the_host_works_on_lent_blocks_where_they_lie() {
    let Some(gpu) = gpu() else { return };
    let add = kernel(&gpu, "map");
    let n = 100_000;
    let (x, y, z) = (filled(&gpu, &vec![1.5; n]), filled(&gpu, &vec![0.0; n]), filled(&gpu, &vec![7.0; n]));
    let lent = |block: &Block, from: usize, floats: usize, written: bool| {
        let at = Address(block.address().0 + from as u64 * 4);
        Lent { at, bytes: floats * 4, written }
    };
    // y is still being computed.
    apply(&*add, "add", n, &[&x, &x], &y);
    let before = gpu.counts();
    let what = [lent(&y, 0, n, false), lent(&y, 3, 5, false), lent(&z, 1001, 50, true)];
    let mut seen = Vec::new();
    let given = gpu.lend(&what, &mut |found| {
        // SAFETY: so many floats were lent, the last of them to be written.
        let (all, part) = unsafe {
            let all = std::slice::from_raw_parts(found[0].as_ptr::<f32>(), n);
            (all, std::slice::from_raw_parts(found[1].as_ptr::<f32>(), 5))
        };
        seen = vec![all[0], all[n - 1], part[4]];
        assert_eq!(found[1].0 - found[0].0, 12);
        // SAFETY: as above.
        (0..50).for_each(|i| unsafe { found[2].as_mut_ptr::<f32>().add(i).write(i as f32) });
    });
    if !gpu.can().shared_buffers {
        assert_eq!((given, seen.len()), (Ok(false), 0));
        return;
    }
    assert_eq!(given, Ok(true));
    assert_eq!(seen, [3.0; 3]);
    let after = gpu.counts();
    assert_eq!(
        (after.uploaded, after.downloaded),
        (before.uploaded, before.downloaded),
        "nothing was copied"
    );
    // The device sees what was written, and what lies beside it is as it was.
    apply(&*add, "add", n, &[&z, &z], &y);
    let sums = floats(&gpu, y.address(), n);
    let want = |i: usize| if (1001..1051).contains(&i) { 2.0 * (i - 1001) as f32 } else { 14.0 };
    assert!((0..n).all(|i| sums[i] == want(i)));
}

#[test]
fn what_cannot_be_lent_is_not() {
    let one = |block: &Block, written| Lent { at: block.address(), bytes: 8, written };
    if let Some(gpu) = open(DeviceOptions { staged: true, ..DeviceOptions::default() }) {
        let x = filled(&gpu, &[1.0, 2.0]);
        assert_eq!(gpu.lend(&[one(&x, false)], &mut |_| panic!("it lends nothing")), Ok(false));
    }
    let Some(gpu) = gpu() else { return };
    let (x, y) = (filled(&gpu, &[1.0, 2.0]), filled(&gpu, &[3.0, 4.0]));
    let both = [one(&x, false), one(&y, true), one(&y, false)];
    assert_eq!(gpu.lend(&both, &mut |_| panic!("y would be read and written")), Ok(false));
    let beyond = Lent { bytes: 1 << 20, ..one(&x, false) };
    assert!(gpu.lend(&[beyond], &mut |_| panic!("x is not so long")).is_err());
    // Whoever panics has given all back.
    if gpu.can().shared_buffers {
        let fails = || gpu.lend(&[one(&x, false), one(&y, true)], &mut |_| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err());
        assert_eq!(gpu.lend(&[one(&x, false), one(&y, true)], &mut |_| {}), Ok(true));
    }
    assert_eq!([floats(&gpu, x.address(), 2), floats(&gpu, y.address(), 2)], [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn a_device_is_lent_from_while_other_threads_use_it() {
    let Some(gpu) = gpu() else { return };
    let add = kernel(&gpu, "map");
    std::thread::scope(|s| {
        for t in 0..4 {
            let (gpu, add) = (&gpu, &add);
            s.spawn(move || {
                let (x, y) = (filled(gpu, &[t as f32; 64]), filled(gpu, &[0.0; 64]));
                let mut lent = 0.0;
                for _ in 0..50 {
                    apply(&**add, "add", 64, &[&y, &x], &y);
                    let what = [Lent { at: y.address(), bytes: 256, written: false }];
                    // SAFETY: 64 floats are lent.
                    let read = &mut |found: &[Address]| lent = unsafe { *found[0].as_ptr::<f32>() };
                    // One that others have busy says so.
                    if !gpu.lend(&what, read).expect("nothing is wrong") {
                        lent = floats(gpu, y.address(), 1)[0];
                    }
                }
                assert_eq!((lent, floats(gpu, y.address(), 64)), (50.0 * t as f32, vec![lent; 64]));
            });
        }
    });
}

#[test]
fn addresses_of_nobody_are_errors() {
    let Some(gpu) = gpu() else { return };
    let block = gpu.clone().take(100).expect("a small block");
    assert!(gpu.upload(&[0; 4], Address(12)).is_err());
    assert!(gpu.upload(&[0; 4000], block.address()).is_err());
    assert!(gpu.download(Address(u64::MAX), &mut [0; 4]).is_err());
}

#[test]
fn a_later_upload_does_not_overtake_earlier_work() {
    both_ways(upload_after_work);
}

fn upload_after_work(gpu: &Arc<Gpu>) {
    let add = kernel(gpu, "map");
    let (x, y) = (filled(gpu, &[1.0, 2.0]), filled(gpu, &[0.0, 0.0]));
    apply(&*add, "add", 2, &[&x, &x], &y);
    // The block is free for others while its reader still waits in the batch.
    let old = x.address();
    drop(x);
    let again = filled(gpu, &[100.0, 100.0]);
    assert_eq!(again.address(), old);
    assert_eq!(floats(gpu, y.address(), 2), [2.0, 4.0]);
}

#[test]
fn a_thousand_dispatches_are_a_few_submissions() {
    let Some(gpu) = limited(1 << 24) else { return };
    let add = kernel(&gpu, "map");
    let (x, one) = (filled(&gpu, &[0.0; 8]), filled(&gpu, &[1.0; 8]));
    gpu.wait().expect("idle");
    let before = gpu.counts();
    for _ in 0..1000 {
        apply(&*add, "add", 8, &[&x, &one], &x);
    }
    gpu.wait().expect("done");
    let after = gpu.counts();
    assert_eq!(after.dispatches - before.dispatches, 1000);
    assert!(after.submissions - before.submissions <= 10, "{after:?}");
    assert_eq!(floats(&gpu, x.address(), 8), [1000.0; 8]);
}

#[test]
fn dependent_products_on_the_device_move_nothing() {
    let Some(gpu) = limited(1 << 24) else { return };
    let product = kernel(&gpu, "matmul-tiled");
    let w: Workload = "matmul f32 16x16 16x16".parse().expect("a workload");
    let unit: Vec<f32> = (0..256).map(|i| if i % 17 == 0 { 2.0 } else { 0.0 }).collect();
    let x = filled(&gpu, &unit);
    let results: Vec<Block> = (0..3).map(|_| gpu.clone().take(1024).expect("a block")).collect();
    let before = gpu.counts();
    for i in 0..3 {
        let left = if i == 0 { &x } else { &results[i - 1] };
        let inputs = [left.address(), x.address()];
        // SAFETY: the blocks hold matrices of this shape.
        unsafe { product.run(&w, Params::SERIAL, Io::new(&inputs, results[i].address())) }.expect("a run");
    }
    gpu.wait().expect("done");
    let after = gpu.counts();
    assert_eq!((after.uploaded, after.downloaded), (before.uploaded, before.downloaded));
    assert_eq!(floats(&gpu, results[2].address(), 18), {
        let mut want = [0.0; 18];
        (want[0], want[17]) = (16.0, 16.0);
        want
    });
    assert_eq!(gpu.counts().downloaded, before.downloaded + 72);
}

#[test]
fn threads_share_a_device() {
    let Some(gpu) = gpu() else { return };
    let add = kernel(&gpu, "map");
    std::thread::scope(|s| {
        for t in 0..4 {
            let (gpu, add) = (&gpu, &add);
            s.spawn(move || {
                let (x, y) = (filled(gpu, &[t as f32; 16]), filled(gpu, &[0.0; 16]));
                for _ in 0..50 {
                    apply(&**add, "add", 16, &[&y, &x], &y);
                }
                assert_eq!(floats(gpu, y.address(), 16), [50.0 * t as f32; 16]);
            });
        }
    });
}

#[test]
fn time_is_taken_and_work_inside_is_done() {
    let Some(gpu) = gpu() else { return };
    let add = kernel(&gpu, "map");
    let (x, y) = (filled(&gpu, &[0.5; 4096]), filled(&gpu, &[0.0; 4096]));
    // More work than one submission takes.
    for dispatches in [1, 300] {
        let mut work = || {
            for _ in 0..dispatches {
                apply(&*add, "add", 4096, &[&x, &x], &y);
            }
            Ok(Ran::Clean)
        };
        let (ran, time) = gpu.timed(&mut work).expect("timed");
        assert!(ran == Ran::Clean && time.0 > 0.0 && time.0 < 10.0);
        assert_eq!(floats(&gpu, y.address(), 4096), [1.0; 4096]);
    }
}

#[test]
fn what_others_have_the_device_do_is_not_this_works_time() {
    let Some(gpu) = limited(1 << 24) else { return };
    let add = kernel(&gpu, "map");
    let (x, y, z) = (filled(&gpu, &[0.5; 64]), filled(&gpu, &[0.0; 64]), filled(&gpu, &[0.0; 64]));
    apply(&*add, "add", 64, &[&x, &x], &y);
    let alone = gpu.timed(&mut || Ok(apply(&*add, "add", 64, &[&x, &x], &y))).expect("timed").0;
    assert_eq!(alone, Ran::Clean);
    let mut work = || {
        std::thread::scope(|s| s.spawn(|| apply(&*add, "add", 64, &[&x, &x], &z)).join().expect("it ran"));
        Ok(apply(&*add, "add", 64, &[&x, &x], &y))
    };
    assert_eq!(gpu.timed(&mut work).expect("timed").0, Ran::Disturbed);
    // Two who want the time take turns.
    std::thread::scope(|s| {
        let both = [&y, &z].map(|to| {
            let (gpu, add, x) = (&gpu, &add, &x);
            s.spawn(move || {
                for _ in 0..50 {
                    let (ran, _) =
                        gpu.timed(&mut || Ok(apply(&**add, "add", 64, &[x, x], to))).expect("timed");
                    assert_eq!(ran, Ran::Clean);
                }
            })
        });
        both.into_iter().for_each(|t| t.join().expect("nobody was disturbed"));
    });
}

#[test]
fn long_work_begins_at_once_and_short_work_is_gathered() {
    let Some(gpu) = limited(1 << 28) else { return };
    let (product, add) = (kernel(&gpu, "matmul-blocked"), kernel(&gpu, "map"));
    let blocks = [0; 3].map(|_| gpu.clone().take(1 << 20).expect("a block"));
    let [a, b, c] = &blocks;
    let w: Workload = "matmul f32 512x512 512x512".parse().expect("a workload");
    let run = || {
        let inputs = [a.address(), b.address()];
        // SAFETY: the blocks hold matrices of this shape.
        unsafe { product.run(&w, product.params(&w)[0], Io::new(&inputs, c.address())) }.expect("a run")
    };
    gpu.wait().expect("idle");
    let before = gpu.counts().submissions;
    run();
    assert_eq!(gpu.counts().submissions, before + 1, "nobody waited, and it has begun");
    gpu.wait().expect("done");
    let before = gpu.counts().submissions;
    for _ in 0..100 {
        apply(&*add, "add", 8, &[a, b], c);
    }
    assert_eq!(gpu.counts().submissions, before);
}

#[test]
fn f16_is_the_same_by_the_adapters_own_and_by_words() {
    let halves: Vec<u16> = (0..4099u32).map(|i| (i * 16 + i % 7) as u16).collect();
    let bytes: Vec<u8> = halves.iter().flat_map(|h| h.to_ne_bytes()).collect();
    let results = [false, true].map(|plain| {
        let gpu = open(DeviceOptions { plain, ..DeviceOptions::default() })?;
        assert_eq!(gpu.can().f16, !plain && gpu.identity().isa.iter().any(|i| i == "f16"));
        let run = |name: &str, text: &str, out: usize| {
            let w: Workload = text.parse().expect("a workload");
            let blocks = [0; 2].map(|_| gpu.clone().take(bytes.len()).expect("a small block"));
            blocks.iter().for_each(|b| gpu.upload(&bytes, b.address()).expect("an upload"));
            let to = gpu.clone().take(out * 2).expect("a small block");
            let inputs: Vec<_> = w.inputs().iter().zip(&blocks).map(|(_, b)| b.address()).collect();
            let k = kernel(&gpu, name);
            k.supports(&w).expect("it is taken");
            // SAFETY: the blocks have the workload's sizes.
            unsafe { k.run(&w, Params::SERIAL, Io::new(&inputs, to.address())) }.expect("a run");
            let mut back = vec![0u8; out * 2];
            gpu.download(to.address(), &mut back).expect("a download");
            // NaN are one as good as another.
            let half = |c: &[u8]| u16::from_ne_bytes([c[0], c[1]]);
            back.chunks_exact(2).map(|c| Some(half(c)).filter(|h| h & 0x7fff <= 0x7c00)).collect::<Vec<_>>()
        };
        Some([
            run("map", "mul f16 4099 4099", 4099),
            run("map-vec4", "add f16 4096 4096", 4096),
            run("map", "exp f16 4099", 4099),
            run("reduce-tree", "max f16 1000x4 axis=0", 4),
            run("matmul-tiled", "matmul f16 33x31 31x29", 33 * 29),
        ])
    });
    let [own, words] = results;
    if gpu().is_some_and(|gpu| gpu.software()) {
        assert_eq!(own, words);
    }
}

#[test]
fn an_adapter_without_f64_refuses_it_with_the_reason_and_still_moves_it() {
    let Some(gpu) = open(DeviceOptions { plain: true, ..DeviceOptions::default() }) else { return };
    assert!(!gpu.can().f64);
    let all = gpu.kernels(DeviceId(1));
    for text in [
        "add f64 100 100",
        "exp f64 100",
        "where f64 100 100 100",
        "sum f64 100",
        "max f64 10x10 axis=0",
        "matmul f64 8x8 8x8",
        "conv2d f64 1x2x8x8 2x2x3x3",
    ] {
        let w: Workload = text.parse().expect("a workload");
        for k in all.iter().filter(|k| k.handles(w.op())) {
            let why = k.supports(&w).expect_err("rounded silently").to_string();
            assert!(why.contains("f64"), "{} for {text}: {why}", k.name());
        }
        let single: Workload = text.replace("f64", "f32").parse().expect("a workload");
        assert!(all.iter().any(|k| k.handles(single.op()) && k.supports(&single).is_ok()), "{single}");
    }
    let moved: Workload = "copy f64 100".parse().expect("a workload");
    assert!(all.iter().any(|k| k.handles(moved.op()) && k.supports(&moved).is_ok()));
}

#[test]
fn an_adapter_without_a_clock_or_subgroups_does_without() {
    let Some(gpu) = open(DeviceOptions { plain: true, ..DeviceOptions::default() }) else { return };
    assert!(!gpu.can().timestamps && !gpu.can().subgroup);
    assert!(gpu.kernels(DeviceId(1)).iter().all(|k| !k.name().contains("subgroup")));
    let add = kernel(&gpu, "map");
    let (x, y) = (filled(&gpu, &[0.5; 64]), filled(&gpu, &[0.0; 64]));
    let mut work = || Ok(apply(&*add, "add", 64, &[&x, &x], &y));
    for want in [Ran::Cold, Ran::Clean] {
        let (ran, time) = gpu.timed(&mut work).expect("timed by the host");
        assert!(ran == want && time.0 > 0.0);
    }
}

#[test]
fn a_lost_device_answers_every_call_with_its_loss() {
    let Some(gpu) = limited(1 << 24) else { return };
    let add = kernel(&gpu, "map");
    let (x, y) = (filled(&gpu, &[1.0; 4]), filled(&gpu, &[1.0; 4]));
    apply(&*add, "add", 4, &[&x, &x], &y);
    gpu.destroy();
    let w: Workload = "add f32 4 4".parse().expect("a workload");
    let inputs = [x.address(), x.address()];
    // SAFETY: the blocks hold four floats.
    let ran = unsafe { add.run(&w, Params::SERIAL, Io::new(&inputs, y.address())) };
    let errors = [
        ran.err().map(|e| e.to_string()),
        gpu.upload(&[0; 4], x.address()).err().map(|e| e.to_string()),
        gpu.download(x.address(), &mut [0; 4]).err().map(|e| e.to_string()),
        gpu.wait().err().map(|e| e.to_string()),
        gpu.clone().take(4).err().map(|e| e.to_string()),
    ];
    for e in errors {
        assert!(e.as_deref().is_some_and(|e| e.contains("lost")), "{e:?}");
    }
}

#[test]
fn a_source_that_does_not_compile_is_an_error_once_and_again() {
    let Some(gpu) = gpu() else { return };
    let beyond_limits = "@compute @workgroup_size(65536, 65536) fn main() {}";
    for text in
        ["this is no shader", "@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }", beyond_limits]
    {
        for _ in 0..2 {
            let why = gpu.try_compile(text).expect_err("not a shader").to_string();
            assert!(why.contains("did not compile"), "{why}");
        }
    }
    gpu.wait().expect("the device goes on");
}

#[test]
fn pipelines_are_compiled_once_and_their_time_is_known() {
    let Some(gpu) = limited(1 << 24) else { return };
    let add = kernel(&gpu, "map");
    let (x, y) = (filled(&gpu, &[1.0; 4]), filled(&gpu, &[1.0; 4]));
    assert_eq!(gpu.counts().compiled, 0);
    let (first, second) = (apply(&*add, "add", 4, &[&x, &x], &y), apply(&*add, "add", 3, &[&x, &x], &y));
    assert_eq!((first, second), (Ran::Cold, Ran::Clean), "a run that compiles is no measurement");
    assert_eq!(gpu.counts().compiled, 1);
    assert!(!gpu.counts().compiling.is_zero());
}

#[test]
fn compiled_pipelines_are_kept_on_disk_where_the_driver_can() {
    let folder = std::env::temp_dir().join(format!("steersman-wgpu-{}", std::process::id()));
    let path = folder.join("pipelines");
    let options = || DeviceOptions { pipeline_cache: Some(path.clone()), ..DeviceOptions::default() };
    // Nothing there, what the one before left, and the same damaged.
    for round in 0..3 {
        let Some(gpu) = open(options()) else { return };
        let kept = gpu.identity().isa.iter().any(|i| i == "pipeline-cache");
        assert_eq!(gpu.counts().found > 0, kept && round == 1, "round {round}");
        let add = kernel(&gpu, "map");
        let (x, y) = (filled(&gpu, &[1.0; 4]), filled(&gpu, &[1.0; 4]));
        apply(&*add, "add", 4, &[&x, &x], &y);
        assert_eq!(floats(&gpu, y.address(), 4), [2.0; 4]);
        gpu.save_pipelines().expect("a folder to write to");
        assert_eq!(path.exists(), kept);
        if kept && round == 1 {
            let mut bytes = std::fs::read(&path).expect("the file");
            *bytes.last_mut().expect("not empty") ^= 1;
            std::fs::write(&path, bytes).expect("a folder to write to");
        }
        let aside = folder.join("pipelines.damaged");
        assert_eq!(aside.exists(), kept && round == 2, "round {round}");
    }
    let _ = std::fs::remove_dir_all(folder);
}
