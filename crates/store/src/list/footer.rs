//! The last block of a list file: what it holds and where. See `docs/format/list_file.md`.

use std::path::Path;

use forebay_base::checksum::checksum;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::record::Shape;
use forebay_base::wire::{Reader, u32_at};
use forebay_base::{Error, Order, POINTER_BYTES, Result};

use super::expiries::Expiries;

const MAGIC: &[u8; 8] = b"FBLIST\r\n";
/// The newest version of the list format: of lists whose filters know key prefixes.
pub(crate) const VERSION: u32 = 5;
/// That of lists that have pointers alone, all of one length.
const VERSION_EVEN_POINTERS: u32 = 4;
/// That of lists that have pointers among other records.
const VERSION_POINTERS: u32 = 3;
/// That of all other lists.
const VERSION_PLAIN: u32 = 2;
const SHAPE_FIXED: u32 = 0;
const SHAPE_VARIABLE: u32 = 1;
const SHAPE_POINTERS: u32 = 2;
const POINTER_BYTES_U32: u32 = POINTER_BYTES as u32;
/// Where in the footer the file's id is.
const ID_AT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) records: u64,
    /// How many of those are tombstones.
    pub(crate) tombstones: u64,
    /// Where the pages end and the page search, digest and filter begin.
    pub(crate) pages_bytes: u64,
    /// How long those are, without padding.
    pub(crate) meta_bytes: u64,
    /// Their checksum, padding included.
    pub(crate) meta_sum: u32,
    /// The checksum of all pages' checksums.
    pub(crate) pages_sum: u32,
    pub(crate) is_lexical: bool,
    pub(crate) shape: Shape,
    pub(crate) expiries: Expiries,
    pub(crate) version: u32,
}

/// What decides the version of a list's format, beside its shape.
#[derive(Clone, Copy)]
pub(crate) struct Extras {
    /// Whether values of it stand in value files.
    pub(crate) has_pointers: bool,
    /// Whether its filter knows key prefixes.
    pub(crate) knows_prefixes: bool,
}

impl Extras {
    pub(crate) fn version(self, shape: Shape) -> u32 {
        match shape {
            _ if self.knows_prefixes => VERSION,
            Shape::Pointers { .. } => VERSION_EVEN_POINTERS,
            _ if self.has_pointers => VERSION_POINTERS,
            _ => VERSION_PLAIN,
        }
    }
}

