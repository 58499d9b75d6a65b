//! The change feed: what the log has, batch by batch, in the order of commits. First from segments' files that are
//! flushed and held, then from the buffers, whose bytes are the newer segments.
//!
//! **Invariant:** the numbers of records follow each other without a gap, or there is an error that says where.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use forebay_base::expiry::{self, NEVER};
use forebay_base::{Error, Kind, Record, Result, planted};
use forebay_store::buffer::RangeDelete;
use forebay_store::log::Frames;
use forebay_store::log::batch::Records;
use forebay_store::log::frame::{self, Header};
use forebay_store::{WriteBuffer, names};

use crate::context::{Context, closed, refuse_guests};
use crate::versions::{SegmentFile, TableState, Versions, View};

/// What one commit changed: all of it or, in a copy, nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeBatch {
    /// The number of the batch's last record: what its commit returned, and where to go on from.
    pub last_sequence: u64,
    /// In the order in which they were given. May be empty, where all were to tables that are dropped by now.
    pub changes: Vec<Change>,
}

/// One operation of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its number. Numbers ascend; some belong to records that are left out.
    pub sequence: u64,
    /// The table's name.
    pub table: Arc<str>,
    /// What was done.
    pub operation: Operation,
}

/// What was done to a key, or a range of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The key got a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// When the entry expires, in milliseconds since 1970; `None` where it never does.
        expiry_milliseconds: Option<u64>,
    },
    /// The key was removed.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Something was merged into what the key has.
    Merge {
        /// The key.
        key: Vec<u8>,
        /// An operand of the table's rule or, in an aggregator's table, a state.
        operand: Vec<u8>,
        /// When the entry expires that it was merged into, in milliseconds since 1970; `None` where it never does.
        expiry_milliseconds: Option<u64>,
    },
    /// All keys of a range were removed.
    DeleteRange {
        /// The first key.
        low: Vec<u8>,
        /// The key that the range ends before; `None` where it has no end.
        high: Option<Vec<u8>>,
    },
}

/// Changes since a number, up to the moment at which they were asked for. See
/// [`Database::changes`](crate::Database::changes).
///
/// Holds what it has not gone through yet: the files, and the write buffers of that moment. Ends behind an error.
pub struct Changes {
    versions: Arc<Versions>,
    tables: BTreeMap<u32, Named>,
    sources: VecDeque<Source>,
    here: Option<Here>,
    since: u64,
    /// The number of the next record.
    next: u64,
    /// That of the last record that is not in buffers.
    flushed: u64,
    /// Where the last source was left; and where one was before its end, since the last sound frame.
    left: Place,
    broken: Option<Place>,
}

/// A segment, and an offset in it.
type Place = (u64, usize);

/// What changes of a table are told with.
struct Named {
    name: Arc<str>,
    expires: bool,
    merges_puts: bool,
}

enum Source {
    File(u64, Arc<SegmentFile>),
    Buffer(Arc<WriteBuffer>, usize),
}

struct Here {
    frames: Frames,
    /// Keeps the file as it is.
    _file: Option<Arc<SegmentFile>>,
}

/// How many records each write buffer of a view has.
pub(crate) fn buffered_records(view: &View) -> impl Iterator<Item = u64> {
    view.buffers().map(|(buffer, bytes)| frame::records_of(&buffer.bytes()[..bytes]))
}

