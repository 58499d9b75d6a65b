//! What the directory tells of edits that the manifest has lost.
//!
//! After a crash the manifest's last record may be torn, and nothing in it tells that from one that was whole and got
//! damaged. But an edit is durable before anything is done because of it. So what was done and is not in the manifest
//! tells of an edit that is lost: files that it let go are not there, or records are of a table that was never made.

use std::collections::{BTreeMap, BTreeSet};

use forebay_base::{Error, Result, planted};
use forebay_layouts::DataFile;
use forebay_store::manifest::Manifest;

use crate::open::clear::Listing;
use crate::versions::Replay;

/// The files that tables or savepoints have.
pub(crate) fn live_files(replay: &Replay) -> BTreeMap<u64, DataFile> {
    let files = replay.tables.values().flat_map(|table| table.version.files());
    let kept = replay.savepoints.values().filter(|_| !planted::is("savepoint-holds-nothing"));
    let mut files: Vec<DataFile> = files.chain(kept.flat_map(|kept| kept.files())).collect();
    // The newest version of a tree names all value files that older ones need.
    files.sort_by_key(DataFile::version);
    files.into_iter().map(|file| (file.id(), file)).collect()
}

/// The manifest of a database that was not closed in order, as far as it is sound.
pub(crate) struct Evidence<'a> {
    pub(crate) manifest: &'a Manifest,
    /// No table has this id yet, nor a higher one.
    pub(crate) next_table: u32,
}

impl Evidence<'_> {
    /// Holds the lists and trees that there are against those that the manifest names.
    pub(crate) fn of_files(&self, live: &BTreeMap<u64, DataFile>, listing: &Listing) -> Result<()> {
        let there: BTreeSet<&u64> = listing.lists.iter().chain(&listing.trees).collect();
        let stray = there.iter().find(|id| !live.contains_key(id));
        if let (1, Some(id)) = (self.next_table, stray) {
            return Err(self.lost(&format!("file {id} belongs to a table that was never made")));
        }
        let missing = live.iter().find(|(id, _)| !there.contains(id));
        match missing {
            Some((_, file)) if self.manifest.end().1 || stray.is_some() => {
                Err(self.lost(&format!("{} is gone", file.path().display())))
            }
            _ => Ok(()),
        }
    }

    /// Holds the highest table that the log has records of against those that were made.
    pub(crate) fn of_tables(&self, last_table: u32) -> Result<()> {
        match last_table < self.next_table {
            true => Ok(()),
            false => {
                Err(self.lost(&format!("the log has records of table {last_table}, which was never made")))
            }
        }
    }

    fn lost(&self, sign: &str) -> Error {
        let (path, (end, _)) = (self.manifest.path(), self.manifest.end());
        Error::corruption(path, end, format!("edits from here on are lost: {sign}"))
    }
}
