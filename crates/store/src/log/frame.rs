//! A frame: 32 bytes of header, a payload, zeros up to a multiple of eight.
//!
//! `u32 header_sum | u32 payload_sum | u32 payload_bytes | u32 records | u64 sequence | u64 watermark`
//!
//! `sequence` numbers the frame's first record; `watermark` is the highest sequence that was known durable
//! when the frame was made. The header's checksum is seeded with the segment's id and the frame's offset, so
//! that what a recycled file still holds of its last life is not taken for a frame; and both checksums with the
//! database's [secret](Secret), so that no value can be made that is.

use forebay_base::checksum::{append, checksum};
use forebay_base::hash::mix;
use forebay_base::wire::{u32_at, u64_at};
use forebay_env::Appender;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 32;
/// Where a frame may begin.
pub(super) const ALIGN_BYTES: usize = 8;

const _: () = assert!(HEADER_BYTES == 3 * 8 + 8 && HEADER_BYTES.is_multiple_of(ALIGN_BYTES));

/// What a database's frames are seeded with besides their places. Who chooses keys and values does not know it, and so
/// cannot make bytes that look like a frame. It is 0 in databases of format version 1, which have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Secret(pub u64);

impl Secret {
    /// The checksum of a payload.
    pub fn payload_sum(self, payload: &[u8]) -> u32 {
        append(mix(self.0) as u32, payload)
    }

    fn header_sum(self, segment: u64, offset: usize, fields: &[u8]) -> u32 {
        checksum(segment ^ self.0, offset as u64, fields)
    }
}

/// A frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Checksum of the payload.
    pub payload_sum: u32,
    /// Length of the payload.
    pub payload_bytes: u32,
    /// Records in it.
    pub records: u32,
    /// Number of the first.
    pub sequence: u64,
    /// Highest number known durable.
    pub watermark: u64,
}

/// What a frame with so long a payload takes.
pub const fn frame_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(ALIGN_BYTES)
}

impl Header {
    /// The header's bytes for this place.
    pub fn encode(&self, secret: Secret, segment: u64, offset: usize) -> [u8; HEADER_BYTES] {
        debug_assert!(offset.is_multiple_of(ALIGN_BYTES), "who looks for frames would not look at {offset}");
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_sum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.records.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.watermark.to_le_bytes());
        let sum = secret.header_sum(segment, offset, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        debug_assert_eq!(Self::fields(&bytes), *self, "what is written is read");
        bytes
    }

    /// The header that bytes begin with, which stand at `offset` of the segment. None that no writer makes is taken
    /// for one: a frame has records, whose numbers do not end, and none of them was durable when it was made.
    pub fn at(bytes: &[u8], secret: Secret, segment: u64, offset: usize) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let header = Self::fields(bytes);
        let is_possible = header.records > 0
            && header.watermark < header.sequence
            && header.sequence.checked_add(u64::from(header.records)).is_some();
        (is_possible && secret.header_sum(segment, offset, &bytes[4..]) == u32_at(bytes, 0)).then_some(header)
    }

    /// The payload of the frame that bytes begin with, this header's, if it is whole and sound. Padding must be zeros.
    pub fn payload<'a>(&self, secret: Secret, frame: &'a [u8]) -> Option<&'a [u8]> {
        let (payload, padding) = frame.get(HEADER_BYTES..self.end(0))?.split_at(self.payload_bytes as usize);
        let is_sound =
            secret.payload_sum(payload) == self.payload_sum && padding.iter().all(|&byte| byte == 0);
        is_sound.then_some(payload)
    }

    pub(super) fn fields(bytes: &[u8]) -> Self {
        Self {
            payload_sum: u32_at(bytes, 4),
            payload_bytes: u32_at(bytes, 8),
            records: u32_at(bytes, 12),
            sequence: u64_at(bytes, 16),
            watermark: u64_at(bytes, 24),
        }
    }

    /// Where the frame that begins at `offset` ends.
    pub fn end(&self, offset: usize) -> usize {
        offset + frame_bytes(self.payload_bytes as usize)
    }
}

/// Appends a frame with this header; `None` where it does not fit. Readers do not see it yet.
#[inline]
pub(crate) fn append_frame(appender: &mut Appender, head: &[u8; HEADER_BYTES], payload: &[u8]) -> Option<()> {
    let padding = [0; ALIGN_BYTES];
    let padded = frame_bytes(payload.len()) - HEADER_BYTES - payload.len();
    for piece in [&head[..], payload, &padding[..padded]] {
        appender.append(piece)?;
    }
    Some(())
}

/// Walks the frames of memory that is known to be sound: yields where each payload starts, and the payload.
pub fn walk(arena: &[u8], from: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = from;
    std::iter::from_fn(move || {
        let header = Header::fields(arena.get(at..at + HEADER_BYTES)?);
        let start = at + HEADER_BYTES;
        let payload = arena.get(start..start + header.payload_bytes as usize)?;
        at = header.end(at);
        Some((start, payload))
    })
}

/// Where the frame ends whose payload, as [`walk`] yields it, starts at `start`.
pub fn end_of(start: usize, payload: &[u8]) -> usize {
    debug_assert!(start >= HEADER_BYTES, "a header stands before each payload");
    start - HEADER_BYTES + frame_bytes(payload.len())
}

/// The number of the first record of sound memory; 0 where there is none.
pub fn first_sequence(arena: &[u8]) -> u64 {
    arena.get(..HEADER_BYTES).map_or(0, |bytes| Header::fields(bytes).sequence)
}

/// How many records the frames of sound memory hold.
pub fn records_of(arena: &[u8]) -> u64 {
    let (mut at, mut records) = (0, 0);
    while let Some(bytes) = arena.get(at..at + HEADER_BYTES) {
        let header = Header::fields(bytes);
        records += header.records as u64;
        at = header.end(at);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To save what is left, reading goes on at any later record: behind this one no number could follow.
    #[test]
    fn a_frame_behind_whose_records_no_number_follows_is_none() {
        let (secret, fields) = (Secret(3), [0; 4]);
        for (sequence, is_one) in [(u64::MAX - 3, true), (u64::MAX - 2, false), (u64::MAX, false)] {
            let payload_sum = secret.payload_sum(&fields);
            let header = Header { payload_sum, payload_bytes: 4, records: 3, sequence, watermark: 0 };
            let bytes = header.encode(secret, 5, 64);
            assert_eq!(Header::at(&bytes, secret, 5, 64), Some(header).filter(|_| is_one));
        }
    }
}
