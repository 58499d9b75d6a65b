//! Reading what is left of a damaged list: its pages tell of themselves.
//!
//! 1. Where footer and page search can be read, they are used, and a page that is damaged is passed over.
//! 2. Otherwise the file is walked from its front. What is a sound page whose records follow those before becomes one
//!    of a new page search, in memory; what lies between becomes pages that are passed over. What is read as a page is
//!    what its header can mean: any bytes declare some length.
//! 3. Where nothing tells the sizes that all records have in common, the order does, if it is that of hashes: keys of
//!    any other size would not ascend. Pages of pointers tell theirs.

use std::path::Path;
use std::sync::Arc;

use forebay_base::digest::Digest;
use forebay_base::limits::{BLOCK_BYTES, KEY_BYTES_MAX};
use forebay_base::record::Shape;
use forebay_base::{Bound, Error, Range, Result};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, File, FileSystem};

use super::expiries::Expiries;
use super::file::{Body, ListFile};
use super::filter::Allowance;
use super::footer::{Extras, Footer};
use super::index::{OFFSET_UNIT_BYTES, PageIndex, Prefixes, Starts};
use super::page::{self, HEADER_BYTES, Page};
use crate::salvage::Gaps;

/// What is passed over is cut into pieces of this many bytes at most, as each is read whole.
const PIECE_BYTES: u64 = 1 << 20;
/// Headers are looked for in this many bytes at a time.
const WINDOW_BYTES: u64 = 64 << 10;

/// What a list whose front door is damaged still has. `why` is the damage.
pub(super) fn rebuild(list: &ListFile, gaps: &Gaps, why: Error) -> Result<Body> {
    if !gaps.pass_over(&list.path(), &why, None) {
        return Err(why);
    }
    let file = match list.store().fs.open_read(&list.path(), Access::Random) {
        Ok(file) => file,
        // It is gone, or cannot be read: a list of nothing.
        Err(_) => MemoryFs::new().create(Path::new("nothing"), Access::Buffered)?,
    };
    let bytes = file.len()?;
    let (footer, shape) = footer_of(list, &*file);
    let end = footer.as_ref().map_or(bytes, |footer| footer.pages_bytes.min(bytes));
    let mut walk = Walk::new(list, &*file, shape);
    walk.run(end)?;
    let Walk { mut index, records, last, shape, .. } = walk;
    index.finish(last.map_or(0, |last| last.prefix));
    let is_lexical = list.store().options.order.is_lexical();
    let (pages_bytes, expiries) = (end, Expiries::default());
    let (tombstones, meta_bytes, meta_sum, pages_sum) = (0, 0, 0, 0);
    let extras = Extras { has_pointers: !list.value_shares().is_empty(), knows_prefixes: false };
    let footer = Footer {
        records,
        tombstones,
        pages_bytes,
        meta_bytes,
        meta_sum,
        pages_sum,
        is_lexical,
        shape,
        expiries,
        version: extras.version(shape),
    };
    Ok(Body::new(list.store(), file, footer, index, None, Digest::new(0), Allowance::ALL))
}

/// The footer, if it at least is sound, and the shape that it tells. A bit of it or its end may be gone, and the sizes
/// still be there: a page is taken with sizes that fill it only.
fn footer_of(list: &ListFile, file: &dyn File) -> (Option<Footer>, Shape) {
    let (id, order) = (list.meta().id, list.store().options.order);
    let Some(at) = list.meta().bytes.checked_sub(BLOCK_BYTES as u64) else { return (None, Shape::Variable) };
    // It ends with zeros, those of an end that is cut off too.
    let mut block = vec![0; BLOCK_BYTES];
    if file.read_at(at, &mut block).is_err() {
        return (None, Shape::Variable);
    }
    match Footer::decode(&block, &list.path(), id, at, order) {
        Ok((footer, _)) => (Some(footer), footer.shape),
        Err(_) => (None, Footer::shape_in(&block, id)),
    }
}

