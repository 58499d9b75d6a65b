//! How much tables may keep in memory that no file has.

/// Where write buffers stay that a policy keeps in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentBudget {
    /// Whether they do: the records of a table that merges go to disk at once, and are merged from there; and those of
    /// any table while somebody waits for files to have all.
    pub resides: bool,
    /// Bytes of records, of all tables.
    pub bytes: u64,
    /// What other tables have of that.
    pub elsewhere_bytes: u64,
    /// The most write buffers that something of is kept.
    pub runs_max: usize,
    /// What is there of log segments below this holds the log for too long.
    pub due_below: u64,
}

impl ResidentBudget {
    /// All of it is one table's.
    pub const fn of(bytes: u64, runs_max: usize) -> Self {
        Self { resides: true, bytes, elsewhere_bytes: 0, runs_max, due_below: 0 }
    }
}
