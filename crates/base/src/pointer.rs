//! The way to a value that stands in a value file: what a [`Kind::Pointer`](crate::Kind::Pointer) has for a value.
//!
//! `varint file | varint offset | varint bytes | u32 sum`. The sum is of the value and then the key, so that a value of
//! another key is refused as a damaged one is. Where values end with an [expiry](crate::expiry), so does the pointer to
//! one: who asks whether it is over needs no value.
//!
//! **Invariant:** a pointer without an expiry is [`POINTER_BYTES`] long if its value is no longer than
//! [`POINTED_BYTES_MAX`], and stands no further behind than [`POINTED_OFFSET_MAX`]: the varints have bytes to spare. So
//! the lists of a table with records of one length have pointers of one length, and go from hand to hand by blocks. One
//! with an expiry is never that long.

use crate::checksum::{append, plain};
use crate::expiry::{self, EXPIRY_BYTES};
use crate::limits::STORED_VALUE_BYTES_MAX;
use crate::wire::{Reader, put_varint};

/// How long nearly all pointers are.
pub const POINTER_BYTES: usize = 16;

/// Bytes of the varints of such a pointer: file and offset, and how long the value is.
const PLACE_BYTES: u32 = 5;
const LENGTH_BYTES: u32 = 2;
/// Bits of the value of a varint of five bytes.
const PLACE_BITS: u32 = 7 * PLACE_BYTES;

/// The longest value that has such a pointer, in bytes. With longer ones it is of no account how long pointers are.
pub const POINTED_BYTES_MAX: u64 = (1 << (7 * LENGTH_BYTES)) - 1;
/// Where it may begin at most.
pub const POINTED_OFFSET_MAX: u64 = (1 << PLACE_BITS) - 1;

const _: () = assert!(2 * PLACE_BYTES + LENGTH_BYTES + 4 == POINTER_BYTES as u32, "the sum ends it");

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValuePointer {
    /// The value file's id.
    pub file: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    sum: u32,
    /// When the value expires, where the values of its table do.
    expiry: Option<u64>,
}

impl ValuePointer {
    /// To a key's value, which stands at this place.
    pub fn new(file: u64, offset: u64, key: &[u8], value: &[u8]) -> Self {
        Self { file, offset, bytes: value.len() as u64, sum: sum_of(key, value), expiry: None }
    }

    /// The same to a value that ends with its expiry.
    pub fn expiring(self, value: &[u8]) -> Self {
        Self { expiry: Some(expiry::split(value).1), ..self }
    }

    /// To the same value at another place.
    pub fn moved(self, file: u64, offset: u64) -> Self {
        Self { file, offset, ..self }
    }

    /// Whether these bytes are the key's value that it was made for.
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        self.bytes == value.len() as u64 && self.sum == sum_of(key, value)
    }

    /// The bytes of a pointer that has the common length; `None` where it takes another one.
    #[inline]
    pub fn even(&self) -> Option<[u8; POINTER_BYTES]> {
        if self.expiry.is_some() { None } else { self.even_place() }
    }

    /// The bytes of all but the expiry, where they have the common length.
    #[inline]
    fn even_place(&self) -> Option<[u8; POINTER_BYTES]> {
        let fits = self.file <= POINTED_OFFSET_MAX
            && self.offset <= POINTED_OFFSET_MAX
            && self.bytes <= POINTED_BYTES_MAX;
        let length = (self.bytes & 0x7f) | 0x80 | (self.bytes >> 7) << 8;
        let word = spread(self.file) as u128
            | (spread(self.offset) as u128) << 40
            | (length as u128) << 80
            | (self.sum as u128) << 96;
        fits.then(|| word.to_le_bytes())
    }

    /// The pointer of bytes that [`even`](Self::even) made, or of others that say the same as long.
    #[inline]
    fn of_even(bytes: [u8; POINTER_BYTES]) -> Option<Self> {
        /// Where varints go on and where they end.
        const MARKS: u128 = 0x8080_8080_8080_8080_8080_8080;
        const ENDS: u128 = 0x0080_0080_8080_8000_8080_8080;
        let word = u128::from_le_bytes(bytes);
        (word & MARKS == ENDS).then(|| Self {
            file: gather(word as u64),
            offset: gather((word >> 40) as u64),
            bytes: gather((word >> 80) as u64 & 0xffff),
            sum: (word >> 96) as u32,
            expiry: None,
        })
    }

    /// Appends the pointer's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(bytes) = self.even_place() {
            out.extend_from_slice(&bytes);
        } else {
            put_varint(out, self.file);
            put_varint(out, self.offset);
            put_varint(out, self.bytes);
            out.extend_from_slice(&self.sum.to_le_bytes());
        }
        self.expiry.iter().for_each(|expiry| out.extend_from_slice(&expiry.to_le_bytes()));
    }

    /// The pointer of these bytes; `None` where they are not one.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some(pointer) = bytes.try_into().ok().and_then(Self::of_even) {
            return Some(pointer);
        }
        Self::decode_any(bytes)
    }

    fn decode_any(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let (file, offset, bytes, sum) = (from.varint()?, from.varint()?, from.varint()?, from.u32()?);
        let expiry = if from.remaining() == EXPIRY_BYTES { from.u64() } else { None };
        let pointer = Self { file, offset, bytes, sum, expiry };
        let is_whole = from.remaining() == 0 && pointer.bytes <= STORED_VALUE_BYTES_MAX as u64;
        (is_whole && pointer.offset.checked_add(pointer.bytes).is_some()).then_some(pointer)
    }
}

