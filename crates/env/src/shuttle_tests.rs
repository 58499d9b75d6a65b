//! The bell and the arena under every order shuttle draws. `make shuttle` runs these.

use crate::clock::RealClock;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, spawn};
use crate::{Arena, Executor, Jobs, Machine, Step};

const SCHEDULES: usize = 50_000;

/// Idle until told, then tells.
struct Echo {
    jobs: Jobs,
    told: Arc<AtomicBool>,
    tells: Arc<AtomicBool>,
}

impl Machine for Echo {
    fn step(&mut self) -> Step {
        if !self.told.load(Ordering::SeqCst) {
            return Step::Idle;
        }
        self.tells.store(true, Ordering::SeqCst);
        self.jobs.wake();
        Step::Finished
    }
}

#[test]
fn no_wake_is_lost() {
    check_wakes(|| Jobs::threads(Arc::new(RealClock::new())));
}

#[test]
fn no_wake_is_lost_on_an_executor() {
    check_wakes(|| {
        let clock = Arc::new(RealClock::new());
        Executor::new(1, Arc::<RealClock>::clone(&clock)).jobs("owner", clock)
    });
}

fn check_wakes(jobs: fn() -> Jobs) {
    shuttle::check_random(
        move || {
            let jobs = jobs();
            let flags = [0, 1, 2].map(|_| Arc::new(AtomicBool::new(false)));
            let handles = [0, 1].map(|index| {
                let (told, tells) = (Arc::clone(&flags[index]), Arc::clone(&flags[index + 1]));
                jobs.spawn("echo", Box::new(Echo { jobs: jobs.clone(), told, tells }))
            });
            flags[0].store(true, Ordering::SeqCst);
            jobs.wake();
            jobs.wait(&mut || flags[2].load(Ordering::SeqCst));
            handles.into_iter().for_each(crate::Handle::join);
        },
        SCHEDULES,
    );
}

#[test]
fn readers_see_only_whole_appends() {
    shuttle::check_random(
        || {
            let (arena, mut appender) = Arena::new(4096);
            let reader = spawn(move || {
                for _ in 0..4 {
                    let bytes = arena.bytes();
                    assert!(bytes.len().is_multiple_of(3) && bytes.iter().all(|byte| *byte == 7));
                }
            });
            for _ in 0..4 {
                appender.append(&[7; 3]);
                appender.publish();
            }
            reader.join().expect("the reader saw nothing odd");
        },
        SCHEDULES,
    );
}
