//! How quickly data flows from where it lies.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::arena::{Arena, FLUSHES, Lanes, flush, largest_cache};
use super::sample;
use super::stream::{Pass, Stream};
use crate::host::Host;
use crate::isa::Level;
use crate::threads::{Outcome, Team, WhySerial};

/// Where data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Store {
    /// A cache, by its level.
    Cache(u8),
    /// Main memory.
    Main,
}

/// Bytes a second, by all threads together. Copies count what is read and what is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Where the data lay.
    pub store: Store,
    /// Threads at work, each on data of its own.
    pub threads: usize,
    /// Bytes each thread went through again and again.
    pub bytes_per_thread: usize,
    /// Reading one array.
    pub read: f64,
    /// Copying one array to another.
    pub copy: f64,
    /// Reading two arrays and writing a third.
    pub triad: f64,
}

/// The bandwidth of every store, how much of the last cache is had, and whether each thread has as much.
pub(super) type Found = (Vec<Bandwidth>, Option<usize>, Option<bool>);

/// Measures them, unless `go_on` says no meanwhile.
pub(super) fn measure(
    host: &Host,
    team: &Team,
    arena: &mut Arena,
    slice: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Found> {
    let plans: Vec<Plan> = thread_counts(team.max())
        .into_iter()
        .flat_map(|threads| plans(host, threads, arena.touched()))
        .collect();
    let each = slice.div_f64((ROUNDS * Stream::ALL.len() * plans.len().max(1)) as f64);
    let mut best = vec![[None::<f64>; Stream::ALL.len()]; plans.len()];
    for _ in 0..ROUNDS {
        for (plan, rates) in plans.iter().zip(&mut best) {
            if !go_on() {
                return None;
            }
            for (stream, rate) in Stream::ALL.into_iter().zip(rates) {
                let again = plan.rate(team, arena, stream, each);
                *rate = rate.iter().copied().chain(again).reduce(f64::max);
            }
        }
    }
    for _ in 0..AGAIN {
        let doubted = doubted(&plans, &best);
        for (plan, rates) in
            plans.iter().zip(&mut best).enumerate().filter_map(|(i, x)| doubted[i].then_some(x))
        {
            for (stream, rate) in Stream::ALL.into_iter().zip(rates) {
                let again = plan.rate(team, arena, stream, each);
                *rate = rate.iter().copied().chain(again).reduce(f64::max);
            }
        }
    }
    let doubted = doubted(&plans, &best);
    let found = plans.iter().zip(best).zip(doubted).filter(|(_, doubted)| !doubted);
    let found: Vec<Bandwidth> = found.filter_map(|((plan, rates), _)| plan.report(rates)).collect();
    let reach = reach(host, team, arena, &found);
    let apart = reach.and_then(|bytes| apart(host, team, arena, &found, bytes));
    Some((found, reach, apart))
}

/// What a store that lies behind another is slower by.
const SLOWER: f64 = 0.8;

/// Bandwidths of the last cache.
fn cached<'a>(host: &Host, found: &'a [Bandwidth]) -> impl Iterator<Item = &'a Bandwidth> {
    let last = host.caches.last().map(|cache| Store::Cache(cache.level));
    found.iter().filter(move |b| Some(b.store) == last)
}

/// Bytes of the last cache that one thread has: twice what it can go through again and again no slower than through
/// less. A virtual machine is told of all that its host has. (Of 260 MiB two cores had about 100.)
fn reach(host: &Host, team: &Team, arena: &mut Arena, found: &[Bandwidth]) -> Option<usize> {
    let near = cached(host, found).find(|b| b.threads == 1)?;
    let main = found.iter().find(|b| b.store == Store::Main && b.threads == 1)?;
    let middle = (near.read * main.read).sqrt();
    let mut bytes = largest_cache(host) / 2;
    while bytes > near.bytes_per_thread && main.read < SLOWER * near.read {
        let plan = Plan { store: near.store, threads: 1, bytes_per_thread: bytes };
        // One pass to fetch it, and those that count.
        let rate = (bytes <= arena.touched()).then(|| plan.rate(team, arena, Stream::Read, Duration::ZERO));
        if rate.flatten().is_some_and(|rate| rate >= middle) {
            break;
        }
        bytes /= 2;
    }
    Some(2 * bytes)
}

/// Whether all threads at once go through most of so many bytes each no slower than through less: a virtual machine's cores may
/// lie in different cache domains, whatever it is told. (Two of a Zen 5 said to share 32 MiB kept two thirds of the speed of
/// that cache up to 84 MB, one up to 38 MB.) `None` where that much memory could not be touched or nothing tells the two apart.
fn apart(host: &Host, team: &Team, arena: &mut Arena, found: &[Bandwidth], reach: usize) -> Option<bool> {
    let threads = team.max();
    let near = cached(host, found).find(|b| b.threads == threads)?;
    let main = found.iter().find(|b| b.store == Store::Main && b.threads == threads)?;
    let bytes_per_thread = reach / 4 * 3 / 4096 * 4096;
    let tells = threads > 1 && main.read < SLOWER * near.read && bytes_per_thread > near.bytes_per_thread;
    if !tells || bytes_per_thread * threads > arena.touched() {
        return None;
    }
    let plan = Plan { store: near.store, threads, bytes_per_thread };
    let rate = plan.rate(team, arena, Stream::Read, Duration::ZERO)?;
    Some(rate >= (near.read * main.read).sqrt())
}

