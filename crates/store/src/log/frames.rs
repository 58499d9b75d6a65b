//! Walking the frames of one segment from its front: in its file, a piece at a time, or in its buffer. For whoever
//! reads the log of a database that is in use.

use std::path::Path;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::{Access, FileSystem};

use super::frame::{ALIGN_BYTES, HEADER_BYTES, Header, NO_TRAILER, Secret, Trailer, Whole, place_of};
use super::recover::LogFiles;
use super::window::{PIECE_BYTES, Window};
use crate::buffer::WriteBuffer;
use crate::names;

const _: () = assert!(PIECE_BYTES > HEADER_BYTES && PIECE_BYTES.is_multiple_of(ALIGN_BYTES));

const STRANGE: &str = "a whole frame stands here that is not what was written: it was changed, or FOREBAY.keys is older than \
                       the database, or of another one";

/// A walk over the frames of a segment.
pub struct Frames {
    secret: Secret,
    segment: u64,
    bytes: Bytes,
    len: usize,
    at: usize,
    /// The payload that was decrypted last.
    decrypted: Vec<u8>,
}

enum Bytes {
    File(Window),
    Buffer(Arc<WriteBuffer>),
}

impl Frames {
    /// Those of a segment's file.
    pub fn in_file(fs: &dyn FileSystem, path: &Path, secret: Secret, segment: u64) -> Result<Self> {
        let file = fs.open_read(path, Access::Buffered)?;
        let len = file.len()? as usize;
        Ok(Self { secret, segment, bytes: Bytes::File(Window::new(file)), len, at: 0, decrypted: Vec::new() })
    }

    /// The same, for who walks all of it and nothing else: it is read ahead of the walk.
    pub(super) fn ahead(files: &LogFiles<'_>, segment: u64) -> Result<Self> {
        let path = names::log(files.dir, segment);
        let mut frames = Self::in_file(files.fs, &path, files.secret, segment)?;
        if let Bytes::File(window) = &mut frames.bytes {
            window.read_ahead(files.jobs, frames.len);
        }
        Ok(frames)
    }

    /// Those of a buffer, up to a length that it had.
    pub fn in_buffer(buffer: Arc<WriteBuffer>, secret: Secret, len: usize) -> Self {
        let (segment, bytes) = (buffer.segment(), Bytes::Buffer(buffer));
        Self { secret, segment, bytes, len, at: 0, decrypted: Vec::new() }
    }

    /// The first header of a segment's file, if one stands there, and how long the file is.
    pub fn first(
        fs: &dyn FileSystem,
        dir: &Path,
        secret: Secret,
        segment: u64,
    ) -> Result<(Option<Header>, u64)> {
        let file = fs.open_read(&names::log(dir, segment), Access::Buffered)?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_at(0, &mut bytes)?;
        Ok((Header::at(&bytes, secret, segment, 0), file.len()?))
    }

    /// Where the frame of a segment's file ends that ends with this record, by the headers before it; `None` where those
    /// lead to none.
    pub fn end_of(
        fs: &dyn FileSystem,
        dir: &Path,
        secret: Secret,
        segment: u64,
        last: u64,
    ) -> Result<Option<u64>> {
        let mut frames = Self::in_file(fs, &names::log(dir, segment), secret, segment)?;
        while let Some(header) = frames.header()? {
            frames.pass(&header);
            let here = header.sequence + u64::from(header.records) - 1;
            if here >= last {
                return Ok((here == last).then_some(frames.at as u64));
            }
        }
        Ok(None)
    }

    /// The segment's id.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Where the walk is.
    pub fn place(&self) -> usize {
        self.at
    }

    /// How long the segment is.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether it has passed all there is.
    pub fn is_at_end(&self) -> bool {
        self.at == self.len
    }

    /// The header here; `None` where none stands.
    pub fn header(&mut self) -> Result<Option<Header>> {
        let (secret, segment, at) = (self.secret, self.segment, self.at);
        let header = Header::at(self.read(HEADER_BYTES)?, secret, segment, at);
        Ok(header.filter(|header| header.end(at) <= self.len))
    }

    /// The payload behind the header here; `None` where it is not what was written.
    pub fn payload(&mut self, header: &Header) -> Result<Option<&[u8]>> {
        Ok(self.sound(header)?.map(|(payload, _)| payload))
    }

