use super::*;
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;

const LONG: Duration = Duration::from_millis(2);

/// Side by side or, on a machine with fewer cores than threads, in turns.
fn workers_helped(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Parallel | Outcome::Crowded | Outcome::Partly)
}

/// Whether the workers were asked: whether they were up in time is the scheduler's affair.
fn workers_were_asked(outcome: Outcome) -> bool {
    workers_helped(outcome) || outcome == Outcome::Serial { reason: WhySerial::Asleep }
}

/// A body for which every part must have a thread of its own.
fn meet(team: &Team, parts: usize) {
    let all = Barrier::new(parts);
    let outcome = team.run(parts, &|_| {
        all.wait();
    });
    assert!(workers_helped(outcome), "{outcome:?}");
}

fn counts(parts: usize) -> Vec<AtomicU32> {
    (0..parts).map(|_| AtomicU32::new(0)).collect()
}

fn assert_each_once(counts: &[AtomicU32], context: &str) {
    for (part, count) in counts.iter().enumerate() {
        assert_eq!(count.load(Relaxed), 1, "part {part} of {} {context}", counts.len());
    }
}

#[test]
fn every_part_runs_exactly_once_whatever_the_number() {
    for spin in [Duration::ZERO, Team::DEFAULT_SPIN] {
        let team = Team::with_spin(4, spin);
        for round in 0..300 {
            let parts = round % 23;
            let seen = counts(parts);
            let outcome = team.run(parts, &|i| {
                seen[i].fetch_add(1, Relaxed);
            });
            assert_each_once(&seen, &format!("in round {round}"));
            assert_eq!(workers_were_asked(outcome), parts > 1);
        }
    }
}

#[test]
fn what_parts_wrote_is_seen_by_the_caller() {
    let team = Team::new(3);
    let mut data = vec![0u64; 3];
    for round in 0..20_000u64 {
        let base = data.as_mut_ptr() as usize;
        let outcome = team.run(3, &|i| {
            // SAFETY: each part writes its own element, inside the vector.
            unsafe { (base as *mut u64).add(i).write(round + i as u64) };
        });
        assert!(workers_were_asked(outcome));
        assert_eq!(data, [round, round + 1, round + 2]);
    }
}

#[test]
fn a_part_keeps_its_thread_and_part_zero_is_the_callers() {
    let team = Team::new(3);
    let ids = Mutex::new(vec![Vec::new(); 3]);
    for _ in 0..20 {
        let all = Barrier::new(3);
        let outcome = team.run(3, &|i| {
            all.wait();
            ids.lock().unwrap()[i].push(thread::current().id());
        });
        assert!(workers_helped(outcome), "{outcome:?}");
    }
    let ids = ids.into_inner().unwrap();
    assert_eq!(ids[0][0], thread::current().id());
    for part in &ids {
        assert!(part.iter().all(|id| *id == part[0]));
    }
    assert_ne!(ids[1][0], ids[2][0]);
}

#[test]
fn parts_really_run_at_the_same_time() {
    let team = Team::new(3);
    for pause in [Duration::ZERO, LONG] {
        for _ in 0..10 {
            meet(&team, 3);
            thread::sleep(pause);
        }
    }
}

#[test]
fn a_worker_that_cannot_get_up_is_not_waited_for() {
    let team = Team::new(2);
    // As if it had started and the system gave it no time to run.
    team.started.store(1, Relaxed);
    for parts in [2, 5] {
        let seen = counts(parts);
        let outcome = team.run(parts, &|i| {
            seen[i].fetch_add(1, Relaxed);
        });
        assert_each_once(&seen, "without the worker");
        assert_eq!(outcome, Outcome::Serial { reason: WhySerial::Asleep });
    }
}

#[test]
fn a_run_in_which_some_could_not_get_up_is_no_measure_of_all() {
    let team = Team::new(3);
    // One is there, and one as if it had started and the system gave it no time to run.
    meet(&team, 2);
    team.started.store(2, Relaxed);
    let up = AtomicBool::new(false);
    let outcome = team.run(3, &|i| match i {
        1 => up.store(true, Relaxed),
        // The caller waits for the one that can.
        0 => (0..10_000_000).take_while(|_| !up.load(Relaxed)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    });
    assert_eq!(outcome, Outcome::Partly);
    assert!(!outcome.is_parallel());
}

#[test]
fn several_callers_at_once_all_get_their_parts_run() {
    let team = Team::new(3);
    let parallel = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2_000 {
                    let seen = counts(2 + round % 5);
                    let outcome = team.run(seen.len(), &|i| {
                        seen[i].fetch_add(1, Relaxed);
                    });
                    assert_each_once(&seen, &format!("in round {round}"));
                    match outcome {
                        Outcome::Parallel | Outcome::Crowded | Outcome::Partly => {
                            parallel.fetch_add(1, Relaxed);
                        }
                        Outcome::Serial { reason } => {
                            assert!(matches!(reason, WhySerial::Busy | WhySerial::Asleep), "{reason:?}");
                        }
                    }
                }
            });
        }
    });
    meet(&team, 3);
    println!("{} of 8000 in parallel", parallel.into_inner());
}

