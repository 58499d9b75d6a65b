//! The log of another process, read as it grows: frame by frame into buffers that are images of its segments, as the
//! writer's are.
//!
//! What is read is seen once it is [published](LogTail::publish). The buffer of the segment that was read last goes on
//! growing; those of segments before it are full.
//!
//! **Invariant:** the numbers of records follow each other without a gap. Where no sound frame stands the log ends for
//! now: it may be half written.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::{Access, Appender};

use super::frame::{HEADER_BYTES, Header, append_frame, end_of, walk};
use super::frames::Frames;
use super::recover::{Frame, LogFiles, MALFORMED, placed};
use crate::buffer::{ArenaPool, RangeDelete, WriteBuffer};
use crate::names;

/// What came of reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOn {
    /// All that there is was read.
    All,
    /// Later segments go on behind what is not there: it was flushed, and never written.
    Gap,
    /// The log is not what it was: what was read may never have been durable.
    Changed,
}

/// Where the log was left, and what was read of it and is not published.
pub struct LogTail {
    segment: u64,
    at: usize,
    /// The number of the next record.
    next: u64,
    /// The segment's buffer, where that cannot grow: as it was found at opening.
    fixed: Option<Arc<WriteBuffer>>,
    /// Where bytes of the last frame stand by which it is known again, and these.
    last: Option<(usize, [u8; HEADER_BYTES])>,
    /// The highest number that was durable, as the frames tell.
    durable: u64,
    growing: Option<Growing>,
    full: Vec<Growing>,
}

impl LogTail {
    /// Goes on behind the newest of the buffers that opening has read, or at `flushed` where there is none.
    pub fn behind(newest: Option<&Arc<WriteBuffer>>, flushed: (u64, u64), last_sequence: u64) -> Self {
        let mut tail = Self {
            segment: flushed.0,
            at: 0,
            next: last_sequence.max(flushed.1) + 1,
            fixed: None,
            last: None,
            durable: 0,
            growing: None,
            full: Vec::new(),
        };
        if let Some(buffer) = newest.filter(|buffer| !buffer.is_empty()) {
            (tail.segment, tail.at, tail.fixed) = (buffer.segment(), buffer.len(), Some(Arc::clone(buffer)));
            let last = walk(buffer.bytes(), 0).last().map(|(start, _)| {
                debug_assert_eq!(
                    end_of(buffer.bytes(), start),
                    buffer.len(),
                    "a buffer ends where its last frame does"
                );
                start - HEADER_BYTES
            });
            let last = last.map(|at| (at, Header::fields(&buffer.bytes()[at..])));
            tail.last = last.and_then(|(at, header)| {
                let at = header.mark_at(at);
                Some((at, *buffer.bytes().get(at..)?.first_chunk()?))
            });
            tail.durable = last.map_or(0, |(_, header)| header.watermark);
        }
        tail
    }

    /// The number of the last record that was read.
    pub fn last_sequence(&self) -> u64 {
        self.next - 1
    }

    /// The highest number of which the frames say that it survives a power loss.
    pub fn durable_sequence(&self) -> u64 {
        self.durable
    }

    /// The buffers that were read since opening and are not flushed, newest first; the first of them may grow.
    pub fn buffers(&self) -> impl Iterator<Item = &Arc<WriteBuffer>> {
        self.growing.iter().chain(self.full.iter().rev()).map(|growing| &growing.buffer)
    }

    /// The buffer that may grow, if any was read on.
    pub fn active(&self) -> Option<&Arc<WriteBuffer>> {
        self.growing.as_ref().map(|growing| &growing.buffer)
    }

    /// Reads on in those segments of `ids`, which ascend, that are not flushed.
    pub fn read_on(
        &mut self,
        files: &LogFiles<'_>,
        ids: &[u64],
        flushed: (u64, u64),
        pool: &Arc<ArenaPool>,
    ) -> Result<ReadOn> {
        debug_assert!(ids.is_sorted(), "segments are read in the order in which they were written");
        if !self.let_go_below(flushed) || !self.is_same(files)? {
            return Ok(ReadOn::Changed);
        }
        // What stands behind may have been written while what is before it was read: once more, and that is there too.
        for _ in 0..2 {
            let mut is_behind = false;
            for &id in ids.iter().filter(|&&id| id >= flushed.0) {
                if id >= self.segment {
                    is_behind |= self.read_segment(files, id, pool)?;
                }
            }
            if !is_behind {
                return Ok(ReadOn::All);
            }
        }
        Ok(ReadOn::Gap)
    }

