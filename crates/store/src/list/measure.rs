//! Where something lies in a list, from its filter and page search in memory: for walks, which pages a range
//! is in; for planning, where a list's middle is, and how much of it lies on one side of a bound.

use forebay_base::{Bound, Range, Result};

use super::chunks::Reading;
use super::file::{Body, ListFile};
use super::index::Starts;

impl Body {
    /// The pages that can hold records of the range.
    pub(super) fn pages_of(&self, range: &Range) -> std::ops::Range<usize> {
        let start = self.first_page(range.low.prefix, &range.low.key);
        let end =
            range.high.as_ref().map_or(self.index.pages(), |high| self.end_page(high.prefix, &high.key));
        start..end.max(start)
    }

    /// The first page that can hold records at a place or behind it.
    pub(super) fn first_page(&self, prefix: u64, key: &[u8]) -> usize {
        if prefix > self.index.last_prefix() {
            return self.index.pages();
        }
        match (self.index.starts(), self.ranks()) {
            (Starts::Prefixes(prefixes), _) => prefixes.find(prefix, key).unwrap_or(0),
            (_, Some(ranks)) => {
                let last = ranks.keys().saturating_sub(1);
                self.index.page_of(ranks.around(prefix).start.min(last)).0
            }
            // Pages are found by rank only where there are ranks: the writer and `ListFile::open` see to it.
            _ => 0,
        }
    }

    /// Where the pages end that can hold records before a place.
    pub(super) fn end_page(&self, prefix: u64, key: &[u8]) -> usize {
        match (self.index.starts(), self.ranks()) {
            (Starts::Prefixes(prefixes), _) => prefixes.pages_before(prefix, key),
            (_, Some(ranks)) => {
                let last = ranks.around(prefix).end.checked_sub(1);
                last.map_or(0, |rank| self.index.page_of(rank).0 + 1)
            }
            _ => self.index.pages(),
        }
    }

    /// A bound at which a page begins or, by a record or two, before.
    fn page_bound(&self, page: usize) -> Option<Bound> {
        match (self.index.starts(), self.ranks()) {
            (Starts::Prefixes(prefixes), _) => Some(prefixes.bound(page)),
            (_, ranks) => Some(Bound::at_prefix(ranks?.slot_start(self.index.first_rank(page))?)),
        }
    }

    /// About where in the list a bound lies, from 0.0 to 1.0.
    fn place(&self, at: &Bound, uniform: bool) -> f64 {
        let index = &self.index;
        let prefixes = match (index.starts(), self.ranks()) {
            (Starts::Prefixes(prefixes), _) => prefixes,
            (_, Some(ranks)) => {
                let around = ranks.around(at.prefix);
                return (around.start as f64 + around.end as f64) / 2.0 / ranks.keys() as f64;
            }
            _ => return 0.5,
        };
        let Some(page) = prefixes.find(at.prefix, &at.key) else { return 0.0 };
        let first = prefixes.bound(page);
        let next =
            if page + 1 < index.pages() { prefixes.bound(page + 1).prefix } else { index.last_prefix() };
        let inside = match uniform {
            true if next > first.prefix => {
                (at.prefix - first.prefix.min(at.prefix)) as f64 / (next - first.prefix) as f64
            }
            _ if first == *at => 0.0,
            _ => 0.5,
        };
        debug_assert!(inside >= 0.0 && page < index.pages());
        (page as f64 + inside.min(1.0)) / index.pages() as f64
    }
}

impl ListFile {
    /// The pages that whoever reads so reads of a range: a scan passes over a list whose filter denies the key prefix that
    /// all keys of the range have.
    pub(super) fn pages_read(&self, range: &Range, reading: Reading) -> Result<std::ops::Range<usize>> {
        let body = self.body()?;
        let asked = match reading {
            Reading::Scan => {
                body.filter().and_then(|filter| Some((filter, filter.prefixes()?.hash_in(range)?)))
            }
            Reading::Job { .. } | Reading::Check => None,
        };
        let Some((filter, hash)) = asked else { return Ok(body.pages_of(range)) };
        let metrics = &self.store().metrics;
        metrics.filter_probes.add(1);
        if filter.may_contain(hash) {
            return Ok(body.pages_of(range));
        }
        metrics.prefix_denials.add(1);
        Ok(0..0)
    }

    /// Prefixes that none of its records is below, and none is above; `None` where it cannot be opened.
    pub fn prefixes(&self) -> Option<(u64, u64)> {
        let body = self.body().ok()?;
        Some((body.index.first_prefix(), body.index.last_prefix()))
    }

    /// The page boundary nearest to the middle of what it holds inside `range`, if there is one strictly
    /// inside.
    pub fn middle(&self, range: &Range) -> Option<Bound> {
        let body = self.body().ok()?;
        let pages = body.pages_of(range);
        if pages.len() < 2 {
            return None;
        }
        body.page_bound(pages.start + pages.len() / 2).filter(|bound| range.can_split_at(bound))
    }

    /// The share of its records inside `range` that lie below `at`, by rank, or by pages and inside one by the
    /// prefix's place. 0.0 and 1.0 are certain.
    pub fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let Ok(body) = self.body() else { return 0.5 };
        if at.prefix <= body.index.first_prefix() && at.key.is_empty() {
            return 0.0;
        }
        if at.prefix > body.index.last_prefix() {
            return 1.0;
        }
        let place = |bound: &Bound| body.place(bound, self.store().options.order.is_uniform());
        let low = place(&range.low);
        let high = range.high.as_ref().map_or(1.0, place);
        if high <= low {
            return 0.5;
        }
        ((place(at) - low) / (high - low)).clamp(0.001, 0.999)
    }

    /// The share of its records inside `whole` that lie inside `part`, which is a part of that: by pages, and inside a
    /// page by where prefixes lie between those that it begins and ends with.
    pub fn share_inside(&self, whole: &Range, part: &Range) -> f64 {
        let Some(body) = self.ready() else { return 0.5 };
        let place = |bound: &Bound| {
            if bound.prefix > body.index.last_prefix() { 1.0 } else { body.place(bound, true) }
        };
        let end = |range: &Range| range.high.as_ref().map_or(1.0, place);
        let (low, high) = (place(&whole.low), end(whole));
        if high <= low {
            return 0.5;
        }
        ((end(part) - place(&part.low)) / (high - low)).clamp(0.0, 1.0)
    }
}
