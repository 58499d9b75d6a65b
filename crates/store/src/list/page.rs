//! One page of a list: a header of 16 bytes, records, zeros up to the page's length.
//!
//! `u32 checksum | u32 stored_bytes | u32 raw_bytes | u16 records | u8 kind | u8 codec | payload | zeros`
//!
//! The checksum covers all behind it and is seeded with the file's id and the page's offset. A *fixed* page
//! (kind 0) has keys and values of the list's common sizes side by side, and so has a page of *pointers* (kind 2); a
//! *variable* page (kind 1) has encoded records. See `docs/format/list_file.md`.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use forebay_base::checksum::checksum;
use forebay_base::codec::Codec;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::record::Shape;
use forebay_base::wire::u32_at;
use forebay_base::{Error, Kind, Order, POINTER_BYTES, Record};
use forebay_env::PageFrames;

use crate::cache::{Cached, Held};

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 16;

/// The most records of a page: more than its count cannot tell.
pub(crate) const RECORDS_MAX: u16 = u16::MAX;

/// More than any page has that records share, in bytes.
pub(crate) const SHARED_BYTES_MAX: usize = 64 << 10;

const KIND_FIXED: u8 = 0;
const KIND_VARIABLE: u8 = 1;
const KIND_POINTERS: u8 = 2;

/// Where a page goes and how it is stored.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) file_id: u64,
    pub(crate) offset: u64,
    pub(crate) shape: Shape,
    pub(crate) codec: Codec,
    /// Pages are multiples of this long.
    pub(crate) align_bytes: usize,
}

/// Wraps a payload of this many records: appends the whole page to `out`.
pub(crate) fn seal(out: &mut Vec<u8>, place: Place, raw: &[u8], records: u16) {
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    let used = place.codec.compress(raw, out);
    let stored_bytes = out.len() - start - HEADER_BYTES;
    out.resize(start + (HEADER_BYTES + stored_bytes).next_multiple_of(place.align_bytes), 0);
    finish(&mut out[start..], place, used, stored_bytes, raw.len(), records);
}

/// Wraps an uncompressed payload of this many records in the page that it is given, which is as long as
/// [`plain_bytes`] says.
pub(crate) fn seal_plain(page: &mut [u8], place: Place, raw: &[u8], records: u16) {
    debug_assert_eq!(page.len(), plain_bytes(place, raw));
    let end = HEADER_BYTES + raw.len();
    page[HEADER_BYTES..end].copy_from_slice(raw);
    page[end..].fill(0);
    finish(page, place, Codec::None, raw.len(), raw.len(), records);
}

/// How long a page of an uncompressed payload is.
pub(crate) fn plain_bytes(place: Place, raw: &[u8]) -> usize {
    (HEADER_BYTES + raw.len()).next_multiple_of(place.align_bytes)
}

fn finish(page: &mut [u8], place: Place, used: Codec, stored_bytes: usize, raw_bytes: usize, records: u16) {
    debug_assert!(records > 0 && page.len().is_multiple_of(place.align_bytes));
    debug_assert!(match place.shape.sizes() {
        Some((key_bytes, value_bytes)) => raw_bytes == records as usize * (key_bytes + value_bytes),
        None => raw_bytes >= records as usize,
    });
    page[4..8].copy_from_slice(&(stored_bytes as u32).to_le_bytes());
    page[8..12].copy_from_slice(&(raw_bytes as u32).to_le_bytes());
    page[12..14].copy_from_slice(&records.to_le_bytes());
    page[14] = match place.shape {
        Shape::Fixed { .. } => KIND_FIXED,
        Shape::Pointers { .. } => KIND_POINTERS,
        Shape::Unknown | Shape::Puts | Shape::Variable => KIND_VARIABLE,
    };
    page[15] = used as u8;
    let sum = checksum(place.file_id, place.offset, &page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
    debug_assert!(
        page.first_chunk().and_then(|header| declared(header, place.shape)) == Some(stored_bytes),
        "who salvages a list takes this for the page that it is"
    );
}

/// What a page's payload is: part of the bytes that were read, or unpacked from them.
enum Stored {
    Plain(Range<usize>),
    Unpacked(Vec<u8>),
}

/// Where in a page's bytes a record lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    kind: Kind,
    key_at: usize,
    value_at: usize,
    end: usize,
}

impl Spot {
    /// That of no record.
    pub(crate) const NONE: Self = Self { kind: Kind::Delete, key_at: 0, value_at: 0, end: 0 };

    /// What the record does.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

/// A page's records, checked and decompressed, with the place of each.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: Held,
    /// Where the records are in `bytes`: behind a header, where the page was taken as it was read.
    payload: Range<usize>,
    /// Where each record of a variable page starts.
    starts: Vec<u32>,
    records: usize,
    fixed: Option<(usize, usize)>,
    /// What all records of a fixed page do.
    kind: Kind,
}

