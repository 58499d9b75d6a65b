//! What the version set does with its manifest: edits are appended, and a manifest that has grown is written anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::{Error, Result, planted};
use forebay_store::manifest::{AppendError, Current, Edit, Manifest, Snapshot};
use forebay_store::names;

use super::VersionSet;
use crate::engine::{Engine, closed};
use crate::versions::State;

impl Engine {
    /// Appends an edit to the manifest, which is rewritten when it has grown.
    pub(crate) fn append(&self, version_set: &mut VersionSet, edit: &Edit) -> Result<()> {
        // Where a failure left unknown what is on the disk, an edit may go to a manifest that nobody reads again.
        if let Some(fatal) = self.fatal().filter(|_| !planted::is("edits-after-the-stop")) {
            return Err(fatal);
        }
        let Some(manifest) = &mut version_set.manifest else {
            return Err(self.log().err().unwrap_or_else(closed));
        };
        manifest.append(edit).map_err(|error| self.judge(error))
    }

    /// Stops all further writes where it is unknown what is on the disk.
    fn judge(&self, error: AppendError) -> Error {
        if let AppendError::Unknown(error) = &error {
            self.poison(error);
        }
        error.into_cause()
    }

    /// Makes the names of files durable. A failure stops all further writes: a later sync would say that all is well,
    /// and names that were made before the failure may be lost all the same.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        let synced = self.env.fs.sync_dir(&self.dir);
        synced.inspect_err(|error| self.poison(error))
    }

    /// Starts a new manifest from a snapshot once the old one has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<()> {
        let mut version_set = self.version_set.lock();
        let growth_bytes_min = self.options.manifest_growth_bytes_min();
        if !version_set.manifest.as_ref().is_some_and(|manifest| manifest.wants_checkpoint(growth_bytes_min))
        {
            return Ok(());
        }
        let id = self.lists.new_id();
        self.sync_retained(&version_set.log)?;
        let snapshot = Edit::Snapshot(self.snapshot_of(&version_set, &self.state()));
        let fs = &*self.env.fs;
        let fresh = Manifest::create(fs, &self.dir, id, &snapshot, Arc::clone(&self.metrics))
            .map_err(|error| self.judge(error))?;
        // Where it is unknown which manifest is the current one, neither may be added to.
        Current { manifest: id, closed: None }.write(fs, &self.dir).map_err(|error| {
            if let AppendError::Refused(_) = error {
                let _ = fs.remove(&names::manifest(&self.dir, id));
            }
            self.judge(error)
        })?;
        let old = version_set.manifest.replace(fresh);
        drop(version_set);
        old.map_or(Ok(()), |old| fs.remove(old.path()))
    }

    /// The whole state but for the log, as a manifest begins with it.
    pub(crate) fn snapshot_of(&self, version_set: &VersionSet, state: &State) -> Snapshot {
        let tables = state.tables.values().map(|table| table.entry());
        Snapshot {
            next_id: self.lists.next_id.load(Ordering::Relaxed),
            next_table: version_set.next_table,
            log: version_set.log,
            rolled_back: version_set.rolled_back,
            tables: tables.collect(),
            savepoints: version_set
                .savepoints
                .iter()
                .map(|(name, savepoint)| savepoint.entry(name))
                .collect(),
        }
    }
}