/// Each figure is measured in several rounds with all others between: while another process holds
/// a core, which takes milliseconds, every sample in a row would be bad.
const ROUNDS: usize = 3;

/// Times that what is doubted is measured again, after all others.
const AGAIN: usize = 4;

/// Share of what one thread gets of a store that several get together at least: all but one could do nothing.
const TOGETHER: f64 = 0.8;

/// Of which plans several threads were seen to get less than one: they were kept from running, or from running at once. What is
/// still so after all is left out, since nobody knows it. (Two threads whose cores had been put to sleep by the host went through
/// the nearest cache at 0.6 GB/s in all three rounds of a calibration, where one does at 420; all short runs on two threads were
/// then foretold by that.)
fn doubted(plans: &[Plan], best: &[[Option<f64>; Stream::ALL.len()]]) -> Vec<bool> {
    let alone = |store| plans.iter().position(|p| p.store == store && p.threads == 1).map(|i| best[i]);
    let less = |(plan, rates): (&Plan, &[Option<f64>; Stream::ALL.len()])| {
        let alone = alone(plan.store).unwrap_or_default();
        let less =
            |(many, one): (&Option<f64>, Option<f64>)| many.zip(one).is_some_and(|(m, o)| m < TOGETHER * o);
        plan.threads > 1 && rates.iter().zip(alone).any(less)
    };
    plans.iter().zip(best).map(less).collect()
}

/// One, two, four and so on, and all.
fn thread_counts(max: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n < max).collect();
    counts.push(max);
    counts
}

/// Bytes of main memory that a thread goes through at a time.
const STRETCH: usize = 2 << 20;

/// So many times the cache before is surely beyond it, where that is as large as this.
const LARGE: usize = 512 << 10;
const MANY: usize = 8;

/// One store to measure with one number of threads.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    store: Store,
    threads: usize,
    bytes_per_thread: usize,
}

/// What can be measured with so many threads and so much memory.
fn plans(host: &Host, threads: usize, available: usize) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut inner = 0;
    for cache in &host.caches {
        let sharing = cache.shared_by.unwrap_or(1).min(threads).max(1);
        // Half of it, or less where it is so large that not all of it may be had.
        let most = if inner < LARGE { usize::MAX } else { MANY * inner };
        let bytes_per_thread = (cache.bytes / 2 / sharing).min(most);
        // Data that would fit in the cache before this one as well says nothing about this one.
        if bytes_per_thread >= 2 * inner && bytes_per_thread * threads <= available {
            let store = Store::Cache(cache.level);
            plans.push(Plan { store, threads, bytes_per_thread });
        }
        inner = cache.bytes;
    }
    // Each walk takes the next stretch, so that data comes round again only after all the rest; if all of it fits in
    // a cache and cannot be put out of it, it is not main memory that would be measured.
    let stretch = (available / threads / 4).min(STRETCH) / 4096 * 4096;
    if stretch > 0 && (FLUSHES || available > largest_cache(host) / 4 * 5) {
        plans.push(Plan { store: Store::Main, threads, bytes_per_thread: stretch });
    }
    plans
}

impl Plan {
    fn report(&self, [read, copy, triad]: [Option<f64>; 3]) -> Option<Bandwidth> {
        Some(Bandwidth {
            store: self.store,
            threads: self.threads,
            bytes_per_thread: self.bytes_per_thread,
            read: read?,
            copy: copy?,
            triad: triad?,
        })
    }

    /// Bytes a second of one stream.
    fn rate(&self, team: &Team, arena: &mut Arena, stream: Stream, each: Duration) -> Option<f64> {
        let seconds = match self.store {
            Store::Cache(_) => {
                let lanes = self.lanes(&mut arena.floats()[..]);
                sample::best(each, |passes| walk(team, &lanes, stream, passes))
            }
            // Not the best: some stretches may have stayed in a cache.
            Store::Main => sample::median(each, || {
                let from = arena.advance(self.elements() * self.threads);
                let lanes = self.lanes(&mut arena.floats()[from..]);
                // SAFETY: each part runs once, so no two threads get the same lane.
                let _ = team.run(lanes.count(), &|part| flush(unsafe { lanes.get(part) }));
                let start = Instant::now();
                walk(team, &lanes, stream, 1).then(|| start.elapsed().as_secs_f64())
            }),
        };
        Some((stream.bytes(self.elements()) * self.threads) as f64 / seconds?)
    }

