//! Integers of 32 bits in the encoding `DELTA_BINARY_PACKED` whose differences have more bits than they have, as some
//! writers make them. The library refuses those. Here pages that have some are written anew, without the encoding;
//! others, and malformed ones, are left to the library as they are.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;

/// A page that is written anew has no more values than this, nor a block of it.
const VALUES_MAX: u64 = 1 << 20;

/// See the module.
pub(super) struct Widened {
    pages: Box<dyn PageReader>,
    has_levels: bool,
}

impl Widened {
    /// The pages of a column, which holds single values.
    pub(super) fn over(pages: Box<dyn PageReader>, chunk: &ColumnChunkMetaData) -> Box<dyn PageReader> {
        let is_packed = chunk.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED);
        if chunk.column_type() != Type::INT32 || !is_packed {
            return pages;
        }
        Box::new(Self { pages, has_levels: chunk.column_descr().max_def_level() > 0 })
    }

    fn widen(&self, page: Page) -> Page {
        match page {
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::DELTA_BINARY_PACKED,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                let levels = if self.has_levels { prefixed(&buf) } else { Some(0) };
                let plain = levels.and_then(|levels| plain(&buf, levels, num_values));
                let encoding = if plain.is_some() { Encoding::PLAIN } else { Encoding::DELTA_BINARY_PACKED };
                let buf = plain.map_or(buf, Into::into);
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding: Encoding::DELTA_BINARY_PACKED,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                let plain = plain(&buf, levels, num_values);
                let encoding = if plain.is_some() { Encoding::PLAIN } else { Encoding::DELTA_BINARY_PACKED };
                let buf = plain.map_or(buf, Into::into);
                Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed,
                    statistics,
                }
            }
            page => page,
        }
    }
}

impl PageReader for Widened {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.pages.get_next_page()?.map(|page| self.widen(page)))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.pages.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Widened {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// How long the levels at the beginning of a page are, which say it themselves.
fn prefixed(page: &[u8]) -> Option<usize> {
    let length = page.first_chunk().map(|length| u32::from_le_bytes(*length))?;
    Some(4 + length as usize)
}

/// The page with its values as they are, if it has differences that are too wide; none if not, or if it is malformed.
fn plain(page: &[u8], levels: usize, values_max: u32) -> Option<Vec<u8>> {
    let mut from = Bytes(page.get(levels..)?);
    let (block, parts, count) = (from.number()?, from.number()?, from.number()?);
    if parts == 0 || block > VALUES_MAX || block % parts != 0 || block / parts % 32 != 0 {
        return None;
    }
    if block == 0 || count > VALUES_MAX.min(values_max.into()) {
        return None;
    }
    let part = (block / parts) as usize;
    let mut value = i32::try_from(from.difference()?).ok()?;
    let mut plain = page[..levels].to_vec();
    let mut left = count as usize;
    let mut is_wide = false;
    if left > 0 {
        plain.extend(value.to_le_bytes());
        left -= 1;
    }
    while left > 0 {
        let least = from.difference()?;
        is_wide |= i32::try_from(least).is_err();
        for width in from.take(parts as usize)?.iter().map(|width| usize::from(*width)) {
            if left == 0 {
                break;
            }
            is_wide |= width > 32;
            let packed = from.take(part * width / 8)?;
            for at in 0..part.min(left) {
                // Modulo 2^32 differences of any width lead to the next value.
                value =
                    value.wrapping_add(least.wrapping_add(bits(packed, at * width, width)? as i64) as i32);
                plain.extend(value.to_le_bytes());
            }
            left -= part.min(left);
        }
    }
    is_wide.then_some(plain)
}

/// The number of `width` bits from a bit on, the lowest first.
fn bits(packed: &[u8], from: usize, width: usize) -> Option<u64> {
    if width > 64 {
        return None;
    }
    let number = |byte: usize| packed.get(byte).map_or(0, |byte| u128::from(*byte));
    let first = from / 8;
    let word = (0..9).fold(0, |word, byte| word | number(first + byte) << (8 * byte));
    Some((word >> (from % 8) & ((1 << width) - 1)) as u64)
}

/// What is left of a page.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number whose lowest bit is its sign.
    fn difference(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}
