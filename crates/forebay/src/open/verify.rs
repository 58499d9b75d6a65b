//! Reading everything that is kept and holding it against its checksums and its promises.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_layouts::DataFile;
use forebay_store::log::recover::{Extent, check};
use forebay_store::manifest::{Current, KeyFile, Manifest, Superblock};
use forebay_store::names;
use forebay_store::salvage::Gap;
use serde::Serialize;

use crate::changes::Changes;
use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::versions::{State, TableState, Versions, ends, told_keys};

/// What a verification read and found.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files of records read: lists and trees.
    pub files: u64,
    /// Intact pages of lists, and nodes of intact trees.
    pub pages: u64,
    /// Records of those.
    pub records: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Commits read from the log: those that are not in files of records yet, and those that are kept for their
    /// changes.
    pub log_frames: u64,
    /// Records of those.
    pub log_records: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Every fault, with file and offset; empty when all is well.
    pub problems: Vec<String>,
}

/// Reads all files, the log and the roots.
pub(crate) fn verify(engine: &Engine, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
    refuse_guests()?;
    let mut report = VerifyReport::default();
    let (context, versions) = (&engine.context, &engine.versions);
    verify_roots(versions, &mut report);
    let state = versions.state();
    let kept: Vec<_> = versions.lock().savepoints.values().cloned().collect();
    let files = state.tables.values().flat_map(|table| table.version.files());
    let files = files.chain(kept.iter().flat_map(|savepoint| savepoint.files()));
    let files = files.filter(|file| !file.is_resident());
    // A version of a tree does not reach all that older ones do.
    let files: BTreeMap<(u64, u64), DataFile> = files.map(|file| (file.version(), file)).collect();
    let tables = tables_of_files(&state);
    let in_all: u64 = files.values().map(|file| file.bytes()).sum();
    for file in files.values() {
        let mut faults = Vec::new();
        match file.verify(&mut faults) {
            Ok(found) => {
                report.pages += found.pages;
                report.records += found.records;
            }
            Err(error) => faults.push(error),
        }
        report.problems.extend(faults.iter().map(|error| told(file, error, &tables)));
        report.files += 1;
        report.bytes += file.bytes();
        progress(report.bytes, in_all);
    }
    debug_assert_eq!(report.bytes, in_all, "all files are read, each once");
    report.log_bytes = versions.log_bytes_on_disk();
    if context.options.salvage {
        // Records that are missing were told of.
        return Ok(report);
    }
    let aside = state.tables.values().filter_map(|table| versions.why_aside(table.id));
    let too_long = aside.filter(|error| matches!(error, Error::TooLong(_)));
    report.problems.extend(too_long.map(|error| error.to_string()));
    if let Err(error) = verify_changes(versions, &mut report) {
        report.problems.push(error.to_string());
    }
    Ok(report)
}

/// All that is in the log. What is kept of it for its changes alone is read by nothing else.
fn verify_changes(versions: &Arc<Versions>, report: &mut VerifyReport) -> Result<()> {
    for batch in Changes::new(versions, 0)? {
        report.log_records += batch?.changes.len() as u64;
        report.log_frames += 1;
    }
    Ok(())
}

/// The superblock, the manifest and the log, as they stand on disk.
fn verify_roots(versions: &Versions, report: &mut VerifyReport) {
    let context = &versions.context;
    let fs = &*context.env.fs;
    let mut note = |outcome: Result<()>| {
        if let Err(error @ (Error::Corruption { .. } | Error::Io { .. })) = outcome {
            report.problems.push(error.to_string());
        }
    };
    note(looked_at(versions, || Superblock::read(fs, &context.dir).map(drop)));
    if context.superblock.is_encrypted {
        note(looked_at(versions, || KeyFile::check(fs, &context.dir)));
    }
    // What is whole lacks nothing by it.
    let spare = looked_at(versions, || Superblock::read_spare(fs, &context.dir).map_err(Error::or_missing));
    let spare_problem = match spare {
        Err(Error::Corruption { file, offset, reason }) => Some(format!(
            "{} is damaged at offset {offset}: {reason}; it is written anew when the database is opened to write",
            file.display()
        )),
        read => {
            note(read.map(drop));
            None
        }
    };
    {
        // Nothing is appended to the manifest.
        let _version_set = versions.lock();
        let manifest = looked_at(versions, || {
            let current = Current::read(fs, &context.dir)?;
            Manifest::open(fs, &context.dir, &current, false, Arc::default())
        });
        note(manifest.map(drop));
    }
    // What was salvaged numbers on nowhere.
    let needed = if context.options.salvage { Vec::new() } else { segments(versions) };
    for extent in needed {
        let found = looked_at(versions, || check(&context.log_files(), &extent).map(drop));
        if matches!(&found, Err(error) if error.is_not_found() && context.options.read_only) {
            // The writer needs it no more: what it had is in the buffer here, and in lists there.
            continue;
        }
        // It may have been retired, and given another use, while it was read: then nothing of it is needed.
        if found.is_ok() || segments(versions).iter().any(|needed| needed.id == extent.id) {
            note(found);
        }
    }
    report.problems.extend(spare_problem);
    report.problems.extend(Damage::all(versions).iter().map(Damage::to_string));
}

