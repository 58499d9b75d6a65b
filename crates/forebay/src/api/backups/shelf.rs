//! The pieces of backups: how they are put into their directory, and read again.

use std::ops::Range;
use std::path::{Path, PathBuf};

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result, checksum};
use forebay_env::{Access, File, FileSystem};

use super::catalog::{Entry, Piece};
use crate::history::{Part, PartKind, pour};

/// A file has no more pieces than this: then it is copied whole.
const PIECES_MAX: usize = 64;
/// How names end of what is not whole yet.
pub(super) const UNFINISHED: &str = ".tmp";

/// A directory of pieces.
pub(super) struct Shelf<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) dir: &'a Path,
    /// Bytes that were copied.
    pub(super) copied_bytes: u64,
}

impl Shelf<'_> {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Puts a file that was there before the backup, of which an earlier backup may have all or a front.
    pub(super) fn put(&mut self, part: &Part, number: u64, earlier: &[&Entry]) -> Result<Entry> {
        let Part { kind, path, name, bytes, digest } = part;
        let digest = match (kind, digest) {
            (PartKind::Segment, _) => return self.put_own(path, name, *bytes, number),
            (_, Some(digest)) => *digest,
            // Nothing but its bytes tells a value file from one that another copy of the database has.
            (_, None) => {
                pour_summed(&*self.fs.open_read(path, Access::Buffered)?, 0..*bytes, &mut |_, _| Ok(()))?
            }
        };
        let known = || earlier.iter().filter(|entry| entry.name == *name);
        let is_it = |entry: &&&Entry| {
            let last = entry.pieces.last().map_or("", |last| &last.name);
            entry.bytes() == *bytes && last.contains(&format!("-{digest:08x}-"))
        };
        for whole in known().filter(is_it) {
            if self.has(whole)? {
                return Ok(Entry::clone(whole));
            }
        }
        let mut pieces = Vec::new();
        if *kind == PartKind::Tree {
            for front in known() {
                if self.continues(front, path, *bytes)? {
                    pieces.clone_from(&front.pieces);
                    break;
                }
            }
        }
        let from: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        debug_assert!(
            from == 0 || *kind == PartKind::Tree && from < *bytes,
            "only a tree goes on behind a front"
        );
        let stored = match kind {
            PartKind::Tree => format!("{name}-{digest:08x}-{from}-{bytes}"),
            PartKind::List | PartKind::Values | PartKind::Segment => format!("{name}-{digest:08x}-{bytes}"),
        };
        let file = self.fs.open_read(path, Access::Buffered)?;
        pieces.push(self.copy(&*file, from..*bytes, stored)?);
        Ok(Entry { name: name.clone(), pieces })
    }

    /// Whether all pieces are there, as long as they were.
    fn has(&self, entry: &Entry) -> Result<bool> {
        for piece in &entry.pieces {
            match self.fs.open_read(&self.path(&piece.name), Access::Buffered) {
                Ok(file) if file.len()? == piece.bytes => {}
                Err(error) if !error.is_not_found() => return Err(error),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Puts a file that only this backup has. Its name tells its bytes, too: what is left of a backup that was not finished
    /// may be copied elsewhere by then, and the next one has the same number.
    pub(super) fn put_own(&mut self, path: &Path, name: &str, bytes: u64, number: u64) -> Result<Entry> {
        let file = self.fs.open_read(path, Access::Buffered)?;
        let sum = pour_summed(&*file, 0..bytes, &mut |_, _| Ok(()))?;
        let piece = self.copy(&*file, 0..bytes, format!("{name}-{sum:08x}-{number:08}"))?;
        Ok(Entry { name: name.to_string(), pieces: vec![piece] })
    }

    /// Whether a tree goes on behind what an entry has: its last block is the same here.
    fn continues(&self, entry: &Entry, path: &Path, bytes: u64) -> Result<bool> {
        let end = entry.bytes();
        let Some(last) = entry.pieces.last().filter(|_| end < bytes && entry.pieces.len() < PIECES_MAX)
        else {
            return Ok(false);
        };
        if !self.has(entry)? {
            return Ok(false);
        }
        let length = last.bytes.min(BLOCK_BYTES as u64);
        let there = tail(&*self.fs.open_read(&self.path(&last.name), Access::Buffered)?, last.bytes, length)?;
        Ok(there == tail(&*self.fs.open_read(path, Access::Buffered)?, end, length)?)
    }

    /// Copies a range of a file, durably but for its name.
    fn copy(&mut self, from: &dyn File, range: Range<u64>, name: String) -> Result<Piece> {
        let unfinished = self.path(&format!("{name}{UNFINISHED}"));
        let to = self.fs.create(&unfinished, Access::Buffered)?;
        let sum = pour_summed(from, range.clone(), &mut |at, bytes| to.write_at(at, bytes))?;
        to.sync()?;
        self.fs.rename(&unfinished, &self.path(&name))?;
        let bytes = range.end - range.start;
        self.copied_bytes += bytes;
        Ok(Piece { name, bytes, sum })
    }

    /// Reads a file's pieces one after the other, checks them, and hands them on with their places.
    pub(super) fn read(&self, entry: &Entry, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let mut start = 0;
        for piece in &entry.pieces {
            let path = self.path(&piece.name);
            let file = self.fs.open_read(&path, Access::Buffered)?;
            let length = file.len()?;
            if length != piece.bytes {
                let reason = format!("it is {length} bytes long, and the backup says {}", piece.bytes);
                return Err(Error::corruption(&path, length.min(piece.bytes), reason));
            }
            let sum = pour_summed(&*file, 0..piece.bytes, &mut |at, bytes| take(start + at, bytes))?;
            if sum != piece.sum {
                return Err(Error::corruption(&path, 0, "its checksum is not what the backup says"));
            }
            start += piece.bytes;
        }
        Ok(())
    }
}

/// Hands a range of a file on, with places from its beginning. Returns its checksum.
fn pour_summed(
    from: &dyn File,
    range: Range<u64>,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u32> {
    let mut sum = 0;
    pour(from, range, &mut |at, bytes| {
        sum = checksum::append(sum, bytes);
        take(at, bytes)
    })?;
    Ok(sum)
}

/// The last bytes of a file's front.
fn tail(file: &dyn File, end: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let got = file.read_at(end - length, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}
