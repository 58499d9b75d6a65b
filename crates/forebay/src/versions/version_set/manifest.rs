//! What the version set does with its manifest: edits are appended, and a manifest that has grown is written anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_base::{Error, Result, planted};
use forebay_store::manifest::{AppendError, Edit, Manifest, Snapshot};
use forebay_store::names;

use super::VersionSetGuard;
use crate::versions::{State, Versions};

impl VersionSetGuard<'_> {
    /// Appends an edit to the manifest, which is rewritten when it has grown.
    pub(crate) fn append(&mut self, edit: &Edit) -> Result<()> {
        let context = &self.versions.context;
        // Where a failure left unknown what is on the disk, an edit may go to a manifest that nobody reads again.
        if let Some(fatal) = context.fatal().filter(|_| !planted::is("edits-after-the-stop")) {
            return Err(fatal);
        }
        let Some(manifest) = &mut self.set.manifest else {
            return Err(context.log().err().unwrap_or_else(Error::closed));
        };
        let told = manifest.announce(&*context.env.fs, &context.dir, edit);
        told.and_then(|()| manifest.append(edit)).map_err(|error| context.judge(error))?;
        self.versions.lists.trash.reach(manifest.place());
        Ok(())
    }

    /// Has the manifest say how late it is, if that is this much later than it says, and any entries expire: however the
    /// machine's clock is set before the database is opened again, what has expired by now stays so.
    pub(crate) fn keep_time(&mut self, interval: Duration) -> Result<()> {
        let versions = self.versions;
        let now = versions.context.env.clock.unix_milliseconds();
        let due = self.clock_milliseconds.saturating_add(interval.as_millis() as u64);
        let is_told = now < due || now <= self.clock_milliseconds;
        if self.manifest.is_none() || is_told || !versions.look(State::expires) {
            return Ok(());
        }
        if !planted::is("time-not-kept") {
            self.append(&Edit::Clock(now))?;
        }
        self.clock_milliseconds = now;
        Ok(())
    }

    /// The whole of a state but for the log, as a manifest begins with it.
    pub(crate) fn snapshot_of(&self, state: &State) -> Snapshot {
        debug_assert!(
            state.tables.iter().all(|(id, _)| *id < self.next_table),
            "a new table gets a new number"
        );
        let tables = state.tables.values().map(|table| table.entry());
        let savepoints = self.savepoints.iter().map(|(name, savepoint)| savepoint.entry(name));
        Snapshot {
            next_id: self.versions.lists.next_id.load(Ordering::Relaxed),
            next_table: self.next_table,
            log: self.log,
            rolled_back: self.rolled_back,
            clock_milliseconds: self.clock_milliseconds,
            feed: self.feed.clone(),
            tables: tables.collect(),
            savepoints: savepoints.collect(),
        }
    }
}

impl Versions {
    /// Starts a new manifest from a snapshot once the old one has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<()> {
        let (context, mut version_set) = (&*self.context, self.lock());
        let growth_bytes_min = context.division().manifest_growth_bytes_min();
        if !version_set.manifest.as_ref().is_some_and(|manifest| manifest.wants_checkpoint(growth_bytes_min))
        {
            return Ok(());
        }
        let id = self.lists.new_id();
        self.sync_retained(&version_set.log)?;
        let snapshot = Edit::Snapshot(version_set.snapshot_of(&self.state()));
        let fs = &*context.env.fs;
        let mut fresh = Manifest::create(fs, &context.dir, id, &snapshot, Arc::clone(&context.metrics))
            .map_err(|error| context.judge(error))?;
        // Where it is unknown which manifest is the current one, neither may be added to.
        fresh.tell(fs, &context.dir).map_err(|error| {
            if let AppendError::Refused(_) = error {
                let _ = fs.remove(&names::manifest(&context.dir, id));
            }
            context.judge(error)
        })?;
        // Before others can append to it: what they let go of is let go of later.
        self.lists.trash.reach(fresh.place());
        let old = version_set.manifest.replace(fresh);
        debug_assert!(old.as_ref().is_none_or(|old| old.id() < id), "manifests number on");
        drop(version_set);
        if let Some(old) = old {
            self.lists.trash.remove(fs, old.path().to_path_buf());
        }
        Ok(())
    }
}
