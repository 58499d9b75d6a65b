//! What stands in a database's roots, its manifest and its log, entry by entry, in the order in which recovery reads
//! them. Nothing is opened, locked or changed: to look into a database that cannot be opened, or that is open.

use std::fmt;
use std::path::Path;

use forebay_base::wire::Reader;
use forebay_base::{Error, Kind, Result};
use forebay_buffer_tree::TreeOptions;
use forebay_env::{Access, Env, FileSystem};
use forebay_layouts::TableOptions;
use forebay_store::list::{FileKind, FileMeta};
use forebay_store::log::Frames;
use forebay_store::log::batch::Records;
use forebay_store::log::frame::Whole;
use forebay_store::manifest::{
    Change, Current, Edit, Feed, Lineage, LogMark, Manifest, Superblock, TableEntry,
};
use forebay_store::names;
use forebay_store::salvage::Gaps;
use serde::Serialize;

use crate::context::unlock;
use crate::open::Listing;
use crate::open::destroy::no_database;
use crate::open::enter::of_path;
use crate::options::Options;

/// An entry of a file of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dumped {
    /// The file's name.
    pub file: String,
    /// Where it stands: in a log the offset in bytes, in a manifest the number of the edit, from 0.
    pub at: u64,
    /// What it is.
    #[serde(flatten)]
    pub entry: DumpedEntry,
}

/// What an entry is. Segments and manifests are told by their numbers, tables by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of docs/format, which says what they are")]
pub enum DumpedEntry {
    /// The superblock: what makes the directory a database.
    Superblock { database_id: u64 },
    /// Which manifest is the current one, and whether the database was closed in order.
    Current { manifest: u64, is_closed: bool },
    /// The first edit of a manifest.
    Snapshot { tables: usize, savepoints: usize, next_id: u64 },
    /// A table as it was made, altered, or written anew.
    Table { table: u32, name: String, layout: String, files: Vec<String> },
    /// A table was dropped.
    Drop { table: u32 },
    /// A file came, or a tree grew.
    File { table: u32, name: String, bytes: u64 },
    /// An edit of a table's lists, which its layout reads.
    Lists { table: u32, edit_bytes: usize },
    /// How far the log is needed: segments, and the last records before them.
    LogMark { kept: (u64, u64), low: (u64, u64), flushed: (u64, u64), vouched: u64 },
    /// A savepoint was taken.
    Savepoint { name: String, sequence: u64 },
    /// A savepoint was dropped.
    DropSavepoint { name: String },
    /// All tables became what they were.
    Rollback { tables: usize },
    /// It is no earlier than this, in milliseconds since 1970.
    Clock { milliseconds: u64 },
    /// What is said of the feed of changes: how much of the log is kept for it, and the lines of its lineage.
    Feed { keep_bytes: u64, is_copy: bool, lines: Vec<(u64, u64)> },
    /// A commit.
    Commit { sequence: u64, records: u32, bytes: u32, watermark: u64 },
    /// A record of the commit before it.
    Record { table: u32, kind: &'static str, key: String, value_bytes: usize },
    /// A range of keys that the commit before deletes; without an end where `high` is missing.
    DeleteRange { table: u32, low: String, high: Option<String> },
    /// Nothing that is sound stands here. At the end of a log segment that is what was reserved, or torn off.
    End { reason: &'static str, bytes_behind: u64 },
    /// A newer build has made the file.
    Newer { version: u32, known: u32 },
    /// The file cannot be read.
    Unreadable { reason: String },
}

impl fmt::Display for Dumped {
    /// A line: the file, the place, and the entry with its fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.file, self.at)?;
        match &self.entry {
            // Keys are escaped already.
            DumpedEntry::Record { table, kind, key, value_bytes } => {
                write!(
                    f,
                    "Record {{ table: {table}, kind: {kind}, key: \"{key}\", value_bytes: {value_bytes} }}"
                )
            }
            DumpedEntry::DeleteRange { table, low, high } => {
                let high = high.as_deref().unwrap_or_default();
                write!(f, "DeleteRange {{ table: {table}, low: \"{low}\", high: \"{high}\" }}")
            }
            entry => write!(f, "{entry:?}"),
        }
    }
}

/// Walks the files of one database.
struct Dump<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    see: &'a mut dyn FnMut(Dumped) -> Result<()>,
}

