//! What the log has that lists do not, read back into write buffers while the database is opened.
//!
//! 1. What was flushed and is in no file ([`Replay::reload`]) goes into its tables' memory, a segment at a time.
//! 2. All other segments become sealed buffers. What does not fit stays in files until there is room for it.
//!    What of them is read is [written again](Renewing) meanwhile, after a crash: the same bytes at their places.
//! 3. Once what a crash left is cleared away, and nothing before, the log is changed: where segments are many, or
//!    long, they are *folded*, their frames written to new segments, as few as will do, so that many short ones cost
//!    no more than one. Else, after a crash or a sync that failed, those that are not written again by then are
//!    [renewed](renew) in place, since the system may have had them in its memory only, and take them for written;
//!    and what is torn is cut off. So opening needs no room on the disk, unless there is some to fold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::{Access, Env, File};
use forebay_store::buffer::ArenaPool;
use forebay_store::log::Refill;
use forebay_store::log::frame;
use forebay_store::log::recover::{Bounds, Extent, Frame, LogFiles, Reading, Recovered, check, recover};
use forebay_store::manifest::LogMark;
use forebay_store::{WriteBuffer, names, renew};

use crate::open::renewing::Renewing;
use crate::options::{Buffers, Options};
use crate::versions::{Replay, RetainedSegment};

/// More segments than this, or than there are write buffers, are folded. Each opening and closing leaves one.
const SEGMENTS_MAX: usize = 8;
/// This many buffers more than there may be are no reason: a crash leaves one that was being filled, and one that was
/// ready.
pub(crate) const SURPLUS_BUFFERS: usize = 2;

/// What the log has.
pub(crate) struct ReadBack {
    pub(crate) recovered: Recovered,
    /// The highest table that it has records of.
    pub(crate) last_table: u32,
    /// Segments that are flushed and were read for what tables keep in memory.
    pub(crate) retained: Vec<Extent>,
    /// Sealed buffers, oldest first.
    pub(crate) buffers: Vec<Arc<WriteBuffer>>,
    /// Segments that follow, and are still to be loaded.
    pub(crate) pending: VecDeque<Extent>,
    /// What is made durable of the buffers meanwhile.
    renewing: Option<Renewing>,
}

impl ReadBack {
    /// All segments that are needed: those with sound frames, and those that are `retained`.
    pub(crate) fn needs(&self, retained: &BTreeMap<u64, RetainedSegment>) -> BTreeSet<u64> {
        self.recovered.segments.iter().map(|extent| extent.id).chain(retained.keys().copied()).collect()
    }
}

/// How and from where.
pub(crate) struct Reader<'a> {
    pub(crate) env: &'a Env,
    pub(crate) files: LogFiles<'a>,
    pub(crate) pool: Arc<ArenaPool>,
    pub(crate) options: &'a Options,
    /// The write buffers as they will be.
    pub(crate) buffers: Buffers,
    /// The last record, if the database was closed in order.
    pub(crate) closed: Option<u64>,
    /// Whether somebody may be writing.
    pub(crate) is_live: bool,
}

/// What becomes of the frames of segments that are not flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A buffer for each segment, as many as there may be.
    AsIs { buffers_max: usize },
    /// As few buffers as will do.
    Fold,
}

