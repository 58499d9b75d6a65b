//! An executor's threads: nothing is lost, everybody has turns, what ends is gone, and threads end with it.

use std::io;
use std::time::Duration;

use super::super::bell::Bell;
use super::super::queue::{Class, Queue, Rest, Turns};
use super::super::{Handle, Haste, Jobs, Machine, Step};
use super::{Executor, Life};
use crate::clock::{Clock, ManualClock, RealClock};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::Builder;
use crate::sync::{Arc, Mutex};

/// A machine made of a closure.
struct Does<F>(F, Class);

impl<F: FnMut() -> Step + Send> Machine for Does<F> {
    fn step(&mut self) -> Step {
        (self.0)()
    }
    fn yields(&self) -> bool {
        self.1 == Class::Yielding
    }
}

fn machine(class: Class, step: impl FnMut() -> Step + Send + 'static) -> Box<dyn Machine> {
    Box::new(Does(step, class))
}

fn executor(threads: usize) -> (Executor, Arc<RealClock>) {
    let clock = Arc::new(RealClock::new());
    (Executor::new(threads, Arc::<RealClock>::clone(&clock)), clock)
}

/// Many owners, each with two machines that hand a turn back and forth, on few threads.
#[test]
fn no_wake_is_lost_between_machines_of_many_owners() {
    const TURNS: u64 = 500;
    let (executor, clock) = executor(2);
    let owners: Vec<(Jobs, Arc<AtomicU64>)> = (0..50)
        .map(|number| (executor.jobs(&format!("owner {number}"), clock.clone()), Arc::default()))
        .collect();
    let mut handles = Vec::new();
    for (jobs, turn) in &owners {
        for (me, class) in [(0, Class::Prompt), (1, Class::Yielding)] {
            let (turn, rings) = (Arc::clone(turn), jobs.clone());
            let step = move || {
                let now = turn.load(Ordering::Acquire);
                if now >= TURNS {
                    return Step::Finished;
                }
                if now % 2 == me {
                    turn.store(now + 1, Ordering::Release);
                    rings.wake();
                }
                Step::Idle
            };
            handles.push(jobs.spawn("player", machine(class, step)));
        }
    }
    for (jobs, turn) in &owners {
        jobs.wait(&mut || turn.load(Ordering::Acquire) >= TURNS);
        assert_eq!(jobs.panicked(), None);
    }
    handles.into_iter().for_each(Handle::join);
    let state = executor.look();
    assert_eq!((state.ready, state.resting, state.threads.len()), (0, 0, executor.threads()));
}

/// Times are those of each owner's clock, and whoever sleeps until the first of them is not late for a nearer one.
#[test]
fn deadlines_pass_on_each_owners_clock() {
    let (executor, _) = executor(1);
    let mut told = Vec::new();
    for milliseconds in [400, 5, 50] {
        // Each begins at zero.
        let clock = Arc::new(RealClock::new());
        let jobs = executor.jobs("owner", clock.clone());
        let deadline = clock.now() + Duration::from_millis(milliseconds);
        let rings = jobs.clone();
        let due = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&due);
        let step = move || {
            if clock.now() < deadline {
                return Step::Until(deadline);
            }
            noted.store(1, Ordering::Release);
            rings.wake();
            Step::Finished
        };
        drop(jobs.spawn("sleeper", machine(Class::Yielding, step)));
        told.push((jobs, due));
    }
    for (jobs, due) in [&told[1], &told[2], &told[0]] {
        jobs.wait(&mut || due.load(Ordering::Acquire) == 1);
    }
}

#[test]
fn a_panic_is_its_owners_and_others_go_on() {
    let (executor, clock) = executor(1);
    let (one, other) = (executor.jobs("one", clock.clone()), executor.jobs("other", clock));
    one.spawn("unlucky", machine(Class::Prompt, || panic!("no luck"))).join();
    other.spawn("lucky", machine(Class::Prompt, || Step::Finished)).join();
    assert_eq!(one.panicked().as_deref(), Some("unlucky panicked: no luck"));
    assert_eq!(other.panicked(), None);
}

/// One moment without a thread to be had was the end of the pool.
#[test]
fn who_gets_no_thread_now_may_get_one_later() {
    let (executor, clock) = executor(2);
    let refused = || io::Error::from(io::ErrorKind::WouldBlock);
    let reason = executor.shared().start_by(&mut |_, _| Err(refused())).unwrap_err();
    assert!(reason.contains("cannot start thread"), "{reason}");
    let mut begun = 0;
    // One of each class does for a while.
    let mut few = |_: &str, life: Life| -> io::Result<()> {
        begun += 1;
        if begun % 2 == 0 {
            return Err(refused());
        }
        Builder::new().spawn(life).map(drop)
    };
    executor.shared().start_by(&mut few).unwrap();
    assert_eq!(executor.look().threads.len(), 2);
    executor.jobs("one", clock).spawn("lucky", machine(Class::Yielding, || Step::Finished)).join();
    assert_eq!(executor.look().threads.len(), executor.threads());
}