impl Footer {
    pub(crate) fn encode(&self, file_id: u64, offset: u64) -> [u8; BLOCK_BYTES] {
        debug_assert!(self.tombstones <= self.records && self.expiries.records <= self.records);
        debug_assert!(self.pages_bytes + self.meta_bytes <= offset, "the footer stands behind all else");
        let (shape, key_bytes, value_bytes) = match self.shape {
            Shape::Fixed { key_bytes, value_bytes } => (SHAPE_FIXED, key_bytes, value_bytes),
            Shape::Pointers { key_bytes } => (SHAPE_POINTERS, key_bytes, POINTER_BYTES_U32),
            Shape::Unknown | Shape::Puts | Shape::Variable => (SHAPE_VARIABLE, 0, 0),
        };
        let mut fields = Vec::with_capacity(BLOCK_BYTES);
        fields.extend_from_slice(&[0; 4]);
        fields.extend_from_slice(MAGIC);
        fields.extend_from_slice(&self.version.to_le_bytes());
        fields.extend_from_slice(&file_id.to_le_bytes());
        for word in [self.records, self.pages_bytes, self.meta_bytes] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.meta_sum, self.pages_sum, self.is_lexical as u32, shape, key_bytes, value_bytes] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        let Expiries { records, first, last } = self.expiries;
        for word in [self.tombstones, records, first, last] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        let mut block = [0; BLOCK_BYTES];
        block[..fields.len()].copy_from_slice(&fields);
        let sum = checksum(file_id, offset, &block[4..]);
        block[..4].copy_from_slice(&sum.to_le_bytes());
        debug_assert!(self.is_read_from(&block, file_id, offset), "what is written is read");
        block
    }

    fn is_read_from(&self, block: &[u8], file_id: u64, offset: u64) -> bool {
        let order = if self.is_lexical { Order::Lexical } else { Order::Hashed { seed: 0 } };
        Self::decode(block, Path::new(""), file_id, offset, order).is_ok_and(|(footer, _)| footer == *self)
    }

    /// The footer and its own checksum, which serves as the digest of the whole file.
    pub(crate) fn decode(
        block: &[u8],
        path: &Path,
        file_id: u64,
        offset: u64,
        order: Order,
    ) -> Result<(Self, u32)> {
        let damaged = |reason: &str| Error::corruption(path, offset, reason);
        let sum = u32_at(block, 0);
        if checksum(file_id, offset, &block[4..]) != sum {
            return Err(damaged("the footer's checksum does not match"));
        }
        Self::fields(&block[4..], path, file_id, order).and_then(|fields| match fields {
            Some(footer) if footer.pages_bytes + footer.meta_bytes <= offset => Ok((footer, sum)),
            _ => Err(damaged("the footer's fields do not fit the file")),
        })
    }

    /// The shape that a damaged footer tells, where it tells that it is of this file.
    pub(crate) fn shape_in(block: &[u8], file_id: u64) -> Shape {
        let mut from = Reader::new(&block[ID_AT..]);
        let mut parse = || {
            let is_its_own = from.u64()? == file_id;
            // Three words of 64 bits, and three of 32, and whether the sizes count: those of variable records are 0, and
            // pages of pointers tell by themselves that they are that.
            from.array::<40>()?;
            let (key_bytes, value_bytes) = (from.u32()?, from.u32()?);
            (is_its_own && (key_bytes, value_bytes) != (0, 0)).then_some((key_bytes, value_bytes))
        };
        parse().map_or(Shape::Variable, |(key_bytes, value_bytes)| Shape::Fixed { key_bytes, value_bytes })
    }

    fn fields(block: &[u8], path: &Path, file_id: u64, order: Order) -> Result<Option<Self>> {
        let mut from = Reader::new(block);
        let mut parse = || {
            let magic = from.array::<8>()? == *MAGIC;
            let version = from.u32()?;
            let id = from.u64()?;
            let (records, pages_bytes, meta_bytes) = (from.u64()?, from.u64()?, from.u64()?);
            let (meta_sum, pages_sum, is_lexical) = (from.u32()?, from.u32()?, from.u32()? == 1);
            let shape = match (from.u32()?, from.u32()?, from.u32()?) {
                (SHAPE_FIXED, key_bytes, value_bytes) => Shape::Fixed { key_bytes, value_bytes },
                (SHAPE_POINTERS, key_bytes, POINTER_BYTES_U32) => Shape::Pointers { key_bytes },
                _ => Shape::Variable,
            };
            // 0 in files of builds that did not count them.
            let tombstones = from.u64()?;
            let expiries = Expiries { records: from.u64()?, first: from.u64()?, last: from.u64()? };
            let footer = Self {
                records,
                tombstones,
                pages_bytes,
                meta_bytes,
                meta_sum,
                pages_sum,
                is_lexical,
                shape,
                expiries,
                version,
            };
            let is_even = expiries.first <= expiries.last && expiries.records <= records;
            let fits = magic && id == file_id && is_lexical == order.is_lexical() && is_even;
            let no_overflow = pages_bytes.checked_add(meta_bytes).is_some();
            Some((version, (fits && no_overflow).then_some(footer)))
        };
        match parse() {
            Some((version, _)) if version > VERSION => {
                Err(Error::NewerFormat { file: path.to_path_buf(), version, known: VERSION })
            }
            Some((_, footer)) => Ok(footer),
            None => Ok(None),
        }
    }
}
