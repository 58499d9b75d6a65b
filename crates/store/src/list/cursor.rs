//! Walking the records of a list inside a range, in either direction, from wherever one asks for.
//!
//! **Invariant:** what the cursor stands on lies inside the range, and where it lies is worked out once.

use std::ops::Range as Span;
use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction};
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Error, Kind, Order, Range, Record, Result};
use smallvec::SmallVec;

use super::chunks::{Chunks, Pace, Reading};
use super::fetch::fetch;
use super::file::ListFile;
use super::page::{Page, Spot};
use crate::cache::Cached;
use crate::salvage::Gaps;

/// A walk over part of a list.
pub struct ListCursor {
    list: Arc<ListFile>,
    order: Order,
    chunks: Chunks,
    range: Range,
    /// The pages that can hold records of the range.
    pages: Span<usize>,
    direction: Direction,
    /// Those that are still to be read.
    left: Span<usize>,
    page: Arc<Page>,
    /// Which page that is.
    number: Option<usize>,
    /// Its records inside the range.
    inside: Span<usize>,
    at: usize,
    spot: Spot,
    prefix: Option<u64>,
    /// Where damaged pages are noted that are passed over.
    gaps: Option<Arc<Gaps>>,
}

impl ListCursor {
    /// A walk over the records of the range. A job's stands on the first of them; a scan's has read nothing and stands
    /// nowhere until it is [sought](Self::seek_all).
    pub fn new(list: &Arc<ListFile>, range: &Range, direction: Direction, reading: Reading) -> Result<Self> {
        Self::noting(list, range, direction, reading, None)
    }

    /// The same, but that damaged pages are noted and passed over.
    pub fn passing_over(
        list: &Arc<ListFile>,
        range: &Range,
        direction: Direction,
        reading: Reading,
        gaps: &Arc<Gaps>,
    ) -> Result<Self> {
        Self::noting(list, range, direction, reading, Some(Arc::clone(gaps)))
    }

    fn noting(
        list: &Arc<ListFile>,
        range: &Range,
        direction: Direction,
        reading: Reading,
        gaps: Option<Arc<Gaps>>,
    ) -> Result<Self> {
        let pages = list.pages_read(range, reading)?;
        let mut cursor = Self {
            list: Arc::clone(list),
            order: list.store().options.order,
            chunks: Chunks::new(list, reading)?,
            range: range.clone(),
            left: pages.clone(),
            pages,
            direction,
            page: Arc::default(),
            number: None,
            inside: 0..0,
            at: 0,
            spot: Spot::NONE,
            prefix: None,
            gaps,
        };
        if !matches!(reading, Reading::Scan) {
            cursor.enter_next_page(None)?;
        }
        Ok(cursor)
    }