impl Page {
    /// The page whose bytes these are, checked. `Err` says what is wrong with them.
    pub(crate) fn of(bytes: Vec<u8>, file_id: u64, offset: u64, shape: Shape) -> Result<Self, &'static str> {
        let mut page = Self::default();
        match page.check(&bytes, file_id, offset, shape)? {
            // It stays where it is.
            Stored::Plain(payload) => (page.bytes, page.payload) = (bytes.into(), payload),
            Stored::Unpacked(raw) => (page.payload, page.bytes) = (0..raw.len(), raw.into()),
        }
        page.index_records()?;
        Ok(page)
    }

    /// The page, to be read into: another one, where the cache has it too.
    pub(crate) fn own(page: &mut Arc<Self>) -> Result<&mut Self, Error> {
        if Arc::get_mut(page).is_none() {
            *page = Arc::default();
        }
        Arc::get_mut(page).ok_or_else(|| Error::bug("a page that was just made has two holders"))
    }

    /// Checks and takes in the page whose bytes these are, in the memory of the page before.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        file_id: u64,
        offset: u64,
        shape: Shape,
    ) -> Result<(), &'static str> {
        match self.check(bytes, file_id, offset, shape)? {
            Stored::Plain(payload) => {
                let mut own = self.bytes.take();
                own.clear();
                own.extend_from_slice(&bytes[payload]);
                self.bytes = own.into();
            }
            Stored::Unpacked(raw) => self.bytes = raw.into(),
        }
        self.payload = 0..self.bytes.len();
        self.index_records()
    }

    fn check(
        &mut self,
        bytes: &[u8],
        file_id: u64,
        offset: u64,
        shape: Shape,
    ) -> Result<Stored, &'static str> {
        if bytes.len() < HEADER_BYTES {
            return Err("the page is cut short");
        }
        if checksum(file_id, offset, &bytes[4..]) != u32_at(bytes, 0) {
            return Err("the page's checksum does not match");
        }
        let (stored_bytes, raw_bytes) = (u32_at(bytes, 4) as usize, u32_at(bytes, 8) as usize);
        let payload = HEADER_BYTES..HEADER_BYTES + stored_bytes;
        let stored = bytes.get(payload.clone()).ok_or("the page is too short")?;
        self.records = u16::from_le_bytes([bytes[12], bytes[13]]) as usize;
        (self.fixed, self.kind) = match (bytes[14], shape) {
            (KIND_FIXED, Shape::Fixed { .. }) => (shape.sizes(), Kind::Put),
            (KIND_POINTERS, Shape::Pointers { .. }) => (shape.sizes(), Kind::Pointer),
            (KIND_VARIABLE, _) => (None, Kind::default()),
            _ => return Err("the page's kind is not its list's"),
        };
        match Codec::from_byte(bytes[15]) {
            Some(Codec::None) if stored_bytes == raw_bytes => Ok(Stored::Plain(payload)),
            Some(codec) => codec
                .decompress(stored, raw_bytes)
                .map(Stored::Unpacked)
                .ok_or("the page does not decompress"),
            None => Err("the page has an unknown codec"),
        }
    }

    fn index_records(&mut self) -> Result<(), &'static str> {
        self.starts.clear();
        if let Some((key_bytes, value_bytes)) = self.fixed {
            let agrees = self.payload.len() == self.records * (key_bytes + value_bytes);
            return if agrees { Ok(()) } else { Err("the page's records do not fill it") };
        }
        let mut at = self.payload.start;
        while at < self.payload.end {
            let left = &self.bytes[at..self.payload.end];
            let (_, used) = Record::decode(left).ok_or("the page holds a malformed record")?;
            self.starts.push(at as u32);
            at += used;
        }
        if self.starts.len() == self.records { Ok(()) } else { Err("the page's record count is wrong") }
    }

    /// How many records it has.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.records
    }

    /// Asks for the memory of a record, and does not wait for it.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        let record_bytes = self.fixed.map_or(0, |(key_bytes, value_bytes)| key_bytes + value_bytes);
        if let Some(byte) = self.bytes.get(self.payload.start + index * record_bytes) {
            forebay_env::prefetch(byte);
        }
    }

    /// Asks for the memory of the records that a search in the page begins with.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        for index in [0, self.records / 2, self.records.saturating_sub(1)] {
            self.prefetch(index);
        }
    }

    /// Where the record at `index`, below [`len`](Self::len), lies: a walk asks once, however often it looks.
    #[inline]
    pub(crate) fn spot(&self, index: usize) -> Spot {
        debug_assert!(index < self.records, "record {index} of {}", self.records);
        if let Some((key_bytes, value_bytes)) = self.fixed {
            let key_at = self.payload.start + index * (key_bytes + value_bytes);
            let value_at = key_at + key_bytes;
            return Spot { kind: self.kind, key_at, value_at, end: value_at + value_bytes };
        }
        let start = self.starts[index] as usize;
        // `index_records` has seen that it is one.
        Record::decode(&self.bytes[start..]).map_or(Spot::NONE, |(record, length)| {
            let end = start + length;
            let value_at = end - record.value.len();
            Spot { kind: record.kind, key_at: value_at - record.key.len(), value_at, end }
        })
    }

    /// The record that lies there.
    #[inline]
    pub(crate) fn record_at(&self, spot: &Spot) -> Record<'_> {
        let (key, value) = self.bytes[spot.key_at..spot.end].split_at(spot.value_at - spot.key_at);
        Record { kind: spot.kind, key, value }
    }

    /// The record at `index`, below [`len`](Self::len).
    #[inline]
    pub(crate) fn record(&self, index: usize) -> Record<'_> {
        self.record_at(&self.spot(index))
    }

    /// The records from `first` up to `end`, side by side, of a fixed page with records of any length.
    #[inline]
    pub(crate) fn run(&self, first: usize, end: usize) -> Option<&[u8]> {
        debug_assert!(first <= end && end <= self.records);
        let record_bytes = self.fixed.map(|(key_bytes, value_bytes)| key_bytes + value_bytes)?;
        let start = self.payload.start;
        (record_bytes > 0).then(|| &self.bytes[start + first * record_bytes..start + end * record_bytes])
    }

    /// The first record for which `place` does not say `Less`: a binary search.
    pub(crate) fn lower_bound(&self, order: Order, place: impl Fn(u64, &[u8]) -> Ordering) -> usize {
        let (mut low, mut high) = (0, self.records);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.record(middle);
            if place(order.prefix(record.key), record.key).is_lt() { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Cached for Page {
    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + 4 * self.starts.capacity() + size_of::<Self>()
    }

    fn move_to_frame(&mut self, frames: &Arc<PageFrames>) {
        self.bytes.move_to_frame(frames);
    }
}

/// The shape that these 16 bytes tell, where they are the header of a page whose records have their sizes in common: of
/// puts only how long each record is, all of which is given as its key.
pub(crate) fn even_shape(header: &[u8; HEADER_BYTES]) -> Option<Shape> {
    let (raw_bytes, records) = (u32_at(header, 8), u16::from_le_bytes([header[12], header[13]]).into());
    let record_bytes = (records > 0 && raw_bytes.is_multiple_of(records)).then(|| raw_bytes / records)?;
    match header[14] {
        KIND_FIXED => Some(Shape::Fixed { key_bytes: record_bytes, value_bytes: 0 }),
        KIND_POINTERS => {
            record_bytes.checked_sub(POINTER_BYTES as u32).map(|key_bytes| Shape::Pointers { key_bytes })
        }
        _ => None,
    }
}

/// How long a payload is stored that follows these 16 bytes; `None` where they are no header of a page of this shape.
/// Only a record that is alone in its page makes it long.
pub(crate) fn declared(header: &[u8; HEADER_BYTES], shape: Shape) -> Option<usize> {
    let (stored_bytes, raw_bytes) = (u32_at(header, 4) as usize, u32_at(header, 8) as usize);
    let records = u16::from_le_bytes([header[12], header[13]]) as usize;
    let fits_kind = match (header[14], shape) {
        (KIND_FIXED, Shape::Fixed { .. }) | (KIND_POINTERS, Shape::Pointers { .. }) => shape
            .sizes()
            .is_some_and(|(key_bytes, value_bytes)| raw_bytes == records * (key_bytes + value_bytes)),
        (KIND_VARIABLE, _) => raw_bytes >= records,
        _ => false,
    };
    let fits_codec = match Codec::from_byte(header[15])? {
        Codec::None => stored_bytes == raw_bytes,
        Codec::Lz4 => stored_bytes < raw_bytes,
    };
    let fits_length = records == 1 || records > 1 && stored_bytes <= SHARED_BYTES_MAX;
    (fits_kind && fits_codec && fits_length).then_some(stored_bytes)
}

/// A page's own checksum, of which the footer keeps a sum over all pages.
pub(crate) fn checksum_of(page: &[u8]) -> u32 {
    u32_at(page, 0)
}

const _: () = assert!(HEADER_BYTES == 16, "the header's layout is part of the format");
const _: () = assert!(HEADER_BYTES < BLOCK_BYTES && BLOCK_BYTES <= SHARED_BYTES_MAX);
