//! Moments that are kept: savepoints, the way back to one, and checkpoints, which are directories of their own.

mod checkpoint;
mod rollback;
mod savepoint;

pub(crate) use checkpoint::Draining;
pub use savepoint::SavepointStats;
