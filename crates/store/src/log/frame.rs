//! A frame: 32 bytes of header, a payload, zeros up to a multiple of eight.
//!
//! `u32 header_sum | u32 payload_sum | u32 payload_bytes | u32 records | u64 sequence | u64 watermark`
//!
//! `sequence` numbers the frame's first record; `watermark` is the highest sequence that was known durable
//! when the frame was made. The top bit of `payload_bytes` is set in an encrypted database. There a trailer stands
//! between payload and padding, and in files both checksums are those of the ciphertext; in memory the payload is plain,
//! and the trailer zeros, or, of a frame that was read, what it is in the file: so a frame has one place and one length in
//! both, and what was read is written again as the same bytes. The header's checksum is seeded with the segment's id and
//! the frame's offset, so that what a recycled file still holds of its last life is not taken for a frame; and both
//! checksums with the database's [secret](Secret), so that no value can be made that is.

use forebay_base::checksum::{append, checksum};
use forebay_base::hash::mix;
use forebay_base::wire::{u32_at, u64_at};
use forebay_base::{Error, Result};
use forebay_env::encryption::{DataKeys, TRAILER_BYTES};
use forebay_env::{Appender, File};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 32;
/// Where a frame may begin.
pub(super) const ALIGN_BYTES: usize = 8;

/// Set in the length of a payload behind which a trailer stands.
const TRAILER_BIT: u32 = 1 << 31;
/// The trailer of a frame that was not encrypted yet.
pub(crate) const NO_TRAILER: [u8; TRAILER_BYTES] = [0; TRAILER_BYTES];
/// About so much is encrypted before it is written.
const PIECE_BYTES: usize = 256 << 10;

const _: () = assert!(HEADER_BYTES == 3 * 8 + 8 && HEADER_BYTES.is_multiple_of(ALIGN_BYTES));
const _: () = assert!(TRAILER_BYTES == HEADER_BYTES, "a frame is known again by either");

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
    /// Checksum of the payload; in a file, of its ciphertext and the trailer, where it is encrypted.
    pub payload_sum: u32,
    /// Whether it is encrypted in files.
    pub is_encrypted: bool,
    /// Length of the payload.
    pub payload_bytes: u32,
    /// Records in it.
    pub records: u32,
    /// Number of the first.
    pub sequence: u64,
    /// Highest number known durable.
    pub watermark: u64,
}

/// What a frame with so long a payload takes that is not encrypted.
pub const fn frame_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(ALIGN_BYTES)
}

/// What a frame with so long a payload takes at most.
pub const fn frame_bytes_max(payload_bytes: usize) -> usize {
    frame_bytes(payload_bytes + TRAILER_BYTES)
}

impl Header {
    /// The header's bytes for this place.
    pub fn encode(&self, secret: Secret, segment: u64, offset: usize) -> [u8; HEADER_BYTES] {
        debug_assert!(offset.is_multiple_of(ALIGN_BYTES), "who looks for frames would not look at {offset}");
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_sum.to_le_bytes());
        debug_assert!(self.payload_bytes < TRAILER_BIT, "batches are shorter");
        let flag = if self.is_encrypted { TRAILER_BIT } else { 0 };
        bytes[8..12].copy_from_slice(&(self.payload_bytes | flag).to_le_bytes());
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
        (header.is_possible() && secret.header_sum(segment, offset, &bytes[4..]) == u32_at(bytes, 0))
            .then_some(header)
    }

    /// Whether a file of so many bytes that begins with these may be a segment, whichever that is: what its first header
    /// says is possible. Of other bytes that is hardly ever so.
    pub fn may_begin(bytes: &[u8; HEADER_BYTES], file_bytes: u64) -> bool {
        let header = Self::fields(bytes);
        header.is_possible() && header.records <= header.payload_bytes && header.end(0) as u64 <= file_bytes
    }

    /// Whether a writer may have made it.
    fn is_possible(&self) -> bool {
        self.records > 0
            && self.watermark < self.sequence
            && self.sequence.checked_add(u64::from(self.records)).is_some()
    }

    /// The payload of the frame that bytes begin with, this header's, if it is whole and sound, and is not encrypted
    /// here. Padding must be zeros.
    pub fn payload<'a>(&self, secret: Secret, frame: &'a [u8]) -> Option<&'a [u8]> {
        self.summed(secret, frame, self.payload_bytes as usize)
    }

    /// Ciphertext and trailer of the frame that bytes begin with, this header's, if it is whole, sound and encrypted here.
    pub(super) fn stored<'a>(&self, secret: Secret, frame: &'a [u8]) -> Option<(&'a [u8], Trailer)> {
        let stored = self.summed(secret, frame, self.payload_bytes as usize + self.trailer_bytes())?;
        let (text, trailer) = stored.split_last_chunk()?;
        Some((text, *trailer))
    }

    /// What stands behind the header, of this length, if its checksum matches and the padding is zeros.
    fn summed<'a>(&self, secret: Secret, frame: &'a [u8], bytes: usize) -> Option<&'a [u8]> {
        let behind = frame.get(HEADER_BYTES..self.end(0))?;
        let (_, padding) = behind.split_at_checked(self.payload_bytes as usize + self.trailer_bytes())?;
        let summed = behind.get(..bytes)?;
        let is_sound =
            secret.payload_sum(summed) == self.payload_sum && padding.iter().all(|&byte| byte == 0);
        is_sound.then_some(summed)
    }

    /// Where the bytes stand by which the frame that begins at `offset` is known again, in memory and in its file: its
    /// header, or, where it is encrypted, the trailer, whose tag tells it from any other.
    pub(super) fn mark_at(&self, offset: usize) -> usize {
        if self.is_encrypted { offset + HEADER_BYTES + self.payload_bytes as usize } else { offset }
    }

    fn trailer_bytes(&self) -> usize {
        if self.is_encrypted { TRAILER_BYTES } else { 0 }
    }

    pub(super) fn fields(bytes: &[u8]) -> Self {
        Self {
            payload_sum: u32_at(bytes, 4),
            is_encrypted: u32_at(bytes, 8) & TRAILER_BIT != 0,
            payload_bytes: u32_at(bytes, 8) & !TRAILER_BIT,
            records: u32_at(bytes, 12),
            sequence: u64_at(bytes, 16),
            watermark: u64_at(bytes, 24),
        }
    }

    /// Where the frame that begins at `offset` ends.
    pub fn end(&self, offset: usize) -> usize {
        offset + frame_bytes(self.payload_bytes as usize + self.trailer_bytes())
    }
}