/// Shows all entries, up to the first error of `see`. What cannot be read is [shown as that](DumpedEntry::Unreadable), and
/// so is [what is newer](DumpedEntry::Newer).
pub(crate) fn dump(options: &Options, dir: &Path, see: &mut dyn FnMut(Dumped) -> Result<()>) -> Result<()> {
    let env = options.env.clone().unwrap_or_else(Env::real);
    let fs = &*env.fs;
    let has_root = |name: &str| fs.exists(&dir.join(name)).map_err(|error| of_path(fs, dir, error));
    let is_rooted = has_root(names::SUPERBLOCK)? || has_root(names::SUPERBLOCK_SPARE)?;
    let mut listing = match Listing::read(fs, dir) {
        Err(error) if error.is_not_found() => return Err(no_database(fs, dir)?),
        listing => listing?,
    };
    if !is_rooted && listing.manifests.is_empty() && listing.logs.is_empty() {
        return Err(no_database(fs, dir)?);
    }
    let mut dump = Dump { fs, dir, see };
    let superblock = Superblock::read(fs, dir);
    dump.root(names::SUPERBLOCK, &superblock, |root| DumpedEntry::Superblock {
        database_id: root.database_id,
    })?;
    let current = Current::read(fs, dir);
    dump.root(names::CURRENT, &current, |current| DumpedEntry::Current {
        manifest: current.manifest,
        is_closed: current.closed.is_some(),
    })?;
    listing.manifests.sort_unstable();
    listing.logs.sort_unstable();
    let is_newer = |error: Option<&Error>| matches!(error, Some(Error::NewerFormat { .. }));
    if is_newer(superblock.as_ref().err()) || is_newer(current.as_ref().err()) {
        // What is not known of them would be taken for damage.
        listing.manifests.clear();
    }
    let gaps = Gaps::default();
    let unlocked = match &superblock {
        Ok(superblock) if superblock.is_encrypted => unlock(&env, dir, options, superblock, &gaps),
        _ => Ok((env.clone(), None)),
    };
    let (unlocked, _encryption) = match unlocked {
        Err(error) => return dump.show(Path::new(names::KEYS), 0, failed(&error)),
        unlocked => unlocked?,
    };
    let fs = &*unlocked.fs;
    dump.fs = fs;
    listing.manifests.into_iter().try_for_each(|id| dump.manifest(id))?;
    let Ok(Superblock { log_secret, .. }) = superblock else {
        // Without it no frame of the log is told from anything else.
        return Ok(());
    };
    for segment in listing.logs {
        let path = names::log(dir, segment);
        let walked =
            Frames::in_file(fs, &path, log_secret, segment).and_then(|frames| dump.segment(&path, frames));
        dump.pass_over(&path, walked)?;
    }
    Ok(())
}

impl Dump<'_> {
    fn show(&mut self, path: &Path, at: u64, entry: DumpedEntry) -> Result<()> {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (self.see)(Dumped { file, at, entry })
    }

    fn root<T>(&mut self, name: &str, read: &Result<T>, entry: impl Fn(&T) -> DumpedEntry) -> Result<()> {
        self.show(Path::new(name), 0, read.as_ref().map_or_else(failed, entry))
    }

    /// Shows that a file could not be read on; an error of whoever sees is passed on by the next call.
    fn pass_over(&mut self, path: &Path, read: Result<()>) -> Result<()> {
        read.or_else(|error| self.show(path, 0, failed(&error)))
    }

    fn manifest(&mut self, id: u64) -> Result<()> {
        let path = names::manifest(self.dir, id);
        let (edits, end) = match Manifest::salvage(self.fs, self.dir, id) {
            Ok(read) => read,
            Err(error) => return self.pass_over(&path, Err(error)),
        };
        let count = edits.len() as u64;
        for (number, edit) in (0..).zip(edits) {
            entries_of(edit).into_iter().try_for_each(|entry| self.show(&path, number, entry))?;
        }
        let Some(end) = end else { return Ok(()) };
        let bytes_behind = self.fs.open_read(&path, Access::Buffered)?.len()?.saturating_sub(end);
        self.show(&path, count, DumpedEntry::End { reason: "no sound edit", bytes_behind })
    }

    fn segment(&mut self, path: &Path, mut frames: Frames) -> Result<()> {
        let bytes = self.fs.open_read(path, Access::Buffered)?.len()?;
        loop {
            let at = frames.place() as u64;
            let header = frames.header()?;
            let Some(Whole { header, payload, .. }) = frames.whole(header)? else {
                let reason = if frames.is_blank()? { "reserved" } else { "no sound commit" };
                let end = DumpedEntry::End { reason, bytes_behind: bytes - at };
                return if at == bytes { Ok(()) } else { self.show(path, at, end) };
            };
            let (sequence, records, watermark) = (header.sequence, header.records, header.watermark);
            let entries = records_of(payload);
            self.show(
                path,
                at,
                DumpedEntry::Commit { sequence, records, bytes: header.payload_bytes, watermark },
            )?;
            entries.into_iter().try_for_each(|entry| self.show(path, at, entry))?;
            frames.pass(&header);
        }
    }
}