    /// Lets go of what is flushed by now. `false` where that contradicts what was read.
    fn let_go_below(&mut self, (segment, sequence): (u64, u64)) -> bool {
        self.full.retain(|full| full.buffer.segment() >= segment);
        if self.segment >= segment {
            return self.next > sequence;
        }
        let is_told = self.next <= sequence + 1;
        (self.growing, self.fixed, self.last) = (None, None, None);
        (self.segment, self.at, self.next) = (segment, 0, sequence + 1);
        is_told
    }

    /// Whether the last frame still stands where it was read.
    fn is_same(&self, files: &LogFiles<'_>) -> Result<bool> {
        let Some((at, known)) = &self.last else { return Ok(true) };
        let path = names::log(files.dir, self.segment);
        let mut head = [0; HEADER_BYTES];
        match files.fs.open_read(&path, Access::Buffered) {
            Err(error) if error.is_not_found() => Ok(false),
            opened => Ok(opened?.read_at(*at as u64, &mut head)? == HEADER_BYTES && head == *known),
        }
    }

    /// Whether the segment begins behind what is not there.
    fn read_segment(&mut self, files: &LogFiles<'_>, id: u64, pool: &Arc<ArenaPool>) -> Result<bool> {
        let path = names::log(files.dir, id);
        let mut frames = match Frames::in_file(files.fs, &path, files.secret, id) {
            // One that was never used.
            Err(error) if error.is_not_found() => return Ok(false),
            frames => frames?,
        };
        let (start, len) = (if id == self.segment { self.at } else { 0 }, frames.len());
        if start >= len {
            return Ok(false);
        }
        frames.go_to(start);
        loop {
            let at = frames.place();
            let here = frames.header()?;
            if here.is_some_and(|header| header.sequence > self.next) {
                return Ok(at == 0);
            }
            let here = here.filter(|header| header.sequence == self.next);
            let Some(whole) = frames.whole(here)? else { return Ok(false) };
            let header = whole.header;
            let malformed = || Error::corruption(&path, at as u64, MALFORMED);
            let frame = Frame::of(id, &whole).ok_or_else(malformed)?;
            self.push(&frame, at, len, files, pool)?;
            frames.pass(&header);
        }
    }

    fn push(
        &mut self,
        frame: &Frame<'_>,
        at: usize,
        len: usize,
        files: &LogFiles<'_>,
        pool: &Arc<ArenaPool>,
    ) -> Result<()> {
        let id = frame.segment;
        if self.growing.as_ref().is_some_and(|growing| growing.buffer.segment() < id) {
            self.full.extend(self.growing.take());
        }
        let mut growing = match self.growing.take() {
            Some(growing) => growing,
            None => {
                let fixed = self.fixed.take().filter(|fixed| fixed.segment() == id);
                Growing::new(id, len, fixed.as_deref(), pool)?
            }
        };
        debug_assert_eq!(growing.appender.len(), at, "a buffer has the same bytes at the same places");
        let head = frame.in_memory(files.secret).encode(files.secret, id, at);
        if append_frame_of(&mut growing.appender, &head, frame).is_none() {
            growing = growing.longer(frame.header.end(at), pool)?;
            append_frame_of(&mut growing.appender, &head, frame).ok_or_else(full)?;
        }
        let mark = if frame.header.is_encrypted { frame.trailer } else { head };
        growing.range_deletes.extend(frame.range_deletes.iter().map(|delete| placed(delete, at)));
        self.growing = Some(growing);
        (self.segment, self.at, self.last) =
            (id, frame.header.end(at), Some((frame.header.mark_at(at), mark)));
        self.next += u64::from(frame.header.records);
        self.durable = self.durable.max(frame.header.watermark);
        Ok(())
    }

    /// Lets readers see all that was read of buffers that are full, which are theirs alone from here on. Whoever is shown
    /// such a buffer as a sealed one sees all of it ever after, so this comes before.
    pub fn publish_full(&mut self) {
        self.full.drain(..).for_each(|mut full| full.publish());
    }

    /// Lets readers see all that was read.
    pub fn publish(&mut self) {
        self.publish_full();
        self.growing.iter_mut().for_each(Growing::publish);
    }
}

/// All of a frame, or nothing of it.
fn append_frame_of(appender: &mut Appender, head: &[u8; HEADER_BYTES], frame: &Frame<'_>) -> Option<()> {
    let fits = frame.header.end(appender.len()) <= appender.arena().capacity();
    if fits { append_frame(appender, head, frame.payload, &frame.trailer) } else { None }
}

