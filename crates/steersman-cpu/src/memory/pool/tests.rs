use super::*;
use proptest::prelude::*;
use std::thread;

const MIB: usize = 1 << 20;

#[test]
fn a_block_let_go_is_handed_out_again() {
    let pool = MemoryPool::new(64 * MIB);
    for bytes in [1, 1000, 100_000, 3 * MIB] {
        let mut first = pool.take(bytes).unwrap();
        let address = first.as_mut_ptr();
        first.as_uninit_mut()[bytes - 1].write(7);
        drop(first);
        let second = pool.take(bytes).unwrap();
        assert_eq!(second.as_ptr(), address.cast_const());
        assert_eq!(second.len(), bytes);
    }
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (4, 4));
}

#[test]
fn two_blocks_out_at_once_are_apart() {
    let pool = MemoryPool::new(MIB);
    let (a, b) = (pool.take(300).unwrap(), pool.take(300).unwrap());
    assert!(a.as_ptr().addr().abs_diff(b.as_ptr().addr()) >= 320);
}

#[test]
fn blocks_start_on_a_cache_line() {
    let pool = MemoryPool::new(MIB);
    for bytes in [1, 77, 257, 5000, 70_000, 3 * MIB] {
        assert_eq!(pool.take(bytes).unwrap().as_ptr().addr() % 64, 0, "{bytes} bytes");
    }
}

#[test]
fn a_zeroed_block_is_zero_even_where_another_wrote() {
    let pool = MemoryPool::new(64 * MIB);
    for bytes in [1000, 3 * MIB] {
        for _ in 0..2 {
            let mut block = pool.take_zeroed(bytes).unwrap();
            // SAFETY: `take_zeroed` wrote every byte.
            assert!(block.as_uninit().iter().all(|byte| unsafe { byte.assume_init() } == 0));
            block.as_uninit_mut().iter_mut().for_each(|byte| {
                byte.write(0xff);
            });
        }
    }
    assert_eq!(pool.stats().hits, 2);
}

#[test]
fn no_bytes_and_absurd_sizes_are_errors() {
    let pool = MemoryPool::new(MIB);
    assert_eq!(pool.take(0).unwrap_err(), MemoryError::Empty);
    let error = pool.take(usize::MAX).unwrap_err();
    assert_eq!(error, MemoryError::TooLarge { asked: usize::MAX, most: LARGEST });
    assert_eq!(pool.stats(), PoolStats::default());
}

#[test]
fn a_refusal_by_the_system_is_an_error_and_leaves_the_books_straight() {
    let pool = MemoryPool::new(MIB);
    drop(pool.take(1000).unwrap());
    let error = pool.take(LARGEST).unwrap_err();
    assert_eq!(error, MemoryError::Refused { asked: LARGEST, in_use: 0 });
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.idle), (0, 0), "idle blocks were given back before giving up");
    assert!(pool.take(1000).is_ok());
}

#[test]
fn the_hard_limit_names_asked_in_use_and_limit() {
    let pool = MemoryPool::new(MIB);
    pool.set_hard_limit(Some(1024));
    let held = pool.take(512).unwrap();
    let error = pool.take(513).unwrap_err();
    assert_eq!(error, MemoryError::OverLimit { asked: 513, in_use: 512, limit: 1024 });
    for figure in ["513", "512", "1024"] {
        assert!(error.to_string().contains(figure), "{error}");
    }
    assert!(pool.take(512).is_ok(), "up to the limit is fine");
    drop(held);
    assert!(pool.take(513).is_ok());
    pool.set_hard_limit(None);
    assert!(pool.take(MIB).is_ok());
}

#[test]
fn idle_memory_stays_within_the_limit_oldest_out_first() {
    let pool = MemoryPool::new(1024);
    let old = pool.take(448).unwrap();
    let newer = pool.take(512).unwrap();
    let newer_address = newer.as_ptr();
    let newest = pool.take(384).unwrap();
    drop(old);
    pool.shared.now.store(5, Relaxed);
    drop(newer);
    pool.shared.now.store(6, Relaxed);
    assert_eq!(pool.stats().idle, 960);
    drop(newest);
    let stats = pool.stats();
    assert_eq!((stats.idle, stats.trimmed), (896, 448));
    assert_eq!(pool.take(512).unwrap().as_ptr(), newer_address);
}

#[test]
fn of_blocks_of_one_size_the_oldest_goes_first() {
    let pool = MemoryPool::new(MIB);
    let (old, new) = (pool.take(256).unwrap(), pool.take(256).unwrap());
    let new_address = new.as_ptr();
    drop(old);
    drop(new);
    pool.trim(256);
    assert_eq!(pool.take(256).unwrap().as_ptr(), new_address);
}