impl Reader<'_> {
    /// Reads segments `ids`, ascending, back. Nothing is changed.
    pub(crate) fn read(&self, replay: &mut Replay, ids: &[u64]) -> Result<ReadBack> {
        let flushed = replay.log.flushed;
        let (mut fresh, mut bytes) = (0, 0);
        for &id in ids.iter().filter(|&&id| id >= flushed.0) {
            fresh += 1;
            bytes += self.length(id)?;
        }
        let buffers_max = match self.options.read_only {
            true => usize::MAX,
            // All are read once more where they are folded.
            false if self.is_much(fresh, bytes) => 0,
            false => self.buffers.count,
        };
        let (mut filling, mut reload) = (Filling::new(self, buffers_max), Filling::new(self, usize::MAX));
        let is_renewed = self.is_renewed() && !self.options.read_only && !self.options.salvage;
        filling.renewing = (is_renewed && buffers_max > 0).then(|| Renewing::start(self.env, &self.files));
        let mut last_table = 0;
        let recovered = recover(&self.files, ids, &self.bounds(&replay.log), &mut |frame| {
            last_table = last_table.max(frame.last_table);
            if frame.segment >= flushed.0 {
                return filling.push(frame, replay);
            }
            reload.push(frame, replay)?;
            reload.buffers.drain(..).try_for_each(|buffer| replay.reload(&buffer))
        })?;
        reload.end();
        reload.buffers.drain(..).try_for_each(|buffer| replay.reload(&buffer))?;
        filling.end();
        let Filling { buffers, renewing, .. } = filling;
        let (retained, fresh): (Vec<Extent>, Vec<Extent>) =
            recovered.segments.iter().partition(|extent| extent.id < flushed.0);
        let is_its = |(buffer, extent): (&Arc<WriteBuffer>, &Extent)| buffer.segment() == extent.id;
        debug_assert!(
            self.options.salvage || buffers.len() <= fresh.len() && buffers.iter().zip(&fresh).all(is_its),
            "buffers are those of the first segments, in order"
        );
        let pending = fresh.into_iter().skip(buffers.len()).collect();
        Ok(ReadBack { recovered, last_table, retained, buffers, pending, renewing })
    }

    /// Whether this many segments are folded: because of their number, or because buffers were larger when they were
    /// written.
    fn is_much(&self, segments: usize, bytes: u64) -> bool {
        let Buffers { count, bytes: buffer_bytes } = self.buffers;
        segments > SEGMENTS_MAX.max(count)
            || bytes > (count.saturating_add(SURPLUS_BUFFERS) as u64).saturating_mul(buffer_bytes)
    }

    /// Makes durable what was read back. Where it was folded, the segments it was in are given: once the manifest
    /// knows that the log begins with the first that is pending they are needed no more.
    pub(crate) fn keep(&self, replay: &Replay, read: &mut ReadBack) -> Result<Vec<Extent>> {
        let bytes = read.pending.iter().map(|extent| extent.bytes).sum();
        if read.buffers.is_empty() && self.is_much(read.pending.len(), bytes) {
            let ids: Vec<u64> = read.recovered.segments.iter().map(|extent| extent.id).collect();
            match self.fold(replay, &ids, read.recovered.last_sequence) {
                Ok(folded) => return Ok(std::mem::replace(&mut read.pending, folded).into()),
                // As they are they take no more room.
                Err(error) if error.is_no_space() => {}
                Err(error) => return Err(error),
            }
        }
        let renewed = read.renewing.take().map(Renewing::finish).transpose()?.unwrap_or_default();
        if self.is_renewed() {
            for extent in &read.recovered.segments {
                if renewed.get(&extent.id) == Some(&extent.bytes) {
                    self.cut(extent)?;
                    continue;
                }
                // Where damage was passed over, a buffer is not what its file is.
                let is_its =
                    |buffer: &&Arc<WriteBuffer>| !self.options.salvage && buffer.segment() == extent.id;
                self.renew(extent, read.buffers.iter().find(is_its))?;
            }
        }
        Ok(Vec::new())
    }

    /// Whether what was read is made durable again.
    fn is_renewed(&self) -> bool {
        self.closed.is_none() && !planted::is("log-not-renewed")
    }

    fn bounds(&self, mark: &LogMark) -> Bounds {
        let known_durable = self.closed.unwrap_or(mark.vouched.max(mark.flushed.1));
        let reading = match self.options.salvage {
            true => Reading::Salvage,
            false if self.is_live => Reading::Live,
            false => Reading::Strict,
        };
        Bounds { before: mark.low.1, flushed: mark.flushed, known_durable, reading }
    }

    fn length(&self, id: u64) -> Result<u64> {
        self.files.fs.open_read(&names::log(self.files.dir, id), Access::Buffered)?.len()
    }

    /// Reads once more what is not flushed, up to the last record, and writes it to new segments as it comes.
    fn fold(&self, replay: &Replay, ids: &[u64], last_sequence: u64) -> Result<VecDeque<Extent>> {
        let (bounds, mut made, mut extents) = (self.bounds(&replay.log), Vec::new(), VecDeque::new());
        let mut filling = Filling { mode: Mode::Fold, ..Filling::new(self, 0) };
        let mut empty = |filling: &mut Filling<'_>| {
            filling.buffers.drain(..).try_for_each(|buffer| {
                extents.push_back(extent_of(&buffer));
                self.write(&buffer, &mut made)
            })
        };
        let folded = recover(&self.files, ids, &bounds, &mut |frame| {
            if frame.segment < replay.log.flushed.0 {
                return Ok(());
            }
            filling.push(frame, replay)?;
            empty(&mut filling)
        });
        filling.end();
        let folded = folded.and_then(|folded| {
            empty(&mut filling)?;
            match folded.last_sequence == last_sequence {
                true => self.files.fs.sync_dir(self.files.dir),
                false => Err(self.changed(ids.last().copied().unwrap_or(0), 0)),
            }
        });
        folded.inspect_err(|_| self.remove(&made))?;
        debug_assert!(
            extents.iter().is_sorted_by(|one, next| one.id < next.id && one.before < next.before),
            "folded segments follow each other"
        );
        Ok(extents)
    }

    /// Makes a buffer's segment.
    fn write(&self, buffer: &WriteBuffer, made: &mut Vec<u64>) -> Result<()> {
        made.push(buffer.segment());
        let path = names::log(self.files.dir, buffer.segment());
        let file = self.files.fs.create(&path, Access::Buffered)?;
        frame::write(&*file, self.files.secret, buffer.segment(), 0, buffer.bytes())?;
        file.sync()
    }

    /// What was made for nothing must not fill the disk at every new try.
    fn remove(&self, made: &[u64]) {
        made.iter().for_each(|&id| drop(self.files.fs.remove(&names::log(self.files.dir, id))));
    }

    /// Cuts off what is torn: numbers are given again, so a frame that stands there whole would be taken for what comes
    /// later by who reads on behind damage. What has another name, in a checkpoint, was whole when it was given that.
    fn cut_in(&self, file: &dyn File, extent: &Extent) -> Result<bool> {
        let is_cut = file.len()? > extent.bytes && self.files.fs.link_count(file.path())? == 1;
        if is_cut {
            file.set_len(extent.bytes)?;
        }
        Ok(is_cut)
    }

    /// The same, where all else is durable.
    fn cut(&self, extent: &Extent) -> Result<()> {
        let file = self.files.fs.open(&names::log(self.files.dir, extent.id), Access::Buffered)?;
        if self.cut_in(&*file, extent)? { file.sync() } else { Ok(()) }
    }

    /// Makes a segment durable, and cuts it.
    fn renew(&self, extent: &Extent, buffer: Option<&Arc<WriteBuffer>>) -> Result<()> {
        let file = self.files.fs.open(&names::log(self.files.dir, extent.id), Access::Buffered)?;
        self.cut_in(&*file, extent)?;
        if let Some(buffer) = buffer {
            // It was found sound, and nothing that the system does makes it another.
            debug_assert_eq!(buffer.len() as u64, extent.bytes, "a segment is the image of its buffer");
            frame::write(&*file, self.files.secret, buffer.segment(), 0, buffer.bytes())?;
            return file.sync();
        }
        renew(&*file, extent.bytes)?;
        // After a sync that failed the system may have forgotten meanwhile what it had, and what it gave was renewed.
        check(&self.files, extent).map(drop).map_err(|_| self.changed(extent.id, extent.bytes))
    }

    fn changed(&self, segment: u64, end: u64) -> Error {
        let path = names::log(self.files.dir, segment);
        Error::corruption(
            &path,
            end,
            "data that were intact here a moment ago no longer are; open the database again",
        )
    }
}

