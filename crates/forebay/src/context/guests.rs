//! Guests: merge rules, functions and filters of users, which are asked in the midst of work that may hold what they
//! would wait for if they asked a database in turn.

use forebay_base::{Error, Result};
use forebay_env::guest;

/// Refuses what a merge rule, a function or a filter asks of a database.
pub(crate) fn refuse_guests() -> Result<()> {
    match guest::is_inside() {
        false => Ok(()),
        true => Err(Error::invalid(
            "a merge rule, an aggregation function or a compaction filter must not call a database while it runs",
        )),
    }
}

/// The same where no error can be given. Who called for the guest's answer is told, as of a panic.
pub(crate) fn stop_guests() {
    if let Err(error) = refuse_guests() {
        guest::leave(error.to_string());
    }
}