#[test]
fn a_block_larger_than_the_limit_is_not_kept() {
    let pool = MemoryPool::new(1000);
    drop(pool.take(256).unwrap());
    drop(pool.take(5000).unwrap());
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.idle, stats.trimmed), (0, 256, 5120));
}

#[test]
fn trim_keeps_what_it_is_told_to() {
    let pool = MemoryPool::new(MIB);
    let blocks: Vec<_> = (0..10).map(|_| pool.take(256).unwrap()).collect();
    drop(blocks);
    assert_eq!(pool.stats().idle, 2560);
    pool.trim(600);
    assert_eq!(pool.stats().idle, 512);
    pool.trim(0);
    assert_eq!((pool.stats().idle, pool.stats().trimmed), (0, 2560));
}

#[test]
fn blocks_idle_for_long_are_given_back_and_young_ones_stay() {
    let pool = MemoryPool::new(MIB);
    let (old, young) = (pool.take(256).unwrap(), pool.take(512).unwrap());
    drop(old);
    pool.shared.now.store(9_000, Relaxed);
    drop(young);
    pool.shared.sweep(millis(KEEP_FOR) - 1);
    assert_eq!(pool.stats().idle, 768);
    pool.shared.sweep(millis(KEEP_FOR) + 500);
    assert_eq!(pool.stats().idle, 512);
}

#[test]
fn a_block_may_outlive_its_pool() {
    let pool = MemoryPool::new(MIB);
    let mut block = pool.take(3 * MIB).unwrap();
    drop(pool);
    block.as_uninit_mut()[3 * MIB - 1].write(1);
}

#[test]
fn threads_never_share_a_block_and_the_books_balance() {
    let pool = MemoryPool::new(MIB);
    thread::scope(|scope| {
        for mark in 0..4u8 {
            let pool = pool.clone();
            scope.spawn(move || {
                let mut held = Vec::new();
                for round in 0..5_000usize {
                    let bytes = 1 + (round * 7919 + usize::from(mark) * 104_729) % 3000;
                    let mut block = pool.take(bytes).unwrap();
                    block.as_uninit_mut().iter_mut().for_each(|byte| {
                        byte.write(mark);
                    });
                    held.push(block);
                    if round % 3 != 0 {
                        let block = held.swap_remove(round % held.len());
                        // SAFETY: every byte was written above.
                        assert!(block.as_uninit().iter().all(|byte| unsafe { byte.assume_init() } == mark));
                    }
                    if held.len() > 50 {
                        held.clear();
                    }
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!(stats.in_use, 0);
    assert_eq!(stats.hits + stats.misses, 20_000);
    assert!(stats.hits > stats.misses && stats.idle <= MIB && stats.peak > 0);
    pool.trim(0);
    assert_eq!(pool.stats().idle, 0);
    assert_eq!(pool.shared.owned.load(Relaxed), 0);
}

proptest! {
    #[test]
    fn stats_agree_with_a_plain_count(steps in prop::collection::vec((1usize..20_000, any::<bool>()), 1..60)) {
        let pool = MemoryPool::new(usize::MAX);
        let (mut held, mut in_use, mut peak) = (Vec::new(), 0, 0);
        for (bytes, drop_one) in steps {
            held.push(pool.take(bytes).unwrap());
            in_use += Class::holding(bytes).size();
            peak = peak.max(in_use);
            if drop_one {
                let block = held.swap_remove(bytes % held.len());
                in_use -= Class::holding(block.len()).size();
            }
            prop_assert_eq!(pool.stats().in_use, in_use);
        }
        let owned = pool.shared.owned.load(Relaxed);
        let stats = pool.stats();
        prop_assert_eq!((stats.peak, stats.idle), (peak, owned - in_use));
        drop(held);
        prop_assert_eq!(pool.stats().idle, owned);
    }
}

#[test]
fn touched_memory_of_any_size_is_preferred_to_fresh() {
    let pool = MemoryPool::new(1 << 20);
    let large = pool.take_touched(5000).unwrap();
    assert_eq!((large.len(), pool.stats().in_use), (5000, 8192), "a fresh one has room for a power of two");
    let address = large.as_ptr();
    drop(large);
    let small = pool.take_touched(300).unwrap();
    assert_eq!((small.as_ptr(), small.len(), pool.stats().misses), (address, 300, 1));
    assert_ne!(pool.take_touched(300).unwrap().as_ptr(), address, "it is out");
    drop(small);
    assert_eq!(pool.take(8192).unwrap().as_ptr(), address, "it went back where it belongs");
    assert_eq!(pool.take_touched(0).unwrap_err(), MemoryError::Empty);
    assert!(matches!(pool.take_touched(usize::MAX), Err(MemoryError::TooLarge { .. })));
}
