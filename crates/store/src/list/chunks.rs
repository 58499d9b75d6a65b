//! Reading a list's pages many at a time, in either direction. A scan begins with single pages, through the page cache:
//! it may be a short one. As it goes on it reads longer and longer pieces, around the cache, which it would only sweep.

use std::ops::Range as Pages;
use std::sync::Arc;

use forebay_base::limits::{BLOCK_BYTES, STEP_BYTES};
use forebay_base::merge::Direction;
use forebay_base::record::Shape;
use forebay_base::{Error, Range, Result, sometimes};
use forebay_env::{Access, AlignedBuf, File};

use super::file::{Body, ListFile};
use crate::cache::Caching;
use crate::memory::{MemoryClaim, MemoryUse, Owner};
use crate::metrics::Cause;
use crate::read_ahead;

/// Who reads, and how much at a time.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// Background work: direct I/O in long reads. Where memory is too short for those, through the kernel's
    /// cache, which fetches the next chunks meanwhile.
    Job {
        /// What the bytes are counted as.
        cause: Cause,
        /// Bytes of one read.
        chunk_bytes: usize,
    },
    /// A user's scan: reads through the kernel's cache, short ones first.
    Scan,
    /// A check of the whole file: direct I/O in long reads, not counted.
    Check,
}

/// How a scan has come to read by now; as it begins, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace {
    /// How many pages it has read one by one.
    singles: u32,
    /// How long its next piece is.
    piece_bytes: usize,
    /// What becomes of single pages.
    caching: Caching,
}

impl Pace {
    /// Of a walk that goes on to the end: it reads pieces of this length from the start on.
    pub fn steady(piece_bytes: usize) -> Self {
        Self { singles: STEADY, piece_bytes, caching: Caching::default() }
    }

    /// The same, with another end for single pages.
    pub fn caching(self, caching: Caching) -> Self {
        Self { caching, ..self }
    }

    /// What becomes of single pages, and of a tree's leaves.
    pub fn cached(&self) -> Caching {
        self.caching
    }
}

/// No single pages are read any more, nor longer pieces.
const STEADY: u32 = u32::MAX;
/// This many pages that the cache lacks a scan reads one by one.
const SCAN_SINGLES: u32 = 2;
/// Its pieces behind those, each twice as long as the one before.
const SCAN_CHUNK_BYTES_MIN: usize = 16 << 10;
const SCAN_CHUNK_BYTES_MAX: usize = 256 << 10;
/// But no longer than this part of the page cache: a scan has one of every list on its way.
const SCAN_CACHE_PART: u64 = 64;
/// Once all scans' pieces take this part of the limit, whoever has none yet goes on page by page. From half of it on
/// they do not get longer.
const SCANS_PART: u64 = 32;
/// What is in memory is copied from there: in pieces that an allocator keeps at hand and the processor's cache takes.
const RESIDENT_CHUNK_BYTES: usize = 32 << 10;
/// From this size on the device takes longer to transfer a chunk than to find it.
const LONG_CHUNK_BYTES: usize = 256 << 10;

/// Where they are shorter the kernel fetches this many of them in one request.
const FETCHED_CHUNKS: u64 = 4;

const _: () = assert!(SCAN_CHUNK_BYTES_MIN <= SCAN_CHUNK_BYTES_MAX && SCAN_CHUNK_BYTES_MAX <= STEP_BYTES);
const _: () =
    assert!(SCAN_CHUNK_BYTES_MIN.is_multiple_of(BLOCK_BYTES) && LONG_CHUNK_BYTES.is_multiple_of(BLOCK_BYTES));
const _: () = assert!(SCAN_CHUNK_BYTES_MIN > 2 * BLOCK_BYTES, "a page and what is read at either end");

/// A window of whole pages over a list file.
pub(super) struct Chunks {
    reading: Reading,
    file: Arc<dyn File>,
    memory: Arc<MemoryUse>,
    /// From the first read on: a short scan has none.
    chunk: Option<(AlignedBuf, MemoryClaim)>,
    chunk_bytes_max: usize,
    /// Of a scan: how many pages it has read one by one, and to how long its pieces grow, now and by default.
    singles: u32,
    grown_bytes: usize,
    usual_grown_bytes: usize,
    caching: Caching,
    /// The pages in the chunk, and the chunk's place in the file.
    loaded: Pages<usize>,
    chunk_offset: u64,
    /// Up to where the kernel has been asked to fetch the file for a job.
    fetched_end: u64,
}

/// A page as it stands in the file.
pub(super) struct PageBytes<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) shape: Shape,
}