    /// Sends cursors to the first record at or behind a place, given by prefix and key (forward), or to the last one
    /// before it (backward); without a place, to the first or last of the range. Device reads: a page of each list, all
    /// at once, or none where the cache has it or nothing lies there; where a place falls between two pages of a list,
    /// both. At another pace than the first longer pieces are read, one by one.
    pub fn seek_all<'c>(
        cursors: impl Iterator<Item = &'c mut Self>,
        place: Option<(u64, &[u8])>,
        direction: Direction,
        pace: Pace,
    ) -> Result<()> {
        let mut ready: SmallVec<[&mut Self; 8]> = SmallVec::new();
        let mut waiting: SmallVec<[(&mut Self, usize); 8]> = SmallVec::new();
        for cursor in cursors {
            cursor.chunks.begin(pace);
            cursor.set_out(place, direction)?;
            match cursor.next_number() {
                Some(number)
                    if cursor.chunks.reads_singles()
                        && cursor.list.store().salvage.is_none()
                        && !cursor.has_at_hand(number) =>
                {
                    waiting.push((cursor, number));
                }
                // No list waits for memory that another one needs.
                _ => ready.push(cursor),
            }
        }
        ready.into_iter().try_for_each(|cursor| cursor.enter_next_page(place))?;
        if waiting.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = waiting.iter().map(|(cursor, number)| (&*cursor.list, *number)).collect();
        let pages = fetch(&wanted, pace.cached())?;
        debug_assert_eq!(pages.len(), wanted.len(), "each gets its page");
        for ((cursor, number), page) in waiting.into_iter().zip(pages) {
            cursor.chunks.count_single();
            cursor.take(number, page);
            cursor.enter_next_page(place)?;
        }
        Ok(())
    }

    /// What it takes, with the page that it stands on.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.page.memory_bytes()
    }

    /// What the record here does.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.spot.kind()
    }

    /// The sizes that the list's records have in common.
    pub fn shape(&self) -> Shape {
        self.list.shape()
    }

    /// How it has come to read by now.
    pub fn pace(&self) -> Pace {
        self.chunks.pace()
    }

    /// Finds the pages from the place on, and stands nowhere yet.
    fn set_out(&mut self, place: Option<(u64, &[u8])>, direction: Direction) -> Result<()> {
        self.prefix = None;
        self.direction = direction;
        self.left = self.pages.clone();
        let Some((prefix, key)) = place else { return Ok(()) };
        let (body, Span { start, end }) = (self.list.body()?, self.pages.clone());
        match direction {
            Direction::Forward => self.left.start = body.first_page(prefix, key).clamp(start, end),
            Direction::Backward => self.left.end = body.end_page(prefix, key).clamp(start, end),
        }
        Ok(())
    }

    /// The page that comes next.
    fn next_number(&self) -> Option<usize> {
        match self.direction {
            _ if self.left.is_empty() => None,
            Direction::Forward => Some(self.left.start),
            Direction::Backward => Some(self.left.end - 1),
        }
    }

    /// Stands on the first record of the next page that has one inside the range, and on the right side of a place, or
    /// nowhere.
    #[inline(never)]
    fn enter_next_page(&mut self, place: Option<(u64, &[u8])>) -> Result<()> {
        while let Some(number) = self.next_number() {
            match self.load(number).or_else(|error| self.load_alone(number, error)) {
                Err(error) if self.passes_over(number, &error) => {
                    match self.direction {
                        Direction::Forward => self.left.start += 1,
                        Direction::Backward => self.left.end -= 1,
                    }
                    continue;
                }
                loaded => loaded?,
            }
            self.inside = self.records_inside();
            let Span { start, end } = self.inside;
            let split =
                place.map(|place| self.page.lower_bound(self.order, |prefix, key| (prefix, key).cmp(&place)));
            match self.direction {
                Direction::Forward => {
                    self.left.start += 1;
                    if end < self.page.len() {
                        // What follows is behind the range.
                        self.left.end = self.left.start;
                    }
                    let first = split.unwrap_or(start).max(start);
                    if first < end {
                        self.stand_on(first);
                        return Ok(());
                    }
                }
                Direction::Backward => {
                    self.left.end -= 1;
                    let end = split.unwrap_or(end).min(end);
                    if start < end {
                        self.stand_on(end - 1);
                        return Ok(());
                    }
                }
            }
        }
        self.prefix = None;
        Ok(())
    }

    /// Takes in a page: where a scan begins through the cache, as a lookup does; others out of longer reads.
    fn load(&mut self, number: usize) -> Result<()> {
        if self.number == Some(number) {
            return Ok(());
        }
        if self.list.store().salvage.is_some() {
            // Page by page, or one that is damaged would take others with it.
            let page = self.list.page(number, self.chunks.caching())?;
            self.take(number, page);
            return Ok(());
        }
        if !self.chunks.holds(number) {
            if self.take_cached(number) {
                return Ok(());
            }
            if self.chunks.reads_singles() {
                let page = self.list.page(number, self.chunks.caching())?;
                self.chunks.count_single();
                self.take(number, page);
                return Ok(());
            }
        }
        // Whatever happens below, what the page held is gone.
        self.number = None;
        let bytes = self.chunks.page(&self.list, number, &self.left, self.direction)?;
        Page::own(&mut self.page)?
            .read(bytes.bytes, self.list.meta().id, bytes.offset, bytes.shape)
            .map_err(|reason| Error::corruption(&self.list.path(), bytes.offset, reason))?;
        self.number = Some(number);
        Ok(())
    }

    /// Reads a page once more that is to be passed over if it is damaged: it must be so where it lies.
    fn load_alone(&mut self, number: usize, error: Error) -> Result<()> {
        if self.gaps.is_none() || !error.is_corruption() {
            return Err(error);
        }
        let page = self.list.page(number, self.chunks.caching())?;
        self.take(number, page);
        Ok(())
    }

    /// Notes a page that cannot be read; `false` where that must not be passed over.
    fn passes_over(&self, number: usize, error: &Error) -> bool {
        match self.gaps.as_ref().filter(|_| error.is_corruption()) {
            Some(gaps) => gaps.pass_over(&self.list.path(), error, self.list.keys_of(number)),
            None => self.list.passes_over(number, error),
        }
    }

    /// Whether nothing has to be read for a page: it is here, or the chunk has it, or the cache.
    fn has_at_hand(&mut self, number: usize) -> bool {
        self.number == Some(number) || self.chunks.holds(number) || self.take_cached(number)
    }

    /// Takes in a scan's page if the cache has it; says so.
    fn take_cached(&mut self, number: usize) -> bool {
        let cached = if self.chunks.is_scan() { self.list.cached(number) } else { None };
        let Some(page) = cached else { return false };
        self.list.store().metrics.cache_hits.add(1);
        self.take(number, page);
        true
    }

    fn take(&mut self, number: usize, page: Arc<Page>) {
        self.page = page;
        self.page.prefetch_ends();
        self.number = Some(number);
    }

    /// The page's records inside the range.
    fn records_inside(&self) -> Span<usize> {
        let (page, order) = (&self.page, self.order);
        let Some(last) = page.len().checked_sub(1) else { return 0..0 };
        let is_before = |record: usize, bound: &Bound| {
            let key = page.record(record).key;
            bound.place(order.prefix(key), key).is_lt()
        };
        let split = |bound: &Bound| page.lower_bound(order, |prefix, key| bound.place(prefix, key));
        let low = &self.range.low;
        let start = if is_before(0, low) { split(low) } else { 0 };
        let end = match &self.range.high {
            Some(high) if !is_before(last, high) => split(high),
            _ => page.len(),
        };
        debug_assert!(start.max(end) <= page.len());
        start..end.max(start)
    }

    #[inline]
    fn stand_on(&mut self, at: usize) {
        debug_assert!(self.inside.contains(&at), "the cursor stands inside its range");
        self.at = at;
        self.spot = self.page.spot(at);
        self.prefix = Some(self.order.prefix(self.page.record_at(&self.spot).key));
    }
}

impl Cursor for ListCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.page.record_at(&self.spot)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let next = match self.direction {
            Direction::Forward => self.at + 1,
            Direction::Backward => self.at.wrapping_sub(1),
        };
        if !self.inside.contains(&next) {
            return self.enter_next_page(None);
        }
        self.stand_on(next);
        Ok(())
    }

    fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
        while self.prefix.is_some_and(|prefix| prefix <= high) {
            let run = match self.direction {
                Direction::Forward if block.record_bytes().is_some() => {
                    self.page.run(self.at, self.inside.end)
                }
                _ => None,
            };
            match run {
                // The last one of them is left to `advance`.
                Some(run) => self.at += block.extend_up_to(self.order, run, high) - 1,
                None => block.push(self.order.prefix(self.record().key), &self.record()),
            }
            self.advance()?;
        }
        Ok(())
    }
}
