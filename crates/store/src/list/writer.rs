//! Writing a list: pages go out front to back in chunks of 1 MiB at most, behind whoever fills them, then page search,
//! digest and filter, then the footer, then one sync. A writer that is dropped unfinished removes its file.

mod finish;
mod output;
mod valued;

use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::checksum::append;
use forebay_base::codec::Codec;
use forebay_base::digest::Digest;
use forebay_base::limits::{BLOCK_BYTES, STEP_BYTES};
use forebay_base::record::{Kind, Shape};
use forebay_base::wire::put_raw;
use forebay_base::{Block, Bound, Error, Range, Record, Result};
use forebay_env::Access;

use super::expiries::Expiries;
use super::filter::{self, Filter, FilterWriter};
use super::index::{OFFSET_UNIT_BYTES, PageIndex, Prefixes, Starts};
use super::page;
use super::store::ListStore;
use crate::memory::{MemoryClaim, Owner};
use crate::metrics::Cause;
use crate::values::Pointers;
use output::Output;

/// Lists in memory are short, and mostly written at once: so no more memory is taken than they have bytes.
const MEMORY_CHUNK_BYTES: usize = 256 << 10;
/// A compressed page holds about this much before compression.
const RAW_BYTES_COMPRESSED: usize = 16 << 10;

const _: () = assert!(RAW_BYTES_COMPRESSED > BLOCK_BYTES && RAW_BYTES_COMPRESSED <= page::SHARED_BYTES_MAX);
const _: () = assert!(MEMORY_CHUNK_BYTES.is_multiple_of(2 * BLOCK_BYTES) && MEMORY_CHUNK_BYTES <= STEP_BYTES);
const _: () =
    assert!((BLOCK_BYTES as u64).is_multiple_of(OFFSET_UNIT_BYTES), "the page index counts in units");

/// Makes one list file of records pushed in order.
pub struct ListWriter {
    store: Arc<ListStore>,
    id: u64,
    path: PathBuf,
    output: Output,
    _claim: MemoryClaim,
    shape: Shape,
    raw: Vec<u8>,
    raw_bytes_max: usize,
    raw_records: u16,
    raw_first: Bound,
    sealed: Vec<u8>,
    last_prefix: u64,
    last_key: Vec<u8>,
    records: u64,
    record_bytes: u64,
    tombstones: u64,
    expiries: Expiries,
    /// Records of the pages that are sealed.
    sealed_records: u64,
    pages_sum: u32,
    index: PageIndex,
    filter: Option<FilterWriter>,
    digest: Digest,
    /// Where values stand, if some stand in value files.
    values: Option<Box<Pointers>>,
    finished: bool,
}

impl ListWriter {
    /// Starts a list of up to `records` records inside `range`, all of the given shape.
    pub fn new(
        store: &Arc<ListStore>,
        range: &Range,
        records: u64,
        shape: Shape,
        cause: Cause,
    ) -> Result<Self> {
        let id = store.new_id();
        let (path, options) = (store.path(id), store.options);
        let file = store.fs.create(&path, Access::Direct)?;
        let filter = FilterWriter::new(&options, range, records);
        let raw_bytes_max = if options.codec == Codec::None {
            BLOCK_BYTES - page::HEADER_BYTES
        } else {
            RAW_BYTES_COMPRESSED
        };
        let starts = match shape {
            _ if !filter.as_ref().is_some_and(FilterWriter::has_ranks) => {
                Starts::Prefixes(Prefixes::default())
            }
            _ => match shape.sizes() {
                Some((key_bytes, value_bytes)) => Starts::Even(
                    (raw_bytes_max / (key_bytes + value_bytes).max(1)).clamp(1, page::RECORDS_MAX as usize)
                        as u32,
                ),
                None => Starts::Ranks(Vec::new()),
            },
        };
        let memory = &store.metrics.memory;
        let buffers_bytes = if store.in_memory { MEMORY_CHUNK_BYTES } else { memory.write_bytes() };
        // While it is finished there are two of them.
        let filter_bytes =
            Filter::memory_bytes_of(options.order, records, records, options.filter_bits_per_key);
        let claim =
            memory.claim(Owner::Writing, buffers_bytes as u64 + 2 * filter_bytes + filter::EARLY_BYTES);
        Ok(Self {
            store: Arc::clone(store),
            id,
            path,
            output: Output::new(store, file, cause, buffers_bytes),
            _claim: claim,
            shape: if shape.sizes().is_some() { shape } else { Shape::Variable },
            raw: Vec::with_capacity(raw_bytes_max),
            raw_bytes_max,
            raw_records: 0,
            raw_first: Bound::default(),
            sealed: Vec::new(),
            last_prefix: 0,
            last_key: Vec::new(),
            records: 0,
            record_bytes: 0,
            tombstones: 0,
            expiries: Expiries::default(),
            pages_sum: 0,
            index: PageIndex::new(starts, BLOCK_BYTES as u64),
            sealed_records: 0,
            filter,
            digest: Digest::new(records),
            values: None,
            finished: false,
        })
    }

