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

mod aggregator;
mod approximate;
mod aside;
mod background;
mod batch;
mod bound;
mod builder;
mod changes;
mod checkpoint;
mod clear;
mod cursor;
mod database;
mod description;
mod destroy;
mod engine;
mod enter;
mod evidence;
mod filters;
mod full_compaction;
mod idle;
mod ingest;
mod memory;
mod merge_rule;
mod open;
mod options;
mod pace;
mod pins;
mod read;
mod read_back;
mod read_compaction;
mod reclaim;
mod reload;
mod reorder;
mod replay;
mod rescue;
mod retained;
mod rollback;
mod salvage;
mod savepoint;
mod scan;
mod set_layout;
pub mod simulate;
mod snapshot;
mod space;
mod stats;
mod table;
mod tables;
mod ttl;
mod verify;
mod version_set;
mod write;

pub use aggregator::{Aggregator, AggregatorScan, AggregatorSnapshot};
pub use approximate::Approximation;
pub use batch::Batch;
pub use builder::{Aggregating, TableBuilder};
pub use changes::{Change, ChangeBatch, Changes, Operation};
pub use cursor::{Cursor, Nearest};
pub use database::Database;
pub use description::{Description, TableDescription};
/// Group-by: functions whose partial results merge in any order, and what keeps a state for every key.
pub use forebay_aggregate as aggregate;
pub use forebay_base::codec::Codec;
pub use forebay_base::{Error, Result, limits};
pub use forebay_buffer_tree::TreeOptions;
pub use forebay_env as env;
pub use forebay_layouts::wb_tree::{LevelDescription, NodeDescription};
pub use forebay_layouts::{Keep, Layout, TableOptions};
pub use forebay_store::log::Durability;
pub use forebay_store::metrics::Percentiles;
pub use merge_rule::MergeRule;
pub use options::Options;
pub use pins::SnapshotStats;
pub use rescue::{Rescue, RescueReport, RescuedTable};
pub use savepoint::SavepointStats;
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use space::TableSpaceStats;
pub use stats::{Stats, TableStats};
pub use table::{OrderedTable, Table};
pub use verify::{Damage, VerifyReport};