/// A buffer that grows as its segment does.
struct Growing {
    buffer: Arc<WriteBuffer>,
    appender: Appender,
    /// Of frames that are not published.
    range_deletes: Vec<RangeDelete>,
}

impl Growing {
    /// The image of a segment whose file is so long; it begins as what was found of it.
    fn new(segment: u64, bytes: usize, found: Option<&WriteBuffer>, pool: &Arc<ArenaPool>) -> Result<Self> {
        let bytes = bytes.max(found.map_or(0, WriteBuffer::len));
        let is_short = bytes < pool.arena_bytes();
        let (arena, mut appender) = if is_short { pool.make(bytes) } else { pool.take(bytes) };
        if let Some(found) = found {
            appender.append(found.bytes()).ok_or_else(full)?;
            appender.publish();
        }
        let buffer = Arc::new(WriteBuffer::new(segment, arena, Some(Arc::clone(pool))));
        buffer.set_range_deletes(found.map(|found| found.range_deletes(usize::MAX)).unwrap_or_default());
        Ok(Self { buffer, appender, range_deletes: Vec::new() })
    }

    /// The same with more room: another buffer, in which all of it is seen.
    fn longer(mut self, bytes: usize, pool: &Arc<ArenaPool>) -> Result<Self> {
        self.publish();
        Self::new(self.buffer.segment(), bytes.max(2 * self.buffer.capacity()), Some(&self.buffer), pool)
    }

    fn publish(&mut self) {
        let appender = &mut self.appender;
        self.buffer.grow(std::mem::take(&mut self.range_deletes), || appender.publish());
    }
}

