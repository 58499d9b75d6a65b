//! Code of users that the engine calls in the midst of its work: merge rules, aggregation functions, filters. It may
//! panic, and it may ask something of the database that waits for it.
//!
//! **Invariant:** a panic of a guest unwinds nothing of the engine's. It is kept until whoever called for the work
//! [takes](take_failure) it, on the same thread.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::jobs::text_of;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static FAILURE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Tells that a guest is being asked, also while it unwinds.
struct Inside {
    before: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

/// Asks a guest. Where it panics the answer is `None`, and what it said is kept with `of`, which tells what it was
/// asked.
#[inline]
pub fn ask<T>(of: impl FnOnce() -> String, code: impl FnOnce() -> T) -> Option<T> {
    let inside = Inside { before: INSIDE.replace(true) };
    let answer = catch_unwind(AssertUnwindSafe(code));
    drop(inside);
    match answer {
        Ok(answer) => Some(answer),
        Err(panic) => {
            let said = format!("{}: {}", of(), text_of(&*panic));
            FAILURE.with_borrow_mut(|failure| {
                failure.get_or_insert(said);
            });
            None
        }
    }
}

/// Whether this thread is in a guest: what waits for others, or for a lock, would wait for itself.
#[inline]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Leaves the guest on this thread, as if it had panicked and said this: for what it calls that has no error to give.
pub fn leave(said: String) -> ! {
    resume_unwind(Box::new(said))
}

/// Whether a guest has panicked since the last failure was taken.
#[inline]
pub fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// What the first guest said that panicked since this was called last.
#[inline]
pub fn take_failure() -> Option<String> {
    let failure = if has_failed() { FAILURE.take() } else { None };
    debug_assert!(!has_failed(), "a failure is told once");
    failure
}

/// Work on the way to other work, which may fail by itself: what has failed before is kept.
#[must_use]
pub struct Attempt {
    before: Option<String>,
}

/// Begins an attempt.
#[inline]
pub fn attempt() -> Attempt {
    Attempt { before: take_failure() }
}

impl Attempt {
    /// Whether no guest has panicked in it. Nothing is kept of one that has.
    #[inline]
    pub fn succeeds(self) -> bool {
        !has_failed()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        take_failure();
        if self.before.is_some() {
            FAILURE.set(self.before.take());
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_kept_until_it_is_taken() {
        assert_eq!(ask(|| "rule panicked".into(), || u32::from(is_inside())), Some(1));
        assert_eq!(ask(|| "rule panicked".into(), || -> u32 { panic!("no {}", "luck") }), None);
        assert!(has_failed() && !is_inside());
        assert_eq!(take_failure().as_deref(), Some("rule panicked: no luck"));
        assert_eq!(take_failure(), None);
    }

    /// Whoever tried something on the way took what had failed before, and a lookup gave half an answer.
    #[test]
    fn an_attempt_keeps_what_has_failed_before() {
        let fails = |said: &'static str| ask(|| said.into(), || -> u32 { panic!("here") });
        let first = attempt();
        assert!(first.succeeds());
        fails("the lookup");
        for is_well in [true, false] {
            let second = attempt();
            assert!(is_well || fails("the attempt").is_none());
            assert_eq!(second.succeeds(), is_well);
        }
        assert_eq!(take_failure().as_deref(), Some("the lookup: here"));
    }
}
