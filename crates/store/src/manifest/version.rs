//! Which builds can read a manifest: a number that `CURRENT` has, so that an older build is told before it reads on.
//!
//! **Invariant:** `CURRENT` says so, durably, before an edit is appended that an older build would misread.

use super::edit::Edit;
use super::table::TableEntry;
use crate::list::FileMeta;

/// The version of a manifest in which no file has values in value files.
pub(super) const VERSION_PLAIN: u32 = 1;
/// That of one in which some have: edits have kinds of files for them.
pub(super) const VERSION_VALUES: u32 = 2;
/// That of one that tells how late it is.
pub(super) const VERSION_CLOCK: u32 = 3;
/// That of one that says something of its feed of changes. The newest.
pub(super) const VERSION: u32 = 4;

const _: () = assert!(
    VERSION_PLAIN < VERSION_VALUES && VERSION_VALUES < VERSION_CLOCK && VERSION_CLOCK < VERSION,
    "a number that was given says the same for ever"
);

impl Edit {
    /// What a reader must know to read it. Who adds anything to what edits may be adds a number here.
    pub fn version(&self) -> u32 {
        let is_new = |file: &FileMeta| !file.values.is_empty();
        let of_tables = |tables: &[TableEntry]| tables.iter().any(|table| table.files.iter().any(is_new));
        let has_values = match self {
            Self::Snapshot(snapshot) => {
                of_tables(&snapshot.tables) || snapshot.savepoints.iter().any(|kept| of_tables(&kept.tables))
            }
            Self::CreateTable(table) | Self::AlterTable(table) => table.files.iter().any(is_new),
            Self::Change(change) => change.files.iter().any(|(_, file)| is_new(file)),
            Self::Savepoint(savepoint) => of_tables(&savepoint.tables),
            Self::Rollback(rollback) => of_tables(&rollback.tables),
            Self::DropTable(_) | Self::DropSavepoint(_) | Self::Clock(_) | Self::Feed(..) => false,
        };
        match self {
            Self::Feed(..) => VERSION,
            Self::Snapshot(snapshot) if !snapshot.feed.is_usual() => VERSION,
            Self::Clock(_) => VERSION_CLOCK,
            Self::Snapshot(snapshot) if snapshot.clock_milliseconds > 0 => VERSION_CLOCK,
            _ if has_values => VERSION_VALUES,
            _ => VERSION_PLAIN,
        }
    }
}
