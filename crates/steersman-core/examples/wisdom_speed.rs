//! How long it takes to open wisdom and load it, to save a batch, and to read the senses: the cost of a warm
//! start and of remembering. Prints the median and the best of many.
//!
//! `cargo run --release -p steersman-core --example wisdom_speed [cells]`

use std::time::Instant;
use steersman_core::wisdom::{Batch, Cell, HistoryRow, Wisdom};
use steersman_core::{Seconds, Senses};

fn report(what: &str, mut run: impl FnMut()) {
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what:<44} median {:>9}   best {:>9}", Seconds(times[100]), Seconds(times[0]));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(500), |n| n.parse())?;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("wisdom.db");
    let batch = |samples: u64| Batch {
        cells: (0..count)
            .map(|i| Cell {
                device: 7,
                kernel: format!("cpu/kernel-{}", i % 20),
                revision: 1,
                threads: 1 + (i % 2) as u16,
                op: format!("op-{}", i / 40),
                dtype: "f32".into(),
                layout: format!("layout-{i}"),
                payload: vec![i as u8; 600],
                samples,
                ..Cell::default()
            })
            .collect(),
        history: (0..count)
            .map(|i| HistoryRow {
                device: 7,
                workload: format!("matmul f32 {i}x512 512x256"),
                kernel: "cpu/gemm".into(),
                n: samples,
                ..HistoryRow::default()
            })
            .collect(),
        ..Batch::default()
    };
    let wisdom = Wisdom::open(Some(&path)).wisdom;
    wisdom.save(batch(1))?;
    drop(wisdom);
    println!(
        "{count} cells of 600 bytes and {count} histories, {} kB on disk",
        std::fs::metadata(&path)?.len() / 1000
    );
    let wisdom = Wisdom::open(Some(&path)).wisdom;
    report("open alone", || drop(Wisdom::open(Some(&path))));
    report("open and load, another process has it open", || {
        assert_eq!(Wisdom::open(Some(&path)).wisdom.load(7).cells.len(), count as usize);
    });
    let mut samples = 1;
    report("save all", || {
        samples += 1;
        wisdom.save(batch(samples)).expect("the disk has room");
    });
    report("save ten cells", || {
        samples += 1;
        let mut few = batch(samples);
        few.cells.truncate(10);
        few.history.truncate(10);
        wisdom.save(few).expect("the disk has room");
    });
    drop(wisdom);
    report("open and load, nobody has it open", || {
        assert_eq!(Wisdom::open(Some(&path)).wisdom.load(7).cells.len(), count as usize);
    });
    report("open to read and load, nobody has it open", || {
        assert_eq!(Wisdom::open_read_only(&path).wisdom.load(7).cells.len(), count as usize);
    });
    let senses = Senses::new();
    report("senses: everything", || drop(senses.read()));
    report("senses: others' share of the CPU", || {
        senses.busy_other();
    });
    println!("{:?}", senses.read());
    Ok(())
}
