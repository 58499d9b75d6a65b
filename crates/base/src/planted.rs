//! Bugs that the simulation plants to see that it would find them.
//!
//! Where a fault was mended, its old behaviour stays behind a switch, on one line where possible: `if
//! planted::is("sync-forgotten") { return Ok(()); }`, and [`BUGS`] gets a line. `make planted` builds the simulation
//! with `--cfg planted`, plants one bug after the other and tells after how many seeds each is found.
//!
//! **Invariant:** in every other build [`is`] is the constant `false`, and what it guards is not compiled into the
//! program.

/// One bug that can be planted.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// What [`is`] is asked for.
    pub name: &'static str,
    /// The promise that it breaks.
    pub promise: &'static str,
    /// What goes wrong.
    pub story: &'static str,
    /// Which campaign must find it.
    pub found_by: Campaign,
}

/// The ways of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Campaign {
    /// Seeds of the stepper: `sim --seeds`.
    Seeds,
    /// Real threads: `sim --threads`.
    Threads,
}

use Campaign::{Seeds, Threads};

/// Every bug, in the order of names.
pub const BUGS: &[Bug] = &[
    bug(
        "ancestors-not-synced",
        Seeds,
        "Disk survives a power loss",
        "a new database's directory is known to the system's memory only",
    ),
    bug(
        "background-sync-forgotten",
        Seeds,
        "a background sync bounds what a power loss takes",
        "the housekeeper does not sync the log",
    ),
    bug(
        "batch-applied-twice",
        Seeds,
        "a follower has each commit once",
        "a follower applies again what a stream tells again",
    ),
    bug(
        "change-skipped",
        Seeds,
        "what was committed can be followed",
        "the feed of changes leaves out a batch now and then",
    ),
    bug(
        "checkpoint-copies-each-version",
        Seeds,
        "a checkpoint is a whole copy",
        "an older version of a tree that grew is copied over the newest one, and cuts it off",
    ),
    bug(
        "checkpoint-not-synced",
        Seeds,
        "a checkpoint is a whole copy",
        "a copy's log is in the system's memory only when it is told to be there",
    ),
    bug(
        "compact-does-not-retry",
        Seeds,
        "code that panics is an error, and no more once it is mended",
        "what is set aside stays so until the database is opened again",
    ),
    bug(
        "conflict-overlooked",
        Seeds,
        "transactions are serialisable",
        "a transaction is committed, though what it has read was changed before",
    ),
    bug(
        "conflict-under-the-lock",
        Threads,
        "transactions are serialisable",
        "what others append between the last look and the commit is not held against what was read",
    ),
    bug(
        "count-remembered-too-long",
        Seeds,
        "keys are counted exactly",
        "what was counted counts on, though there are newer records in write buffers",
    ),
    bug(
        "cut-not-vouched",
        Seeds,
        "damage is told",
        "lists follow a deleted range of which no durable log tells, and the manifest does not say so",
    ),
    bug(
        "edits-after-the-stop",
        Seeds,
        "a failed sync stops all writing",
        "the manifest is added to once writing has stopped",
    ),
    bug(
        "empty-batch-not-durable",
        Seeds,
        "Os survives a crash of the process",
        "a batch of nothing is acknowledged, and what was written before it is in memory only",
    ),
    bug(
        "expired-still-seen",
        Seeds,
        "an entry is not seen once its time is over",
        "readers do not ask for the time",
    ),
    bug(
        "files-cut-under-readers",
        Seeds,
        "what is held beyond a close reads on",
        "who opens the database next cuts files, or overwrites their ends, that older handles still read",
    ),
    bug(
        "gate-left-open",
        Seeds,
        "handles that outlive close change nothing",
        "close leaves the manifest and the files to whoever still holds a handle",
    ),
    bug(
        "ingest-under-buffers",
        Seeds,
        "entries brought in are newer than what was written before",
        "what was written before stays in buffers, over what comes in",
    ),
    bug(
        "key-prefix-not-added",
        Seeds,
        "reads see what was written",
        "a filter does not know the key prefixes of some keys",
    ),
    bug(
        "leases-not-looked-at",
        Seeds,
        "what another process reads stays",
        "the writer removes files that a reader beside it needs, and overwrites its log",
    ),
    bug(
        "log-held-for-ever",
        Seeds,
        "the log goes back no further than 8 write buffers",
        "a table that nobody writes to keeps a record in memory, and the log as far back as that",
    ),
    bug(
        "log-not-renewed",
        Seeds,
        "Disk survives a power loss",
        "opening takes what it reads in the log for durable, though a sync of it has failed, or never was",
    ),
    bug(
        "manifest-not-renewed",
        Seeds,
        "Disk survives a power loss",
        "opening removes files because of an edit of the manifest that it never made durable",
    ),
    bug(
        "manifest-not-sealed",
        Seeds,
        "damage is told",
        "an edit of the manifest that is damaged is taken for one that a crash has torn",
    ),
    bug(
        "mark-lowered",
        Seeds,
        "what is deleted stays deleted",
        "a range of which files have all is said to lack what newer log segments brought",
    ),
    bug(
        "name-not-renewed",
        Seeds,
        "opening needs no flag",
        "a name whose sync has failed is taken for durable by the next opening",
    ),
    bug(
        "operands-join-any-life",
        Seeds,
        "entries expire, filters drop, and neither uncovers anything",
        "an operand is merged into an entry that expires at another time",
    ),
    bug(
        "os-not-written",
        Seeds,
        "Os survives a crash of the process",
        "a write at Os is acknowledged and not handed to the system",
    ),
    bug(
        "recycled-links",
        Seeds,
        "a checkpoint is a copy of its own",
        "a log segment that a checkpoint shares is written to anew once the original, or the copy, was opened again",
    ),
    bug(
        "refused-while-rewritten",
        Seeds,
        "writers are slowed, not stopped",
        "a table that is sorted anew is there twice, and its writers are refused for that",
    ),
    bug("retired-files-stay", Seeds, "space is given back", "files that nothing refers to are never removed"),
    bug(
        "rewrite-follows-late",
        Seeds,
        "a table that is sorted anew loses no write",
        "a buffer is gone from memory before its lists are among those that follow the rewrite",
    ),
    bug(
        "rewrite-merges-what-follows",
        Seeds,
        "what is deleted stays deleted",
        "of a table that is sorted anew a buffer is merged with older runs, which drops its tombstones",
    ),
    bug(
        "rollback-not-told",
        Seeds,
        "what was committed can be followed",
        "whoever follows the feed of changes is not told that a rollback took some back",
    ),
    bug(
        "savepoint-holds-nothing",
        Seeds,
        "a savepoint stays what it was",
        "opening takes files that only a savepoint holds for leftovers",
    ),
    bug(
        "snapshot-of-another-database",
        Seeds,
        "a snapshot shows one moment",
        "a snapshot that is asked for a table of another open database answers from its own of that number",
    ),
    bug(
        "sync-forgotten",
        Seeds,
        "Disk survives a power loss",
        "the log says that records are durable and syncs nothing",
    ),
    bug(
        "time-not-kept",
        Seeds,
        "what has expired stays so, however the clock is set",
        "the manifest does not say how late it is",
    ),
    bug(
        "unknown-outcome-passed-over",
        Seeds,
        "a failed sync stops all writing",
        "writing goes on where nobody knows whether an edit, or the key file, is on the disk",
    ),
    bug(
        "values-not-synced",
        Seeds,
        "what is flushed stays",
        "lists have pointers to values that the log has not made durable",
    ),
];

