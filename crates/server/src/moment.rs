//! [`Moment`]: whether a long command still works on the database that it began with, or on one that was rolled back since.
//!
//! **Invariant:** what a long command has made of the database as it was before a rollback is never written behind it.

use std::sync::Arc;

use forebay_env::sync::RwLock;

use crate::commands::Refusal;

/// How often the database was rolled back. A rollback has it for itself.
#[derive(Clone, Default)]
pub(crate) struct Rollbacks(Arc<RwLock<u64>>);

/// When a command began.
pub(crate) struct Moment {
    rollbacks: Rollbacks,
    count: u64,
}

impl Rollbacks {
    pub(crate) fn now(&self) -> Moment {
        Moment { rollbacks: self.clone(), count: *self.0.read() }
    }

    /// Rolls back. What began before writes nothing behind it.
    pub(crate) fn roll_back<T>(&self, run: impl FnOnce() -> T) -> T {
        let mut count = self.0.write();
        *count += 1;
        run()
    }
}

impl Moment {
    /// Writes, unless the database was rolled back since.
    pub(crate) fn write<T, E: Into<Refusal>>(
        &self,
        write: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Refusal> {
        let count = self.rollbacks.0.read();
        if *count != self.count {
            return Err("ERR the database was rolled back meanwhile, and nothing was written".into());
        }
        write().map_err(Into::into)
    }
}
