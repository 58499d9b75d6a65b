//! Snapshots. Read options keep one of their own, so one may be released before they are.

use super::database::LevelDb;
use crate::kernel::plain;

/// `leveldb_snapshot_t`.
pub(super) struct LevelSnapshot(pub(super) forebay::Snapshot);

plain! {
    fn leveldb_create_snapshot(db: &LevelDb) -> Option<Box<LevelSnapshot>> {
        Some(Box::new(LevelSnapshot(db.db.snapshot())))
    }

    fn leveldb_release_snapshot(_db: Option<&LevelDb>, snapshot: Option<Box<LevelSnapshot>>) {
        drop(snapshot);
    }
}
