//! Code of users that the engine calls in the midst of its work: merge rules, aggregation functions, filters. It may panic,
//! and it may ask something of the database that waits for it.
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

/// Asks a guest. Where it panics the answer is `None`, and what it said is kept with `of`, which tells what it was asked.
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
    if has_failed() { FAILURE.take() } else { None }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
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
}