impl Changes {
    /// See [`Database::changes`](crate::Database::changes).
    pub(crate) fn new(versions: &Arc<Versions>, since: u64) -> Result<Self> {
        refuse_guests()?;
        // What is held of the log, and the view, must be of one moment.
        let version_set = versions.lock();
        let view = versions.view();
        let flushed = version_set.log.flushed.1;
        let oldest = version_set.retained.values().next().map_or(flushed, |held| held.before);
        if since != 0 && since < oldest.max(version_set.rolled_back) {
            let is_told = since < version_set.rolled_back && !planted::is("rollback-not-told");
            let rolled_back = is_told.then_some(version_set.rolled_back);
            return Err(Error::ChangesGone { since, oldest: oldest + 1, rolled_back });
        }
        let last = versions
            .context
            .log
            .as_ref()
            .map_or_else(|| flushed + buffered_records(&view).sum::<u64>(), |log| log.last_sequence());
        debug_assert!(last >= flushed, "what is flushed was accepted");
        if since > last {
            return Err(Error::invalid(format!(
                "changes after {since} were asked for, but the last record has number {last}; a follower that is ahead has followed \
                 another database, or has seen commits that a crash took; make its copy anew"
            )));
        }
        // The last segment that begins at or before the first change that is wanted, and all behind it.
        let passed = match since < flushed {
            true => {
                version_set.retained.values().filter(|held| held.before <= since).count().saturating_sub(1)
            }
            false => version_set.retained.len(),
        };
        let files = version_set.retained.iter().skip(passed);
        let next = 1 + files.clone().next().map_or(flushed, |(_, held)| held.before);
        let files = files.map(|(segment, held)| Source::File(*segment, Arc::clone(&held.file)));
        let buffers = view.buffers().rev().map(|(buffer, bytes)| Source::Buffer(Arc::clone(buffer), bytes));
        let sources: VecDeque<Source> = files.chain(buffers).collect();
        debug_assert!(
            sources.iter().map(Source::segment).is_sorted_by(|one, next| one < next),
            "the log is read in the order in which it was written"
        );
        Ok(Self {
            versions: Arc::clone(versions),
            tables: view.state.user_tables().map(|table| (table.id, Named::of(table))).collect(),
            sources,
            here: None,
            since,
            next,
            flushed,
            left: (0, 0),
            broken: None,
        })
    }
}

impl Source {
    fn segment(&self) -> u64 {
        match self {
            Self::File(segment, _) => *segment,
            Self::Buffer(buffer, _) => buffer.segment(),
        }
    }
}

fn damaged(context: &Context, (segment, offset): Place, reason: impl Into<String>) -> Error {
    Error::corruption(&names::log(&context.dir, segment), offset as u64, reason)
}

impl Here {
    fn place(&self) -> Place {
        (self.frames.segment(), self.frames.place())
    }
}

impl Named {
    fn of(table: &TableState) -> Self {
        Self {
            name: table.name.as_str().into(),
            expires: table.options.time_to_live.is_some(),
            merges_puts: table.rule.name().state_type().is_some(),
        }
    }

    fn operation(&self, record: &Record<'_>) -> Operation {
        let key = record.key.to_vec();
        let (value, expiry) = match self.expires && record.kind != Kind::Delete {
            true => expiry::split(record.value),
            false => (record.value, NEVER),
        };
        let (value, expiry_milliseconds) = (value.to_vec(), (expiry != NEVER).then_some(expiry));
        match record.kind {
            Kind::Delete => Operation::Delete { key },
            Kind::Put if !self.merges_puts => Operation::Put { key, value, expiry_milliseconds },
            // The log has no pointers to values.
            Kind::Put | Kind::Merge | Kind::Pointer => {
                Operation::Merge { key, operand: value, expiry_milliseconds }
            }
        }
    }
}

fn range_delete(RangeDelete { range, .. }: RangeDelete) -> Operation {
    Operation::DeleteRange { low: range.low.key.into(), high: range.high.map(|high| high.key.into()) }
}

