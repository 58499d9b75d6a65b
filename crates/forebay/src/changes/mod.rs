//! The change feed: what the log has, batch by batch, in the order of commits. First from segments' files that are
//! flushed and held, then from the buffers, whose bytes are the newer segments.
//!
//! **Invariant:** the numbers of records follow each other without a gap, or there is an error that says where.

mod change;
mod stream;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_store::log::Frames;
use forebay_store::log::frame::{self, Header};
use forebay_store::manifest::Lineage;
use forebay_store::{WriteBuffer, names};

use crate::context::{Context, refuse_guests};
use crate::versions::{SegmentFile, State, Versions, View};

pub use change::{Change, ChangeBatch, Operation};
use change::{Named, Names, changes_of};
pub(crate) use stream::{
    BatchOf, Ending, Greeting, HUNG_UP, Meeting, Message, Messages, Request, Round, STREAM, serve,
};
pub use stream::{ChangeStream, requested_position};

/// Changes since a number, up to the moment at which they were asked for. See
/// [`Database::changes`](crate::Database::changes).
///
/// Holds what it has not gone through yet: the files, and the write buffers of that moment. Ends behind an error.
pub struct Changes {
    versions: Arc<Versions>,
    tables: Names,
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

enum Source {
    File(u64, Arc<SegmentFile>),
    Buffer(Arc<WriteBuffer>, usize),
}

struct Here {
    frames: Frames,
    /// Keeps the file as it is.
    _file: Option<Arc<SegmentFile>>,
}

/// What there is besides changes at the moment at which they are asked for.
pub(crate) struct Moment {
    pub(crate) state: Arc<State>,
    pub(crate) next_table: u32,
    pub(crate) lineage: Lineage,
    /// The number of the last record.
    pub(crate) last: u64,
    /// After lower numbers than this some changes are gone.
    pub(crate) whole_after: u64,
    /// The number of the last rollback, and that of the oldest record that is kept.
    pub(crate) rolled_back: u64,
    pub(crate) oldest: u64,
}

impl Moment {
    /// The error where some of the changes after a number are gone.
    pub(crate) fn gone(&self, since: u64) -> Error {
        let is_told = since < self.rolled_back && !planted::is("rollback-not-told");
        let rolled_back = is_told.then_some(self.rolled_back);
        Error::ChangesGone { since, oldest: self.oldest, rolled_back }
    }

    /// The error where nobody can have seen this number.
    pub(crate) fn ahead(&self, since: u64) -> Error {
        Error::invalid(format!(
            "changes after {since} were asked for, but the last record has number {}; a follower that is ahead has followed \
             another database, or has seen commits that a crash took; make its copy anew",
            self.last
        ))
    }
}

/// How many records each write buffer of a view has.
pub(crate) fn buffered_records(view: &View) -> impl Iterator<Item = u64> {
    view.buffers().map(|(buffer, bytes)| frame::records_of(&buffer.bytes()[..bytes]))
}

/// The number of the last record that a view sees, of which those up to a number are flushed.
pub(crate) fn last_seen(flushed: u64, view: &View) -> u64 {
    flushed + buffered_records(view).sum::<u64>()
}

impl Changes {
    /// See [`Database::changes`](crate::Database::changes).
    pub(crate) fn new(versions: &Arc<Versions>, since: u64) -> Result<Self> {
        let (changes, moment) = Self::begin(versions, since)?;
        match since {
            since if since > moment.last => Err(moment.ahead(since)),
            since if since != 0 && since < moment.whole_after => Err(moment.gone(since)),
            _ => Ok(changes),
        }
    }

    /// What there is of them, and what else there is at that moment: whether that is all says whoever asks.
    pub(crate) fn begin(versions: &Arc<Versions>, since: u64) -> Result<(Self, Moment)> {
        refuse_guests()?;
        // What is held of the log, and the view, must be of one moment.
        let version_set = versions.lock();
        let view = versions.view();
        let flushed = version_set.log.flushed.1;
        let oldest = version_set.retained.values().next().map_or(flushed, |held| held.before);
        let log = versions.context.log.as_ref();
        let last = log.map_or_else(|| last_seen(flushed, &view), |log| log.last_sequence());
        debug_assert!(last >= flushed, "what is flushed was accepted");
        let moment = Moment {
            state: Arc::clone(&view.state),
            next_table: version_set.next_table,
            lineage: version_set.feed.lineage.clone(),
            last,
            whole_after: oldest.max(version_set.rolled_back),
            rolled_back: version_set.rolled_back,
            oldest: oldest + 1,
        };
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
        let changes = Self {
            versions: Arc::clone(versions),
            tables: view.state.user_tables().map(|table| (table.id, Named::of(table))).collect(),
            sources,
            here: None,
            since,
            next,
            flushed,
            left: (0, 0),
            broken: None,
        };
        Ok((changes, moment))
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

impl Changes {
    fn advance(&mut self) -> Result<Option<ChangeBatch>> {
        let found = self.walk(changes_of)?;
        debug_assert!(
            found.iter().all(|(last, changes)| changes.last().is_none_or(|change| change.sequence <= *last)),
            "a batch's changes have the batch's numbers"
        );
        Ok(found.map(|(last_sequence, changes)| ChangeBatch { last_sequence, changes }))
    }

    /// Goes on to the next batch that is wanted, with all that it has, tables included that nobody knows. `see` is shown
    /// its header and its payload. Returns the number of its last record.
    pub(crate) fn next_whole(&mut self, see: &mut dyn FnMut(&Header, &[u8])) -> Result<Option<u64>> {
        let found = self.walk(|header, payload, _| {
            see(header, payload);
            Some(())
        })?;
        Ok(found.map(|(last, ())| last))
    }

    /// Goes on to the next batch that is wanted, and gives its last number and what `make` makes of it: `None` where its
    /// payload is none.
    fn walk<T>(
        &mut self,
        mut make: impl FnMut(&Header, &[u8], &Names) -> Option<T>,
    ) -> Result<Option<(u64, T)>> {
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
            let mut found = None;
            if last > self.since {
                let place = here.place();
                let Some(payload) = here.frames.payload(&header)? else {
                    self.leave();
                    continue;
                };
                let malformed = || damaged(&self.versions.context, place, "a frame's records are malformed");
                found = Some((last, make(&header, payload, &self.tables).ok_or_else(malformed)?));
            }
            here.frames.pass(&header);
            (self.next, self.broken) = (last + 1, None);
            if found.is_some() {
                return Ok(found);
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
                    return Err(Error::closed());
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
            return Error::closed();
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
