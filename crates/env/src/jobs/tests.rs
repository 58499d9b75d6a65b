//! Both drivers: wakes, deadlines, panics, and the stepper's determinism.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::threads::text_of;
use super::{Jobs, Machine, Step};
use crate::clock::{Clock, ManualClock, RealClock};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// A machine made of a closure.
struct Does<F>(F);

impl<F: FnMut() -> Step + Send> Machine for Does<F> {
    fn step(&mut self) -> Step {
        (self.0)()
    }
}

fn machine(step: impl FnMut() -> Step + Send + 'static) -> Box<dyn Machine> {
    Box::new(Does(step))
}

fn stepper(seed: u64) -> (Jobs, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Jobs::stepper(Arc::clone(&clock), seed), clock)
}

fn both() -> [Jobs; 2] {
    [Jobs::threads(Arc::new(RealClock::new())), stepper(1).0]
}

fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("should panic");
    text_of(&*panic).to_owned()
}

#[test]
fn no_wake_is_lost_between_two_machines_and_a_waiter() {
    const TURNS: u64 = 20_000;
    for jobs in both() {
        let turn = Arc::new(AtomicU64::new(0));
        let handles = [0, 1].map(|me| {
            let (turn, jobs) = (Arc::clone(&turn), jobs.clone());
            let step = machine({
                let jobs = jobs.clone();
                move || {
                    let now = turn.load(Ordering::Acquire);
                    if now >= TURNS {
                        return Step::Finished;
                    }
                    if now % 2 != me {
                        return Step::Idle;
                    }
                    turn.store(now + 1, Ordering::Release);
                    jobs.wake();
                    Step::Idle
                }
            });
            jobs.spawn("player", step)
        });
        jobs.wait(&mut || turn.load(Ordering::Acquire) >= TURNS);
        handles.into_iter().for_each(super::Handle::join);
        assert_eq!(jobs.panicked(), None);
    }
}

#[test]
fn deadlines_pass_on_either_clock() {
    let clock = Arc::new(RealClock::new());
    let threads = Jobs::threads(Arc::<RealClock>::clone(&clock));
    let (stepper, manual) = stepper(1);
    let pairs: [(Jobs, Arc<dyn Clock>); 2] = [(threads, clock), (stepper, manual)];
    for (jobs, clock) in pairs {
        let tick = Duration::from_millis(5);
        let (ticks, seen) = (Arc::new(AtomicU64::new(0)), Arc::clone(&clock));
        let mut next = Duration::ZERO;
        let handle = jobs.spawn(
            "ticker",
            machine({
                let (ticks, jobs) = (Arc::clone(&ticks), jobs.clone());
                move || {
                    if seen.now() >= next {
                        next = seen.now() + tick;
                        ticks.fetch_add(1, Ordering::AcqRel);
                        jobs.wake();
                    }
                    if ticks.load(Ordering::Acquire) == 4 { Step::Finished } else { Step::Until(next) }
                }
            }),
        );
        assert!(!jobs.wait_until(clock.now() + Duration::from_millis(1), &mut || false));
        assert!(jobs.wait_until(Duration::from_secs(60), &mut || ticks.load(Ordering::Acquire) == 3));
        handle.join();
        assert!(clock.now() >= 3 * tick && clock.now() < Duration::from_secs(60));
    }
}

#[test]
fn a_panic_on_a_thread_is_kept_and_wakes() {
    let jobs = Jobs::threads(Arc::new(RealClock::new()));
    let handle = jobs.spawn("flusher", machine(|| panic!("no {}", "luck")));
    jobs.wait(&mut || jobs.panicked().is_some());
    handle.join();
    assert_eq!(jobs.panicked().expect("kept"), "flusher panicked: no luck");
}

#[test]
fn a_panic_in_the_stepper_reaches_the_waiter() {
    let (jobs, _) = stepper(1);
    let handle = jobs.spawn("flusher", machine(|| panic!("no luck")));
    assert_eq!(panic_of(|| handle.join()), "no luck");
    // The stepper itself is still whole.
    let next = jobs.spawn("next", machine(|| Step::Finished));
    next.join();
}

#[test]
fn the_order_comes_from_the_seed() {
    let order = |seed| {
        let (jobs, _) = stepper(seed);
        let order = Arc::new(Mutex::new(String::new()));
        for name in ["a", "b", "c"] {
            let order = Arc::clone(&order);
            let mut left = 5;
            jobs.spawn(
                name,
                machine(move || {
                    order.lock().push_str(name);
                    left -= 1;
                    if left == 0 { Step::Finished } else { Step::Worked }
                }),
            );
        }
        jobs.step_some(4);
        assert_eq!(order.lock().len(), 4);
        jobs.step_some(100);
        order.lock().clone()
    };
    assert_eq!(order(1), order(1));
    assert_eq!(order(1).len(), 15);
    assert!((2..10).any(|seed| order(seed) != order(1)));
}

/// Machines that always have something to do kept whoever waits for the outcome for ten minutes and more.
#[test]
fn a_simulation_that_gets_nowhere_says_who_keeps_working() {
    let (jobs, _) = stepper(1);
    jobs.spawn("sleeper", machine(|| Step::Idle));
    jobs.spawn("spinner", machine(|| Step::Worked));
    let text = panic_of(|| jobs.wait(&mut || false));
    assert!(text.contains("machines keep working") && text.contains("sleeper (1 turns)"), "{text}");
}

