//! Reading everything that is kept and holding it against its checksums and its promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_layouts::DataFile;
use forebay_store::log::recover::recover;
use forebay_store::manifest::{Current, Manifest, Superblock};
use forebay_store::names;
use serde::Serialize;

use crate::engine::Engine;

/// What a verification read and found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Files of records read.
    pub files: u64,
    /// Pages and nodes read.
    pub pages: u64,
    /// Records read.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Every fault, with file and offset; empty when all is well.
    pub problems: Vec<String>,
}

impl Engine {
    pub(crate) fn verify(self: &Arc<Self>, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        self.verify_roots(&mut report);
        let state = self.state();
        let kept: Vec<_> = self.ledger.lock().savepoints.values().cloned().collect();
        let files = state.tables.values().flat_map(|table| table.catalog.files());
        let files = files.chain(kept.iter().flat_map(|savepoint| savepoint.files()));
        let files = files.filter(|file| !file.is_resident());
        // A version of a tree does not reach all that older ones do.
        let files: BTreeMap<(u64, u64), DataFile> = files.map(|file| (file.version(), file)).collect();
        let in_all: u64 = files.values().map(|file| file.meta().bytes).sum();
        for file in files.values() {
            match file.verify() {
                Ok(found) => {
                    report.pages += found.pages;
                    report.records += found.records;
                }
                Err(error) => report.problems.push(error.to_string()),
            }
            report.files += 1;
            report.bytes += file.meta().bytes;
            progress(report.bytes, in_all);
        }
        // What is kept of the log for its changes alone is read by nothing else.
        let changes = self.changes(0).and_then(|mut changes| changes.try_for_each(|batch| batch.map(drop)));
        if let Err(error) = changes {
            report.problems.push(error.to_string());
        }
        Ok(report)
    }

    /// The superblock, the manifest and the log, as they stand on disk.
    fn verify_roots(&self, report: &mut VerifyReport) {
        let fs = &*self.env.fs;
        let mut note = |outcome: Result<()>| {
            if let Err(error @ (Error::Corruption { .. } | Error::Io { .. })) = outcome {
                report.problems.push(error.to_string());
            }
        };
        note(Superblock::read(fs, &self.dir).map(drop));
        // No segment ends and no other begins meanwhile, or what one reading saw would not fit the next.
        let _no_rotation = self.rotating.lock();
        // Nothing is appended to the manifest.
        let ledger = self.ledger.lock();
        note(
            Current::read(fs, &self.dir)
                .and_then(|current| Manifest::open(fs, &self.dir, &current, false, Arc::default()).map(drop)),
        );
        let (low, before) = ledger.log.low;
        // Before the listing, or a segment that is begun in between could be missed.
        let durable = self.log.as_ref().map_or(0, |log| log.durable_sequence());
        let segments = fs.list(&self.dir).map(|listed| {
            let logs = listed.iter().filter_map(|name| names::parse(name)).filter(|(_, kind)| *kind == "log");
            let mut ids: Vec<u64> = logs.map(|(id, _)| id).filter(|&id| id >= low).collect();
            ids.sort_unstable();
            ids
        });
        note(segments.and_then(|ids| recover(fs, &self.dir, &ids, before, durable).map(drop)));
    }
}
