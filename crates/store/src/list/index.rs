//! The page search of a list. Where the filter knows the rank of a key, this is how many records each page has.
//! Otherwise it is the first prefix of every page, in memory (the paper's first-hash-index, section 3.4.2), and
//! where a page begins inside a run of equal prefixes a shortest separating key beside it, so that one lookup
//! always leads to exactly one page.

use forebay_base::wire::{Reader, put_bytes, put_varint, u32_at, u64_at};
use forebay_base::{Bound, Order};

use super::page::RECORDS_MAX;

/// Page offsets are kept in units of this many bytes.
pub(crate) const OFFSET_UNIT_BYTES: u64 = 64;

/// Fewer records tell hardly anything by how far they reach.
const FEW: u64 = 64;

/// Where the pages of a list begin, in records and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageIndex {
    starts: Starts,
    pages: usize,
    /// Page offsets in units, and the end of the last page; empty when every page has 4 KiB.
    offsets: Vec<u32>,
    first_prefix: u64,
    last_prefix: u64,
    regular_page_bytes: u64,
}

/// How a page is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// By what it begins with.
    Prefixes(Prefixes),
    /// By rank: every page but the last has this many records.
    Even(u32),
    /// By rank: that of each page's first record.
    Ranks(Vec<u32>),
}

/// What pages begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefixes {
    firsts: Vec<u64>,
    /// Pages that begin inside a run of equal prefixes, ascending, and the end of each one's key in `tie_keys`.
    ties: Vec<(u32, u32)>,
    tie_keys: Vec<u8>,
}

