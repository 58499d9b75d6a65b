//! The way to a value that stands in a value file: what a [`Kind::Pointer`](crate::Kind::Pointer) has for a value.
//!
//! `varint file | varint offset | varint bytes | u32 sum`. The sum is of the value and then the key, so that a value of
//! another key is refused as a damaged one is.

use crate::checksum::{append, plain};
use crate::limits::STORED_VALUE_BYTES_MAX;
use crate::wire::{Reader, put_varint};

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
}

impl ValuePointer {
    /// To a key's value, which stands at this place.
    pub fn new(file: u64, offset: u64, key: &[u8], value: &[u8]) -> Self {
        Self { file, offset, bytes: value.len() as u64, sum: sum_of(key, value) }
    }

    /// To the same value at another place.
    pub fn moved(self, file: u64, offset: u64) -> Self {
        Self { file, offset, ..self }
    }

    /// Whether these bytes are the key's value that it was made for.
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        self.bytes == value.len() as u64 && self.sum == sum_of(key, value)
    }

    /// Appends the pointer's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.file);
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
        out.extend_from_slice(&self.sum.to_le_bytes());
    }

    /// The pointer of these bytes; `None` where they are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let pointer =
            Self { file: from.varint()?, offset: from.varint()?, bytes: from.varint()?, sum: from.u32()? };
        let is_whole = from.remaining() == 0 && pointer.bytes <= STORED_VALUE_BYTES_MAX as u64;
        (is_whole && pointer.offset.checked_add(pointer.bytes).is_some()).then_some(pointer)
    }
}

fn sum_of(key: &[u8], value: &[u8]) -> u32 {
    append(plain(value), key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_round_trip_and_no_cut_is_accepted() {
        for pointer in [
            ValuePointer::new(1, 0, b"", b""),
            ValuePointer::new(u64::MAX, u64::MAX - 5, b"key", b"value"),
            ValuePointer::new(300, 1 << 30, b"k", &[7; 4096]),
        ] {
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            assert_eq!(ValuePointer::decode(&bytes), Some(pointer));
            (0..bytes.len()).for_each(|cut| assert_eq!(ValuePointer::decode(&bytes[..cut]), None));
            bytes.push(0);
            assert_eq!(ValuePointer::decode(&bytes), None);
        }
        let behind = ValuePointer { file: 1, offset: u64::MAX, bytes: 1, sum: 0 };
        let mut bytes = Vec::new();
        behind.encode(&mut bytes);
        assert_eq!(ValuePointer::decode(&bytes), None, "it reaches beyond all files");
    }

    #[test]
    fn a_pointer_fits_its_own_key_and_value() {
        let pointer = ValuePointer::new(1, 2, b"key", b"value");
        assert!(pointer.fits(b"key", b"value") && pointer.moved(7, 8).fits(b"key", b"value"));
        assert!(!pointer.fits(b"kez", b"value") && !pointer.fits(b"key", b"valuf"));
        assert!(!pointer.fits(b"ekey", b"valu"));
    }
}
