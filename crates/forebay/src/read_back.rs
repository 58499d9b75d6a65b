//! What the log has that lists do not, read back into write buffers while the database is opened.
//!
//! 1. What was absorbed and is in no file ([`recall`](crate::recall)) goes into its tables' memory, a segment at a time.
//! 2. All other segments become sealed buffers. Where there are many, or the database was not closed in order, they are
//!    *folded*: their frames are written to new segments, as few as will do, and synced there. So many short segments cost
//!    no more than one. And after a crash, or after a sync that failed, all that was read is surely on the disk then: the
//!    system may have had it in its memory only, and takes it for written.
//! 3. Where it is more than buffers may be, what does not fit stays in files until there is room for it.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::{Result, planted};
use forebay_env::Access;
use forebay_store::buffer::ArenaPool;
use forebay_store::log::Refill;
use forebay_store::log::frame::frame_bytes;
use forebay_store::log::recover::{Bounds, Extent, Frame, LogFiles, Reading, Recovered, recover};
use forebay_store::manifest::LogMark;
use forebay_store::{WriteBuffer, names};

use crate::Options;
use crate::replay::Replay;

/// More segments than this, or than there are write buffers, are folded. Each opening and closing leaves one.
const SEGMENTS_MAX: usize = 8;
/// So many buffers more than there may be are held for as long as reading back takes: a crash leaves one that was being
/// filled, and one that was ready.
const SURPLUS_BUFFERS: u64 = 2;

/// What the log has.
pub(crate) struct ReadBack {
    pub(crate) recovered: Recovered,
    /// Segments that are absorbed and were read for what tables keep in memory.
    pub(crate) held: Vec<Extent>,
    /// Sealed buffers, oldest first.
    pub(crate) buffers: Vec<Arc<WriteBuffer>>,
    /// Segments that follow, and are still to be loaded.
    pub(crate) pending: VecDeque<Extent>,
    /// Whether the buffers' segments are new ones, synced, of which no manifest knows yet.
    pub(crate) is_folded: bool,
}

/// How and from where.
pub(crate) struct Reader<'a> {
    pub(crate) files: LogFiles<'a>,
    pub(crate) pool: &'a Arc<ArenaPool>,
    pub(crate) options: &'a Options,
    /// The last record, if the database was closed in order.
    pub(crate) closed: Option<u64>,
}

/// What becomes of the frames of segments that are not absorbed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A buffer for each segment.
    AsIs,
    /// As few buffers as will do.
    Fold,
    /// Nothing: they are only checked.
    Check,
}