/// What waits in a fork keeps no thread of the executor.
#[test]
fn forks_may_wait() {
    let (executor, clock) = executor(1);
    let jobs = executor.jobs("one", clock);
    let done = Arc::new(AtomicU64::new(0));
    let forked: Vec<_> = (0..8)
        .map(|_| {
            let (waits, done) = (jobs.clone(), Arc::clone(&done));
            jobs.fork("waits", move || waits.wait(&mut || done.load(Ordering::Acquire) == 1))
        })
        .collect();
    let (rings, sets) = (jobs.clone(), Arc::clone(&done));
    let step = move || {
        sets.store(1, Ordering::Release);
        rings.wake();
        Step::Finished
    };
    jobs.spawn("sets", machine(Class::Yielding, step)).join();
    forked.into_iter().for_each(Handle::join);
}

/// The pure part: who has turns, in which order.
fn turns_of(queue: &mut Queue, count: usize, of: &Mutex<Vec<u64>>) -> Vec<u64> {
    of.lock().clear();
    for _ in 0..count {
        let Some(mut turn) = queue.take(Class::Yielding) else { break };
        let seen = turn.turns.bell.epoch();
        let rest = match turn.machine.step() {
            Step::Worked => Rest::None,
            _ => Rest::UntilWoken,
        };
        queue.put_back(turn, rest, seen);
    }
    of.lock().clone()
}

#[test]
fn owners_have_turns_alike_whatever_they_have_to_do() {
    let mut queue = Queue::default();
    let turns = Arc::new(Turns::new(Arc::new(Bell::new(Arc::new(ManualClock::new())))));
    let stepped = Arc::new(Mutex::new(Vec::new()));
    let owners: Vec<u64> = (0..3).map(|number| queue.add_owner(&format!("{number}"))).collect();
    // The first has ten machines, each other one.
    for (number, machines) in [(0, 10), (1, 1), (2, 1)] {
        for _ in 0..machines {
            let stepped = Arc::clone(&stepped);
            let step = move || {
                stepped.lock().push(number);
                Step::Worked
            };
            queue.add(owners[number as usize], "works", &turns, machine(Class::Yielding, step));
        }
    }
    let count = |had: &[u64], number| had.iter().filter(|turn| **turn == number).count();
    let had = turns_of(&mut queue, 300, &stepped);
    assert_eq!([0, 1, 2].map(|number| count(&had, number)), [100, 100, 100]);
    // At leisure two have an eighth of the turns, and each the same.
    queue.set_haste(owners[0], Haste::Leisure);
    queue.set_haste(owners[1], Haste::Leisure);
    turns_of(&mut queue, 10, &stepped);
    let had = turns_of(&mut queue, 800, &stepped);
    assert_eq!(count(&had, 2), 700, "{had:?}");
    assert!(count(&had, 0).abs_diff(count(&had, 1)) <= 1, "{had:?}");
}

/// Machines that come due all the time leave every second turn to those that only go on.
#[test]
fn what_is_always_due_keeps_nobody_from_a_turn() {
    let mut queue = Queue::default();
    let turns = Arc::new(Turns::new(Arc::new(Bell::new(Arc::new(ManualClock::new())))));
    let sleeping: Vec<u64> = (0..20).map(|number| queue.add_owner(&format!("sleeps {number}"))).collect();
    for owner in sleeping {
        queue.add(owner, "sleeps", &turns, machine(Class::Yielding, || Step::Until(Duration::ZERO)));
    }
    let owner = queue.add_owner("works");
    let worker = queue.add(owner, "works", &turns, machine(Class::Yielding, || Step::Worked));
    let mut worked = 0;
    // Each has slept once, and is due, by the fortieth turn.
    for number in 0..240 {
        let mut turn = queue.take(Class::Yielding).expect("all want turns");
        worked += u32::from(number >= 40 && turn.id == worker);
        let rest = match turn.machine.step() {
            Step::Until(at) => Rest::Until(at),
            _ => Rest::None,
        };
        queue.put_back(turn, rest, turns.bell.epoch());
        queue.fire(Duration::ZERO);
    }
    assert_eq!(worked, 100, "of 200 turns");
}

