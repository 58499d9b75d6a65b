//! Walking the records of a list inside a range, in either direction, reading many pages at a time.

use std::ops::Range as Pages;
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Error, Range, Record, Result};
use forebay_env::{Access, AlignedBuf, File};

use super::file::{Body, ListFile};
use super::page::Page;
use crate::metrics::Cause;

/// Who reads, and how much at a time.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// Background work: direct I/O in long reads.
    Job {
        /// What the bytes are counted as.
        cause: Cause,
        /// Bytes of one read.
        chunk_bytes: usize,
    },
    /// A user's scan: short reads through the kernel's cache.
    Scan,
}

const SCAN_CHUNK_BYTES: usize = 32 << 10;

/// A walk over part of a list.
pub struct ListCursor {
    list: Arc<ListFile>,
    reading: Reading,
    file: Arc<dyn File>,
    range: Range,
    direction: Direction,
    /// Pages still to be read.
    pages: Pages<usize>,
    chunk: AlignedBuf,
    chunk_bytes_max: usize,
    /// The pages in the chunk, and the chunk's place in the file.
    loaded: Pages<usize>,
    chunk_offset: u64,
    page: Page,
    at: usize,
    prefix: Option<u64>,
}

impl ListCursor {
    /// Starts at the first record of the range in the given direction.
    pub fn new(list: &Arc<ListFile>, range: &Range, direction: Direction, reading: Reading) -> Result<Self> {
        let body = list.body()?;
        let (file, chunk_bytes_max) = match reading {
            Reading::Job { chunk_bytes, .. } => {
                (list.store().fs.open_read(list.path(), Access::Direct)?, chunk_bytes.max(BLOCK_BYTES))
            }
            Reading::Scan => (Arc::clone(&body.file), SCAN_CHUNK_BYTES),
        };
        let mut cursor = Self {
            list: Arc::clone(list),
            reading,
            file,
            pages: body.index.pages_of(range),
            range: range.clone(),
            direction,
            chunk: AlignedBuf::zeroed(0),
            chunk_bytes_max,
            loaded: 0..0,
            chunk_offset: 0,
            page: Page::default(),
            at: 0,
            prefix: None,
        };
        cursor.enter_next_page()?;
        cursor.settle()?;
        Ok(cursor)
    }

    /// Stands on the first record of the next page that has one inside the range, or past the end.
    fn enter_next_page(&mut self) -> Result<()> {
        let order = self.list.store().options.order;
        while !self.pages.is_empty() {
            let number = match self.direction {
                Direction::Forward => self.pages.start,
                Direction::Backward => self.pages.end - 1,
            };
            self.load(number)?;
            match self.direction {
                Direction::Forward => {
                    self.pages.start += 1;
                    let low = &self.range.low;
                    self.at = self.page.lower_bound(order, |prefix, key| low.place(prefix, key));
                    if self.at < self.page.len() {
                        return Ok(());
                    }
                }
                Direction::Backward => {
                    self.pages.end -= 1;
                    let end = self.range.high.as_ref().map_or(self.page.len(), |high| {
                        self.page.lower_bound(order, |prefix, key| high.place(prefix, key))
                    });
                    if end > 0 {
                        self.at = end - 1;
                        return Ok(());
                    }
                }
            }
        }
        self.at = usize::MAX;
        Ok(())
    }

    /// Takes in one page, from the chunk if it is there.
    fn load(&mut self, number: usize) -> Result<()> {
        if !self.loaded.contains(&number) {
            self.load_chunk(number)?;
        }
        let body = self.list.body()?;
        let (offset, bytes) = body.index.extent(number);
        let start = (offset - self.chunk_offset) as usize;
        self.page
            .read(&self.chunk[start..start + bytes], self.list.meta().id, offset, body.footer.shape)
            .map_err(|reason| Error::corruption(self.list.path(), offset, reason))
    }

    fn load_chunk(&mut self, number: usize) -> Result<()> {
        let list = Arc::clone(&self.list);
        let body = list.body()?;
        self.loaded = self.pages_of_chunk(body, number);
        let (start, _) = body.index.extent(self.loaded.start);
        let (last, last_bytes) = body.index.extent(self.loaded.end - 1);
        // Direct I/O wants whole blocks; compressed pages do not end on them.
        let block = BLOCK_BYTES as u64;
        self.chunk_offset = start / block * block;
        let bytes = ((last + last_bytes as u64).next_multiple_of(block) - self.chunk_offset) as usize;
        if self.chunk.len() < bytes {
            self.chunk = AlignedBuf::zeroed(bytes.max(self.chunk_bytes_max.min(body.footer.pages_bytes as usize)));
        }
        let wanted = &mut self.chunk[..bytes];
        let got = self.file.read_at(self.chunk_offset, wanted)?;
        if got < bytes {
            return Err(Error::corruption(list.path(), self.chunk_offset + got as u64, "the file ends too early"));
        }
        match self.reading {
            Reading::Job { cause, .. } => list.store().metrics.list_bytes_read[cause as usize].add(bytes as u64),
            Reading::Scan => {
                list.store().metrics.page_reads.add(1);
                list.store().metrics.page_read_bytes.add(bytes as u64);
            }
        }
        Ok(())
    }

    /// As many pages from `number` on, in the walk's direction, as fit a chunk; at least one.
    fn pages_of_chunk(&self, body: &Body, number: usize) -> Pages<usize> {
        let mut chosen = number..number + 1;
        let mut bytes = body.index.extent(number).1;
        loop {
            let next = match self.direction {
                Direction::Forward => chosen.end,
                Direction::Backward => chosen.start.wrapping_sub(1),
            };
            if !self.pages.contains(&next) {
                return chosen;
            }
            bytes += body.index.extent(next).1;
            // A block more than the pages themselves may have to be read at either end.
            if bytes + 2 * BLOCK_BYTES > self.chunk_bytes_max {
                return chosen;
            }
            match self.direction {
                Direction::Forward => chosen.end += 1,
                Direction::Backward => chosen.start -= 1,
            }
        }
    }

    /// Computes the prefix here; `None` once the walk has left the range.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        if self.at == usize::MAX {
            self.prefix = None;
            return Ok(());
        }
        let prefix = self.page.prefix(self.at, self.list.store().options.order);
        let key = self.page.record(self.at).key;
        let inside = match self.direction {
            Direction::Forward => self.range.is_below_high(prefix, key),
            Direction::Backward => self.range.low.place(prefix, key).is_ge(),
        };
        self.prefix = inside.then_some(prefix);
        Ok(())
    }
}

impl Cursor for ListCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.page.record(self.at)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let more = match self.direction {
            Direction::Forward => self.at + 1 < self.page.len(),
            Direction::Backward => self.at > 0,
        };
        if !more {
            self.enter_next_page()?;
        } else if self.direction == Direction::Forward {
            self.at += 1;
        } else {
            self.at -= 1;
        }
        self.settle()
    }
}
