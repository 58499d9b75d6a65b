//! A wall clock that goes on over restarts, and is set forward and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use forebay_env::{Clock, Env, FileSystem, Jobs, ManualClock, Rng};

/// What the machine's wall clock shows, whichever environments come and go.
#[derive(Debug, Default)]
pub struct Wall {
    /// Milliseconds since 1970, at which the clock of the environment of now stood at zero.
    base: AtomicI64,
}

/// A clock of one environment, which stands still until it is advanced.
struct WallClock {
    manual: Arc<ManualClock>,
    wall: Arc<Wall>,
}

/// 2024-01-01, in milliseconds since 1970.
const START: i64 = 1_704_067_200_000;

impl Wall {
    /// Of a machine that is switched on.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { base: AtomicI64::new(START) })
    }

    /// Sets the clock forward, or back.
    pub fn jump(&self, milliseconds: i64) {
        self.base.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// A simulated environment over `fs`, from `seed`. `before` is the one of which it takes over.
    pub fn env(self: &Arc<Self>, fs: Arc<dyn FileSystem>, seed: u64, before: Option<&Env>) -> Env {
        let passed = before.map_or(0, |env| env.clock.now().as_millis() as i64);
        self.jump(passed);
        let mut rng = Rng::new(seed);
        let manual = Arc::new(ManualClock::new());
        let jobs = Jobs::stepper(Arc::clone(&manual), rng.next_u64());
        let clock = Arc::new(WallClock { manual, wall: Arc::clone(self) });
        let draws = forebay_env::sync::Mutex::new(rng);
        Env { fs, clock, jobs, entropy: Arc::new(move || draws.lock().next_u64()) }
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.manual.now()
    }

    fn unix_milliseconds(&self) -> u64 {
        let base = self.wall.base.load(Ordering::SeqCst);
        base.saturating_add(self.now().as_millis() as i64).max(0) as u64
    }
}
