//! What is done to a database: operations, their kinds, and how often each is usual.

use std::ops::{Bound, Range};
use std::time::Duration;

use forebay::{Codec, Durability, Layout, PrefixFilter, Rewrite};

use crate::{Change, Step};

/// What a read asks for.
#[derive(Clone, Debug)]
pub enum Query {
    /// One key.
    Get(Vec<u8>),
    /// Several keys.
    MultiGet(Vec<Vec<u8>>),
    /// A range, forward and backward.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// All keys that begin so, forward and backward.
    Prefix(Vec<u8>),
    /// A walk with a cursor, and lookups of neighbours.
    Walk(Vec<Step>),
    /// Everything.
    All,
    /// Everything, so many entries at a time, from a position that is kept.
    Pieces(usize),
    /// Everything, in so many parts.
    Parts(usize),
    /// How many keys there are.
    Count,
}

/// One operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// Writes a batch.
    Commit(Vec<Change>, Durability),
    /// Reads a table as it is now.
    Read(usize, Query),
    /// Takes a snapshot.
    Snapshot,
    /// Reads a table as one of the snapshots has it.
    ReadSnapshot(usize, Query),
    /// Drops the oldest snapshot.
    DropSnapshot,
    /// Makes all accepted records durable.
    Sync,
    /// Writes buffers to lists.
    Flush,
    /// Waits until background work rests.
    WaitUntilIdle,
    /// Merges a table's leaves.
    Compact(usize),
    /// Compacts a table, and writes anew what it had.
    Rewrite(usize, Rewrite),
    /// Merges what lies in a range of a table that keeps its keys in order, and all of another.
    CompactRange(usize, (Bound<Vec<u8>>, Bound<Vec<u8>>)),
    /// Gives the table that keeps its keys in order another layout.
    SetLayout(Layout),
    /// The same of a table aside.
    SetLayoutAside(Layout),
    /// Gives a table a layout of the other order, this one if that is key order, and then its own again. Meanwhile
    /// these batches are written.
    Turn(usize, Layout, Vec<Vec<Change>>),
    /// Gives a table other options.
    Alter(usize, Altered),
    /// Background work goes through this many bytes a second from now on.
    Rate(u64),
    /// Encrypts the data keys anew, or (`true`) draws one, where the database is encrypted.
    Keys(bool),
    /// Copies the database, opens the copy, compares.
    Checkpoint,
    /// Closes and opens.
    Reopen,
    /// Reads and checks every byte.
    Verify,
    /// Lets background work take steps.
    Step(usize),
    /// Lets milliseconds pass.
    Wait(u64),
    /// Sets the wall clock forward, or back, by milliseconds.
    Clock(i64),
    /// Keeps all tables under a name.
    Savepoint(String),
    /// Reads a table as it was kept under a name.
    ReadSavepoint(String, usize, Query),
    /// Tables become what they were.
    Rollback(String),
    /// Lets a name go.
    DropSavepoint(String),
    /// Brings sorted entries into a table.
    Ingest(usize, Vec<(Vec<u8>, Vec<u8>)>),
    /// Closes and opens, and keeps handles and snapshots of before.
    ReopenKeeping,
    /// Uses handles of before, which must change nothing.
    Stale(Stale),
    /// Drops the table aside and makes it again.
    Renew,
    /// Copies the database, and goes on writing to both.
    Fork,
    /// A reader of the same files, as of another process, is opened or refreshed, and compared.
    ReadBeside(ReadBeside),
    /// Asks the cube, or the windows over a range of time.
    ReadGroups(Seen, Option<Range<u64>>, Query),
    /// Makes windows expire.
    Expire(u64, Beside),
    /// Drops the cube, or the windows, and makes them again.
    RenewGroups(usize),
    /// A transaction, and what others do meanwhile.
    Transact(Vec<Act>, Durability),
    /// Gives a key another value, or none, by a comparison.
    Swap(usize, Vec<u8>, Expected, Option<Vec<u8>>),
    /// Makes a key's value of the one that it has and this.
    Update(usize, Vec<u8>, Vec<u8>),
    /// Asks when an entry expires, or says so.
    Life(usize, Vec<u8>, Life),
}

/// What becomes of the time that an entry lives.
#[derive(Clone, Debug)]
pub enum Life {
    /// It is asked for.
    Ask,
    /// It ends in so many milliseconds.
    End(u64),
    /// It never ends.
    Persist,
    /// It stays, and an operand is merged; or there is none yet, and it lasts so many milliseconds.
    Merge(Vec<u8>, u64),
}

/// One act of a transaction, or beside it.
#[derive(Clone, Debug)]
pub enum Act {
    /// It reads a table.
    Read(usize, Query),
    /// It writes.
    Write(Change),
    /// It forgets what it has written.
    Clear,
    /// Somebody else does this.
    Beside(Box<Op>),
}

