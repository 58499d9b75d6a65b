//! Code of a table's owner that panics: a merge rule, an aggregation function, a compaction filter.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use forebay::{MergeRule, Result};
use forebay_aggregate::{Aggregate, StateType};

/// Says when such code panics. Shared by all to whom it was cloned.
#[derive(Clone, Debug, Default)]
pub struct Trip(Arc<Wire>);

#[derive(Debug, Default)]
struct Wire {
    /// Calls until the first panic, that one included; 0: never.
    calls: AtomicU64,
    /// Further calls that panic.
    more: AtomicU64,
}

impl Trip {
    /// The call of this number panics, from 1, and this many behind it.
    pub fn set(&self, call: u64, more: u64) {
        self.0.more.store(more, SeqCst);
        self.0.calls.store(call, SeqCst);
    }

    /// No call panics.
    pub fn clear(&self) {
        self.set(0, 0);
    }

    /// Such code was called.
    pub(crate) fn call(&self) {
        match self.0.calls.load(SeqCst) {
            0 => return,
            1 => {
                let next = self.0.more.fetch_update(SeqCst, SeqCst, |more| more.checked_sub(1));
                self.0.calls.store(u64::from(next.is_ok()), SeqCst);
            }
            calls => return self.0.calls.store(calls - 1, SeqCst),
        }
        // Told to no hook: it is what is wanted.
        resume_unwind(Box::new(Wanted));
    }
}

/// What such a panic carries.
struct Wanted;

/// Does what may call such code on this very thread. `false` where that panicked.
pub(crate) fn survives(work: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => true,
        Err(panic) if panic.is::<Wanted>() => false,
        Err(panic) => resume_unwind(panic),
    }
}

/// A rule, or function, that may panic.
#[derive(Debug)]
pub struct Tripping<R>(pub R, pub Trip);

impl<R: MergeRule> MergeRule for Tripping<R> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        self.1.call();
        self.0.merge(key, newer, older, out);
    }
}

impl<R: Aggregate> Aggregate for Tripping<R> {
    type Input<'a> = R::Input<'a>;
    type Output = R::Output;

    fn state_type(&self) -> StateType {
        self.0.state_type()
    }

    fn state_bytes(&self) -> Option<usize> {
        self.0.state_bytes()
    }

    fn lift(&self, value: Self::Input<'_>, state: &mut Vec<u8>) -> Result<()> {
        self.0.lift(value, state)
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.1.call();
        self.0.merge(states, out);
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        self.0.finish(state)
    }
}
