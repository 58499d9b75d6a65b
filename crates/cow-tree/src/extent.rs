//! A reference: where in the file something lies, how long it is, and its checksum. Parents refer to nodes so,
//! leaves to values, the root to the topmost node.
//!
//! **Invariant:** a reference leads to bytes in front of those it stands in, so references cannot go round.

use forebay_base::checksum::checksum;
use forebay_base::wire::{Reader, put_varint};

/// Bytes of a file that do not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) at: u64,
    pub(crate) bytes: u32,
    /// Seeded with the file's id and the offset.
    pub(crate) sum: u32,
}

impl Extent {
    /// A reference that leads nowhere: no bytes have a checksum that fits.
    pub(crate) const NOWHERE: Self = Self { at: 0, bytes: u32::MAX, sum: 0 };

    /// That of these bytes, which stand there.
    pub(crate) fn of(file_id: u64, at: u64, bytes: &[u8]) -> Self {
        debug_assert!(u32::try_from(bytes.len()).is_ok(), "a reference counts bytes in 32 bits");
        Self { at, bytes: bytes.len() as u32, sum: checksum(file_id, at, bytes) }
    }

    /// Whether these are the bytes.
    pub(crate) fn vouches_for(&self, file_id: u64, bytes: &[u8]) -> bool {
        self.bytes as usize == bytes.len() && self.sum == checksum(file_id, self.at, bytes)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        put_varint(out, self.at);
        put_varint(out, self.bytes as u64);
        out.extend_from_slice(&self.sum.to_le_bytes());
        debug_assert_eq!(
            Self::decode(&mut Reader::new(&out[start..]), u64::MAX),
            Some(*self),
            "what is put is read"
        );
    }

    /// `None` where the bytes are no reference to what ends at or before `end`.
    pub(crate) fn decode(from: &mut Reader<'_>, end: u64) -> Option<Self> {
        let at = from.varint()?;
        let bytes = u32::try_from(from.varint()?).ok()?;
        let sum = from.u32()?;
        (at.checked_add(bytes as u64)? <= end).then_some(Self { at, bytes, sum })
    }
}