impl Prefixes {
    fn push(&mut self, first: &Bound) {
        if !first.key.is_empty() {
            self.tie_keys.extend_from_slice(&first.key);
            self.ties.push((self.firsts.len() as u32, self.tie_keys.len() as u32));
        }
        self.firsts.push(first.prefix);
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

    /// The bound at which a page begins.
    pub(crate) fn bound(&self, page: usize) -> Bound {
        Bound { prefix: self.firsts[page], key: self.tie_key(page).into() }
    }

    /// The one page that can hold the record, or `None` when it would stand before the first.
    pub(crate) fn find(&self, prefix: u64, key: &[u8]) -> Option<usize> {
        let below = self.firsts.partition_point(|&first| first < prefix);
        let mut end = below;
        // Pages that begin with this very prefix: few in hash order, many where keys share eight bytes.
        let equal = self.firsts[below..].partition_point(|&first| first == prefix);
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

    /// How many pages begin before the place.
    pub(crate) fn pages_before(&self, prefix: u64, key: &[u8]) -> usize {
        self.find(prefix, key).map_or(0, |page| {
            let begins_there = self.firsts[page] == prefix && self.tie_key(page) == key;
            page + usize::from(!begins_there)
        })
    }
}

impl PageIndex {
    /// An empty one.
    pub(crate) fn new(starts: Starts, regular_page_bytes: u64) -> Self {
        Self { starts, pages: 0, offsets: Vec::new(), first_prefix: 0, last_prefix: 0, regular_page_bytes }
    }

    /// Notes the next page: with which record it begins, at which rank that is, and in bytes where it lies.
    pub(crate) fn push(&mut self, first: &Bound, rank: u64, offset: u64, page_bytes: u64) {
        match &mut self.starts {
            Starts::Prefixes(prefixes) => prefixes.push(first),
            Starts::Even(records) => debug_assert_eq!(rank, self.pages as u64 * *records as u64),
            Starts::Ranks(ranks) => {
                debug_assert!(
                    ranks.last().map_or(rank == 0, |&last| u64::from(last) < rank),
                    "no page is empty"
                );
                ranks.push(rank as u32);
            }
        }
        if self.pages == 0 {
            self.first_prefix = first.prefix;
        }
        self.pages += 1;
        if self.offsets.is_empty() && page_bytes != self.regular_page_bytes {
            let before = 0..self.pages as u64;
            self.offsets =
                before.map(|page| (page * self.regular_page_bytes / OFFSET_UNIT_BYTES) as u32).collect();
        }
        if !self.offsets.is_empty() {
            self.offsets.push(((offset + page_bytes) / OFFSET_UNIT_BYTES) as u32);
        }
        debug_assert_eq!(
            self.extent(self.pages - 1),
            (offset, page_bytes as usize),
            "pages are found where they are"
        );
    }

    pub(crate) fn finish(&mut self, last_prefix: u64) {
        self.last_prefix = last_prefix;
        self.offsets.shrink_to_fit();
        match &mut self.starts {
            Starts::Prefixes(prefixes) => prefixes.firsts.shrink_to_fit(),
            Starts::Ranks(ranks) => ranks.shrink_to_fit(),
            Starts::Even(_) => {}
        }
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    pub(crate) fn starts(&self) -> &Starts {
        &self.starts
    }

    pub(crate) fn first_prefix(&self) -> u64 {
        self.first_prefix
    }

    pub(crate) fn last_prefix(&self) -> u64 {
        self.last_prefix
    }

    /// How many keys there would be in all if there were as many at all places as between the first and the last of
    /// these records. Where places are not uniform, or records few: how many those are.
    pub(crate) fn density(&self, order: Order, records: u64) -> f64 {
        let tells = order.is_uniform() && records >= FEW && self.first_prefix < self.last_prefix;
        let reach = self.last_prefix.saturating_sub(self.first_prefix) as f64 / u64::MAX as f64;
        records as f64 / if tells { reach } else { 1.0 }
    }

    /// Where a page lies: its offset and length in bytes.
    pub(crate) fn extent(&self, page: usize) -> (u64, usize) {
        debug_assert!(page < self.pages, "page {page} of {}", self.pages);
        match self.offsets.get(page..page + 2) {
            Some(&[start, end]) => {
                let start = start as u64 * OFFSET_UNIT_BYTES;
                (start, (end as u64 * OFFSET_UNIT_BYTES - start) as usize)
            }
            _ => (page as u64 * self.regular_page_bytes, self.regular_page_bytes as usize),
        }
    }

    /// Where the last page ends. `None` where no file is so long.
    fn end(&self) -> Option<u64> {
        match self.offsets.last() {
            Some(&end) => Some(end as u64 * OFFSET_UNIT_BYTES),
            None => (self.pages as u64).checked_mul(self.regular_page_bytes),
        }
    }

    /// The page of the record of this rank, and its number there. Only where pages are found by rank.
    #[inline]
    pub(crate) fn page_of(&self, rank: u32) -> (usize, u32) {
        match &self.starts {
            Starts::Even(records) => ((rank / records) as usize, rank % records),
            Starts::Ranks(ranks) => {
                let page = ranks.partition_point(|&first| first <= rank).saturating_sub(1);
                (page, rank - ranks.get(page).copied().unwrap_or(0))
            }
            Starts::Prefixes(_) => (0, 0),
        }
    }

    /// The rank of a page's first record. Only where pages are found by rank.
    pub(crate) fn first_rank(&self, page: usize) -> u32 {
        match &self.starts {
            Starts::Even(records) => (page as u32).saturating_mul(*records),
            Starts::Ranks(ranks) => ranks.get(page).copied().unwrap_or(0),
            Starts::Prefixes(_) => 0,
        }
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let starts = match &self.starts {
            Starts::Prefixes(Prefixes { firsts, ties, tie_keys }) => {
                8 * firsts.capacity() + 8 * ties.capacity() + tie_keys.capacity()
            }
            Starts::Ranks(ranks) => 4 * ranks.capacity(),
            Starts::Even(_) => 0,
        };
        starts + 4 * self.offsets.capacity()
    }

    /// Memory that the search of this many pages of this length and of as many records each will hold, in bytes.
    pub(crate) fn memory_bytes_of(
        by_rank: bool,
        pages: u64,
        page_bytes: u64,
        regular_page_bytes: u64,
    ) -> u64 {
        let starts = if by_rank { 0 } else { 8 * pages };
        starts + if page_bytes == regular_page_bytes { 0 } else { 4 * pages + 4 }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if matches!(self.starts, Starts::Prefixes(_)) {
            put_varint(out, self.regular_page_bytes);
        } else {
            put_varint(out, 0);
            put_varint(out, self.regular_page_bytes);
            out.extend_from_slice(&self.first_prefix.to_le_bytes());
        }
        out.extend_from_slice(&self.last_prefix.to_le_bytes());
        put_varint(out, self.pages as u64);
        match &self.starts {
            Starts::Prefixes(prefixes) => put_words(out, &prefixes.firsts, u64::to_le_bytes),
            Starts::Even(records) => put_varint(out, *records as u64),
            Starts::Ranks(ranks) => {
                put_varint(out, 0);
                put_words(out, ranks, u32::to_le_bytes);
            }
        }
        put_varint(out, self.offsets.len() as u64);
        put_words(out, &self.offsets, u32::to_le_bytes);
        if let Starts::Prefixes(Prefixes { ties, tie_keys, .. }) = &self.starts {
            put_varint(out, ties.len() as u64);
            for &(page, end) in ties {
                put_varint(out, page as u64);
                put_varint(out, end as u64);
            }
            put_bytes(out, tie_keys);
        }
    }

    /// Reads the page search of a list of this many records, whose pages end there. `None` where the bytes are none.
    pub(crate) fn decode(from: &mut Reader<'_>, records: u64, pages_bytes: u64) -> Option<Self> {
        let kind = from.varint()?;
        let regular_page_bytes = if kind == 0 { from.varint()? } else { kind };
        let mut first_prefix = if kind == 0 { from.u64()? } else { 0 };
        let last_prefix = from.u64()?;
        let pages = usize::try_from(from.varint()?).ok()?;
        let mut starts = if kind > 0 {
            let firsts: Vec<u64> = words(from, pages, |word| u64_at(word, 0))?;
            first_prefix = firsts.first().copied().unwrap_or(0);
            Starts::Prefixes(Prefixes { firsts, ..Prefixes::default() })
        } else {
            match u32::try_from(from.varint()?).ok()? {
                0 => Starts::Ranks(words(from, pages, |word| u32_at(word, 0))?),
                even => Starts::Even(even),
            }
        };
        let count = usize::try_from(from.varint()?).ok()?;
        let offsets: Vec<u32> = words(from, count, |word| u32_at(word, 0))?;
        let starts_fit = match &mut starts {
            Starts::Prefixes(prefixes) => prefixes.decode_ties(from)?,
            Starts::Even(even) => pages as u64 == records.div_ceil(*even as u64),
            Starts::Ranks(ranks) => {
                ranks.first() == Some(&0)
                    && ranks.is_sorted_by(|one, next| one < next)
                    && ranks.last().is_some_and(|&last| (last as u64) < records)
            }
        };
        let offsets_fit = (offsets.is_empty() || offsets.len() == pages + 1)
            && offsets.is_sorted_by(|one, next| one < next)
            && regular_page_bytes >= OFFSET_UNIT_BYTES;
        let index = Self { starts, pages, offsets, first_prefix, last_prefix, regular_page_bytes };
        let ends_fit =
            index.end() == Some(pages_bytes) && records.div_ceil(RECORDS_MAX.into()) <= pages as u64;
        (starts_fit && offsets_fit && ends_fit).then_some(index)
    }
}

impl Prefixes {
    /// Reads the ties; says whether they fit the pages.
    fn decode_ties(&mut self, from: &mut Reader<'_>) -> Option<bool> {
        for _ in 0..from.varint()? {
            self.ties.push((u32::try_from(from.varint()?).ok()?, u32::try_from(from.varint()?).ok()?));
        }
        self.tie_keys = from.bytes()?.to_vec();
        let (ties, pages) = (&self.ties, self.firsts.len() as u32);
        let last_fits = ties.last().is_none_or(|tie| tie.0 < pages && tie.1 as usize == self.tie_keys.len());
        Some(last_fits && ties.is_sorted() && ties.windows(2).all(|pair| pair[0].1 <= pair[1].1))
    }
}

fn put_words<T: Copy, const N: usize>(out: &mut Vec<u8>, words: &[T], bytes: impl Fn(T) -> [u8; N]) {
    words.iter().for_each(|&word| out.extend_from_slice(&bytes(word)));
}

fn words<T>(from: &mut Reader<'_>, count: usize, word: impl Fn(&[u8]) -> T) -> Option<Vec<T>> {
    let bytes = from.take(count.checked_mul(size_of::<T>())?)?;
    Some(bytes.chunks_exact(size_of::<T>()).map(word).collect())
}
