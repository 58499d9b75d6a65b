//! Tests of the small parts: buffers, clock, random numbers, and the Env as a whole.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{Access, AlignedBuf, Clock, Env, ManualClock, Rng, SteadyClock};

#[test]
fn buffers_are_aligned_and_zero() {
    for (len, align) in
        [(0, 4096), (1, 4096), (4096, 4096), (70_001, 4096), (2 << 20, 2 << 20), (5_000_000, 2 << 20)]
    {
        let mut buffer = AlignedBuf::zeroed(len);
        assert_eq!(buffer.len(), len);
        assert!(buffer.as_ptr().addr().is_multiple_of(align), "{len}");
        assert!(buffer.iter().all(|byte| *byte == 0));
        buffer.fill(7);
        assert!(buffer.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn many_large_buffers_come_and_go() {
    let mut rng = Rng::new(1);
    let mut kept = Vec::new();
    for round in 0..200_u8 {
        let mut buffer = AlignedBuf::zeroed(rng.index(6 << 20));
        assert!(buffer.iter().step_by(4096).all(|byte| *byte == 0), "round {round}");
        buffer.fill(round);
        kept.push(buffer);
        if kept.len() > 5 {
            kept.swap_remove(rng.index(5));
        }
        assert!(kept.iter().all(|buffer| buffer.windows(2).all(|pair| pair[0] == pair[1])));
    }
}

#[test]
fn random_numbers_are_reproducible_and_in_range() {
    let draws = |mut rng: Rng| [rng.next_u64(), rng.below(10), rng.fork().next_u64(), rng.next_u64()];
    assert_eq!(draws(Rng::new(5)), draws(Rng::new(5)));
    assert_ne!(draws(Rng::new(5)), draws(Rng::new(6)));
    // The published first draw of SplitMix64 from seed 0: the stream must never change.
    assert_eq!(Rng::new(0).next_u64(), 0xE220_A839_7B1D_CDAF);
    let mut rng = Rng::new(7);
    assert!((0..1000).all(|_| (3..9).contains(&rng.range(3..9))));
    assert_eq!((rng.below(0), rng.range(4..4)), (0, 4));
    let hits = (0..10_000).filter(|_| rng.chance(30)).count();
    assert!((2_700..3_300).contains(&hits), "{hits}");
    let mut items: Vec<u32> = (0..50).collect();
    rng.shuffle(&mut items);
    assert_ne!(items, (0..50).collect::<Vec<_>>());
    items.sort_unstable();
    assert_eq!(items, (0..50).collect::<Vec<_>>());
    let mut bytes = [0; 37];
    rng.fill(&mut bytes);
    assert!(bytes[29..].iter().any(|byte| *byte != 0));
}

#[test]
fn clocks() {
    let clock = ManualClock::new();
    let start = clock.unix_milliseconds();
    clock.advance(Duration::from_millis(2500));
    clock.advance_to(Duration::from_millis(10));
    assert_eq!(clock.now(), Duration::from_millis(2500), "never back");
    assert_eq!(clock.unix_milliseconds(), start + 2_500);
    let env = Env::real();
    let before = env.clock.now();
    assert!(env.clock.now() >= before && env.clock.unix_milliseconds() > 1_600_000_000_000);
}

#[test]
fn a_steady_clock_goes_on_where_the_wall_clock_is_set_back() {
    struct Wall(Arc<ManualClock>, AtomicU64);
    impl Clock for Wall {
        fn now(&self) -> Duration {
            self.0.now()
        }
        fn unix_milliseconds(&self) -> u64 {
            self.1.load(Ordering::Relaxed)
        }
    }
    let manual = Arc::new(ManualClock::new());
    let wall = Arc::new(Wall(Arc::clone(&manual), AtomicU64::new(1_000_000)));
    let clock = SteadyClock::new(wall.clone());
    assert_eq!(clock.unix_milliseconds(), 1_000_000);
    wall.1.store(500, Ordering::Relaxed);
    manual.advance(Duration::from_millis(7));
    assert_eq!(clock.unix_milliseconds(), 1_000_007, "it goes on");
    wall.1.store(2_000_000, Ordering::Relaxed);
    assert_eq!(clock.unix_milliseconds(), 2_000_000, "it follows");
    clock.raise(1_500_000);
    assert_eq!(clock.unix_milliseconds(), 2_000_000);
    clock.raise(3_000_000);
    assert_eq!(clock.unix_milliseconds(), 3_000_000);
    assert_eq!(clock.now(), manual.now());
}

#[test]
fn environments() {
    let (one, same, other) = (Env::memory(1), Env::memory(1), Env::memory(2));
    let draws = |env: &Env| [0; 4].map(|_| (env.entropy)());
    let drawn = draws(&one);
    assert_eq!(drawn, draws(&same));
    assert_ne!(drawn, draws(&other));
    assert!(one.jobs.is_stepper() && !Env::real().jobs.is_stepper());
    assert_ne!((Env::real().entropy)(), (Env::real().entropy)());
    one.fs.create(Path::new("/a"), Access::Buffered).expect("the root exists");
    assert!(!same.fs.exists(Path::new("/a")).expect("memory files"));
    assert_eq!(format!("{one:?}"), "Env { jobs: Jobs(stepper), .. }");
}

#[test]
fn a_lock_by_turns_lets_one_in_at_a_time_and_everyone_in() {
    let sum = Mutex::new(0u64);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let mut sum = sum.lock_by_turns();
                    let before = *sum;
                    std::hint::spin_loop();
                    *sum = before + 1;
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 8000);
}