impl ListFile {
    /// Has the kernel fetch what a job that is about to walk over the range reads first: one by one, the first pieces of
    /// many lists would each be waited for.
    pub fn announce(&self, range: &Range, reading: Reading) {
        let Reading::Job { chunk_bytes, .. } = reading else { return };
        // Whoever reads it will say why it cannot be read.
        let Ok(body) = self.body() else { return };
        let pages = body.pages_of(range);
        if pages.is_empty() || chunk_bytes >= LONG_CHUNK_BYTES {
            return;
        }
        let (start, end) = (body.index.extent(pages.start).0, extent_end(body, &pages));
        body.file.will_need(start, (end - start).min(FETCHED_CHUNKS * chunk_bytes as u64) as usize);
    }
}

impl Chunks {
    pub(super) fn new(list: &ListFile, reading: Reading) -> Result<Self> {
        let body = list.body()?;
        let direct = || match list.is_resident() {
            true => Ok(Arc::clone(&body.file)),
            false => list.open_path(Access::Direct),
        };
        let (file, chunk_bytes_max) = match reading {
            Reading::Job { chunk_bytes, .. } => {
                let file = if chunk_bytes < LONG_CHUNK_BYTES { Arc::clone(&body.file) } else { direct()? };
                let most = if list.is_resident() { RESIDENT_CHUNK_BYTES } else { usize::MAX };
                (file, chunk_bytes.clamp(BLOCK_BYTES, most))
            }
            Reading::Scan => (Arc::clone(&body.file), SCAN_CHUNK_BYTES_MIN),
            Reading::Check => (direct()?, STEP_BYTES),
        };
        let part = (list.store().cache.blocks().capacity_bytes() / SCAN_CACHE_PART) as usize;
        let usual_grown_bytes = part.clamp(SCAN_CHUNK_BYTES_MIN, SCAN_CHUNK_BYTES_MAX);
        Ok(Self {
            reading,
            file,
            memory: Arc::clone(&list.store().metrics.memory),
            chunk: None,
            chunk_bytes_max,
            singles: 0,
            grown_bytes: usual_grown_bytes,
            usual_grown_bytes,
            caching: Caching::default(),
            loaded: 0..0,
            chunk_offset: 0,
            fetched_end: 0,
        })
    }

    /// Whether a user walks, rather than a job or a check.
    pub(super) fn is_scan(&self) -> bool {
        matches!(self.reading, Reading::Scan)
    }

    /// A scan goes elsewhere, at this pace.
    pub(super) fn begin(&mut self, pace: Pace) {
        if self.is_scan() {
            self.singles = pace.singles;
            self.caching = pace.caching;
            self.grown_bytes = match self.singles {
                STEADY => pace.piece_bytes.clamp(SCAN_CHUNK_BYTES_MIN, STEP_BYTES),
                _ => self.usual_grown_bytes,
            };
            self.chunk_bytes_max = pace.piece_bytes.clamp(SCAN_CHUNK_BYTES_MIN, self.grown_bytes);
        }
    }

    pub(super) fn pace(&self) -> Pace {
        Pace { singles: self.singles, piece_bytes: self.chunk_bytes_max, caching: self.caching }
    }

    /// What becomes of single pages.
    pub(super) fn caching(&self) -> Caching {
        self.caching
    }

    /// Whether it holds a page.
    pub(super) fn holds(&self, number: usize) -> bool {
        self.loaded.contains(&number)
    }

    /// Whether the next page that the cache lacks is read by itself.
    pub(super) fn reads_singles(&self) -> bool {
        self.is_scan()
            && self.singles != STEADY
            && (self.singles < SCAN_SINGLES
                || self.chunk.is_none() && self.memory.exceeds(Owner::Scanning, SCANS_PART))
    }

    /// A page was read by itself.
    pub(super) fn count_single(&mut self) {
        self.singles = self.singles.saturating_add(1);
    }

