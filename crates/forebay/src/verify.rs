//! Reading everything that is kept and holding it against its checksums and its promises.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_layouts::DataFile;
use forebay_store::log::recover::{Extent, Gap, check};
use forebay_store::manifest::{Current, Manifest, Superblock};
use serde::Serialize;

use crate::engine::Engine;

/// What a verification read and found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Files of records read: lists and trees.
    pub files: u64,
    /// Pages and nodes read.
    pub pages: u64,
    /// Records read from those files.
    pub records: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Commits read from the log: those that are not in files of records yet, and those that are kept for their changes.
    pub log_frames: u64,
    /// Records of those.
    pub log_records: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
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
        report.log_bytes = self.log_bytes_on_disk();
        if self.options.salvage {
            // Records that are missing were told of.
            return Ok(report);
        }
        let unmerged = self.damage.lock();
        report.problems.extend(
            unmerged.values().filter(|error| matches!(error, Error::TooLong(_))).map(Error::to_string),
        );
        drop(unmerged);
        if let Err(error) = self.verify_changes(&mut report) {
            report.problems.push(error.to_string());
        }
        Ok(report)
    }

    /// All that is in the log. What is kept of it for its changes alone is read by nothing else.
    fn verify_changes(self: &Arc<Self>, report: &mut VerifyReport) -> Result<()> {
        for batch in self.changes(0)? {
            report.log_records += batch?.changes.len() as u64;
            report.log_frames += 1;
        }
        Ok(())
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
        {
            // Nothing is appended to the manifest.
            let _ledger = self.ledger.lock();
            let manifest = Current::read(fs, &self.dir)
                .and_then(|current| Manifest::open(fs, &self.dir, &current, false, Arc::default()));
            note(manifest.map(drop));
        }
        // What was salvaged numbers on nowhere.
        let segments = if self.options.salvage { Vec::new() } else { self.segments() };
        for extent in segments {
            let found = check(&self.log_files(), &extent).map(drop);
            // It may have been retired, and given another use, while it was read: then nothing of it is needed.
            if found.is_ok() || self.segments().iter().any(|needed| needed.id == extent.id) {
                note(found);
            }
        }
        self.gaps.iter().for_each(|gap| report.problems.push(Damage::of(gap).to_string()));
    }

    /// The segments that are needed, and what their files must have by now. Those that are kept for their changes are left
    /// out.
    fn segments(&self) -> Vec<Extent> {
        let ledger = self.ledger.lock();
        let state = self.state();
        let held = ledger.held.range(ledger.log.low.0..);
        let mut extents: Vec<Extent> =
            held.map(|(&id, held)| Extent { id, before: held.before, bytes: held.bytes }).collect();
        let written = self.log.as_ref().map(|log| log.written());
        for buffer in state.sealed.iter().rev().chain([&state.active]) {
            let id = buffer.segment();
            let bytes = match written {
                Some((active, bytes)) if active == id => bytes,
                // It was active a moment ago, or will be.
                Some((active, _)) if active < id => 0,
                _ => buffer.len() as u64,
            };
            extents.push(Extent { id, before: buffer.first_sequence().saturating_sub(1), bytes });
        }
        extents.retain(|extent| extent.bytes > 0);
        extents
    }
}

/// A place that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The table, where that is known.
    pub table: Option<String>,
    /// The first key that may be concerned, where that is known.
    pub low: Option<Vec<u8>>,
    /// The key before which those end that may be concerned, where that is known.
    pub high: Option<Vec<u8>>,
    /// What was found.
    pub reason: String,
}

impl Damage {
    pub(crate) fn of(gap: &Gap) -> Self {
        let Gap { file, offset, reason } = gap.clone();
        Self { file, offset, table: None, low: None, high: None, reason }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at offset {}: {}", self.file.display(), self.offset, self.reason)
    }
}