#[test]
fn who_is_waited_for_waits_no_more_among_those_at_leisure() {
    let mut queue = Queue::default();
    let turns = Arc::new(Turns::new(Arc::new(Bell::new(Arc::new(ManualClock::new())))));
    let add = |queue: &mut Queue| {
        let owner = queue.add_owner("owner");
        queue.set_haste(owner, Haste::Leisure);
        (owner, queue.add(owner, "works", &turns, machine(Class::Yielding, || Step::Worked)))
    };
    let all = [add(&mut queue), add(&mut queue), add(&mut queue)];
    queue.set_haste(all[2].0, Haste::Hasty);
    let order = [2, 0, 1].map(|_| queue.take(Class::Yielding).expect("it is ready").id);
    assert_eq!(order, [all[2].1, all[0].1, all[1].1]);
}

/// What is dropped with a machine may panic, too.
#[test]
fn a_panic_as_a_machine_is_dropped_ends_no_thread() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (executor, clock) = executor(1);
    let (one, other) = (executor.jobs("one", clock.clone()), executor.jobs("other", clock));
    let bomb = Bomb;
    let step = move || {
        let _kept = &bomb;
        Step::Finished
    };
    one.spawn("unlucky", machine(Class::Yielding, step)).join();
    other.spawn("lucky", machine(Class::Yielding, || Step::Finished)).join();
    one.wait(&mut || one.panicked().is_some());
    assert_eq!(one.panicked().as_deref(), Some("unlucky panicked: dropped"));
}

/// Whoever wakes one owner does not look at the machines of others.
#[test]
fn an_owner_wakes_its_own_machines_and_is_gone_with_the_last() {
    let mut queue = Queue::default();
    let turns = Arc::new(Turns::new(Arc::new(Bell::new(Arc::new(ManualClock::new())))));
    let owners = [queue.add_owner("one"), queue.add_owner("other")];
    for owner in owners {
        for _ in 0..3 {
            queue.add(owner, "sleeps", &turns, machine(Class::Yielding, || Step::Idle));
        }
    }
    let rest = |queue: &mut Queue| {
        let mut rested = Vec::new();
        while let Some(turn) = queue.take(Class::Yielding) {
            rested.push(turn.id);
            let seen = turn.turns.bell.epoch();
            queue.put_back(turn, Rest::UntilWoken, seen);
        }
        rested
    };
    assert_eq!(rest(&mut queue).len(), 6);
    queue.wake(owners[1]);
    let woken = rest(&mut queue);
    assert_eq!((woken.len(), queue.counts()), (3, (0, 6)));
    queue.wake(owners[1]);
    while let Some(turn) = queue.take(Class::Yielding) {
        assert!(queue.name(turn.id).is_some() && queue.remove(turn.id) == Some(owners[1]));
        assert!(!queue.holds(turn.id));
    }
    queue.remove_owner(owners[1]);
    queue.wake(owners[1]);
    queue.wake(owners[0]);
    assert_eq!(queue.counts(), (3, 0));
}

#[test]
fn timers_of_a_rest_that_is_over_wake_nobody() {
    let mut queue = Queue::default();
    let turns = Arc::new(Turns::new(Arc::new(Bell::new(Arc::new(ManualClock::new())))));
    let owner = queue.add_owner("owner");
    let id = queue.add(owner, "sleeps", &turns, machine(Class::Prompt, || Step::Idle));
    let at = Duration::from_secs;
    for round in 0..100 {
        let turn = queue.take(Class::Prompt).expect("it is ready");
        let seen = turn.turns.bell.epoch();
        queue.put_back(turn, Rest::Until(at(100 + round)), seen);
        assert!(queue.take(Class::Prompt).is_none() && turns.any_rests());
        queue.wake(owner);
        assert!(!turns.any_rests());
    }
    queue.fire(at(1));
    assert!(queue.next_deadline().is_none(), "all timers are stale");
    let turn = queue.take(Class::Prompt).expect("it was woken");
    let seen = turn.turns.bell.epoch();
    queue.put_back(turn, Rest::Until(at(5)), seen);
    queue.fire(at(4));
    assert!(queue.take(Class::Prompt).is_none());
    queue.fire(at(5));
    let turn = queue.take(Class::Prompt).expect("its time has come");
    // What changed during a step is looked at again.
    let seen = turns.bell.epoch();
    turns.bell.wake();
    queue.put_back(turn, Rest::UntilWoken, seen);
    assert!(queue.take(Class::Prompt).is_some());
    assert_eq!(queue.remove(id), Some(owner));
    queue.remove_owner(owner);
}
