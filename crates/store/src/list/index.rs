//! The page search of a list: the first prefix of every page, in memory (the paper's first-hash-index,
//! section 3.4.2). Where a page begins inside a run of equal prefixes, a shortest separating key is kept
//! beside it, so that one lookup always leads to exactly one page.

use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Bound, Range};

/// Page offsets are kept in units of this many bytes.
pub(crate) const OFFSET_UNIT_BYTES: u64 = 64;

/// Where the pages of a list begin, in records and in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageIndex {
    first_prefixes: Vec<u64>,
    /// Page offsets in units, and the end of the last page; empty when every page has 4 KiB.
    offsets: Vec<u32>,
    /// Pages that begin inside a run of equal prefixes, ascending, and the end of each one's key in `tie_keys`.
    ties: Vec<(u32, u32)>,
    tie_keys: Vec<u8>,
    last_prefix: u64,
    regular_page_bytes: u64,
}

impl PageIndex {
    pub(crate) fn new(regular_page_bytes: u64) -> Self {
        Self { regular_page_bytes, ..Self::default() }
    }

    /// Notes the next page: where it begins, and in bytes where it lies.
    pub(crate) fn push(&mut self, first: &Bound, offset: u64, page_bytes: u64) {
        let page = self.first_prefixes.len();
        if !first.key.is_empty() {
            self.tie_keys.extend_from_slice(&first.key);
            self.ties.push((page as u32, self.tie_keys.len() as u32));
        }
        self.first_prefixes.push(first.prefix);
        if self.offsets.is_empty() && page_bytes != self.regular_page_bytes {
            self.offsets =
                (0..=page as u64).map(|i| (i * self.regular_page_bytes / OFFSET_UNIT_BYTES) as u32).collect();
        }
        if !self.offsets.is_empty() {
            self.offsets.push(((offset + page_bytes) / OFFSET_UNIT_BYTES) as u32);
        }
    }

    pub(crate) fn finish(&mut self, last_prefix: u64) {
        self.last_prefix = last_prefix;
        self.first_prefixes.shrink_to_fit();
        self.offsets.shrink_to_fit();
    }

    pub(crate) fn pages(&self) -> usize {
        self.first_prefixes.len()
    }

    pub(crate) fn last_prefix(&self) -> u64 {
        self.last_prefix
    }

    pub(crate) fn first_prefix(&self) -> u64 {
        self.first_prefixes.first().copied().unwrap_or(0)
    }

    /// Where a page lies: its offset and length in bytes.
    pub(crate) fn extent(&self, page: usize) -> (u64, usize) {
        match self.offsets.get(page..page + 2) {
            Some(&[start, end]) => {
                let start = start as u64 * OFFSET_UNIT_BYTES;
                (start, (end as u64 * OFFSET_UNIT_BYTES - start) as usize)
            }
            _ => (page as u64 * self.regular_page_bytes, self.regular_page_bytes as usize),
        }
    }

    /// The bound at which a page begins.
    pub(crate) fn bound(&self, page: usize) -> Bound {
        Bound { prefix: self.first_prefixes[page], key: self.tie_key(page).into() }
    }

    fn tie_key(&self, page: usize) -> &[u8] {
        match self.ties.binary_search_by_key(&(page as u32), |tie| tie.0) {
            Ok(tie) => {
                let start = if tie == 0 { 0 } else { self.ties[tie - 1].1 };
                &self.tie_keys[start as usize..self.ties[tie].1 as usize]
            }
            Err(_) => &[],
        }
    }

    /// The one page that can hold the record, or `None` when it would stand before the first.
    pub(crate) fn find(&self, prefix: u64, key: &[u8]) -> Option<usize> {
        let below = self.first_prefixes.partition_point(|&first| first < prefix);
        let mut end = below;
        // Pages that begin with this very prefix: few in hash order, many where keys share eight bytes.
        let equal = self.first_prefixes[below..].partition_point(|&first| first == prefix);
        let (mut low, mut high) = (below, below + equal);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.tie_key(middle) <= key {
                low = middle + 1;
                end = low;
            } else {
                high = middle;
            }
        }
        end.checked_sub(1)
    }

    /// The pages that can hold records of the range.
    pub(crate) fn pages_of(&self, range: &Range) -> std::ops::Range<usize> {
        let start = self.find(range.low.prefix, &range.low.key).unwrap_or(0);
        let end = range.high.as_ref().map_or(self.pages(), |high| {
            self.find(high.prefix, &high.key)
                .map_or(0, |page| if self.bound(page) == *high { page } else { page + 1 })
        });
        start..end.max(start)
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        8 * self.first_prefixes.capacity()
            + 4 * self.offsets.capacity()
            + 8 * self.ties.capacity()
            + self.tie_keys.capacity()
    }

    /// Memory that the search of so many pages of this length will hold, in bytes.
    pub(crate) fn memory_bytes_of(pages: u64, page_bytes: u64, regular_page_bytes: u64) -> u64 {
        if page_bytes == regular_page_bytes { 8 * pages } else { 12 * pages + 4 }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.regular_page_bytes);
        out.extend_from_slice(&self.last_prefix.to_le_bytes());
        put_varint(out, self.first_prefixes.len() as u64);
        self.first_prefixes.iter().for_each(|first| out.extend_from_slice(&first.to_le_bytes()));
        put_varint(out, self.offsets.len() as u64);
        self.offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
        put_varint(out, self.ties.len() as u64);
        for &(page, end) in &self.ties {
            put_varint(out, page as u64);
            put_varint(out, end as u64);
        }
        put_bytes(out, &self.tie_keys);
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let regular_page_bytes = from.varint()?;
        let last_prefix = from.u64()?;
        let pages = usize::try_from(from.varint()?).ok()?;
        let firsts = from.take(pages.checked_mul(8)?)?;
        let first_prefixes = firsts.chunks_exact(8).map(|word| forebay_base::wire::u64_at(word, 0)).collect();
        let count = usize::try_from(from.varint()?).ok()?;
        let words = from.take(count.checked_mul(4)?)?;
        let offsets: Vec<u32> =
            words.chunks_exact(4).map(|word| forebay_base::wire::u32_at(word, 0)).collect();
        let mut ties = Vec::new();
        for _ in 0..from.varint()? {
            ties.push((u32::try_from(from.varint()?).ok()?, u32::try_from(from.varint()?).ok()?));
        }
        let tie_keys = from.bytes()?.to_vec();
        let sane = (offsets.is_empty() || offsets.len() == pages + 1)
            && offsets.is_sorted()
            && ties.is_sorted()
            && ties.last().is_none_or(|tie| tie.0 < pages as u32 && tie.1 as usize == tie_keys.len())
            && ties.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        sane.then_some(Self { first_prefixes, offsets, ties, tie_keys, last_prefix, regular_page_bytes })
    }
}
