//! The sources of a cursor, one stretch of the table at a time: found, sent to a place, followed by the next.

use forebay_base::limits::STEP_BYTES;
use forebay_base::merge::{Direction, LoserTree};
use forebay_base::{Bound, Kind, Record, Result};
use forebay_layouts::{self as layouts, Stretch};
use forebay_store::list::Pace;
use forebay_store::{BufferCursor, Owner};

use super::Cursor;

/// Pieces of all lists that were asked for at a length take this part of the memory limit at most.
const READ_AHEAD_PART: u64 = 16;

/// What a stretch is merged of.
pub(super) enum Source {
    Buffer(BufferCursor),
    File(layouts::Source),
}

impl Source {
    /// What the record here does.
    #[inline]
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Buffer(cursor) => cursor.kind(),
            Self::File(cursor) => cursor.kind(),
        }
    }

    /// What it takes beside what it has claimed.
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Buffer(_) => size_of::<Self>(),
            Self::File(cursor) => cursor.memory_bytes(),
        }
    }

    /// Whether no key comes twice.
    #[inline]
    pub(super) fn has_keys_once(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

impl forebay_base::merge::Cursor for Source {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        match self {
            Self::Buffer(cursor) => cursor.prefix(),
            Self::File(cursor) => cursor.prefix(),
        }
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        match self {
            Self::Buffer(cursor) => cursor.record(),
            Self::File(cursor) => cursor.record(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self {
            Self::Buffer(cursor) => cursor.advance(),
            Self::File(cursor) => cursor.advance(),
        }
    }
}

impl Cursor {
    /// Sends the sources of its stretch to a place, which lies between two records or on one.
    pub(super) fn go_to(&mut self, prefix: u64, key: &[u8], direction: Direction) -> Result<()> {
        let is_inside = match direction {
            Direction::Forward => self.stretch.contains(prefix, key),
            Direction::Backward => {
                let is_above = self.stretch.high.as_ref().is_some_and(|high| high.place(prefix, key).is_gt());
                self.stretch.low.place(prefix, key).is_gt() && !is_above
            }
        };
        if self.merge.is_none() || !is_inside {
            let from = Bound { prefix, key: key.into() };
            self.enter(Some(&from), direction)?;
        }
        self.send(Some((prefix, key)), direction, Pace::default())
    }

    /// Makes the stretch that holds the records from `from` on, or just below it, the cursor's; with none there, no
    /// stretch is.
    pub(super) fn enter(&mut self, from: Option<&Bound>, direction: Direction) -> Result<()> {
        self.merge = None;
        let piece = self.hidden.piece(from, &self.range, direction);
        if piece.is_empty() {
            return Ok(());
        }
        let seen = self.hidden.buffers_seen(&piece);
        let stretch = match seen {
            None => self.table.version.stretch(from, &piece, direction)?,
            Some(_) => Some(Stretch { range: piece, sources: Vec::new() }),
        };
        let Some(stretch) = stretch else { return Ok(()) };
        let mut sources = Vec::new();
        for (buffer, limit) in self.view.buffers().take(seen.unwrap_or(usize::MAX)) {
            let cursors = buffer.cursors(&self.table.rows(), &stretch.range, limit);
            sources.extend(cursors.into_iter().map(Source::Buffer));
        }
        sources.extend(stretch.sources.into_iter().map(Source::File));
        self.stretch = stretch.range;
        self.merge = Some(LoserTree::new(sources, direction));
        Ok(())
    }

    /// Sends all sources to a place, or to where the stretch begins in this direction.
    pub(super) fn send(
        &mut self,
        place: Option<(u64, &[u8])>,
        direction: Direction,
        pace: Pace,
    ) -> Result<()> {
        self.direction = direction;
        let pace = self.asked_pace(pace);
        let Some(merge) = &mut self.merge else { return Ok(()) };
        let sent = merge.restart(direction, |sources| {
            let files = sources.iter_mut().filter_map(|source| match source {
                Source::File(cursor) => Some(cursor),
                Source::Buffer(cursor) => {
                    cursor.seek(place, direction);
                    None
                }
            });
            layouts::Source::seek_all(files, place, direction, pace)
        });
        // Once for all of them: walks over many lists begin often, and pages that follow are about as long.
        self.standing.resize(merge.sources().iter().map(Source::memory_bytes).sum::<usize>() as u64);
        sent
    }

    /// How it reads: as it was asked to, and else as it has come to.
    fn asked_pace(&self, pace: Pace) -> Pace {
        let asked = self.view.reading;
        let memory = &self.versions.context.metrics.memory;
        let pace = match asked.read_ahead_bytes {
            None => pace,
            // Not as it has read so far: there may be many more lists now, each with a piece as long.
            Some(_) if memory.exceeds(Owner::Scanning, READ_AHEAD_PART) => Pace::default(),
            Some(bytes) => {
                let sources = self.merge.iter().flat_map(|merge| merge.sources());
                let files = sources.filter(|source| matches!(source, Source::File(_))).count().max(1) as u64;
                let share_bytes = self.versions.context.limit.bytes() / READ_AHEAD_PART / files;
                Pace::steady(bytes.min(share_bytes).min(STEP_BYTES as u64) as usize)
            }
        };
        pace.caching(asked.caching)
    }

    /// Enters the next stretch, where its walk begins, and reads it as it has come to read this one. Says whether
    /// there is one.
    pub(super) fn enter_next(&mut self) -> Result<bool> {
        let from = match self.direction {
            _ if self.merge.is_none() => None,
            Direction::Forward if self.stretch.high == self.range.high => None,
            Direction::Forward => self.stretch.high.clone(),
            Direction::Backward if self.stretch.low == self.range.low => None,
            Direction::Backward => Some(self.stretch.low.clone()),
        };
        let Some(from) = from else { return Ok(false) };
        let sources = self.merge.iter().flat_map(|merge| merge.sources());
        let files = sources.filter_map(|source| match source {
            Source::File(cursor) => Some(cursor.pace()),
            Source::Buffer(_) => None,
        });
        let pace = files.max().unwrap_or_default();
        self.enter(Some(&from), self.direction)?;
        self.send(None, self.direction, pace)?;
        Ok(self.merge.is_some())
    }
}
