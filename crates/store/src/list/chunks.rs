//! Reading a list's pages many at a time, in either direction.

use std::ops::Range as Pages;
use std::sync::Arc;

use forebay_base::limits::{BLOCK_BYTES, STEP_BYTES};
use forebay_base::merge::Direction;
use forebay_base::record::Shape;
use forebay_base::{Error, Result};
use forebay_env::{Access, AlignedBuf, File};

use super::file::{Body, ListFile};
use crate::metrics::Cause;

/// Who reads, and how much at a time.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// Background work: direct I/O in long reads. Where memory is too short for those, through the kernel's
    /// cache, which fetches the next chunk meanwhile.
    Job {
        /// What the bytes are counted as.
        cause: Cause,
        /// Bytes of one read.
        chunk_bytes: usize,
    },
    /// A user's scan: short reads through the kernel's cache.
    Scan,
    /// A check of the whole file: direct I/O in long reads, not counted.
    Check,
}

const SCAN_CHUNK_BYTES: usize = 32 << 10;
/// From this size on the device takes longer to transfer a chunk than to find it.
const LONG_CHUNK_BYTES: usize = 256 << 10;

/// A window of whole pages over a list file.
pub(super) struct Chunks {
    reading: Reading,
    file: Arc<dyn File>,
    chunk: AlignedBuf,
    chunk_bytes_max: usize,
    /// The pages in the chunk, and the chunk's place in the file.
    loaded: Pages<usize>,
    chunk_offset: u64,
}

/// A page as it stands in the file.
pub(super) struct PageBytes<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) shape: Shape,
}

impl Chunks {
    pub(super) fn new(list: &ListFile, reading: Reading) -> Result<Self> {
        let body = list.body()?;
        let direct = || list.store().fs.open_read(list.path(), Access::Direct);
        let (file, chunk_bytes_max) = match reading {
            Reading::Job { chunk_bytes, .. } => {
                let file = if chunk_bytes < LONG_CHUNK_BYTES { Arc::clone(&body.file) } else { direct()? };
                (file, chunk_bytes.max(BLOCK_BYTES))
            }
            Reading::Scan => (Arc::clone(&body.file), SCAN_CHUNK_BYTES),
            Reading::Check => (direct()?, STEP_BYTES),
        };
        let chunk = AlignedBuf::zeroed(0);
        Ok(Self { reading, file, chunk, chunk_bytes_max, loaded: 0..0, chunk_offset: 0 })
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
        let start = (offset - self.chunk_offset) as usize;
        Ok(PageBytes { bytes: &self.chunk[start..start + bytes], offset, shape: body.footer.shape })
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
        let bytes;
        (self.chunk_offset, bytes) = extent_of(body, &loaded);
        if self.chunk.len() < bytes {
            self.chunk =
                AlignedBuf::zeroed(bytes.max(self.chunk_bytes_max.min(body.footer.pages_bytes as usize)));
        }
        let got = self.file.read_at(self.chunk_offset, &mut self.chunk[..bytes])?;
        if got < bytes {
            return Err(Error::corruption(
                list.path(),
                self.chunk_offset + got as u64,
                "the file ends too early",
            ));
        }
        if matches!(self.reading, Reading::Job { .. }) && self.chunk_bytes_max < LONG_CHUNK_BYTES {
            // A job reads on to the end, forward; a scan may stop anywhere.
            if wanted.contains(&loaded.end) {
                let next = self.choose(body, loaded.end, wanted, Direction::Forward);
                let (offset, bytes) = extent_of(body, &next);
                self.file.will_need(offset, bytes);
            }
            // What is merged will go; under a tight limit the cache is better spent on the pages of the log.
            self.file.wont_need(self.chunk_offset, bytes);
        }
        self.loaded = loaded;
        let metrics = &list.store().metrics;
        match self.reading {
            Reading::Job { cause, .. } => metrics.list_bytes_read[cause as usize].add(bytes as u64),
            Reading::Scan => {
                metrics.page_reads.add(1);
                metrics.page_read_bytes.add(bytes as u64);
            }
            Reading::Check => {}
        }
        Ok(())
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

/// Where these pages lie in the file, in whole blocks: direct I/O wants those, and compressed pages do not end on
/// them.
fn extent_of(body: &Body, pages: &Pages<usize>) -> (u64, usize) {
    let block = BLOCK_BYTES as u64;
    let start = body.index.extent(pages.start).0 / block * block;
    let (last, last_bytes) = body.index.extent(pages.end - 1);
    (start, ((last + last_bytes as u64).next_multiple_of(block) - start) as usize)
}