struct Walk<'a> {
    list: &'a ListFile,
    file: &'a dyn File,
    shape: Shape,
    index: PageIndex,
    records: u64,
    /// The last record so far.
    last: Option<Bound>,
    /// A piece of the file in which headers are looked for, and where it begins.
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Walk<'a> {
    fn new(list: &'a ListFile, file: &'a dyn File, shape: Shape) -> Self {
        let index = PageIndex::new(Starts::Prefixes(Prefixes::default()), BLOCK_BYTES as u64);
        Self { list, file, shape, index, records: 0, last: None, window: Vec::new(), window_at: 0 }
    }

    fn run(&mut self, end: u64) -> Result<()> {
        let (mut at, mut gap) = (0, 0);
        while at < end {
            let Some((page, bytes)) = self.page_at(at, end) else {
                at += OFFSET_UNIT_BYTES;
                continue;
            };
            self.pass_over(gap, at);
            self.take(&page, at, bytes);
            at += bytes;
            gap = at;
        }
        // The page search counts in units, and a file may be cut anywhere.
        self.pass_over(gap, end.next_multiple_of(OFFSET_UNIT_BYTES));
        Ok(())
    }

    /// The sound page at an offset, if one is there whose records follow all before, and its length.
    fn page_at(&mut self, at: u64, end: u64) -> Option<(Page, u64)> {
        let header = self.header(at, end)?;
        match page::even_shape(&header) {
            // Its checksum vouches for what it tells.
            Some(shape @ Shape::Pointers { .. }) if shape != self.shape => {
                self.page_of(&header, shape, at, end)?;
                self.shape = shape;
            }
            Some(whole @ Shape::Fixed { key_bytes: record_bytes, .. }) if self.shape == Shape::Variable => {
                let (page, _) = self.page_of(&header, whole, at, end)?;
                self.shape = self.shape_by(&page, record_bytes)?;
            }
            _ => {}
        }
        let (page, bytes) = self.page_of(&header, self.shape, at, end)?;
        self.follows(&page).then_some((page, bytes))
    }

    /// The sizes of a page's records, by which alone they are in order. Keys in their own order ascend in several.
    fn shape_by(&self, page: &Page, record_bytes: u32) -> Option<Shape> {
        let order = self.list.store().options.order;
        let ascends = |key_bytes: &u32| {
            let key = |index| &page.record(index).key[..*key_bytes as usize];
            let places = (0..page.len()).map(|index| (order.prefix(key(index)), key(index)));
            places.is_sorted_by(|one, next| one < next)
        };
        let mut sizes = (0..=record_bytes.min(KEY_BYTES_MAX as u32)).filter(ascends);
        let key_bytes = sizes.next().filter(|_| !order.is_lexical())?;
        let fixed = Shape::Fixed { key_bytes, value_bytes: record_bytes - key_bytes };
        sizes.next().is_none().then_some(fixed)
    }

    /// The sound page of this shape at an offset, and its length: a multiple of one of two numbers, which the page
    /// does not tell.
    fn page_of(&self, header: &[u8; HEADER_BYTES], shape: Shape, at: u64, end: u64) -> Option<(Page, u64)> {
        let stored_bytes = page::declared(header, shape)? as u64;
        [BLOCK_BYTES as u64, OFFSET_UNIT_BYTES].into_iter().find_map(|align_bytes| {
            let bytes = (HEADER_BYTES as u64 + stored_bytes).next_multiple_of(align_bytes);
            if at + bytes > end {
                return None;
            }
            let page = Page::of(self.read(at, bytes)?, self.list.meta().id, at, shape).ok()?;
            Some((page, bytes))
        })
    }

    /// The bytes at an offset that are a header, if a page is there.
    fn header(&mut self, at: u64, end: u64) -> Option<[u8; HEADER_BYTES]> {
        let is_in = |window: &[u8], window_at: u64| {
            let from = at.checked_sub(window_at)? as usize;
            window.get(from..from + HEADER_BYTES)?.try_into().ok()
        };
        is_in(&self.window, self.window_at).or_else(|| {
            self.window = self.read_some(at, WINDOW_BYTES.min(end - at));
            self.window_at = at;
            is_in(&self.window, at)
        })
    }

    /// The bytes there, or those of the block there where no more can be read.
    fn read_some(&self, at: u64, bytes: u64) -> Vec<u8> {
        let block_bytes = BLOCK_BYTES as u64 - at % BLOCK_BYTES as u64;
        self.read(at, bytes).or_else(|| self.read(at, block_bytes.min(bytes))).unwrap_or_default()
    }

    fn read(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        let mut buffer = vec![0; bytes as usize];
        let got = self.file.read_at(at, &mut buffer).ok()?;
        (got == buffer.len()).then_some(buffer)
    }

    fn follows(&self, page: &Page) -> bool {
        let is_behind = |last: &Bound| {
            let key = page.record(0).key;
            last.place(self.list.store().options.order.prefix(key), key).is_gt()
        };
        page.len() > 0 && self.last.as_ref().is_none_or(is_behind)
    }

    fn take(&mut self, page: &Page, at: u64, bytes: u64) {
        let order = self.list.store().options.order;
        let bound = |key: &[u8]| Bound { prefix: order.prefix(key), key: key.into() };
        self.index.push(&bound(page.record(0).key), self.records, at, bytes);
        self.records += page.len() as u64;
        self.last = Some(bound(page.record(page.len() - 1).key));
    }

    /// Notes what is no page: its pieces begin with what the page before ends with.
    fn pass_over(&mut self, from: u64, to: u64) {
        let bound = self.last.clone().unwrap_or(Bound { prefix: 0, key: [][..].into() });
        let mut at = from;
        while at < to {
            let bytes = PIECE_BYTES.min(to - at);
            self.index.push(&bound, self.records, at, bytes);
            at += bytes;
        }
    }
}

impl ListFile {
    /// The keys that a page may have, where the page search tells them.
    pub(super) fn keys_of(&self, number: usize) -> Option<Range> {
        let body = self.body().ok()?;
        let Starts::Prefixes(prefixes) = body.index.starts() else { return None };
        let high = (number + 1 < body.index.pages()).then(|| prefixes.bound(number + 1));
        Some(Range { low: prefixes.bound(number), high })
    }

    /// The keys that the page at an offset may have, where one is there and the page search tells them.
    pub fn keys_at(&self, offset: u64) -> Option<Range> {
        let index = &self.body().ok()?.index;
        let (mut low, mut high) = (0, index.pages());
        while low < high {
            let middle = low + (high - low) / 2;
            if index.extent(middle).0 < offset { low = middle + 1 } else { high = middle }
        }
        (low < index.pages() && index.extent(low).0 == offset).then(|| self.keys_of(low))?
    }

    /// Notes a page that cannot be read; `false` where that must not be passed over.
    pub(super) fn passes_over(&self, number: usize, error: &Error) -> bool {
        let gaps: Option<&Arc<Gaps>> = self.store().salvage.as_ref();
        gaps.is_some_and(|gaps| gaps.pass_over(&self.path(), error, self.keys_of(number)))
    }
}