fn failed(error: &Error) -> DumpedEntry {
    match error {
        &Error::NewerFormat { version, known, .. } => DumpedEntry::Newer { version, known },
        error => DumpedEntry::Unreadable { reason: error.to_string() },
    }
}

fn records_of(payload: &[u8]) -> Vec<DumpedEntry> {
    let text = |key: &[u8]| key.escape_ascii().to_string();
    let mut records = Records::new(payload);
    let mut entries: Vec<DumpedEntry> = records
        .by_ref()
        .map(|(table, _, record)| DumpedEntry::Record {
            table,
            kind: match record.kind {
                Kind::Put => "put",
                Kind::Delete => "delete",
                Kind::Merge => "merge",
                Kind::Pointer => "pointer",
            },
            key: text(record.key),
            value_bytes: record.value.len(),
        })
        .collect();
    entries.extend(records.into_range_deletes().into_iter().map(|delete| DumpedEntry::DeleteRange {
        table: delete.table,
        low: text(&delete.range.low.key),
        high: delete.range.high.map(|high| text(&high.key)),
    }));
    entries
}

fn entries_of(edit: Edit) -> Vec<DumpedEntry> {
    match edit {
        Edit::Snapshot(snapshot) => {
            let (tables, savepoints) = (snapshot.tables.len(), snapshot.savepoints.len());
            let first = DumpedEntry::Snapshot { tables, savepoints, next_id: snapshot.next_id };
            let is_said = snapshot.feed != Feed::default();
            let kept = snapshot.savepoints.into_iter().map(|kept| savepoint(kept.name, kept.sequence));
            [first, mark(snapshot.log)]
                .into_iter()
                .chain(is_said.then(|| feed(snapshot.feed)))
                .chain(kept)
                .chain(snapshot.tables.iter().map(table))
                .collect()
        }
        Edit::CreateTable(entry) | Edit::AlterTable(entry) => vec![table(&entry)],
        Edit::DropTable(table) => vec![DumpedEntry::Drop { table }],
        Edit::Change(Change { files, edits, log }) => {
            let files = files.into_iter().map(|(table, file)| DumpedEntry::File {
                table,
                name: name_of(&file),
                bytes: file.bytes,
            });
            let edits =
                edits.into_iter().map(|(table, edit)| DumpedEntry::Lists { table, edit_bytes: edit.len() });
            files.chain(edits).chain(log.map(mark)).collect()
        }
        Edit::Savepoint(kept) => vec![savepoint(kept.name, kept.sequence)],
        Edit::DropSavepoint(name) => vec![DumpedEntry::DropSavepoint { name }],
        Edit::Clock(milliseconds) => vec![DumpedEntry::Clock { milliseconds }],
        Edit::Feed(said, _) => vec![feed(said)],
        Edit::Rollback(rollback) => {
            let first = DumpedEntry::Rollback { tables: rollback.tables.len() };
            [first, mark(rollback.log)].into_iter().chain(rollback.tables.iter().map(table)).collect()
        }
    }
}

fn feed(Feed { keep_bytes, lineage: Lineage { is_copy, lines, .. } }: Feed) -> DumpedEntry {
    let lines = lines.into_iter().map(|line| (line.id, line.from)).collect();
    DumpedEntry::Feed { keep_bytes, is_copy, lines }
}

fn savepoint(name: String, sequence: u64) -> DumpedEntry {
    DumpedEntry::Savepoint { name, sequence }
}

fn mark(LogMark { kept, low, flushed, vouched }: LogMark) -> DumpedEntry {
    DumpedEntry::LogMark { kept, low, flushed, vouched }
}

fn table(entry: &TableEntry) -> DumpedEntry {
    let options = TreeOptions::decode(&mut Reader::new(&entry.version))
        .and_then(|tree| TableOptions::decode(&entry.options, tree));
    DumpedEntry::Table {
        table: entry.id,
        name: entry.name.clone(),
        layout: options.map_or_else(|| "unknown".into(), |(options, _)| options.layout.to_string()),
        files: entry.files.iter().map(name_of).collect(),
    }
}

fn name_of(file: &FileMeta) -> String {
    let path = match file.kind {
        FileKind::List => names::list(Path::new(""), file.id),
        FileKind::Tree => names::tree(Path::new(""), file.id),
    };
    path.display().to_string()
}
