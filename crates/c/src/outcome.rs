//! How a call ends: with an answer, or with an error that C is told.
//!
//! **Invariant:** nothing unwinds into C. What panics is an error.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use forebay::{Error, Result};

use crate::kernel::{Memory, given};

/// How C learns how a call ended.
pub(crate) trait Report {
    fn report(self, fault: Option<Error>);
}

impl Report for () {
    fn report(self, _: Option<Error>) {}
}

impl Report for &mut Option<Error> {
    fn report(self, fault: Option<Error>) {
        *self = fault;
    }
}

/// `char **errptr`, as LevelDB has it: left alone by what succeeds; an error replaces the one that is there.
pub(crate) type TextOut<'a> = Option<&'a mut *mut c_char>;

impl Report for TextOut<'_> {
    fn report(self, fault: Option<Error>) {
        if let (Some(slot), Some(fault)) = (self, fault) {
            Memory(slot.cast()).free();
            *slot = given(fault.to_string().as_bytes());
        }
    }
}

/// Runs a call, tells how it ended, and gives what it returns.
pub(crate) fn guarded<T: Default>(error: impl Report, call: impl FnOnce() -> Result<T>) -> T {
    // What panicked half way is the engine's, which knows of panics, or a handle of the caller's, who is told.
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    let (answer, fault) = outcome.map_or_else(|fault| (T::default(), Some(fault)), |answer| (answer, None));
    error.report(fault);
    answer
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::bug(format!("a call panicked: {}", text.unwrap_or("without a text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let mut told = None;
        assert!(!guarded::<bool>(&mut told, || panic!("at {}", 7)));
        assert!(told.as_ref().unwrap().to_string().starts_with("a call panicked: at 7;"));
        assert!(guarded(&mut told, || Ok(true)) && told.is_none());
    }
}
