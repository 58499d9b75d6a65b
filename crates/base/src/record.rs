//! One record and its bytes. The same bytes stand in a batch, in the log, in the write buffer and in a
//! list's variable pages: `varint(key_bytes << 2 | kind) varint(value_bytes) key value`.

use crate::limits::{KEY_BYTES_MAX, STORED_VALUE_BYTES_MAX};
use crate::pointer::POINTER_BYTES;
use crate::wire::{get_varint, put_raw, put_varint, varint_bytes};

/// What a record does to its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// The key has this value.
    #[default]
    Put = 0,
    /// The key has no value: a tombstone. Its value is empty.
    Delete = 1,
    /// An operand that the table's combine rule folds into what is older. In a table of states, whose puts are folded so:
    /// a state into which nothing older is, as a delete came between.
    Merge = 2,
    /// The key has a value that stands in a value file; this one's value is the [way to it](crate::ValuePointer). In
    /// lists alone: neither the log nor a write buffer has any.
    Pointer = 3,
}

impl Kind {
    /// The kind of this number.
    pub fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => Some(Self::Put),
            1 => Some(Self::Delete),
            2 => Some(Self::Merge),
            3 => Some(Self::Pointer),
            _ => None,
        }
    }
}

// A tag has two bits for the kind. The log, which has no pointers, has that number for itself.
const _: () = assert!(Kind::Put as u8 == 0 && Kind::Delete as u8 == 1 && Kind::Merge as u8 == 2);
const _: () = assert!(Kind::Pointer as u8 == 3, "lists have it on disk");

/// A borrowed record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// What it does.
    pub kind: Kind,
    /// Up to 64 KiB; may be empty.
    pub key: &'a [u8],
    /// Up to 256 MiB where it was brought, up to 2 GiB where it was merged; may be empty.
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record that sets `key` to `value`.
    pub fn put(key: &'a [u8], value: &'a [u8]) -> Self {
        Self { kind: Kind::Put, key, value }
    }

    /// A tombstone.
    pub fn delete(key: &'a [u8]) -> Self {
        Self { kind: Kind::Delete, key, value: &[] }
    }

    /// How many bytes [`encode`](Self::encode) appends.
    #[inline]
    pub fn encoded_bytes(&self) -> usize {
        varint_bytes((self.key.len() as u64) << 2)
            + varint_bytes(self.value.len() as u64)
            + self.key.len()
            + self.value.len()
    }

    /// Appends the record's bytes.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        // The commonest record is one store of a known length.
        if let (Ok(key), Ok(value)) = (<[u8; 8]>::try_from(self.key), <[u8; 8]>::try_from(self.value)) {
            let mut bytes = [8 << 2 | self.kind as u8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes[2..10].copy_from_slice(&key);
            bytes[10..].copy_from_slice(&value);
            return out.extend_from_slice(&bytes);
        }
        let (tag, value_bytes) = ((self.key.len() as u64) << 2 | self.kind as u64, self.value.len() as u64);
        if tag < 0x80 && value_bytes < 0x80 {
            out.extend_from_slice(&[tag as u8, value_bytes as u8]);
        } else {
            put_varint(out, tag);
            put_varint(out, value_bytes);
        }
        put_raw(out, self.key);
        put_raw(out, self.value);
        debug_assert_eq!(
            out.len() - start,
            self.encoded_bytes(),
            "who counts before it encodes counts right"
        );
    }

    /// The record at the start of `bytes` and its length; `None` where the bytes are not a record.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (tag, tag_bytes) = get_varint(bytes)?;
        let (value_bytes, length_bytes) = get_varint(&bytes[tag_bytes..])?;
        let kind = Kind::from_bits(tag & 3)?;
        let key_bytes = usize::try_from(tag >> 2).ok()?;
        let value_bytes = usize::try_from(value_bytes).ok()?;
        if key_bytes > KEY_BYTES_MAX || value_bytes > STORED_VALUE_BYTES_MAX {
            return None;
        }
        let key_at = tag_bytes + length_bytes;
        let value_at = key_at + key_bytes;
        let end = value_at + value_bytes;
        if end > bytes.len() {
            return None;
        }
        let record = Self { kind, key: &bytes[key_at..value_at], value: &bytes[value_at..end] };
        debug_assert!(record.encoded_bytes() <= end, "no encoding is shorter than the writer's own");
        Some((record, end))
    }
}

/// The sizes that every record of a list or buffer has in common, if any. Fixed-size records pay no
/// lengths on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// No record seen yet.
    #[default]
    Unknown,
    /// All records are puts with these sizes.
    Fixed {
        /// Bytes of every key.
        key_bytes: u32,
        /// Bytes of every value.
        value_bytes: u32,
    },
    /// All records are pointers of [`POINTER_BYTES`], of keys of this size.
    Pointers {
        /// Bytes of every key.
        key_bytes: u32,
    },
    /// All records are puts of any sizes. Fragments in memory may say so; a list file has no word for it.
    Puts,
    /// Sizes or kinds differ.
    Variable,
}

impl Shape {
    /// The shape of one record.
    #[inline]
    pub fn of(record: &Record<'_>) -> Self {
        match record.kind {
            Kind::Put => {
                Self::Fixed { key_bytes: record.key.len() as u32, value_bytes: record.value.len() as u32 }
            }
            Kind::Pointer if record.value.len() == POINTER_BYTES => {
                Self::Pointers { key_bytes: record.key.len() as u32 }
            }
            _ => Self::Variable,
        }
    }

    /// Bytes of every key and of every value, where all have the same.
    #[inline]
    pub fn sizes(self) -> Option<(usize, usize)> {
        match self {
            Self::Fixed { key_bytes, value_bytes } => Some((key_bytes as usize, value_bytes as usize)),
            Self::Pointers { key_bytes } => Some((key_bytes as usize, POINTER_BYTES)),
            Self::Unknown | Self::Puts | Self::Variable => None,
        }
    }

    /// What every record does; `None` where that differs.
    #[inline]
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Fixed { .. } | Self::Puts => Some(Kind::Put),
            Self::Pointers { .. } => Some(Kind::Pointer),
            Self::Unknown | Self::Variable => None,
        }
    }

    /// The shape of records of either shape.
    #[inline]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, shape) | (shape, Self::Unknown) => shape,
            (left, right) if left == right => left,
            (Self::Puts, Self::Fixed { .. }) | (Self::Fixed { .. }, Self::Puts) => Self::Puts,
            _ => Self::Variable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_no_cut_is_accepted() {
        let value = vec![7; 300];
        let pointer = Record { kind: Kind::Pointer, key: b"far", value: &value[..9] };
        for record in [Record::put(b"", b""), Record::put(b"key", &value), Record::delete(b"gone"), pointer] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(bytes.len(), record.encoded_bytes());
            assert_eq!(Record::decode(&bytes), Some((record, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..cut]), None);
            }
        }
    }
}