/// A varint of five bytes of a number of 35 bits.
#[inline]
fn spread(number: u64) -> u64 {
    let bits = |index: u32| (number >> (7 * index) & 0x7f) << (8 * index);
    bits(0) | bits(1) | bits(2) | bits(3) | bits(4) | 0x8080_8080
}

/// The number of the varint in the lowest five bytes.
#[inline]
fn gather(word: u64) -> u64 {
    let bits = |index: u32| (word >> (8 * index) & 0x7f) << (7 * index);
    bits(0) | bits(1) | bits(2) | bits(3) | bits(4)
}

fn sum_of(key: &[u8], value: &[u8]) -> u32 {
    append(plain(value), key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expiry::NEVER;

    #[test]
    fn pointers_round_trip_and_no_cut_is_accepted() {
        for pointer in [
            ValuePointer::new(1, 0, b"", b""),
            ValuePointer::new(u64::MAX, u64::MAX - 5, b"key", b"value"),
            ValuePointer::new(300, 1 << 30, b"k", &[7; 4096]),
            ValuePointer::new(300, 1 << 30, b"k", &[7; 4096]).expiring(&[7; 4096]),
            ValuePointer::new(1, 1, b"k", &[7; 40]).expiring(&[7; 40]),
            ValuePointer::new(1, 1, b"k", &[7; 1 << 15]).expiring(&[7; 1 << 15]),
        ] {
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            assert_eq!(
                bytes.len() == POINTER_BYTES,
                pointer.even().is_some(),
                "the length tells the two apart"
            );
            assert_eq!(
                pointer.expiry.map_or(NEVER, |_| expiry::split(&bytes).1),
                pointer.expiry.unwrap_or(NEVER)
            );
            assert_eq!(ValuePointer::decode(&bytes), Some(pointer));
            // Without its expiry one is as one that never had it: the record's length tells.
            let without = pointer.expiry.map(|_| bytes.len() - EXPIRY_BYTES);
            let cuts = (0..bytes.len()).filter(|cut| Some(*cut) != without);
            cuts.for_each(|cut| assert_eq!(ValuePointer::decode(&bytes[..cut]), None));
            bytes.push(0);
            assert_eq!(ValuePointer::decode(&bytes), None);
        }
        let behind = ValuePointer { file: 1, offset: u64::MAX, bytes: 1, sum: 0, expiry: None };
        let mut bytes = Vec::new();
        behind.encode(&mut bytes);
        assert_eq!(ValuePointer::decode(&bytes), None, "it reaches beyond all files");
    }

    #[test]
    fn pointers_are_of_one_length_up_to_where_that_ends() {
        let place = |bytes: usize| 1 << (7 * bytes);
        for (file, offset, bytes) in [
            (1, 0, 0),
            (0x5_5555_5555, 0x2_aaaa_aaaa, 0x1555),
            (POINTED_OFFSET_MAX, POINTED_OFFSET_MAX, POINTED_BYTES_MAX),
            (place(4), place(3), place(1)),
            (POINTED_OFFSET_MAX + 1, 0, 0),
            (0, POINTED_OFFSET_MAX + 1, 0),
            (0, 0, POINTED_BYTES_MAX + 1),
        ] {
            let pointer = ValuePointer { file, offset, bytes, sum: 0xdead_beef, expiry: None };
            let mut encoded = Vec::new();
            pointer.encode(&mut encoded);
            assert_eq!(ValuePointer::decode(&encoded), Some(pointer));
            assert_eq!(ValuePointer::decode_any(&encoded), Some(pointer), "it is made of varints");
            let is_even = file.max(offset) <= POINTED_OFFSET_MAX && bytes <= POINTED_BYTES_MAX;
            assert_eq!(pointer.even().as_ref().map(|even| encoded == even), is_even.then_some(true));
            // One that is as long and written otherwise.
            let mut other = Vec::new();
            [file, 3 << 21, 300].into_iter().for_each(|word| put_varint(&mut other, word));
            other.extend_from_slice(&7u32.to_le_bytes());
            assert_eq!(
                ValuePointer::decode(&other),
                Some(ValuePointer { file, offset: 3 << 21, bytes: 300, sum: 7, expiry: None })
            );
        }
    }

    #[test]
    fn a_pointer_fits_its_own_key_and_value() {
        let pointer = ValuePointer::new(1, 2, b"key", b"value");
        assert!(pointer.fits(b"key", b"value") && pointer.moved(7, 8).fits(b"key", b"value"));
        assert!(!pointer.fits(b"kez", b"value") && !pointer.fits(b"key", b"valuf"));
        assert!(!pointer.fits(b"ekey", b"valu"));
    }
}