impl Changes {
    fn advance(&mut self) -> Result<Option<ChangeBatch>> {
        loop {
            let Some(here) = &mut self.here else {
                if self.enter()? {
                    continue;
                }
                return Ok(None);
            };
            let Some(header) = here.frames.header()? else {
                self.leave();
                continue;
            };
            if header.sequence != self.next {
                return Err(self.missing(header.sequence));
            }
            let last = self.next + u64::from(header.records) - 1;
            let mut batch = None;
            if last > self.since {
                let place = here.place();
                let Some(payload) = here.frames.payload(&header)? else {
                    self.leave();
                    continue;
                };
                let changes = changes_of(&header, payload, &self.tables);
                let malformed = || damaged(&self.versions.context, place, "a frame's records are malformed");
                let changes = changes.ok_or_else(malformed)?;
                debug_assert!(
                    changes.last().is_none_or(|change| change.sequence <= last),
                    "a batch's changes have the batch's numbers"
                );
                batch = Some(ChangeBatch { last_sequence: last, changes });
            }
            here.frames.pass(&header);
            (self.next, self.broken) = (last + 1, None);
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// Goes on to the next source. `false` where there is none.
    fn enter(&mut self) -> Result<bool> {
        debug_assert!(self.here.is_none(), "one source is left before the next is entered");
        let source = self.sources.pop_front();
        if !matches!(source, Some(Source::File(..))) && self.next <= self.flushed {
            return Err(self.missing(self.flushed + 1));
        }
        self.here = match source {
            Some(Source::File(segment, file)) => {
                if self.versions.context.is_closing() {
                    // The next one who opens it may give the file another use.
                    return Err(closed());
                }
                let frames = Frames::in_file(
                    &*self.versions.context.env.fs,
                    &file.path,
                    self.versions.context.superblock.log_secret,
                    segment,
                )?;
                Some(Here { frames, _file: Some(file) })
            }
            Some(Source::Buffer(buffer, bytes)) => Some(Here {
                frames: Frames::in_buffer(buffer, self.versions.context.superblock.log_secret, bytes),
                _file: None,
            }),
            None => return Ok(false),
        };
        Ok(true)
    }

    /// No sound frame stands here. Whether one is missing shows in what comes next.
    fn leave(&mut self) {
        if let Some(here) = self.here.take() {
            self.left = here.place();
            if !here.frames.is_at_end() {
                self.broken.get_or_insert(self.left);
            }
        }
    }

    /// The error where records before `found` cannot be read.
    fn missing(&self, found: u64) -> Error {
        if self.versions.context.is_closing() {
            // The file may have another use by now.
            return closed();
        }
        let place = self.broken.or(self.here.as_ref().map(Here::place)).unwrap_or(self.left);
        let last = found.saturating_sub(1);
        damaged(
            &self.versions.context,
            place,
            format!("records {} to {last} were kept but cannot be read", self.next),
        )
    }
}

/// What a batch changed in tables that are known. `None` where the payload is not one.
fn changes_of(header: &Header, payload: &[u8], tables: &BTreeMap<u32, Named>) -> Option<Vec<Change>> {
    let mut records = Records::new(payload);
    let mut found = Vec::with_capacity(header.records as usize);
    for (table, place, record) in records.by_ref() {
        let named = tables.get(&table);
        found.push((place, named.map(|named| (&named.name, named.operation(&record)))));
    }
    if !records.is_at_end() {
        return None;
    }
    let range_deletes = records.into_range_deletes();
    if !range_deletes.is_empty() {
        found.extend(range_deletes.into_iter().map(|met| {
            let named = tables.get(&met.table);
            (met.place, named.map(|named| (&named.name, range_delete(met))))
        }));
        found.sort_by_key(|(place, _)| *place);
    }
    let numbered = (header.sequence..).zip(&mut found);
    let changes = numbered.filter_map(|(sequence, (_, of))| {
        let (name, operation) = of.take()?;
        Some(Change { sequence, table: Arc::clone(name), operation })
    });
    let changes = changes.collect();
    (found.len() == header.records as usize).then_some(changes)
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.advance().transpose();
        if planted::is("change-skipped") && matches!(&batch, Some(Ok(batch)) if batch.last_sequence % 16 == 7)
        {
            return self.next();
        }
        if !matches!(batch, Some(Ok(_))) {
            // Nothing more comes, and nothing is held any more.
            self.sources.clear();
            self.here = None;
            self.flushed = 0;
        }
        batch
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changes(from {})", self.next)
    }
}