impl Reader<'_> {
    /// Reads segments `ids`, ascending, back.
    pub(crate) fn read(&self, replay: &mut Replay, ids: &[u64]) -> Result<ReadBack> {
        let absorbed = replay.log.absorbed;
        let (fresh, mut bytes) = (ids.iter().filter(|&&id| id >= absorbed.0), 0);
        for &id in fresh.clone() {
            bytes += self.length(id)?;
        }
        let limit = (self.options.write_buffers as u64).saturating_add(SURPLUS_BUFFERS);
        let is_long = bytes > limit.saturating_mul(self.options.buffer_bytes());
        let is_many = fresh.count() > SEGMENTS_MAX.max(self.options.write_buffers);
        let is_unclean = self.closed.is_none() && !planted::is("manifest-not-synced");
        let mode = match (self.options.read_only, is_long) {
            (true, _) => Mode::AsIs,
            (false, true) => Mode::Check,
            (false, false) if is_many || is_unclean => Mode::Fold,
            (false, false) => Mode::AsIs,
        };
        let mut filling = Filling { reader: self, mode, open: None, source: 0, buffers: Vec::new() };
        let mut recall =
            Filling { reader: self, mode: Mode::AsIs, open: None, source: 0, buffers: Vec::new() };
        let recovered = recover(&self.files, ids, &self.bounds(&replay.log), &mut |frame| {
            if frame.segment >= absorbed.0 {
                return filling.push(frame, replay);
            }
            recall.push(frame, replay)?;
            recall.buffers.drain(..).try_for_each(|buffer| replay.recall(&buffer))
        })?;
        recall.end();
        recall.buffers.drain(..).try_for_each(|buffer| replay.recall(&buffer))?;
        filling.end();
        let mut buffers = filling.buffers;
        let (held, fresh): (Vec<Extent>, Vec<Extent>) =
            recovered.segments.iter().partition(|extent| extent.id < absorbed.0);
        let mut pending = VecDeque::new();
        match mode {
            Mode::AsIs => fresh.iter().try_for_each(|extent| self.sync(extent))?,
            Mode::Fold => {
                let mut made = Vec::new();
                let written = buffers.iter().try_for_each(|buffer| self.write(buffer, &mut made));
                written.inspect_err(|_| self.remove(&made))?;
                let kept = buffers.len().min(self.options.write_buffers);
                pending.extend(buffers.drain(kept..).map(|buffer| extent_of(&buffer)));
            }
            Mode::Check => pending = self.fold(replay, ids)?,
        }
        if !self.options.read_only {
            held.iter().try_for_each(|extent| self.sync(extent))?;
        }
        let is_folded = mode != Mode::AsIs && (!buffers.is_empty() || !pending.is_empty());
        Ok(ReadBack { recovered, held, buffers, pending, is_folded })
    }

    fn bounds(&self, mark: &LogMark) -> Bounds {
        let known_durable = self.closed.unwrap_or(mark.absorbed.1);
        let reading = if self.options.salvage { Reading::Salvage } else { Reading::Strict };
        Bounds { before: mark.low.1, absorbed: mark.absorbed, known_durable, reading }
    }

    fn length(&self, id: u64) -> Result<u64> {
        self.files.fs.open_read(&names::log(self.files.dir, id), Access::Buffered)?.len()
    }

    /// Reads once more what is longer than buffers may be, and writes it to new segments as it comes.
    fn fold(&self, replay: &Replay, ids: &[u64]) -> Result<VecDeque<Extent>> {
        let (bounds, mut made, mut extents) = (self.bounds(&replay.log), Vec::new(), VecDeque::new());
        let mut filling =
            Filling { reader: self, mode: Mode::Fold, open: None, source: 0, buffers: Vec::new() };
        let mut empty = |filling: &mut Filling<'_>| {
            filling.buffers.drain(..).try_for_each(|buffer| {
                extents.push_back(extent_of(&buffer));
                self.write(&buffer, &mut made)
            })
        };
        let folded = recover(&self.files, ids, &bounds, &mut |frame| {
            if frame.segment < replay.log.absorbed.0 {
                return Ok(());
            }
            filling.push(frame, replay)?;
            empty(&mut filling)
        });
        filling.end();
        let folded = folded.and_then(|_| empty(&mut filling));
        folded.inspect_err(|_| self.remove(&made))?;
        Ok(extents)
    }

    /// Makes a buffer's segment.
    fn write(&self, buffer: &WriteBuffer, made: &mut Vec<u64>) -> Result<()> {
        made.push(buffer.segment());
        let path = names::log(self.files.dir, buffer.segment());
        let file = self.files.fs.create(&path, Access::Buffered)?;
        file.write_at(0, buffer.bytes())?;
        file.sync()
    }

    /// What was made for nothing must not fill the disk at every new try.
    fn remove(&self, made: &[u64]) {
        made.iter().for_each(|&id| drop(self.files.fs.remove(&names::log(self.files.dir, id))));
    }

    fn sync(&self, extent: &Extent) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        self.files.fs.open(&names::log(self.files.dir, extent.id), Access::Buffered)?.sync()
    }
}

/// The buffer of a segment that was found sound before.
pub(crate) fn load(files: &LogFiles<'_>, extent: &Extent, pool: &Arc<ArenaPool>) -> Result<Arc<WriteBuffer>> {
    let bounds =
        Bounds { before: extent.before, absorbed: (0, 0), known_durable: 0, reading: Reading::Strict };
    let mut refill = Refill::new(extent.id, extent.bytes as usize, files.secret, pool);
    recover(files, &[extent.id], &bounds, &mut |frame| refill.push(frame))?;
    Ok(refill.finish(pool))
}

fn extent_of(buffer: &WriteBuffer) -> Extent {
    Extent {
        id: buffer.segment(),
        before: buffer.first_sequence().saturating_sub(1),
        bytes: buffer.len() as u64,
    }
}

/// Buffers that are being filled.
struct Filling<'a> {
    reader: &'a Reader<'a>,
    mode: Mode,
    open: Option<Refill>,
    /// The segment that the last frame was in.
    source: u64,
    /// Those that are full.
    buffers: Vec<Arc<WriteBuffer>>,
}

impl Filling<'_> {
    fn push(&mut self, frame: &Frame<'_>, replay: &Replay) -> Result<()> {
        let Reader { files, pool, options, .. } = self.reader;
        let goes_on = match self.mode {
            Mode::Check => return Ok(()),
            Mode::AsIs => self.source == frame.segment,
            Mode::Fold => self.open.as_ref().is_some_and(|open| open.takes(frame)),
        };
        if !goes_on {
            self.end();
        }
        self.source = frame.segment;
        let open = match &mut self.open {
            Some(open) => open,
            empty => {
                let (id, bytes) = match self.mode {
                    Mode::AsIs => (frame.segment, self.reader.length(frame.segment)? as usize),
                    _ => {
                        let bytes = frame_bytes(frame.payload.len()).max(options.buffer_bytes() as usize);
                        (replay.lists.new_id(), bytes)
                    }
                };
                empty.insert(Refill::new(id, bytes, files.secret, pool))
            }
        };
        open.push(frame)
    }

    fn end(&mut self) {
        self.buffers.extend(self.open.take().map(|open| open.finish(self.reader.pool)));
    }
}
