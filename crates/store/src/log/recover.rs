//! Reading the log back after a crash, one piece of one segment at a time.
//!
//! 1. Read segments by ascending id, and in each the frames from the front, as long as every frame is sound
//!    and numbers on from the one before.
//! 2. Where that ends, go on in the next segment if its first frame numbers on.
//! 3. Otherwise the log's end is here. Everything behind it is a legal torn tail only if none of it was
//!    known durable: look for whole sound frames of later numbers behind the end, and if one carries a watermark
//!    at or above the first missing sequence, this is damage and the error names the place.
//!
//! To [salvage](Reading::Salvage), nothing is an error: what stands behind damage is read too, and each gap is noted.

use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::{FileSystem, Jobs};

use super::batch::Records;
use super::frame::{self, Header, Secret, Trailer, Whole};
use super::frames::Frames;
use crate::buffer::RangeDelete;
use crate::names;
use crate::salvage::Gap;

/// Where the log is.
#[derive(Clone, Copy)]
pub struct LogFiles<'a> {
    /// The files.
    pub fs: &'a dyn FileSystem,
    /// The database's directory.
    pub dir: &'a Path,
    /// What its frames are seeded with.
    pub secret: Secret,
    /// Who reads them ahead.
    pub jobs: &'a Jobs,
}

/// What is known of the log before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The last record before the first segment that is read.
    pub before: u64,
    /// The first segment that is not flushed, and the last record before it.
    pub flushed: (u64, u64),
    /// Records up to this one must be there.
    pub known_durable: u64,
    /// What becomes of damage.
    pub reading: Reading,
}

/// What becomes of damage to what was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It is an error.
    Strict,
    /// It is noted, and reading goes on behind it.
    Salvage,
    /// Somebody may be writing: where no sound frame stands the log ends for now, and nothing tells of damage.
    Live,
}

pub(super) const MALFORMED: &str = "a frame's records are malformed";

/// A sound frame that numbers on.
pub struct Frame<'a> {
    /// The segment that it is in.
    pub segment: u64,
    /// Where in that.
    pub(super) at: usize,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
    /// What it was decrypted by; else zeros.
    pub(super) trailer: Trailer,
    /// The ranges that it deletes; their places are in the payload.
    pub range_deletes: Vec<RangeDelete>,
    /// The highest table that it has records of.
    pub last_table: u32,
}

impl<'a> Frame<'a> {
    /// A frame that is whole; `None` where its records are malformed.
    pub(super) fn of(segment: u64, whole: &Whole<'a>) -> Option<Self> {
        let Whole { at, header, payload, trailer } = *whole;
        let mut records = Records::new(payload);
        let (mut count, mut last_table) = (0, 0);
        for (table, ..) in records.by_ref() {
            (count, last_table) = (count + 1, last_table.max(table));
        }
        let (is_whole, range_deletes) = (records.is_at_end(), records.into_range_deletes());
        let is_sound = is_whole && count + range_deletes.len() == header.records as usize;
        is_sound.then_some(Self { segment, at, header, payload, trailer, range_deletes, last_table })
    }

    /// Its header as it is in memory, where the checksum is that of the payload itself.
    pub(super) fn in_memory(&self, secret: Secret) -> Header {
        match self.header.is_encrypted {
            true => Header { payload_sum: secret.payload_sum(self.payload), ..self.header },
            false => self.header,
        }
    }
}

/// A segment's sound part.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its id.
    pub id: u64,
    /// The last record before it.
    pub before: u64,
    /// Where its last sound frame ends.
    pub bytes: u64,
}

/// What recovery found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Segments with sound frames, oldest first.
    pub segments: Vec<Extent>,
    /// The number of the last sound record.
    pub last_sequence: u64,
    /// What was passed over, where that is wanted.
    pub gaps: Vec<Gap>,
}

