//! [`Progress`]: how far a long call is. The call counts, and whoever shows it looks (`forebay.progress`): so nothing of
//! Python's runs amid a call, and a picture that fails or waits holds nothing up.

use std::sync::LazyLock;

use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Arc, Mutex, Weak};
use pyo3::prelude::*;

use crate::home::Home;

/// Long calls that go on. It is locked with the interpreter's lock, and for a moment only: so no fork comes amid it.
static RUNNING: LazyLock<Mutex<Vec<Weak<Home<Call>>>>> = LazyLock::new(Mutex::default);
/// Of the last one that was begun.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Records that are counted one by one are told in such steps.
const TICK: u64 = 256;

/// Looks how far it is, where it does not count itself.
type Look = Box<dyn Fn() -> u64 + Send + Sync>;

struct Call {
    number: u64,
    what: &'static str,
    unit: &'static str,
    done: AtomicU64,
    /// How much there is to do; 0 where that is not known.
    all: AtomicU64,
    look: Option<Look>,
}

/// See the module. The call is over when this goes.
pub(crate) struct Progress(Arc<Home<Call>>);

impl Progress {
    /// A call begins that will count so many of a unit, if that is known.
    pub(crate) fn begin(py: Python<'_>, what: &'static str, unit: &'static str, all: Option<u64>) -> Self {
        Self::begun(py, what, unit, all, None)
    }

    /// The same of one that is looked at.
    pub(crate) fn watched(
        py: Python<'_>,
        what: &'static str,
        unit: &'static str,
        all: u64,
        look: Look,
    ) -> Self {
        Self::begun(py, what, unit, Some(all), Some(look))
    }

    fn begun(
        _py: Python<'_>,
        what: &'static str,
        unit: &'static str,
        all: Option<u64>,
        look: Option<Look>,
    ) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        let (done, all) = (AtomicU64::new(0), AtomicU64::new(all.unwrap_or(0)));
        let call = Arc::new(Home::new(Call { number, what, unit, done, all, look }));
        let mut running = RUNNING.lock();
        running.retain(|known| known.strong_count() > 0);
        running.push(Arc::downgrade(&call));
        Self(call)
    }

    /// So many more are done.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        if let Ok(call) = self.0.get() {
            call.done.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// One more is done, which makes so many; it is told now and then.
    #[inline]
    pub(crate) fn tick(&self, count: u64) {
        if count.is_multiple_of(TICK) {
            self.add(TICK);
        }
    }

    /// So many are done, of so many.
    pub(crate) fn set(&self, done: u64, all: u64) {
        if let Ok(call) = self.0.get() {
            call.done.store(done, Ordering::Relaxed);
            call.all.store(all, Ordering::Relaxed);
        }
    }
}

/// A call's number, what it is, its unit, how many are done, and of how many, 0 where that is not known.
type Seen = (u64, &'static str, &'static str, u64, u64);

/// The long calls of this process that go on.
pub(crate) fn running(py: Python<'_>) -> Vec<Seen> {
    let running: Vec<Arc<Home<Call>>> = RUNNING.lock().iter().filter_map(Weak::upgrade).collect();
    py.detach(|| {
        let calls = running.iter().filter_map(|call| call.get().ok());
        let seen = calls.map(|call| {
            let all = call.all.load(Ordering::Relaxed);
            let done = match &call.look {
                Some(look) => look().min(all),
                None => call.done.load(Ordering::Relaxed),
            };
            (call.number, call.what, call.unit, done, all)
        });
        seen.collect()
    })
}