const fn bug(name: &'static str, found_by: Campaign, promise: &'static str, story: &'static str) -> Bug {
    Bug { name, promise, story, found_by }
}

#[cfg(not(planted))]
mod switch {
    /// Whether this bug is planted: never, in a build without `--cfg planted`.
    #[inline(always)]
    pub const fn is(_name: &str) -> bool {
        false
    }
}

#[cfg(planted)]
mod switch {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::BUGS;

    /// The number of the planted bug in the list, and one; 0 is none.
    static PLANTED: AtomicUsize = AtomicUsize::new(0);
    static REACHED: AtomicU64 = AtomicU64::new(0);

    /// Plants a bug of the list, or none; whatever was planted before is mended.
    pub fn plant(name: Option<&str>) {
        PLANTED.store(name.map_or(0, number_of), Ordering::SeqCst);
        REACHED.store(0, Ordering::SeqCst);
    }

    /// How often the planted bug was asked for since it was planted.
    pub fn reached() -> u64 {
        REACHED.load(Ordering::SeqCst)
    }

    /// Whether this bug is planted.
    pub fn is(name: &str) -> bool {
        let asked = number_of(name);
        let is_planted = PLANTED.load(Ordering::Relaxed) == asked;
        REACHED.fetch_add(u64::from(is_planted), Ordering::Relaxed);
        is_planted
    }

    fn number_of(name: &str) -> usize {
        let at = BUGS.iter().position(|bug| bug.name == name);
        1 + at.unwrap_or_else(|| panic!("`{name}` is not in the list of planted bugs"))
    }
}

pub use switch::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_stand_in_the_order_of_their_names() {
        assert!(BUGS.is_sorted_by(|one, next| one.name < next.name));
        assert!(!is("sync-forgotten"));
    }
}