fn full() -> Error {
    Error::bug("a log segment is longer than its buffer")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forebay_base::{Order, Record};
    use forebay_env::fs::MemoryFs;
    use forebay_env::{Env, FileSystem, Rng};

    use super::*;
    use crate::buffer::TableRows;
    use crate::log::batch::Payload;
    use crate::log::frame::{Header, Secret};

    const DIR: &str = "/log";
    const SECRET: Secret = Secret(7);

    /// Segments that are written frame by frame, as a writer would.
    struct Writer {
        fs: Arc<MemoryFs>,
        segment: u64,
        at: usize,
        next: u64,
    }

    impl Writer {
        fn new(fs: &Arc<MemoryFs>) -> Self {
            fs.create_dir_all(Path::new(DIR)).unwrap();
            let mut writer = Self { fs: Arc::clone(fs), segment: 0, at: 0, next: 1 };
            writer.rotate();
            writer
        }

        fn rotate(&mut self) {
            (self.segment, self.at) = (self.segment + 3, 0);
            let path = names::log(Path::new(DIR), self.segment);
            let bytes = if self.segment.is_multiple_of(2) { 64 } else { 1 << 12 };
            self.fs.create(&path, Access::Buffered).unwrap().set_len(bytes).unwrap();
        }

        fn frame(&mut self) -> (u64, usize, Vec<u8>) {
            let mut payload = Payload::default();
            let key = format!("key {:04}", self.next);
            payload.push(1, Order::Lexical, &Record::put(key.as_bytes(), b"value"));
            let header = Header {
                payload_sum: payload.sum(SECRET),
                is_encrypted: false,
                payload_bytes: payload.bytes().len() as u32,
                records: 1,
                sequence: self.next,
                watermark: 0,
            };
            let end = header.end(self.at);
            let mut bytes = header.encode(SECRET, self.segment, self.at).to_vec();
            bytes.extend(payload.bytes());
            bytes.resize(end - self.at, 0);
            let place = (self.segment, self.at, bytes);
            (self.at, self.next) = (end, self.next + 1);
            place
        }

        fn write(&self, (segment, at, bytes): &(u64, usize, Vec<u8>)) {
            let file = self.fs.open(&names::log(Path::new(DIR), *segment), Access::Buffered).unwrap();
            file.write_at(*at as u64, bytes).unwrap();
        }

        fn ids(&self) -> Vec<u64> {
            (1..=self.segment / 3).map(|number| 3 * number).collect()
        }
    }

    fn seen(tail: &LogTail, older: &[Arc<WriteBuffer>]) -> usize {
        let rows = TableRows { table: 1, order: Order::Lexical, rule: None };
        let count = |buffer: &Arc<WriteBuffer>| {
            let mut records = 0;
            buffer.for_each(0, buffer.len(), |_, _, record| {
                let (mut found, key) = (0, record.key.to_vec());
                buffer.find(&rows, Order::Lexical.prefix(&key), &key, usize::MAX, |_| {
                    found += 1;
                    true
                });
                assert_eq!(found, 1, "{}", key.escape_ascii());
                records += 1;
            });
            records
        };
        older.iter().chain(tail.active()).map(count).sum()
    }

    /// Whatever is written between two looks, over however many segments, is seen once, and half a frame is none.
    #[test]
    fn what_comes_is_read_once_whatever_was_half_written() {
        for seed in 0..50 {
            let (fs, mut rng) = (MemoryFs::new(), Rng::new(seed));
            let (env, mut writer) = (Env::simulated(fs.clone(), seed), Writer::new(&fs));
            let files = LogFiles { fs: &*fs, dir: Path::new(DIR), secret: SECRET, jobs: &env.jobs };
            let pool = ArenaPool::new(256, 2);
            let mut tail = LogTail::behind(None, (3, 0), 0);
            let mut full: Vec<Arc<WriteBuffer>> = Vec::new();
            for round in 0..30 {
                for _ in 0..rng.below(5) {
                    if rng.chance(20) {
                        writer.rotate();
                    }
                    let frame = writer.frame();
                    writer.write(&frame);
                }
                let half = writer.frame();
                let cut = 1 + rng.index(half.2.len() - 1);
                writer.write(&(half.0, half.1, half.2[..cut].to_vec()));
                let path = names::log(Path::new(DIR), half.0);
                let len = fs.open_read(&path, Access::Buffered).unwrap().len().unwrap() as usize;
                let is_whole = half.2[cut..].iter().all(|&byte| byte == 0) && len >= half.1 + half.2.len();
                let before: Vec<u64> = tail.active().iter().map(|buffer| buffer.segment()).collect();
                assert_eq!(tail.read_on(&files, &writer.ids(), (3, 0), &pool).unwrap(), ReadOn::All);
                let full_now: Vec<_> =
                    tail.buffers().skip(usize::from(tail.active().is_some())).cloned().collect();
                tail.publish();
                full.extend(full_now.into_iter().rev());
                full.dedup_by_key(|buffer| buffer.segment());
                let expected = writer.next - 1 - u64::from(!is_whole);
                assert_eq!(tail.last_sequence(), expected, "seed {seed} round {round}: after {before:?}");
                assert_eq!(seen(&tail, &full), expected as usize, "seed {seed} round {round}");
                writer.write(&half);
            }
        }
    }

    #[test]
    fn what_is_flushed_is_let_go_of_and_what_changed_is_noticed() {
        let fs = MemoryFs::new();
        let (env, mut writer) = (Env::simulated(fs.clone(), 1), Writer::new(&fs));
        let files = LogFiles { fs: &*fs, dir: Path::new(DIR), secret: SECRET, jobs: &env.jobs };
        let pool = ArenaPool::new(1 << 12, 2);
        let mut tail = LogTail::behind(None, (3, 0), 0);
        let write = |writer: &mut Writer, frames: usize| {
            for _ in 0..frames {
                let frame = writer.frame();
                writer.write(&frame);
            }
        };
        write(&mut writer, 3);
        writer.rotate();
        write(&mut writer, 2);
        assert_eq!(tail.read_on(&files, &writer.ids(), (3, 0), &pool).unwrap(), ReadOn::All);
        tail.publish();
        assert_eq!((tail.last_sequence(), tail.active().unwrap().segment()), (5, 6));
        // The first is flushed, then both, and what was never written with them.
        assert_eq!(tail.read_on(&files, &[6], (6, 3), &pool).unwrap(), ReadOn::All);
        writer.rotate();
        writer.next = 9;
        write(&mut writer, 1);
        assert_eq!(tail.read_on(&files, &[6, 9], (6, 3), &pool).unwrap(), ReadOn::Gap);
        assert_eq!(tail.read_on(&files, &[9], (9, 8), &pool).unwrap(), ReadOn::All);
        assert_eq!((tail.last_sequence(), tail.active().unwrap().segment()), (9, 9));
        tail.publish();
        // Another frame stands where the last one was.
        (writer.at, writer.next) = (0, 10);
        write(&mut writer, 1);
        assert_eq!(tail.read_on(&files, &[9], (9, 8), &pool).unwrap(), ReadOn::Changed);
        // More is said to be in the log than is flushed of it.
        let mut tail = LogTail::behind(None, (3, 0), 9);
        assert_eq!(tail.read_on(&files, &[9], (9, 8), &pool).unwrap(), ReadOn::Changed);
    }
}