/// What a look finds. Another process may write beside a reader: what it was about to write looks damaged once, and what
/// is damaged does so each time.
fn looked_at<T>(versions: &Versions, look: impl Fn() -> Result<T>) -> Result<T> {
    let looks_more = if versions.context.options.read_only { 2 } else { 0 };
    (0..looks_more).find_map(|_| look().ok()).map_or_else(look, Ok)
}

/// The segments that are needed, and what their files must have by now. Those that are kept for their changes are
/// left out.
fn segments(versions: &Versions) -> Vec<Extent> {
    let version_set = versions.lock();
    let state = versions.state();
    let held = version_set.retained.range(version_set.log.low.0..);
    let mut extents: Vec<Extent> =
        held.map(|(&id, held)| Extent { id, before: held.before, bytes: held.bytes }).collect();
    let written = versions.context.log.as_ref().map(|log| log.written());
    for buffer in state.sealed.iter().rev().chain([&state.active]) {
        let id = buffer.segment();
        let bytes = match written {
            Some((active, bytes)) if active == id => bytes,
            // It was active a moment ago, or will be, or is not to be written unless somebody asks.
            Some((active, _)) if active < id => 0,
            _ => buffer.len() as u64,
        };
        extents.push(Extent { id, before: buffer.first_sequence().saturating_sub(1), bytes });
    }
    debug_assert!(extents.is_sorted_by(|one, next| one.id < next.id), "each segment is looked at once");
    extents.retain(|extent| extent.bytes > 0);
    extents
}

/// A place that could not be read, or a key of which nothing can be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// The file; `None` where no file is damaged, but the records of the key `low` do not merge, or to too much.
    pub file: Option<PathBuf>,
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
    /// All that was passed over so far.
    pub(crate) fn all(versions: &Versions) -> Vec<Self> {
        let state = versions.state();
        let tables = tables_of_files(&state);
        versions.context.gaps.all().into_iter().map(|gap| Self::of(gap, &tables)).collect()
    }

    /// A key of a table that is not copied, and why.
    pub(crate) fn of_key(table: &TableState, key: &[u8], reason: String) -> Self {
        let (table, low) = (Some(table.name.clone()), Some(key.to_vec()));
        Self { file: None, offset: 0, table, low, high: None, reason }
    }

    /// `tables` are those that have files, by the files' ids.
    fn of(gap: Gap, tables: &BTreeMap<u64, &TableState>) -> Self {
        let Gap { file, offset, reason, keys } = gap;
        let id = file.file_name().and_then(|name| names::parse(name.to_str()?)).map(|(id, _)| id);
        let table = id.and_then(|id| tables.get(&id));
        // In the order of hashes, what lies between two keys says nothing.
        let keys = keys.filter(|_| table.is_some_and(|table| table.order.is_lexical()));
        let (low, high) = keys.as_ref().map_or((None, None), ends);
        let file = Some(file);
        Self { file, offset, table: table.map(|table| table.name.clone()), low, high, reason }
    }
}

/// The tables that have files, by the files' ids.
fn tables_of_files(state: &State) -> BTreeMap<u64, &TableState> {
    let mut tables = BTreeMap::new();
    for table in state.user_tables() {
        tables.extend(table.version.files().into_iter().map(|file| (file.id(), &**table)));
    }
    tables
}

/// A fault of a file, with its table and the keys concerned.
fn told(file: &DataFile, error: &Error, tables: &BTreeMap<u64, &TableState>) -> String {
    let Error::Corruption { file: path, offset, reason } = error else { return error.to_string() };
    let keys = file.list().and_then(|list| list.keys_at(*offset));
    let gap = Gap { file: path.clone(), offset: *offset, reason: reason.clone(), keys };
    Damage::of(gap, tables).to_string()
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(file) = &self.file else {
            let key = self.low.as_deref().unwrap_or_default().escape_ascii();
            let table = self.table.as_deref().unwrap_or_default().escape_debug();
            return write!(f, "key {key} of table `{table}` is not copied: {}", self.reason);
        };
        write!(f, "{} is damaged at offset {}", file.display(), self.offset)?;
        if let Some(table) = &self.table {
            write!(f, ", table `{}`", table.escape_debug())?;
        }
        write!(f, "{}: {}", told_keys(self.low.as_deref(), self.high.as_deref()), self.reason)
    }
}