#[test]
fn a_stuck_simulation_says_so() {
    let (jobs, clock) = stepper(1);
    jobs.spawn("sleeper", machine(|| Step::Idle));
    let text = panic_of(|| jobs.wait(&mut || false));
    assert!(text.contains("simulation stuck") && text.contains("sleeper"), "{text}");
    assert!(!jobs.wait_until(Duration::from_secs(3), &mut || false), "a deadline is not stuck");
    assert_eq!(clock.now(), Duration::from_secs(3));
    jobs.advance(Duration::from_secs(1));
    assert_eq!(clock.now(), Duration::from_secs(4));
}

#[test]
fn waiting_inside_a_step_is_refused() {
    let (jobs, _) = stepper(1);
    let inner = jobs.clone();
    let handle = jobs.spawn(
        "bad",
        machine(move || {
            inner.wait(&mut || true);
            Step::Finished
        }),
    );
    assert!(panic_of(|| handle.join()).contains("inside its own step"));
    jobs.wait(&mut || true);
}

#[test]
fn abandoned_machines_are_dropped_unstepped() {
    let (jobs, _) = stepper(1);
    let held = Arc::new(());
    let handles = [0, 1].map(|_| {
        let held = Arc::clone(&held);
        jobs.spawn(
            "held",
            machine(move || {
                let _ = &held;
                panic!("stepped");
            }),
        )
    });
    jobs.abandon();
    assert_eq!(Arc::strong_count(&held), 1);
    handles.into_iter().for_each(super::Handle::join);
    // A machine may also pull the plug itself.
    let inner = jobs.clone();
    let last = Arc::clone(&held);
    let handle = jobs.spawn(
        "plug",
        machine(move || {
            let _ = &last;
            inner.abandon();
            Step::Worked
        }),
    );
    handle.join();
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn machines_may_spawn_machines() {
    for jobs in both() {
        let (inner, made) = (jobs.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&made);
        jobs.spawn(
            "parent",
            machine(move || {
                let (counted, jobs) = (Arc::clone(&counted), inner.clone());
                inner.spawn(
                    "child",
                    machine(move || {
                        counted.fetch_add(1, Ordering::AcqRel);
                        jobs.wake();
                        Step::Finished
                    }),
                );
                Step::Finished
            }),
        );
        jobs.wait(&mut || made.load(Ordering::Acquire) == 1);
    }
}

/// Two who read, let others run, and write: under some seeds one's work is lost, and the same seed loses the same.
#[test]
fn steps_stop_between_two_lines_as_the_seed_says() {
    let counted = |seed| {
        let (jobs, _) = stepper(seed);
        jobs.interleave(seed);
        let total = Arc::new(AtomicU64::new(0));
        let users = ["a", "b"].map(|name| {
            let total = Arc::clone(&total);
            jobs.fork(name, move || {
                for _ in 0..10 {
                    let seen = total.load(Ordering::SeqCst);
                    super::yield_point("between");
                    total.store(seen + 1, Ordering::SeqCst);
                }
            })
        });
        users.into_iter().for_each(super::Handle::join);
        assert!(jobs.pauses()["between"] <= 20);
        total.load(Ordering::SeqCst)
    };
    let first: Vec<u64> = (0..10).map(counted).collect();
    assert!(first.iter().any(|&total| total < 20), "{first:?}");
    assert_eq!(first, (0..10).map(counted).collect::<Vec<_>>());
}

/// Whoever holds a lock may stop, and others who want it: they wait for one another, and nothing is lost.
#[test]
fn a_lock_that_a_stopped_step_holds_is_waited_for() {
    for seed in 0..20 {
        let (jobs, _) = stepper(seed);
        jobs.interleave(seed);
        let total = Arc::new(Mutex::new(0));
        let add = |total: &Mutex<u64>| {
            let mut guard = total.lock();
            let seen = *guard;
            super::yield_point("locked");
            *guard = seen + 1;
        };
        let users = ["a", "b"].map(|name| {
            let total = Arc::clone(&total);
            jobs.fork(name, move || (0..10).for_each(|_| add(&total)))
        });
        (0..10).for_each(|_| add(&total));
        users.into_iter().for_each(super::Handle::join);
        assert_eq!(*total.lock(), 30);
    }
}

/// A user who waits stops, too, and a simulation that is given up unwinds whoever has stopped.
#[test]
fn what_has_stopped_is_unwound_when_all_is_abandoned() {
    let (jobs, _) = stepper(3);
    let (held, dropped) = (Arc::new(Mutex::new(())), Arc::new(AtomicU64::new(0)));
    for name in ["a", "b"] {
        let (jobs_of, held, alive) = (jobs.clone(), Arc::clone(&held), Arc::clone(&dropped));
        jobs.fork(name, move || {
            let _held = held.lock();
            jobs_of.wait(&mut || alive.load(Ordering::SeqCst) > 100);
        });
    }
    jobs.step_some(20);
    jobs.abandon();
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert!(held.try_lock().is_some());
}