    /// The frame of the header here, which was found, where it is what was written.
    pub fn whole(&mut self, header: Option<Header>) -> Result<Option<Whole<'_>>> {
        let Some(header) = header else { return Ok(None) };
        let at = self.at;
        Ok(self.sound(&header)?.map(|(payload, trailer)| Whole { at, header, payload, trailer }))
    }

    /// The payload behind the header here, and the trailer that it was decrypted by. What is whole, and cannot be
    /// decrypted, is no torn tail, and so an error.
    fn sound(&mut self, header: &Header) -> Result<Option<(&[u8], Trailer)>> {
        let (secret, segment, at) = (self.secret, self.segment, self.at);
        let keys = match &self.bytes {
            Bytes::File(window) => window.file().data_keys().cloned(),
            Bytes::Buffer(_) => None,
        };
        let Some(keys) = keys else {
            let payload = header.payload(secret, self.read(header.end(0))?);
            return Ok(payload.map(|payload| (payload, NO_TRAILER)));
        };
        let mut text = std::mem::take(&mut self.decrypted);
        let frame = self.read(header.end(0))?;
        // What is not encrypted was not written by this database; and the file may be shorter than it was when the header
        // was read.
        let found = header.stored(secret, frame).filter(|_| header.is_encrypted);
        let Some((stored, trailer)) = found else { return Ok(None) };
        let place = place_of(frame, segment, at);
        text.clear();
        text.extend_from_slice(stored);
        let is_it = keys.decrypt_frame(&place, &mut text, &trailer)?;
        self.decrypted = text;
        match (&self.bytes, is_it) {
            (_, true) => Ok(Some((&self.decrypted, trailer))),
            (Bytes::File(window), false) => Err(Error::corruption(window.file().path(), at as u64, STRANGE)),
            (Bytes::Buffer(_), false) => Ok(None),
        }
    }

    /// Goes on behind the frame of the header here.
    pub fn pass(&mut self, header: &Header) {
        self.at = header.end(self.at);
        debug_assert!(self.at <= self.len, "a header is found only where its frame ends within the segment");
    }

    /// Goes on to the next place from here on where a whole sound frame stands that begins with this record or a later
    /// one, whatever stands before it; to the end where there is none. Frames begin at multiples of eight.
    pub fn seek(&mut self, sequence: u64) -> Result<Option<Header>> {
        let (secret, segment, len) = (self.secret, self.segment, self.len);
        while self.at + HEADER_BYTES <= len {
            self.pass_hole();
            let at = self.at;
            let bytes = self.read(HEADER_BYTES)?;
            let Some(last) = bytes.len().checked_sub(HEADER_BYTES) else { break };
            let candidate = (0..=last).step_by(ALIGN_BYTES).find_map(|ahead| {
                let header = Header::at(&bytes[ahead..], secret, segment, at + ahead)?;
                (header.sequence >= sequence && header.end(at + ahead) <= len).then_some((ahead, header))
            });
            let Some((ahead, header)) = candidate else {
                self.at += last / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES;
                continue;
            };
            self.at += ahead;
            match self.payload(&header) {
                Ok(Some(_)) => return Ok(Some(header)),
                Err(error) if !error.is_corruption() => return Err(error),
                _ => {}
            }
            self.at += ALIGN_BYTES;
        }
        self.at = len;
        Ok(None)
    }

    /// Whether there are zeros only from here on.
    pub fn is_blank(&mut self) -> Result<bool> {
        while self.at < self.len {
            self.pass_hole();
            let bytes = self.read(1)?;
            if bytes.is_empty() {
                break;
            }
            let (count, is_blank) = (bytes.len(), bytes.iter().all(|&byte| byte == 0));
            if !is_blank {
                return Ok(false);
            }
            self.at += count;
        }
        Ok(true)
    }

    /// Passes what was reserved and never written, which is most of a long segment that was just begun. Of what is in
    /// memory by now zeros are passed with it, where no header is left that could begin there.
    fn pass_hole(&mut self) {
        let Bytes::File(window) = &self.bytes else { return };
        let (known, left) = (window.end().max(self.at), window.at(self.at));
        if left.len() < HEADER_BYTES && left.iter().all(|&byte| byte == 0) {
            let written = window.file().written_from(known as u64).min(self.len as u64) as usize;
            if written.saturating_sub(known) >= HEADER_BYTES {
                self.at = written / ALIGN_BYTES * ALIGN_BYTES;
            }
        }
    }

    /// Goes on at this place.
    pub fn go_to(&mut self, place: usize) {
        self.at = place;
    }

    /// At least this many bytes from here on, unless there are fewer.
    fn read(&mut self, bytes: usize) -> Result<&[u8]> {
        let (at, end) = (self.at, (self.at + bytes).min(self.len));
        match &mut self.bytes {
            Bytes::Buffer(buffer) => Ok(buffer.bytes().get(at..end).unwrap_or_default()),
            Bytes::File(window) => {
                window.load(at, end, self.len)?;
                Ok(window.at(at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::{Order, Record};
    use forebay_env::fs::MemoryFs;

    use super::*;
    use crate::log::batch::Payload;
    use crate::log::frame::frame_bytes;

    const SECRET: Secret = Secret(99);

    /// A frame that stands behind much that was never written is found, wherever in a block it begins, and zeros behind
    /// the last are passed.
    #[test]
    fn frames_are_found_behind_holes() {
        let (fs, dir) = (MemoryFs::new(), Path::new("/log"));
        fs.create_dir_all(dir).unwrap();
        let mut payload = Payload::default();
        payload.push(1, Order::Lexical, &Record::put(b"key", b"value"));
        let header = Header {
            payload_sum: payload.sum(SECRET),
            is_encrypted: false,
            payload_bytes: payload.bytes().len() as u32,
            records: 1,
            sequence: 5,
            watermark: 0,
        };
        let path = names::log(dir, 7);
        let hole = 3 * PIECE_BYTES;
        for at in
            [0, 8, PIECE_BYTES - 8, PIECE_BYTES - 24, PIECE_BYTES, hole - 40, hole - 8, hole, hole + 4088]
        {
            let file = fs.create(&path, Access::Buffered).unwrap();
            file.set_len(5 * PIECE_BYTES as u64).unwrap();
            file.write_at(at as u64, &[&header.encode(SECRET, 7, at)[..], payload.bytes()].concat()).unwrap();
            let mut frames = Frames::in_file(&*fs, &path, SECRET, 7).unwrap();
            assert_eq!(frames.seek(1).unwrap().map(|found| found.sequence), Some(5), "at {at}");
            assert_eq!(frames.place(), at);
            frames.pass(&header);
            let end = frames.place();
            assert_eq!(frames.seek(1).unwrap(), None);
            frames.go_to(end);
            assert!(frames.is_blank().unwrap());
            frames.go_to(0);
            assert!(!frames.is_blank().unwrap(), "at {at}");
        }
    }

    /// A frame of one put, at the end of the image of segment 7.
    fn append(image: &mut Vec<u8>, sequence: u64, value: &[u8]) {
        let mut payload = Payload::default();
        payload.push(1, Order::Lexical, &Record::put(b"key", value));
        let header = Header {
            payload_sum: payload.sum(SECRET),
            is_encrypted: false,
            payload_bytes: payload.bytes().len() as u32,
            records: 1,
            sequence,
            watermark: 0,
        };
        let start = image.len();
        image.extend(header.encode(SECRET, 7, start));
        image.extend(payload.bytes());
        image.resize(start + frame_bytes(payload.bytes().len()), 0);
    }

    /// What a file has reserved behind its last frame does not count; where a header is damaged nothing tells how much
    /// does.
    #[test]
    fn a_segment_ends_where_its_last_record_does() {
        let (fs, dir) = (MemoryFs::new(), Path::new("/log"));
        fs.create_dir_all(dir).unwrap();
        let mut image = Vec::new();
        (5..8).for_each(|sequence| append(&mut image, sequence, b"value"));
        let frame = image.len() / 3;
        image.resize(8 << 10, 0);
        let file = fs.create(&names::log(dir, 7), Access::Buffered).unwrap();
        file.write_at(0, &image).unwrap();
        let end_of = |last| Frames::end_of(&*fs, dir, SECRET, 7, last).unwrap();
        assert_eq!([4, 5, 7, 8].map(end_of), [None, Some(frame as u64), Some(3 * frame as u64), None]);
        file.write_at(frame as u64, &[0xff; 4]).unwrap();
        assert_eq!(end_of(7), None);
    }

    /// Frames of all lengths come back, those longer than a piece too; a flipped byte ends the walk at its frame.
    #[test]
    fn frames_come_back_whatever_their_length() {
        let (fs, dir) = (MemoryFs::new(), Path::new("/log"));
        fs.create_dir_all(dir).unwrap();
        let lengths = [0, 1, 700_000, 400_000, 3 * PIECE_BYTES, 5, PIECE_BYTES - 60, 9];
        let mut image = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            append(&mut image, number as u64 + 1, &vec![number as u8; *length]);
        }
        let path = names::log(dir, 7);
        let file = fs.create(&path, Access::Buffered).unwrap();
        file.write_at(0, &image).unwrap();
        let walk = || {
            let mut frames = Frames::in_file(&*fs, &path, SECRET, 7).unwrap();
            let mut sequences = Vec::new();
            while let Some(header) = frames.header().unwrap() {
                if frames.payload(&header).unwrap().is_none() {
                    break;
                }
                sequences.push(header.sequence);
                frames.pass(&header);
            }
            (sequences, frames.is_at_end())
        };
        assert_eq!(walk(), ((1..=8).collect(), true));
        assert_eq!(Frames::first(&*fs, dir, SECRET, 7).unwrap().1, image.len() as u64);
        let third = 2 * frame_bytes(7) + 8;
        for (at, left) in [(0, 0), (third + 600_000, 2), (image.len() - 1, 7)] {
            let mut byte = [0];
            file.read_at(at as u64, &mut byte).unwrap();
            file.write_at(at as u64, &[!byte[0]]).unwrap();
            assert_eq!(walk(), ((1..=left).collect(), false), "byte {at}");
            file.write_at(at as u64, &byte).unwrap();
        }
        file.set_len(image.len() as u64 - 1).unwrap();
        assert_eq!(walk(), ((1..=7).collect(), false));
    }
}