/// The buffer of a segment that was found sound before.
pub(crate) fn load_buffer(
    files: &LogFiles<'_>,
    extent: &Extent,
    pool: &Arc<ArenaPool>,
) -> Result<Arc<WriteBuffer>> {
    let bounds =
        Bounds { before: extent.before, flushed: (0, 0), known_durable: 0, reading: Reading::Strict };
    let mut refill = Refill::new(extent.id, extent.bytes as usize, files.secret, pool);
    recover(files, &[extent.id], &bounds, &mut |frame| refill.push(frame, pool))?;
    let buffer = refill.finish(pool);
    if buffer.len() as u64 != extent.bytes {
        let path = names::log(files.dir, extent.id);
        return Err(Error::corruption(
            &path,
            buffer.len() as u64,
            "data that were intact here can no longer be read",
        ));
    }
    debug_assert!(
        buffer.is_empty() || buffer.first_sequence() == extent.before + 1,
        "a segment goes on where it did when it was found"
    );
    Ok(buffer)
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
    renewing: Option<Renewing>,
}

impl<'a> Filling<'a> {
    fn new(reader: &'a Reader<'a>, buffers_max: usize) -> Self {
        let mode = Mode::AsIs { buffers_max };
        Self { reader, mode, open: None, source: 0, buffers: Vec::new(), renewing: None }
    }

    fn push(&mut self, frame: &Frame<'_>, replay: &Replay) -> Result<()> {
        let Reader { files, pool, buffers, .. } = self.reader;
        let goes_on = match self.mode {
            Mode::AsIs { .. } => self.source == frame.segment,
            Mode::Fold => self.open.as_ref().is_some_and(|open| open.takes(frame)),
        };
        if !goes_on {
            self.end();
        }
        self.source = frame.segment;
        let open = match &mut self.open {
            Some(open) => open,
            empty => {
                let bytes = frame.header.end(0).max(buffers.bytes as usize);
                let (id, bytes) = match self.mode {
                    Mode::AsIs { buffers_max } if self.buffers.len() >= buffers_max => return Ok(()),
                    Mode::AsIs { .. } => {
                        (frame.segment, bytes.min(self.reader.length(frame.segment)? as usize))
                    }
                    Mode::Fold => (replay.lists.new_id(), bytes),
                };
                empty.insert(Refill::new(id, bytes, files.secret, pool))
            }
        };
        open.push(frame, pool)?;
        self.renewing.iter_mut().for_each(|renewing| renewing.grows(open));
        Ok(())
    }

    fn end(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        self.renewing.iter_mut().for_each(|renewing| renewing.ends(&mut open));
        self.buffers.push(open.finish(&self.reader.pool));
    }
}
