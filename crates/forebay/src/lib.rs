//! Forebay: a write-optimised storage engine.
//!
//! Open a directory with a memory limit, make tables, write at the speed of the device, read a key with one
//! device read:
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("forebay-doc-{}", std::process::id()));
//! use forebay::{Batch, Database, Durability, Layout, Options};
//!
//! let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
//! let events = db.table("events").layout(Layout::wb_tree()).open()?;
//! events.put(b"k", b"v")?;
//!
//! let mut batch = Batch::new();
//! batch.put(&events, b"a", b"1");
//! batch.delete(&events, b"k");
//! db.commit(batch, Durability::Disk)?; // atomic, over tables too
//!
//! let users = db.table("users").layout(Layout::wb_tree_ordered()).open_ordered()?;
//! users.put(b"ada", b"1815")?;
//! for entry in users.prefix(b"a")? {
//!     let (key, value) = entry?;
//!     assert_eq!((&key[..], &value[..]), (&b"ada"[..], &b"1815"[..]));
//! }
//!
//! let now = db.snapshot();
//! events.put(b"a", b"2")?;
//! assert_eq!(now.get(&events, b"a")?.as_deref(), Some(&b"1"[..]));
//! db.close()?;
//! # std::fs::remove_dir_all(&dir).ok();
//! # Ok::<(), forebay::Error>(())
//! ```

#![warn(missing_docs)]

pub mod advise;
mod api;
mod background;
mod changes;
mod context;
#[cfg(feature = "async")]
mod deferred;
mod engine;
#[cfg(doctest)]
mod examples;
mod history;
mod memory;
mod open;
mod options;
mod pool;
mod read;
mod relayout;
pub mod simulate;
mod space;
mod transactions;
mod versions;
mod write;

#[cfg(feature = "arrow")]
pub use api::ColumnScan;
pub use api::{
    Aggregating, Aggregator, AggregatorScan, AggregatorSnapshot, Applied, Backup, Backups, Batch, Beside,
    ChangeServer, Cube, CubeBatch, CubeBuilder, CubeScan, CubeSnapshot, Database, Description, Expired,
    Follower, GroupFiles, KeyBounds, MergeRule, OrderedTable, Period, ReaderStats, Rescue, RescueReport,
    RescuedTable, Rewrite, Scan, Scanned, Snapshot, Stats, StreamEnd, Table, TableBuilder, TableDescription,
    TableStats, Taken, Tiers, Transaction, Until, ValueStats, Windows, WindowsBatch, WindowsBuilder,
    WindowsScan, WindowsSnapshot,
};
pub use changes::{Change, ChangeBatch, ChangeStream, Changes, Operation, requested_position};
#[cfg(feature = "async")]
pub use deferred::Pending;
pub use forebay_base::codec::Codec;
pub use forebay_base::{Error, PrefixFilter, Result, limits};
pub use forebay_buffer_tree::TreeOptions;
pub use forebay_layouts::{Keep, Layout, StoredRule, TableOptions};
pub use forebay_layouts::{LevelDescription, NodeDescription};
pub use forebay_store::log::Durability;
pub use forebay_store::metrics::Percentiles;
pub use history::{Checkpoint, CheckpointFile, SavepointStats};
pub use memory::Memory;
pub use open::{Damage, Dumped, DumpedEntry, VerifyReport};
pub use options::{Options, ReadOptions};
pub use pool::{Pool, PoolStats, PooledStats};
pub use read::{Approximation, Cursor, Nearest};
pub use space::TableSpaceStats;
pub use versions::SnapshotStats;

/// The programs of README and of the guide: `cargo test --doc` compiles them.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/start.md")]
    struct Start;
    #[doc = include_str!("../../../docs/guide/reading.md")]
    struct Reading;
    #[doc = include_str!("../../../docs/guide/layouts.md")]
    struct Layouts;
    #[doc = include_str!("../../../docs/guide/memory.md")]
    struct Memory;
    #[doc = include_str!("../../../docs/guide/durability.md")]
    struct Durability;
    #[doc = include_str!("../../../docs/guide/backup.md")]
    struct Backup;
    #[doc = include_str!("../../../docs/guide/expiry.md")]
    struct Expiry;
    #[doc = include_str!("../../../docs/guide/changes.md")]
    struct Changes;
    #[doc = include_str!("../../../docs/guide/replication.md")]
    struct Replication;
    #[doc = include_str!("../../../docs/guide/cubes.md")]
    struct Cubes;
    #[doc = include_str!("../../../docs/guide/transactions.md")]
    struct Transactions;
    #[cfg(feature = "async")]
    #[doc = include_str!("../../../docs/guide/async.md")]
    struct Awaiting;
    #[cfg(feature = "encryption")]
    #[doc = include_str!("../../../docs/guide/encryption.md")]
    struct Encryption;
}

/// Group-by: functions whose partial results merge in any order, and what keeps a state for every key.
pub mod aggregate {
    #[cfg(feature = "arrow")]
    pub use forebay_aggregate::arrow;
    pub use forebay_aggregate::{
        Aggregate, Aggregator, AggregatorOptions, BuiltIn, Composite, CompressedAggregator, FUNCTIONS,
        FixedAggregate, Function, Grouping, Groupings, Optional, Order, Plain, SpillTarget, StateType, Value,
        Visit, columns, columns_of, functions, group_key, parse_function,
    };
}

/// Encryption at rest: keys, and who has them. See [`Options::encryption`].
#[cfg(feature = "encryption")]
pub mod encryption {
    pub use forebay_env::encryption::{KEY_BYTES, Key, KeyInFile, KeyProvider, OneKey};

    pub use crate::api::EncryptionStats;
}

/// Where a database runs: its files, its clock and its threads. Programs that are tested without a disk, or under
/// simulated time, give their own by [`Options::env`].
pub mod env {
    pub use forebay_env::{
        Access, Clock, Env, File, FileLock, FileSystem, Jobs, LockMode, ManualClock, RealClock,
    };

    /// File systems: the machine's own, and one in memory.
    pub mod fs {
        pub use forebay_env::fs::{MemoryFs, RealFs};
    }
}
