//! Machines on threads of their own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::bell::Bell;
use super::{Machine, Step};
use crate::process::yield_to_others;
use crate::sync::Arc;
use crate::sync::thread::{Builder, JoinHandle};

/// Starts a machine's thread.
pub(super) fn spawn(bell: &Arc<Bell>, name: &str, machine: Box<dyn Machine>) -> Option<JoinHandle<()>> {
    let (driven_by, thread_name) = (Arc::clone(bell), name.to_owned());
    let spawned =
        Builder::new().name(name.to_owned()).spawn(move || drive(&driven_by, &thread_name, machine));
    match spawned {
        Ok(handle) => Some(handle),
        Err(e) => {
            bell.remember(format!("cannot start thread {name}: {e}"));
            None
        }
    }
}

/// The life of one thread.
fn drive(bell: &Bell, name: &str, mut machine: Box<dyn Machine>) {
    if machine.yields() {
        yield_to_others();
    }
    loop {
        // Read before the step, so that a wake during it is not slept through.
        let seen = bell.epoch();
        // After a panic the machine is only dropped, so a half-changed one is never seen.
        match catch_unwind(AssertUnwindSafe(|| machine.step())) {
            Ok(Step::Worked) => {}
            Ok(Step::Idle) => bell.sleep(seen, None),
            Ok(Step::Until(deadline)) => bell.sleep(seen, Some(deadline)),
            Ok(Step::Finished) => return bell.wake(),
            Err(panic) => return bell.remember(format!("{name} panicked: {}", text_of(&*panic))),
        }
    }
}

/// What a panic said.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
