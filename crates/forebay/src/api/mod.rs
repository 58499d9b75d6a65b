//! What users hold: databases, tables, batches, snapshots, and what is told of them. Each call is checked here and done
//! by the rooms below.

mod aggregator;
#[cfg(feature = "async")]
mod asynchronous;
mod backups;
mod batch;
mod builder;
mod cube;
mod database;
mod declared;
mod description;
#[cfg(feature = "encryption")]
mod encryption;
mod expiry;
mod group_files;
mod key_bounds;
mod lent;
mod merge_rule;
mod positions;
mod rescue;
mod scan;
mod snapshot;
mod stats;
mod table;
mod transaction;
mod windows;

pub use aggregator::{Aggregator, AggregatorScan, AggregatorSnapshot};
pub use backups::{Backup, Backups, Taken};
pub use batch::Batch;
pub use builder::{Aggregating, TableBuilder};
pub use cube::{Cube, CubeBatch, CubeBuilder, CubeScan, CubeSnapshot};
pub use database::Database;
pub use description::{Description, TableDescription};
#[cfg(feature = "encryption")]
pub use encryption::EncryptionStats;
pub use group_files::GroupFiles;
pub use key_bounds::KeyBounds;
pub use merge_rule::MergeRule;
pub(crate) use merge_rule::Operands;
pub use positions::Scanned;
pub use rescue::{Rescue, RescueReport, RescuedTable};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use stats::{Stats, TableStats, ValueStats};
pub use table::{OrderedTable, Table};
pub use transaction::Transaction;
pub use windows::{
    Expired, Period, Tiers, Windows, WindowsBatch, WindowsBuilder, WindowsScan, WindowsSnapshot,
};