/// Reads segments `ids` (ascending), and shows `each` their frames.
pub fn recover(
    files: &LogFiles<'_>,
    ids: &[u64],
    bounds: &Bounds,
    each: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
) -> Result<Recovered> {
    debug_assert!(ids.is_sorted(), "segments are read in the order in which they were written");
    let found = Recovered { last_sequence: bounds.before, ..Recovered::default() };
    let mut scan = Scan {
        files,
        reading: bounds.reading,
        found,
        known: bounds.known_durable,
        behind: None,
        ended: false,
    };
    for &id in ids {
        // What was folded into later segments, and could not be removed before a crash. Where what is flushed is
        // damaged, its end is not come to, and the segment's first record tells.
        let is_folded = id < bounds.flushed.0
            && (scan.found.last_sequence >= bounds.flushed.1
                || Frames::first(files.fs, files.dir, files.secret, id)?
                    .0
                    .is_some_and(|first| first.sequence > bounds.flushed.1));
        if !is_folded {
            scan.segment(id, each)?;
        }
    }
    scan.finish()
}

struct Scan<'a> {
    files: &'a LogFiles<'a>,
    reading: Reading,
    found: Recovered,
    /// The highest number that is known to have been durable.
    known: u64,
    /// The first segment behind the last that has sound frames.
    behind: Option<u64>,
    /// The log ended before the segments that are still to come.
    ended: bool,
}

impl Scan<'_> {
    fn frames(&self, id: u64) -> Result<Frames> {
        Frames::in_file(self.files.fs, &names::log(self.files.dir, id), self.files.secret, id)
    }

    fn segment(&mut self, id: u64, each: &mut dyn FnMut(&Frame<'_>) -> Result<()>) -> Result<()> {
        let (mut frames, before) = (Frames::ahead(self.files, id)?, self.found.last_sequence);
        let mut end = 0;
        while !self.ended {
            if !self.follow(id, &mut frames, each)? {
                break;
            }
            end = frames.place();
        }
        if end > 0 {
            debug_assert!(
                self.found.segments.last().is_none_or(|last| last.id < id && last.before <= before)
            );
            self.found.segments.push(Extent { id, before, bytes: end as u64 });
            self.behind = None;
            return Ok(());
        }
        if self.reading == Reading::Live {
            return Ok(());
        }
        if self.behind.is_none() {
            self.behind = Some(id);
            if self.found.segments.is_empty() {
                self.has_beginning(id, &mut frames)?;
            }
        }
        frames.go_to(0);
        // Frames that do not number on: the log ended before this segment.
        self.ended |= self.watermarks(&mut frames)?;
        Ok(())
    }

    /// Shows the frame here and passes it. `false` where none stands that numbers on.
    fn follow(
        &mut self,
        id: u64,
        frames: &mut Frames,
        each: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (at, next) = (frames.place(), self.found.last_sequence + 1);
        let here = frames.header()?.filter(|header| header.sequence == next);
        let is_salvaged = self.reading == Reading::Salvage;
        let whole = match frames.whole(here) {
            Err(error) if is_salvaged && error.is_corruption() => None,
            whole => whole?,
        };
        let Some(whole) = whole else {
            return if is_salvaged { self.pass_damage(id, frames) } else { Ok(false) };
        };
        let header = whole.header;
        let last_sequence = next + u64::from(header.records) - 1;
        match Frame::of(id, &whole) {
            Some(frame) => each(&frame)?,
            None => self.damaged(id, at, MALFORMED.into())?,
        }
        self.found.last_sequence = last_sequence;
        frames.pass(&header);
        Ok(true)
    }

    /// Goes on to the next sound frame of the segment, and notes what is missing before it.
    fn pass_damage(&mut self, id: u64, frames: &mut Frames) -> Result<bool> {
        let (at, next) = (frames.place(), self.found.last_sequence + 1);
        let Some(header) = frames.seek(next)? else { return Ok(false) };
        let last = header.sequence - 1;
        if last >= next {
            let place = frames.place();
            let reason = match (at, place) {
                (0, 0) => format!(
                    "records {next} to {last} are in none of the log's files; this file goes on after them"
                ),
                _ => format!("records {next} to {last} cannot be read; the next sound frame is at {place}"),
            };
            self.damaged(id, at, reason)?;
        }
        self.found.last_sequence = last;
        // Of the header here it is known that it is sound and numbers on.
        Ok(true)
    }

    /// Sees to it that the first segment there is does not begin with later records than the first that is needed.
    /// Those were in a segment before it, whose name was durable before this one had a frame, and went only after an
    /// edit said so: the edit is lost.
    fn has_beginning(&mut self, id: u64, frames: &mut Frames) -> Result<()> {
        let next = self.found.last_sequence + 1;
        frames.go_to(0);
        let first = frames.header()?.filter(|header| header.sequence > next);
        let Some(whole) = frames.whole(first)? else { return Ok(()) };
        let last = whole.header.sequence - 1;
        let reason = format!(
            "records {next} to {last} are missing, and so is every segment that could have held them; the manifest may have lost \
             its last edits"
        );
        self.damaged(id, 0, reason)
    }

    fn damaged(&mut self, id: u64, offset: usize, reason: String) -> Result<()> {
        let (file, offset) = (names::log(self.files.dir, id), offset as u64);
        match self.reading {
            Reading::Strict | Reading::Live => Err(Error::corruption(&file, offset, reason)),
            Reading::Salvage => {
                self.found.gaps.push(Gap { file, offset, reason, keys: None });
                Ok(())
            }
        }
    }

    /// Whether sound frames of later numbers stand from here on. What they know to be durable is known from now on.
    fn watermarks(&mut self, frames: &mut Frames) -> Result<bool> {
        let (next, mut any) = (self.found.last_sequence + 1, false);
        while let Some(header) = frames.seek(next)? {
            self.known = self.known.max(header.watermark);
            any = true;
            frames.pass(&header);
        }
        Ok(any)
    }

    fn finish(mut self) -> Result<Recovered> {
        if self.reading == Reading::Live {
            return Ok(self.found);
        }
        let tail = self.found.segments.last().copied();
        let mut is_blank = true;
        if let Some(tail) = tail {
            let mut frames = self.frames(tail.id)?;
            frames.go_to(tail.bytes as usize);
            self.watermarks(&mut frames)?;
            frames.go_to(tail.bytes as usize);
            is_blank = frames.is_blank()?;
        }
        let missing = self.found.last_sequence + 1;
        if self.known >= missing {
            let (id, offset) = match (tail, self.behind) {
                // A segment that is sound to its end: the next one should have begun with what is missing.
                (Some(_), Some(next)) if is_blank => (next, 0),
                (Some(tail), _) => (tail.id, tail.bytes as usize),
                (None, next) => (next.unwrap_or(0), 0),
            };
            let known = self.known;
            let reason = match offset {
                0 => format!(
                    "records {missing} to {known} were durable and cannot be read; if this file is intact, the log file that held \
                     them is missing"
                ),
                _ => format!("records {missing} to {known} were durable and cannot be read"),
            };
            self.damaged(id, offset, reason)?;
        }
        Ok(self.found)
    }
}