    /// The bytes of a page. `wanted` are the pages that will be asked for next, in this direction.
    pub(super) fn page(
        &mut self,
        list: &ListFile,
        number: usize,
        wanted: &Pages<usize>,
        direction: Direction,
    ) -> Result<PageBytes<'_>> {
        let body = list.body()?;
        if !self.loaded.contains(&number) {
            self.load(list, body, number, wanted, direction)?;
        }
        let (offset, bytes) = body.index.extent(number);
        debug_assert!(self.loaded.contains(&number) && offset >= self.chunk_offset);
        let start = (offset - self.chunk_offset) as usize;
        let chunk = self.chunk.as_ref().map_or(&[][..], |(chunk, _)| chunk);
        Ok(PageBytes { bytes: &chunk[start..start + bytes], offset, shape: body.footer.shape })
    }

    fn load(
        &mut self,
        list: &ListFile,
        body: &Body,
        number: usize,
        wanted: &Pages<usize>,
        direction: Direction,
    ) -> Result<()> {
        // Whatever happens below, what the chunk held is gone.
        self.loaded = 0..0;
        let loaded = self.choose(body, number, wanted, direction);
        debug_assert!(loaded.contains(&number), "the page that is asked for is read");
        let bytes;
        (self.chunk_offset, bytes) = extent_of(body, &loaded);
        self.chunk.take_if(|(chunk, _)| chunk.len() < bytes);
        let room = bytes.max(self.chunk_bytes_max.min(body.footer.pages_bytes as usize));
        self.fetch(body, bytes, wanted);
        let owner = if self.is_scan() { Owner::Scanning } else { Owner::Merging };
        let (chunk, _) = self
            .chunk
            .get_or_insert_with(|| (AlignedBuf::zeroed(room), self.memory.claim(owner, room as u64)));
        let got = self.file.read_at(self.chunk_offset, &mut chunk[..bytes])?;
        if got < bytes {
            return Err(Error::corruption(
                &list.path(),
                self.chunk_offset + got as u64,
                "the file ends too early",
            ));
        }
        self.announce(body, &loaded, wanted, direction);
        self.loaded = loaded;
        let metrics = &list.store().metrics;
        match self.reading {
            Reading::Job { cause, .. } => metrics.list_bytes_read[cause as usize].add(bytes as u64),
            Reading::Scan => {
                metrics.page_reads.add(1);
                metrics.page_read_bytes.add(bytes as u64);
                if !self.memory.exceeds(Owner::Scanning, 2 * SCANS_PART) {
                    self.chunk_bytes_max = (2 * self.chunk_bytes_max).min(self.grown_bytes);
                }
            }
            Reading::Check => {}
        }
        Ok(())
    }

    /// Has the kernel fetch a job's next chunks, where those are short, and give up those behind it: what is merged
    /// will go, and under a tight limit the cache is better spent on the pages of the log.
    fn fetch(&mut self, body: &Body, bytes: usize, wanted: &Pages<usize>) {
        if !matches!(self.reading, Reading::Job { .. }) || self.chunk_bytes_max >= LONG_CHUNK_BYTES {
            return;
        }
        let (start, end) = (self.chunk_offset, extent_end(body, wanted));
        let (piece, stretch_bytes) =
            (start..start + bytes as u64, FETCHED_CHUNKS * self.chunk_bytes_max as u64);
        let fetched_end = read_ahead(&*self.file, piece, stretch_bytes, self.fetched_end, end);
        let before = std::mem::replace(&mut self.fetched_end, fetched_end);
        // Of what is before its first chunk it has read nothing.
        if before > 0 {
            let asked = (fetched_end - before).min(start);
            self.file.wont_need(start - asked, asked as usize);
        }
    }

    /// Tells the kernel of a scan's next chunk. It may stop anywhere; one that has come so far is likely not to.
    fn announce(&self, body: &Body, loaded: &Pages<usize>, wanted: &Pages<usize>, direction: Direction) {
        let next = match direction {
            Direction::Forward => loaded.end,
            Direction::Backward => loaded.start.wrapping_sub(1),
        };
        if self.is_scan() && self.chunk_bytes_max == self.grown_bytes && wanted.contains(&next) {
            let (offset, bytes) = extent_of(body, &self.choose(body, next, wanted, direction));
            self.file.will_need(offset, bytes);
        }
    }

    /// As many pages from `number` on as fit a chunk; at least one.
    fn choose(
        &self,
        body: &Body,
        number: usize,
        wanted: &Pages<usize>,
        direction: Direction,
    ) -> Pages<usize> {
        let mut chosen = number..number + 1;
        if sometimes!(1 in 8) {
            return chosen;
        }
        let mut bytes = body.index.extent(number).1;
        loop {
            let next = match direction {
                Direction::Forward => chosen.end,
                Direction::Backward => chosen.start.wrapping_sub(1),
            };
            if !wanted.contains(&next) {
                return chosen;
            }
            bytes += body.index.extent(next).1;
            // A block more than the pages themselves may have to be read at either end.
            if bytes + 2 * BLOCK_BYTES > self.chunk_bytes_max {
                return chosen;
            }
            match direction {
                Direction::Forward => chosen.end += 1,
                Direction::Backward => chosen.start -= 1,
            }
        }
    }
}

/// Where the last of these pages ends in the file.
fn extent_end(body: &Body, pages: &Pages<usize>) -> u64 {
    debug_assert!(pages.start < pages.end, "no pages have no end");
    let (last, bytes) = body.index.extent(pages.end - 1);
    last + bytes as u64
}

/// Where these pages lie in the file, in whole blocks: direct I/O wants those, and compressed pages do not end on
/// them.
fn extent_of(body: &Body, pages: &Pages<usize>) -> (u64, usize) {
    let block = BLOCK_BYTES as u64;
    let start = body.index.extent(pages.start).0 / block * block;
    (start, (extent_end(body, pages).next_multiple_of(block) - start) as usize)
}
