//! What users hold: databases, tables, batches, snapshots, and what is told of them. Each call is checked here and done
//! by the rooms below.

mod aggregator;
mod applied;
#[cfg(feature = "async")]
mod asynchronous;
mod backups;
mod batch;
mod builder;
#[cfg(feature = "arrow")]
mod columns;
mod cube;
mod database;
mod declared;
mod description;
mod dropped;
#[cfg(feature = "encryption")]
mod encryption;
mod expiry;
mod follower;
mod group_files;
mod key_bounds;
mod lent;
mod merge_rule;
mod positions;
mod reader;
mod replication;
mod rescue;
mod rewrite;
mod scan;
mod snapshot;
mod stats;
mod table;
mod transaction;
mod windows;

pub use aggregator::{Aggregator, AggregatorScan, AggregatorSnapshot};
pub use applied::{Applied, StreamEnd, Until};
pub use backups::{Backup, Backups, Taken};
pub use batch::Batch;
pub use builder::{Aggregating, TableBuilder};
#[cfg(feature = "arrow")]
pub use columns::ColumnScan;
pub use cube::{Cube, CubeBatch, CubeBuilder, CubeScan, CubeSnapshot};
pub use database::Database;
pub use description::{Description, TableDescription};
#[cfg(feature = "encryption")]
pub use encryption::EncryptionStats;
pub use follower::{Beside, Follower};
pub use group_files::GroupFiles;
pub use key_bounds::KeyBounds;
pub use merge_rule::MergeRule;
pub(crate) use merge_rule::Operands;
pub use positions::Scanned;
pub use replication::ChangeServer;
pub use rescue::{Rescue, RescueReport, RescuedTable};
pub use rewrite::Rewrite;
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use stats::{ReaderStats, Stats, TableStats, ValueStats};
pub use table::{OrderedTable, Table};
pub use transaction::Transaction;
pub use windows::{
    Expired, Period, Tiers, Windows, WindowsBatch, WindowsBuilder, WindowsScan, WindowsSnapshot,
};