/// Holds frames of a segment against what it held at a moment: they must be whole and sound up to a length, and number
/// on from a record. Returns the last.
pub fn check(files: &LogFiles<'_>, extent: &Extent) -> Result<u64> {
    let path = names::log(files.dir, extent.id);
    let mut frames = Frames::ahead(files, extent.id)?;
    let mut last = extent.before;
    while (frames.place() as u64) < extent.bytes {
        let at = frames.place() as u64;
        let here = frames.header()?.filter(|header| header.sequence == last + 1);
        let Some(Whole { header, payload, .. }) = frames.whole(here)? else {
            return Err(Error::corruption(&path, at, "no sound frame stands here"));
        };
        let mut records = Records::new(payload);
        let count = records.by_ref().count();
        let is_whole = records.is_at_end();
        if !is_whole || count + records.into_range_deletes().len() != header.records as usize {
            return Err(Error::corruption(&path, at, MALFORMED));
        }
        last += u64::from(header.records);
        frames.pass(&header);
    }
    Ok(last)
}

/// Where a range delete stands in a buffer, that stands in the payload of a frame at this offset.
pub(super) fn placed(delete: &RangeDelete, offset: usize) -> RangeDelete {
    RangeDelete { place: offset + frame::HEADER_BYTES + delete.place, ..delete.clone() }
}
