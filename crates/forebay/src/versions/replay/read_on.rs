//! Reading on in the manifest of another process: the edits that have come since, and what they change of references to
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_base::Result;
use forebay_layouts::DataFile;
use forebay_store::manifest::{Edit, Feed, LogMark};

use super::Replay;
use crate::versions::{TableState, Tables};

impl Replay {
    /// One of the same directory that begins anew. What is the same by its end they share.
    pub(crate) fn anew(&self) -> Self {
        Self {
            lists: self.lists.clone(),
            trees: self.trees.clone(),
            tables: Tables::default(),
            kin: self.kin.clone(),
            files: self.files.clone(),
            kept: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            log: LogMark::default(),
            rolled_back: 0,
            clock_milliseconds: 0,
            feed: Feed::default(),
            next_table: 1,
            next_id: 1,
            counted: None,
            ..*self
        }
    }

    /// From now on it is [read on](Self::read_on).
    pub(crate) fn begin_to_count(&mut self) {
        self.counted = Some(Vec::new());
    }

    /// What has changed of references to files since this was asked for last.
    pub(crate) fn take_counted(&mut self) -> Vec<(DataFile, i32)> {
        self.counted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Forgets files that nothing refers to any more, of those that were let go of or of all, and what tables were before.
    pub(crate) fn forget(&mut self, gone: Option<BTreeSet<u64>>, is_referred_to: impl Fn(u64) -> bool) {
        match gone {
            Some(gone) => gone.into_iter().filter(|id| !is_referred_to(*id)).for_each(|id| {
                self.files.remove(&id);
            }),
            None => self.files.retain(|id, _| is_referred_to(*id)),
        }
        let kept = self.savepoints.values().flat_map(|savepoint| savepoint.tables.iter());
        let kin = kept.chain(self.tables.iter()).map(|(id, table)| (*id, Arc::clone(table)));
        self.kin = kin.collect();
    }

    /// Applies an edit that came once all before it were [finished](Self::finish). `false`, and nothing is done, where
    /// its effects are not followed: then all is to be read anew.
    pub(crate) fn read_on(&mut self, edit: Edit) -> Result<bool> {
        // Their records in memory follow from the log, and edits say nothing of those.
        if self.tables.values().any(|table| table.options.layout.keeps_in_memory()) {
            return Ok(false);
        }
        match edit {
            Edit::Snapshot(_) | Edit::Rollback(_) | Edit::AlterTable(_) => return Ok(false),
            Edit::Change(change) => self.change(change)?,
            Edit::CreateTable(entry) => {
                self.add_table(&entry)?;
                if let Some(table) = self.tables.get(&entry.id).cloned() {
                    self.count(&table, 1);
                }
            }
            Edit::DropTable(id) => {
                if let Some(table) = self.tables.get(&id).cloned() {
                    self.count(&table, -1);
                }
                self.tables.remove(id);
            }
            Edit::Savepoint(kept) => {
                let name = kept.name.clone();
                self.keep(kept);
                self.finish()?;
                self.count_savepoint(&name, 1);
            }
            Edit::Clock(_) | Edit::Feed(..) => self.apply(edit)?,
            Edit::DropSavepoint(name) => {
                self.count_savepoint(&name, -1);
                self.savepoints.remove(&name);
            }
        }
        Ok(true)
    }

    fn count(&mut self, table: &TableState, by: i32) {
        debug_assert!(by.abs() == 1, "a table comes, or goes");
        if let Some(counted) = &mut self.counted {
            counted.extend(table.version.files().into_iter().map(|file| (file, by)));
        }
    }

    fn count_savepoint(&mut self, name: &str, by: i32) {
        let Some(savepoint) = self.savepoints.get(name).cloned() else { return };
        savepoint.tables.values().for_each(|table| self.count(table, by));
    }
}
