//! Walking the frames of one segment from its front: in its file, a piece at a time, or in its buffer. For whoever reads
//! the log of a database that is in use.

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::{Access, File, FileSystem};

use super::frame::{HEADER_BYTES, Header};
use crate::buffer::WriteBuffer;
use crate::names;

/// How much of a file is read at a time, unless a frame is longer.
const PIECE_BYTES: usize = 1 << 20;

/// A walk over the frames of a segment.
pub struct Frames {
    segment: u64,
    bytes: Bytes,
    len: usize,
    at: usize,
}

enum Bytes {
    File {
        file: Arc<dyn File>,
        /// What was read last, and where that begins.
        piece: Vec<u8>,
        start: usize,
    },
    Buffer(Arc<WriteBuffer>),
}

impl Frames {
    /// Those of a segment's file.
    pub fn in_file(fs: &dyn FileSystem, path: &Path, segment: u64) -> Result<Self> {
        let file = fs.open_read(path, Access::Buffered)?;
        let len = file.len()? as usize;
        Ok(Self { segment, bytes: Bytes::File { file, piece: Vec::new(), start: 0 }, len, at: 0 })
    }

    /// Those of a buffer, up to a length that it had.
    pub fn in_buffer(buffer: Arc<WriteBuffer>, len: usize) -> Self {
        Self { segment: buffer.segment(), bytes: Bytes::Buffer(buffer), len, at: 0 }
    }

    /// The first header of a segment's file, if one stands there, and how long the file is.
    pub fn first(fs: &dyn FileSystem, dir: &Path, segment: u64) -> Result<(Option<Header>, u64)> {
        let file = fs.open_read(&names::log(dir, segment), Access::Buffered)?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_at(0, &mut bytes)?;
        Ok((Header::at(&bytes, segment, 0), file.len()?))
    }

    /// The segment's id.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Where the walk is.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Whether it has passed all there is.
    pub fn is_at_end(&self) -> bool {
        self.at == self.len
    }

    /// The header here; `None` where none stands.
    pub fn header(&mut self) -> Result<Option<Header>> {
        let (segment, at) = (self.segment, self.at);
        let header = Header::at(self.read(HEADER_BYTES)?, segment, at);
        Ok(header.filter(|header| header.end(at) <= self.len))
    }

    /// The payload behind the header here; `None` where it is not what was written.
    pub fn payload(&mut self, header: &Header) -> Result<Option<&[u8]>> {
        Ok(header.payload(self.read(header.end(0))?))
    }

    /// Goes on behind the frame of the header here.
    pub fn pass(&mut self, header: &Header) {
        self.at = header.end(self.at);
    }

    /// At least so many bytes from here on, unless there are fewer.
    fn read(&mut self, bytes: usize) -> Result<&[u8]> {
        let (at, end) = (self.at, (self.at + bytes).min(self.len));
        match &mut self.bytes {
            Bytes::Buffer(buffer) => Ok(buffer.bytes().get(at..end).unwrap_or_default()),
            Bytes::File { file, piece, start } => {
                if at < *start || end > *start + piece.len() {
                    piece.resize(bytes.max(PIECE_BYTES).min(self.len - at), 0);
                    *start = at;
                    let got = file.read_at(at as u64, piece)?;
                    piece.truncate(got);
                }
                Ok(piece.get(at - *start..).unwrap_or_default())
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

    /// Frames of all lengths come back, those longer than a piece too; a flipped byte ends the walk at its frame.
    #[test]
    fn frames_come_back_whatever_their_length() {
        let (fs, dir) = (MemoryFs::new(), Path::new("/log"));
        fs.create_dir_all(dir).unwrap();
        let lengths = [0, 1, 700_000, 400_000, 3 * PIECE_BYTES, 5, PIECE_BYTES - 60, 9];
        let mut image = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            let mut payload = Payload::default();
            payload.push(1, Order::Lexical, &Record::put(b"key", &vec![number as u8; *length]));
            let header = Header {
                payload_sum: payload.sum(),
                payload_bytes: payload.bytes().len() as u32,
                records: 1,
                sequence: number as u64 + 1,
                watermark: 0,
            };
            let start = image.len();
            image.extend(header.encode(7, start));
            image.extend(payload.bytes());
            image.resize(start + frame_bytes(payload.bytes().len()), 0);
        }
        let path = names::log(dir, 7);
        let file = fs.create(&path, Access::Buffered).unwrap();
        file.write_at(0, &image).unwrap();
        let walk = || {
            let mut frames = Frames::in_file(&*fs, &path, 7).unwrap();
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
        assert_eq!(Frames::first(&*fs, dir, 7).unwrap().1, image.len() as u64);
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
