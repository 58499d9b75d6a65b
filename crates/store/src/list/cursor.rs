//! Walking the records of a list inside a range, in either direction.

use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Block, Error, Range, Record, Result};

use super::chunks::{Chunks, Reading};
use super::file::ListFile;
use super::page::Page;

/// A walk over part of a list.
pub struct ListCursor {
    list: Arc<ListFile>,
    chunks: Chunks,
    range: Range,
    direction: Direction,
    /// Pages still to be read.
    pages: std::ops::Range<usize>,
    page: Page,
    at: usize,
    prefix: Option<u64>,
}

impl ListCursor {
    /// Starts at the first record of the range in the given direction.
    pub fn new(list: &Arc<ListFile>, range: &Range, direction: Direction, reading: Reading) -> Result<Self> {
        let mut cursor = Self {
            list: Arc::clone(list),
            chunks: Chunks::new(list, reading)?,
            pages: list.body()?.pages_of(range),
            range: range.clone(),
            direction,
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

    /// Takes in one page.
    fn load(&mut self, number: usize) -> Result<()> {
        let bytes = self.chunks.page(&self.list, number, &self.pages, self.direction)?;
        self.page
            .read(bytes.bytes, self.list.meta().id, bytes.offset, bytes.shape)
            .map_err(|reason| Error::corruption(self.list.path(), bytes.offset, reason))
    }

    /// Where the page's records inside the range end, forward.
    fn end_in_page(&self) -> usize {
        let order = self.list.store().options.order;
        let Some(high) = &self.range.high else { return self.page.len() };
        let last = self.page.record(self.page.len() - 1).key;
        match high.place(order.prefix(last), last).is_lt() {
            true => self.page.len(),
            false => self.page.lower_bound(order, |prefix, key| high.place(prefix, key)),
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

    fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
        let order = self.list.store().options.order;
        while self.prefix.is_some_and(|prefix| prefix <= high) {
            let run = match self.direction {
                Direction::Forward if block.record_bytes().is_some() => {
                    self.page.run(self.at, self.end_in_page())
                }
                _ => None,
            };
            match run {
                // The last one of them is left to `advance`.
                Some(run) => self.at += block.extend_up_to(order, run, high) - 1,
                None => block.push(order.prefix(self.record().key), &self.record()),
            }
            self.advance()?;
        }
        Ok(())
    }
}