#[test]
fn a_busy_team_is_not_waited_for() {
    let team = Team::new(2);
    let (inside, leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = team.run(2, &|i| {
                if i == 0 {
                    inside.wait();
                    leave.wait();
                }
            });
            assert!(workers_were_asked(outcome));
        });
        inside.wait();
        let here = thread::current().id();
        let outcome = team.run(5, &|_| assert_eq!(thread::current().id(), here));
        assert_eq!(outcome, Outcome::Serial { reason: WhySerial::Busy });
        leave.wait();
    });
}

#[test]
fn a_run_inside_a_run_is_serial() {
    let (team, other) = (Team::new(2), Team::new(2));
    let inner = AtomicUsize::new(0);
    let _ = team.run(2, &|_| {
        for team in [&team, &other] {
            let outcome = team.run(3, &|_| {
                inner.fetch_add(1, Relaxed);
            });
            assert_eq!(outcome, Outcome::Serial { reason: WhySerial::Nested });
        }
    });
    assert_eq!(inner.into_inner(), 12);
    meet(&team, 2);
}

#[test]
fn a_team_of_one_says_it_has_no_workers() {
    let outcome = Team::new(0).run(3, &|_| ());
    assert_eq!(outcome, Outcome::Serial { reason: WhySerial::NoWorkers });
    assert_eq!(Team::new(0).max(), 1);
    assert_eq!(Team::new(2).run(1, &|_| ()), Outcome::Serial { reason: WhySerial::OnePart });
}

#[test]
fn a_panic_in_any_part_reaches_the_caller_and_the_team_goes_on() {
    let team = Team::new(3);
    meet(&team, 3);
    for parts in [3, 12] {
        for culprit in 0..parts {
            let running = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _ = team.run(parts, &|i| {
                    running.fetch_add(1, Relaxed);
                    if i == culprit {
                        running.fetch_sub(1, Relaxed);
                        resume_unwind(Box::new(format!("part {i}")));
                    }
                    thread::sleep(Duration::from_micros(200));
                    running.fetch_sub(1, Relaxed);
                });
            }));
            assert_eq!(running.load(Relaxed), 0, "a part outlived the run");
            let payload = result.expect_err("the panic is re-raised");
            assert_eq!(payload.downcast_ref::<String>(), Some(&format!("part {culprit}")));
            let seen = counts(parts);
            let outcome = team.run(parts, &|i| {
                seen[i].fetch_add(1, Relaxed);
            });
            assert_each_once(&seen, "after a panic");
            assert!(workers_were_asked(outcome));
        }
    }
}

#[test]
fn all_parts_panicking_is_one_panic() {
    let team = Team::new(4);
    for _ in 0..50 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _ = team.run(4, &|_| resume_unwind(Box::new(7u8)));
        }));
        assert_eq!(result.expect_err("re-raised").downcast_ref::<u8>(), Some(&7));
    }
    meet(&team, 4);
}

#[test]
fn a_slow_worker_is_slept_for_and_a_slow_caller_too() {
    let team = Team::new(2);
    for round in 0..20 {
        let seen = counts(2);
        let _ = team.run(2, &|i| {
            if i == round % 2 {
                thread::sleep(LONG);
            }
            seen[i].fetch_add(1, Relaxed);
        });
        assert_each_once(&seen, "with a sleeper");
    }
}

#[test]
fn drop_joins_workers_that_never_ran_spin_or_sleep() {
    drop(Team::new(8));
    for pause in [Duration::ZERO, Duration::from_micros(40), LONG] {
        for _ in 0..30 {
            let team = Team::new(3);
            let held = Arc::clone(&team.crew);
            let _ = team.run(3, &|_| ());
            thread::sleep(pause);
            drop(team);
            assert_eq!(Arc::strong_count(&held), 1, "a worker is still there");
        }
    }
}

#[test]
fn workers_start_only_when_needed() {
    let team = Team::new(5);
    assert_eq!(team.started.load(Relaxed), 0);
    let _ = team.run(2, &|_| ());
    assert_eq!(team.started.load(Relaxed), 1);
    let _ = team.run(9, &|_| ());
    assert_eq!(team.started.load(Relaxed), 4);
}
