//! The edits of a manifest, and their bytes.

use forebay_base::wire::{Reader, put_bytes, put_varint};

use super::feed::Feed;
use super::table::{TableEntry, get_file, get_table, get_text, put_file, put_table, repeat};
use crate::list::FileMeta;

/// How far the log is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    /// The first segment that is kept, and the last record before it. Those before `low` are kept for their changes
    /// alone, and not read when the database is opened.
    pub kept: (u64, u64),
    /// The first segment that is still needed, and the last record before it.
    pub low: (u64, u64),
    /// The first segment that is not flushed, and the last record before it. What tables keep in memory of segments
    /// between the two is read again.
    pub flushed: (u64, u64),
    /// The last record that lists rest on and the log alone has: it was durable before they lost what it deletes. 0
    /// where they rest on none that is not flushed.
    pub vouched: u64,
}

impl LogMark {
    /// What is not flushed begins at this segment: there it was folded to. What is kept before stays.
    pub fn begin_at(&mut self, segment: u64) {
        let (before, fresh) = (self.flushed, (segment, self.flushed.1));
        for place in [&mut self.kept, &mut self.low, &mut self.flushed] {
            *place = if *place == before { fresh } else { *place };
        }
    }

    /// Whether what is needed lies in what is kept, and what is not flushed in what is needed.
    fn is_ordered(&self) -> bool {
        self.kept <= self.low && self.low <= self.flushed
    }

    fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.is_ordered(), "{self:?}");
        for number in [self.low.0, self.low.1, self.flushed.0, self.flushed.1] {
            put_varint(out, number);
        }
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let low = (from.varint()?, from.varint()?);
        Some(Self { kept: low, low, flushed: (from.varint()?, from.varint()?), vouched: 0 })
    }

    /// What ends an edit, and behind it `more`. Of what is usual, nothing: no more is kept than is needed, and zeros.
    fn encode_rest(&self, more: &[u64], out: &mut Vec<u8>) {
        let more = &more[..more.iter().rposition(|&number| number != 0).map_or(0, |last| last + 1)];
        if self.kept != self.low || !more.is_empty() {
            self.encode_kept(more, out);
        }
    }

    fn encode_kept(&self, more: &[u64], out: &mut Vec<u8>) {
        [self.kept.0, self.kept.1].iter().chain(more).for_each(|&number| put_varint(out, number));
    }

    fn decode_kept(&mut self, from: &mut Reader<'_>) -> Option<()> {
        if from.remaining() > 0 {
            self.kept = (from.varint()?, from.varint()?);
        }
        self.is_ordered().then_some(())
    }
}

/// The whole state of a database but for what is in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// File ids below this one are used up.
    pub next_id: u64,
    /// Table ids below this one are used up.
    pub next_table: u32,
    /// How far the log is needed.
    pub log: LogMark,
    /// The number of the last rollback; 0 where there was none.
    pub rolled_back: u64,
    /// See [`Edit::Clock`]; 0 where nobody has told.
    pub clock_milliseconds: u64,
    /// What is said of its feed of changes.
    pub feed: Feed,
    /// Its tables.
    pub tables: Vec<TableEntry>,
    /// Its savepoints.
    pub savepoints: Vec<Savepoint>,
}

/// All tables as they were at a moment, under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Savepoint {
    /// Its name.
    pub name: String,
    /// The last record that is in it.
    pub sequence: u64,
    /// When it was taken, in milliseconds since 1970.
    pub taken_at_milliseconds: u64,
    /// The tables.
    pub tables: Vec<TableEntry>,
}

/// What all tables become again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    /// How far the log is needed: nothing that is flushed by then comes back. The last number before what is not is the
    /// rollback's own.
    pub log: LogMark,
    /// The tables; there are no others.
    pub tables: Vec<TableEntry>,
}

/// A change to the lists of one or several tables, all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// New files, or new versions of trees, and their tables.
    pub files: Vec<(u32, FileMeta)>,
    /// Edits of table versions, as their layouts encode them, in order.
    pub edits: Vec<(u32, Vec<u8>)>,
    /// How far the log is needed from now on.
    pub log: Option<LogMark>,
}

/// One record of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The first record: where the others start from.
    Snapshot(Snapshot),
    /// A new table with an empty table version.
    CreateTable(TableEntry),
    /// A table and its lists go.
    DropTable(u32),
    /// Lists change.
    Change(Change),
    /// A table goes on under other options, with the same records.
    AlterTable(TableEntry),
    /// A savepoint is taken.
    Savepoint(Savepoint),
    /// The savepoint of this name goes.
    DropSavepoint(String),
    /// All tables become what they were.
    Rollback(Rollback),
    /// It is no earlier than this, in milliseconds since 1970, whatever the machine's clock says: entries have expired by
    /// then.
    Clock(u64),
    /// Something else is said of the feed of changes; and table ids below this one are used up.
    Feed(Feed, u32),
}

const SNAPSHOT: u8 = 1;
const CREATE: u8 = 2;
const DROP: u8 = 3;
const CHANGE: u8 = 4;
const ALTER: u8 = 5;
const SAVEPOINT: u8 = 6;
const DROP_SAVEPOINT: u8 = 7;
const ROLLBACK: u8 = 8;
const CLOCK: u8 = 9;
const FEED: u8 = 10;