/// With what a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// With what it is.
    Own,
    /// With none.
    Nothing,
    /// With something that it never is.
    Other,
}

/// What a reader beside the database does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBeside {
    /// It goes on to what is there.
    Refresh,
    /// The same, and keeps a snapshot.
    Keep,
    /// It is closed, if it is open.
    Close,
}

/// As of when groups are asked for.
#[derive(Clone, Debug)]
pub enum Seen {
    /// As they are.
    Now,
    /// As every snapshot has them.
    Snapshots,
    /// As they were kept under a name.
    Savepoint(String),
}

/// What is done while windows expire.
#[derive(Clone, Debug)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// They expire, by another time.
    Expire(u64),
    /// All tables are kept under a name.
    Savepoint(String),
}

/// Options that a table gets in use.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "they are those of a table")]
pub struct Altered {
    pub node_bytes: u64,
    pub fan_out: usize,
    pub fast_per_slow: u32,
    pub lists_max: usize,
    pub repeats_max: f64,
    pub filter_bits_per_key: u32,
    pub prefix_filter: Option<PrefixFilter>,
    pub codec: Codec,
    pub values_apart: u32,
    pub reclaim_interval: Duration,
    pub max_space_amplification: f64,
}

/// What is tried with handles of a database that was closed.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the calls of a table")]
pub enum Stale {
    Commit(Vec<Change>),
    Ingest(Vec<(Vec<u8>, Vec<u8>)>),
    SetLayout(Layout),
    Compact(usize),
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of Op")]
pub enum Kind {
    Put,
    Delete,
    Merge,
    Batch,
    Get,
    MultiGet,
    Scan,
    Iterate,
    Snapshot,
    ReadSnapshot,
    DropSnapshot,
    Sync,
    Flush,
    WaitUntilIdle,
    Compact,
    SetLayout,
    Alter,
    Keys,
    Checkpoint,
    Reopen,
    Verify,
    Step,
    Wait,
    Clock,
    Savepoint,
    ReadSavepoint,
    Rollback,
    DropSavepoint,
    Ingest,
    ReopenKeeping,
    Stale,
    Renew,
    Fork,
    ReadBeside,
    Groups,
    ReadGroups,
    Expire,
    RenewGroups,
    Transact,
    Swap,
    Update,
    Life,
    Pieces,
    Rate,
}

/// Kinds with their usual weights.
pub(crate) const USUAL: [(Kind, u32); 20] = [
    (Kind::Put, 200),
    (Kind::Delete, 50),
    (Kind::Merge, 100),
    (Kind::Batch, 100),
    (Kind::Get, 60),
    (Kind::MultiGet, 10),
    (Kind::Scan, 16),
    (Kind::Iterate, 4),
    (Kind::Snapshot, 6),
    (Kind::ReadSnapshot, 12),
    (Kind::DropSnapshot, 5),
    (Kind::Sync, 6),
    (Kind::Flush, 4),
    (Kind::Compact, 1),
    (Kind::SetLayout, 2),
    (Kind::Checkpoint, 1),
    (Kind::Reopen, 2),
    (Kind::Verify, 1),
    (Kind::Step, 80),
    (Kind::Wait, 4),
];

/// Those of a [wide](crate::Generator::wide) draw besides.
pub(crate) const WIDE: [(Kind, u32); 14] = [
    (Kind::WaitUntilIdle, 2),
    (Kind::Clock, 6),
    (Kind::Savepoint, 6),
    (Kind::ReadSavepoint, 6),
    (Kind::Rollback, 3),
    (Kind::DropSavepoint, 3),
    (Kind::Ingest, 8),
    (Kind::ReopenKeeping, 2),
    (Kind::Stale, 6),
    (Kind::Renew, 2),
    (Kind::Alter, 10),
    (Kind::Keys, 4),
    (Kind::Fork, 2),
    (Kind::ReadBeside, 10),
];

/// Those of a database that has groups besides.
pub(crate) const GROUPS: [(Kind, u32); 4] =
    [(Kind::Groups, 60), (Kind::ReadGroups, 30), (Kind::Expire, 30), (Kind::RenewGroups, 1)];

/// Those by which programs write because of what they have read.
pub(crate) const TRANSACTIONS: [(Kind, u32); 3] =
    [(Kind::Transact, 40), (Kind::Swap, 10), (Kind::Update, 10)];

/// Those of readers that share a table, or come back; and of who looks after the database.
pub(crate) const PIECES: [(Kind, u32); 2] = [(Kind::Pieces, 12), (Kind::Rate, 2)];

/// Those of entries that expire.
pub(crate) const LIVES: [(Kind, u32); 1] = [(Kind::Life, 40)];
