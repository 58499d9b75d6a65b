//! Versions: what there is, how it is replaced, and who holds what of before. All changes of files go through the
//! version set, which makes them durable before they are seen.

mod pins;
mod replay;
mod savepoint;
mod state;
mod tables;
mod version_set;

pub use pins::SnapshotStats;
pub(crate) use pins::{Pin, Pins};
pub(crate) use replay::{Replay, store_for, table_state};
pub(crate) use savepoint::Savepoint;
pub(crate) use state::{State, TableState};
pub(crate) use tables::Tables;
pub(crate) use version_set::{Commit, Finished, Goal, Pending, Retired, VersionSet};