    fn elements(&self) -> usize {
        self.bytes_per_thread / size_of::<f32>()
    }

    /// The beginning of `memory`, a lane for each thread.
    fn lanes<'a>(&self, memory: &'a mut [f32]) -> Lanes<'a, f32> {
        Lanes::new(&mut memory[..self.elements() * self.threads], self.elements())
    }
}

/// Goes through each lane on a thread of its own; tells whether the threads really ran together.
fn walk(team: &Team, lanes: &Lanes<'_, f32>, stream: Stream, passes: usize) -> bool {
    let level = Level::best();
    let outcome = team.run(lanes.count(), &|part| {
        // SAFETY: each part runs once, so no two threads get the same lane.
        let memory = unsafe { lanes.get(part) };
        level.dispatch(Pass { stream, memory, passes });
    });
    matches!(outcome, Outcome::Parallel | Outcome::Serial { reason: WhySerial::OnePart })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Cache;

    fn host(caches: &[(u8, usize, usize)]) -> Host {
        let cache = |&(level, bytes, sharing): &(u8, usize, usize)| Cache {
            level,
            bytes,
            line: Some(64),
            shared_by: Some(sharing),
        };
        Host { caches: caches.iter().map(cache).collect(), ..Host::detect() }
    }

    #[test]
    fn threads_that_share_a_cache_share_its_plan() {
        let host = host(&[(1, 32 << 10, 1), (2, 1 << 20, 1), (3, 32 << 20, 8)]);
        let sizes = |threads| -> Vec<(Store, usize)> {
            plans(&host, threads, 64 << 20).iter().map(|plan| (plan.store, plan.bytes_per_thread)).collect()
        };
        assert_eq!(
            sizes(1)[..3],
            [(Store::Cache(1), 16 << 10), (Store::Cache(2), 512 << 10), (Store::Cache(3), 8 << 20)]
        );
        assert_eq!(sizes(4)[2], (Store::Cache(3), 4 << 20));
        assert_eq!(sizes(16)[2].0, Store::Cache(3), "two groups of eight");
        assert_eq!(sizes(16)[2].1, 2 << 20);
    }

    #[test]
    fn a_cache_that_adds_nothing_to_the_one_before_is_left_out() {
        let host = host(&[(1, 48 << 10, 1), (2, 2 << 20, 1), (3, 8 << 20, 8)]);
        let stores: Vec<Store> = plans(&host, 8, 64 << 20).iter().map(|plan| plan.store).collect();
        assert_eq!(stores, [Store::Cache(1), Store::Cache(2), Store::Main]);
    }

    #[test]
    fn main_memory_is_not_measured_with_data_that_stays_in_a_cache() {
        let host = host(&[(1, 32 << 10, 1), (3, 32 << 20, 8)]);
        let has_main = |bytes| plans(&host, 1, bytes).iter().any(|plan| plan.store == Store::Main);
        assert!(has_main(48 << 20));
        assert_eq!(has_main(32 << 20), FLUSHES);
    }

    #[test]
    fn of_a_cache_that_is_too_large_to_be_true_a_part_is_measured() {
        let host = host(&[(1, 48 << 10, 1), (2, 2 << 20, 1), (3, 260 << 20, 2)]);
        let sizes = |threads| -> Vec<(Store, usize)> {
            plans(&host, threads, 400 << 20).iter().map(|plan| (plan.store, plan.bytes_per_thread)).collect()
        };
        assert_eq!(sizes(1)[2..], [(Store::Cache(3), 16 << 20), (Store::Main, STRETCH)]);
        assert_eq!(sizes(2)[2..], [(Store::Cache(3), 16 << 20), (Store::Main, STRETCH)]);
    }

    #[test]
    fn a_host_that_tells_nothing_about_its_caches_still_has_main_memory() {
        let plans = plans(&host(&[]), 2, 64 << 20);
        assert_eq!(plans.iter().map(|plan| plan.store).collect::<Vec<_>>(), [Store::Main]);
    }

    #[test]
    fn several_threads_that_got_less_than_one_are_not_believed() {
        let plan = |store, threads| Plan { store, threads, bytes_per_thread: 4096 };
        let near = Store::Cache(1);
        let plans = [plan(near, 1), plan(near, 2), plan(Store::Main, 2), plan(Store::Main, 1)];
        let rates = |read: f64| [Some(read), Some(220e9), None];
        let seen = |many, main| doubted(&plans, &[rates(410e9), rates(many), rates(main), rates(40e9)]);
        assert_eq!(seen(573e6, 41e9), [false, true, false, false]);
        assert_eq!(seen(400e9, 20e9), [false, false, true, false], "as much as one alone is possible");
        assert_eq!(
            doubted(&plans[1..3], &[rates(1.0), rates(1.0)]),
            [false, false],
            "nothing to hold it against"
        );
    }

    #[test]
    fn thread_counts_double_and_end_with_all() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(8), [1, 2, 4, 8]);
    }
}