/// What stands behind the ciphertext of a frame.
pub(super) type Trailer = [u8; TRAILER_BYTES];

/// A frame that was found whole and sound.
pub struct Whole<'a> {
    /// Where in its segment it stands.
    pub at: usize,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
    /// The trailer that it was decrypted by; else zeros.
    pub(super) trailer: Trailer,
}

/// Appends a frame with this header, as it is in memory; `None` where it does not fit. Readers do not see it yet.
#[inline]
pub(crate) fn append_frame(
    appender: &mut Appender,
    head: &[u8; HEADER_BYTES],
    payload: &[u8],
    trailer: &[u8; TRAILER_BYTES],
) -> Option<()> {
    let header = Header::fields(head);
    let trailer = &trailer[..header.trailer_bytes()];
    let padding = header.end(0) - HEADER_BYTES - payload.len() - trailer.len();
    for piece in [&head[..], payload, trailer, &[0; ALIGN_BYTES][..padding]] {
        appender.append(piece)?;
    }
    Some(())
}

/// What the tag of an encrypted frame vouches for besides its payload: where it stands, and its header but for the
/// checksums.
pub(super) fn place_of(frame: &[u8], segment: u64, offset: usize) -> [u8; HEADER_BYTES + 8] {
    let mut place = [0; HEADER_BYTES + 8];
    place[..8].copy_from_slice(&segment.to_le_bytes());
    place[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
    place[16..].copy_from_slice(&frame[8..HEADER_BYTES]);
    place
}

/// Writes whole frames of memory to a segment's file at this offset; encrypted, where they are to be.
pub fn write(file: &dyn File, secret: Secret, segment: u64, offset: usize, image: &[u8]) -> Result<()> {
    let Some(keys) = file.data_keys() else { return file.write_at(offset as u64, image) };
    let mut at = 0;
    while at < image.len() {
        let piece = encrypted(keys, secret, segment, offset + at, &image[at..])?;
        file.write_at((offset + at) as u64, &piece)?;
        at += piece.len();
    }
    Ok(())
}

/// The same, without a call, if that can be done: see [`File::store_at`].
pub(super) fn store(
    file: &dyn File,
    secret: Secret,
    segment: u64,
    offset: usize,
    image: &[u8],
) -> Result<bool> {
    match file.data_keys() {
        None => file.store_at(offset as u64, image),
        Some(keys) => {
            let piece = encrypted(keys, secret, segment, offset, image)?;
            debug_assert_eq!(piece.len(), image.len(), "who stores has little");
            file.store_at(offset as u64, &piece)
        }
    }
}

/// Some of the frames of memory that stands at this offset of a segment, as its file has them.
fn encrypted(keys: &DataKeys, secret: Secret, segment: u64, offset: usize, image: &[u8]) -> Result<Vec<u8>> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < image.len() && at < PIECE_BYTES {
        let whole = image.get(at..).filter(|rest| rest.len() >= HEADER_BYTES).map(Header::fields);
        let frame = whole.and_then(|header| Some((header, image.get(at..header.end(at))?)));
        let Some((header, frame)) = frame.filter(|(header, _)| header.is_encrypted) else {
            return Err(Error::bug(
                "what is written to the log is not whole frames that are to be encrypted",
            ));
        };
        out.extend_from_slice(frame);
        let stored = &mut out[at..];
        let place = place_of(frame, segment, offset + at);
        let text_end = HEADER_BYTES + header.payload_bytes as usize;
        let (text, behind) = stored[HEADER_BYTES..].split_at_mut(text_end - HEADER_BYTES);
        let known = &mut behind[..TRAILER_BYTES];
        let trailer = match known == NO_TRAILER {
            true => keys.encrypt_frame(&place, text)?,
            false => keys.encrypt_again(&place, text, known)?,
        };
        known.copy_from_slice(&trailer);
        let payload_sum = secret.payload_sum(&stored[HEADER_BYTES..text_end + TRAILER_BYTES]);
        let head = Header { payload_sum, ..header }.encode(secret, segment, offset + at);
        stored[..HEADER_BYTES].copy_from_slice(&head);
        at = header.end(at);
    }
    Ok(out)
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

/// Where the frame of sound memory ends whose payload, as [`walk`] yields it, starts at `start`.
pub fn end_of(arena: &[u8], start: usize) -> usize {
    debug_assert!(start >= HEADER_BYTES, "a header stands before each payload");
    Header::fields(&arena[start - HEADER_BYTES..]).end(start - HEADER_BYTES)
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
            let header = Header {
                payload_sum,
                is_encrypted: false,
                payload_bytes: 4,
                records: 3,
                sequence,
                watermark: 0,
            };
            let bytes = header.encode(secret, 5, 64);
            assert_eq!(Header::at(&bytes, secret, 5, 64), Some(header).filter(|_| is_one));
        }
    }
}