    /// Adds the next record; the caller keeps the order and pushes a key once.
    #[inline]
    pub fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        if record.kind == Kind::Pointer {
            return self.push_valued(prefix, record);
        }
        self.push_plain(prefix, record)
    }

    #[inline]
    fn push_plain(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        let is_fixed = self.shape.sizes().is_some();
        debug_assert!(!is_fixed || Shape::of(record) == self.shape);
        debug_assert!(self.records == 0 || (self.last_prefix, &self.last_key[..]) < (prefix, record.key));
        let bytes = if is_fixed { record.key.len() + record.value.len() } else { record.encoded_bytes() };
        if self.raw_records > 0
            && (self.raw.len() + bytes > self.raw_bytes_max || self.raw_records == page::RECORDS_MAX)
        {
            self.seal_page()?;
        }
        if self.raw_records == 0 {
            self.begin_page(None, prefix, record.key);
        }
        if is_fixed {
            put_raw(&mut self.raw, record.key);
            put_raw(&mut self.raw, record.value);
        } else {
            record.encode(&mut self.raw);
        }
        let hash = self.store.options.order.key_hash(prefix, record.key);
        if let Some(filter) = &mut self.filter {
            filter.add(record.key, hash);
        }
        self.digest.add(prefix, hash);
        self.raw_records += 1;
        self.records += 1;
        self.record_bytes += bytes as u64;
        self.tombstones += u64::from(record.kind == Kind::Delete);
        self.store.expiry.iter().for_each(|_| self.expiries.add(record));
        self.last_prefix = prefix;
        self.last_key.clear();
        put_raw(&mut self.last_key, record.key);
        Ok(())
    }

    /// Adds the records of a block of the list's shape.
    pub fn push_block(&mut self, block: &Block) -> Result<()> {
        let Some(record_bytes) = block.record_bytes() else {
            let mut records = block.prefixes().iter().enumerate();
            return records.try_for_each(|(index, &prefix)| self.push(prefix, &block.record(index)));
        };
        let sizes = self.shape.sizes().map(|(key, value)| key + value);
        if (sizes, self.shape.kind()) != (Some(record_bytes), Some(block.kind())) {
            // No reader could tell its records from each other.
            return Err(Error::bug("a block is not of the list's shape"));
        }
        debug_assert!(
            block.prefixes().first().is_none_or(|first| self.records == 0 || self.last_prefix <= *first)
        );
        debug_assert!(block.prefixes().is_sorted(), "the caller keeps the order");
        let moved = if block.kind() == Kind::Pointer { self.take_block(block)? } else { None };
        let bytes = moved.as_deref().unwrap_or(block.bytes());
        debug_assert_eq!(bytes.len(), block.bytes().len(), "a value moves, and the pointer stays as long");
        let page_records = (self.raw_bytes_max / record_bytes.max(1)).clamp(1, page::RECORDS_MAX as usize);
        let mut at = 0;
        while at < block.len() {
            if self.raw_records as usize == page_records {
                self.seal_page()?;
            }
            if self.raw_records == 0 {
                let before = at.checked_sub(1).map(|last| (block.prefixes()[last], block.key(last)));
                self.begin_page(before, block.prefixes()[at], block.key(at));
            }
            let end = (at + page_records - self.raw_records as usize).min(block.len());
            self.raw.extend_from_slice(&bytes[at * record_bytes..end * record_bytes]);
            self.raw_records += (end - at) as u16;
            at = end;
        }
        for (index, &prefix) in block.prefixes().iter().enumerate() {
            let key = block.key(index);
            let hash = self.store.options.order.key_hash(prefix, key);
            if let Some(filter) = &mut self.filter {
                filter.add(key, hash);
            }
            self.digest.add(prefix, hash);
        }
        self.store.expiry.iter().for_each(|_| self.expiries.add_block(block));
        self.records += block.len() as u64;
        self.record_bytes += block.bytes().len() as u64;
        if let Some(last) = block.len().checked_sub(1) {
            self.last_prefix = block.prefixes()[last];
            self.last_key.clear();
            self.last_key.extend_from_slice(block.key(last));
        }
        Ok(())
    }

    /// Notes where the page that begins with this record begins. `before` is the record before it, if that
    /// is not the last one that was pushed.
    fn begin_page(&mut self, before: Option<(u64, &[u8])>, prefix: u64, key: &[u8]) {
        let last = (self.records > 0).then_some((self.last_prefix, &self.last_key[..]));
        self.raw_first = match before.or(last) {
            Some((last, before)) if last == prefix => self.store.options.order.separator(before, key),
            _ => Bound::at_prefix(prefix),
        };
    }

    /// The key of the last record pushed.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes of records so far, before compression and padding.
    pub fn bytes(&self) -> u64 {
        self.record_bytes
    }

    fn seal_page(&mut self) -> Result<()> {
        debug_assert!(self.raw_records > 0 && !self.finished, "no page is empty");
        let (offset, codec) = (self.output.bytes(), self.store.options.codec);
        let align_bytes = if codec == Codec::None { BLOCK_BYTES } else { OFFSET_UNIT_BYTES as usize };
        let place = page::Place { file_id: self.id, offset, shape: self.shape, codec, align_bytes };
        let bytes = page::plain_bytes(place, &self.raw);
        if codec == Codec::None {
            let (raw, records) = (&self.raw, self.raw_records);
            let sum = self.output.fill(bytes, |page| {
                page::seal_plain(page, place, raw, records);
                page::checksum_of(page)
            })?;
            if let Some(sum) = sum {
                self.note_page(offset, bytes, sum);
                return Ok(());
            }
        }
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        page::seal(&mut sealed, place, &self.raw, self.raw_records);
        self.note_page(offset, sealed.len(), page::checksum_of(&sealed));
        self.output.emit(&sealed)?;
        self.sealed = sealed;
        Ok(())
    }

    fn note_page(&mut self, offset: u64, bytes: usize, sum: u32) {
        self.pages_sum = append(self.pages_sum, &sum.to_le_bytes());
        self.index.push(&self.raw_first, self.sealed_records, offset, bytes as u64);
        self.sealed_records += self.raw_records as u64;
        self.raw.clear();
        self.raw_records = 0;
    }
}

impl Drop for ListWriter {
    fn drop(&mut self) {
        if !self.finished {
            let written_bytes = self.output.give_up();
            // Nothing refers to the file yet.
            self.store.discard(self.path.clone());
            self.store.disk.gave_up(written_bytes);
        }
    }
}
