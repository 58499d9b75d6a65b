//! How much tables may keep in memory that no file has.

use forebay_store::list::{Kept, ResidentRoom};

/// Where write buffers stay that a policy keeps in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentBudget {
    /// Whether they do: the records of a table that merges go to disk at once, and are merged from there; and those of
    /// any table while somebody waits for files to have all.
    pub resides: bool,
    /// Of all tables.
    pub room: ResidentRoom,
    /// What other tables have of that.
    pub elsewhere: Kept,
    /// Whether somebody is at work on key ranges: what those have is about to leave memory.
    pub is_beside: bool,
    /// What is there of log segments below this holds the log for too long.
    pub due_below: u64,
}

impl ResidentBudget {
    /// All of it is one table's.
    pub const fn of(room: ResidentRoom) -> Self {
        let elsewhere = Kept { record_bytes: 0, memory_bytes: 0 };
        Self { resides: true, room, elsewhere, is_beside: false, due_below: 0 }
    }
}