impl Edit {
    /// Appends the edit's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Snapshot(snapshot) => {
                out.push(SNAPSHOT);
                put_varint(out, snapshot.next_id);
                put_varint(out, snapshot.next_table as u64);
                snapshot.log.encode(out);
                put_tables(out, &snapshot.tables);
                put_varint(out, snapshot.savepoints.len() as u64);
                snapshot.savepoints.iter().for_each(|savepoint| put_savepoint(out, savepoint));
                let rest = [snapshot.rolled_back, snapshot.log.vouched, snapshot.clock_milliseconds];
                match snapshot.feed.is_usual() {
                    true => snapshot.log.encode_rest(&rest, out),
                    false => {
                        snapshot.log.encode_kept(&rest, out);
                        snapshot.feed.encode(out);
                    }
                }
            }
            Self::Clock(milliseconds) => put_number(out, CLOCK, *milliseconds),
            Self::Savepoint(savepoint) => {
                out.push(SAVEPOINT);
                put_savepoint(out, savepoint);
            }
            Self::DropSavepoint(name) => {
                out.push(DROP_SAVEPOINT);
                put_bytes(out, name.as_bytes());
            }
            Self::Rollback(rollback) => {
                out.push(ROLLBACK);
                rollback.log.encode(out);
                put_tables(out, &rollback.tables);
                rollback.log.encode_rest(&[rollback.log.vouched], out);
            }
            Self::Feed(feed, next_table) => {
                out.push(FEED);
                feed.encode(out);
                put_varint(out, *next_table as u64);
            }
            Self::CreateTable(table) | Self::AlterTable(table) => {
                out.push(if matches!(self, Self::CreateTable(_)) { CREATE } else { ALTER });
                put_table(out, table);
            }
            Self::DropTable(id) => put_number(out, DROP, u64::from(*id)),
            Self::Change(change) => {
                out.push(CHANGE);
                put_varint(out, change.files.len() as u64);
                for (table, file) in &change.files {
                    put_varint(out, *table as u64);
                    put_file(out, file);
                }
                put_varint(out, change.edits.len() as u64);
                for (table, edit) in &change.edits {
                    put_varint(out, *table as u64);
                    put_bytes(out, edit);
                }
                out.push(change.log.is_some() as u8);
                if let Some(log) = change.log {
                    log.encode(out);
                    log.encode_rest(&[log.vouched], out);
                }
            }
        }
    }

    /// Reads an edit; `None` where the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let mut edit = match from.u8()? {
            SNAPSHOT => Self::Snapshot(Snapshot {
                next_id: from.varint()?,
                next_table: u32::try_from(from.varint()?).ok()?,
                log: LogMark::decode(&mut from)?,
                rolled_back: 0,
                clock_milliseconds: 0,
                feed: Feed::default(),
                tables: repeat(&mut from, get_table)?,
                savepoints: repeat(&mut from, get_savepoint)?,
            }),
            SAVEPOINT => Self::Savepoint(get_savepoint(&mut from)?),
            DROP_SAVEPOINT => Self::DropSavepoint(get_text(&mut from)?),
            ROLLBACK => Self::Rollback(Rollback {
                log: LogMark::decode(&mut from)?,
                tables: repeat(&mut from, get_table)?,
            }),
            FEED => Self::Feed(Feed::decode(&mut from)?, u32::try_from(from.varint()?).ok()?),
            CREATE => Self::CreateTable(get_table(&mut from)?),
            ALTER => Self::AlterTable(get_table(&mut from)?),
            CLOCK => Self::Clock(from.varint()?),
            DROP => Self::DropTable(u32::try_from(from.varint()?).ok()?),
            CHANGE => Self::Change(Change {
                files: repeat(&mut from, |from| {
                    Some((u32::try_from(from.varint()?).ok()?, get_file(from)?))
                })?,
                edits: repeat(&mut from, |from| {
                    Some((u32::try_from(from.varint()?).ok()?, from.bytes()?.to_vec()))
                })?,
                log: match from.u8()? {
                    0 => None,
                    _ => Some(LogMark::decode(&mut from)?),
                },
            }),
            _ => return None,
        };
        match &mut edit {
            Self::Snapshot(snapshot) => {
                snapshot.log.decode_kept(&mut from)?;
                snapshot.rolled_back = or_zero(&mut from)?;
                snapshot.log.vouched = or_zero(&mut from)?;
                snapshot.clock_milliseconds = or_zero(&mut from)?;
                if from.remaining() > 0 {
                    snapshot.feed = Feed::decode(&mut from)?;
                }
            }
            Self::Change(Change { log: Some(log), .. }) | Self::Rollback(Rollback { log, .. }) => {
                log.decode_kept(&mut from)?;
                log.vouched = or_zero(&mut from)?;
            }
            _ => {}
        }
        (from.remaining() == 0).then_some(edit)
    }
}

fn put_number(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    put_varint(out, number);
}

fn put_tables(out: &mut Vec<u8>, tables: &[TableEntry]) {
    put_varint(out, tables.len() as u64);
    tables.iter().for_each(|table| put_table(out, table));
}

fn put_savepoint(out: &mut Vec<u8>, savepoint: &Savepoint) {
    put_bytes(out, savepoint.name.as_bytes());
    put_varint(out, savepoint.sequence);
    put_varint(out, savepoint.taken_at_milliseconds);
    put_tables(out, &savepoint.tables);
}

fn get_savepoint(from: &mut Reader<'_>) -> Option<Savepoint> {
    Some(Savepoint {
        name: get_text(from)?,
        sequence: from.varint()?,
        taken_at_milliseconds: from.varint()?,
        tables: repeat(from, get_table)?,
    })
}

/// A number, or 0 where nothing is left.
fn or_zero(from: &mut Reader<'_>) -> Option<u64> {
    if from.remaining() > 0 { from.varint() } else { Some(0) }
}
