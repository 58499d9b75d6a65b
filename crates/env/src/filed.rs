//! Memory that moves to a file without a name, and is read there from then on: what is kept for somebody who may never
//! look, such as a snapshot's.
//!
//! **Invariant:** once something has moved its bytes in the file never change.

use std::path::{Path, PathBuf};

use forebay_base::{Error, Result};

use crate::Arena;
use crate::buffer::AlignedBuf;
use crate::fs::{Access, File, FileSystem};
use crate::kernel::{FiledWords, PAGE_BYTES};
use crate::sync::Arc;

/// A file that has lost its name, and takes in memory piece by piece.
pub struct Attic {
    file: Arc<dyn File>,
    end: u64,
}

/// Words are written this many at a time.
const PIECE_WORDS: usize = 8192;
/// And files.
const PIECE_BYTES: usize = 64 << 10;

const _: () =
    assert!(PIECE_BYTES == PIECE_WORDS * size_of::<u64>() && PIECE_BYTES.is_multiple_of(PAGE_BYTES));

/// What a file of some other place has, to be read only.
struct Copy<B> {
    path: PathBuf,
    /// And zeros behind it.
    held: B,
    bytes: usize,
}

/// A copy of the first this many bytes of a file, in memory that goes back to the system as a whole.
pub fn in_pages(from: &dyn File, bytes: usize) -> Result<Arc<dyn File>> {
    let path = from.path().to_path_buf();
    let mut held = AlignedBuf::zeroed(bytes);
    if from.read_at(0, &mut held)? < bytes {
        return Err(Error::io("read", &path, &std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Arc::new(Copy { path, held, bytes }))
}

impl Attic {
    /// Makes a file at a path, for about this many bytes, and removes its name. `None` where files cannot be mapped,
    /// or where no more than that much is free: others need it more.
    pub fn make(fs: &dyn FileSystem, path: &Path, bytes: u64) -> Result<Option<Self>> {
        let dir = path.parent().unwrap_or(path);
        if !fs.maps_files() || fs.free_bytes(dir)? / 2 < bytes {
            return Ok(None);
        }
        let file = fs.create(path, Access::Buffered)?;
        fs.remove(path)?;
        Ok(Some(Self { file, end: 0 }))
    }

    fn room(&mut self, bytes: usize) -> Result<u64> {
        let at = self.end;
        self.end += bytes.next_multiple_of(PAGE_BYTES) as u64;
        self.file.set_len(self.end)?;
        debug_assert!(at.is_multiple_of(PAGE_BYTES as u64) && at + bytes as u64 <= self.end);
        Ok(at)
    }

    /// Moves what is published of an arena, to which nothing may be appended any more. Says whether it was moved.
    pub fn take_arena(&mut self, arena: &Arena) -> Result<bool> {
        let at = self.room(arena.capacity())?;
        debug_assert!(at + arena.bytes().len() as u64 <= self.end, "it stays within its room");
        self.file.write_at(at, arena.bytes())?;
        Ok(self.file.handle().is_some_and(|file| arena.pages().turn_to_file(file, at)))
    }

    /// A copy of these words, if they can be had there.
    pub fn take_words(&mut self, words: &[u64]) -> Result<Option<FiledWords>> {
        let at = self.room(size_of_val(words))?;
        let mut piece = Vec::with_capacity(PIECE_WORDS * size_of::<u64>());
        for (index, part) in words.chunks(PIECE_WORDS).enumerate() {
            piece.clear();
            part.iter().for_each(|word| piece.extend_from_slice(&word.to_le_bytes()));
            self.file.write_at(at + (index * PIECE_WORDS * size_of::<u64>()) as u64, &piece)?;
        }
        Ok(self.file.handle().and_then(|file| FiledWords::map(file, at, words.len())))
    }

    /// A copy of this file, to be read only, if it can be had there.
    pub fn take_file(&mut self, from: &dyn File) -> Result<Option<Arc<dyn File>>> {
        let bytes = usize::try_from(from.len()?).unwrap_or(usize::MAX);
        let at = self.room(bytes)?;
        let mut piece = vec![0; PIECE_BYTES.min(bytes)];
        for offset in (0..bytes as u64).step_by(PIECE_BYTES) {
            let read = from.read_at(offset, &mut piece)?;
            self.file.write_at(at + offset, &piece[..read])?;
        }
        let words = bytes.div_ceil(size_of::<u64>());
        let mapped = self.file.handle().and_then(|file| FiledWords::map(file, at, words));
        let path = from.path().to_path_buf();
        Ok(mapped.map(|words| Arc::new(Copy { path, held: words, bytes }) as Arc<dyn File>))
    }
}

impl<B> Copy<B> {
    fn refuse(&self, operation: &'static str) -> Result<()> {
        Err(Error::io(operation, &self.path, &std::io::ErrorKind::ReadOnlyFilesystem.into()))
    }
}

impl<B: AsRef<[u8]> + Send + Sync> File for Copy<B> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        debug_assert!(self.bytes <= self.held.as_ref().len());
        let bytes = &self.held.as_ref()[..self.bytes];
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        self.refuse("write")
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes as u64)
    }

    fn set_len(&self, _: u64) -> Result<()> {
        self.refuse("set the length of")
    }

    fn reserve(&self, _: u64) -> Result<()> {
        self.refuse("reserve space for")
    }

    fn reserve_tail(&self, _: u64) -> bool {
        false
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use crate::Env;
    use crate::fs::MemoryFs;

    #[test]
    fn what_moved_to_a_file_reads_as_before_and_leaves_no_name() {
        let dir = std::env::temp_dir().join(format!("forebay-attic-{}", std::process::id()));
        let fs = Env::real().fs;
        fs.create_dir_all(&dir).unwrap();
        let path = dir.join("attic");
        assert!(Attic::make(&*fs, &path, u64::MAX).unwrap().is_none(), "there is no room for that");
        let mut attic = Attic::make(&*fs, &path, 1 << 20).unwrap().unwrap();
        let (arena, mut appender) = Arena::new(300_001);
        let bytes: Vec<u8> = (0..250_000u32).map(|index| (index % 251) as u8).collect();
        appender.append(&bytes);
        appender.publish();
        let before = arena.bytes();
        assert!(attic.take_arena(&arena).unwrap());
        assert_eq!((before, arena.bytes()), (&bytes[..], &bytes[..]));
        let words: Vec<u64> = (0..20_000).collect();
        let filed = attic.take_words(&words).unwrap().unwrap();
        assert_eq!(filed.as_slice(), words);
        assert!(attic.take_words(&[]).unwrap().is_none());
        let memory = MemoryFs::new();
        let from = memory.create(Path::new("/list"), Access::Buffered).unwrap();
        from.write_at(0, &bytes[..200_003]).unwrap();
        for copy in [attic.take_file(&*from).unwrap().unwrap(), in_pages(&*from, 200_003).unwrap()] {
            let mut read = vec![0; 300_000];
            assert_eq!((copy.read_at(3, &mut read).unwrap(), copy.len().unwrap()), (200_000, 200_003));
            assert_eq!(read[..200_000], bytes[3..200_003]);
            assert!(copy.write_at(0, &[1]).is_err());
        }
        assert!(in_pages(&*from, 200_004).is_err(), "it has no more");
        assert!(fs.list(&dir).unwrap().is_empty());
        drop(attic);
        assert_eq!((arena.bytes(), filed.as_slice()), (&bytes[..], &words[..]));
        // What is short is the allocator's.
        let (arena, _appender) = Arena::new(1000);
        assert!(!Attic::make(&*fs, &path, 1).unwrap().unwrap().take_arena(&arena).unwrap());
        assert!(Attic::make(&*MemoryFs::new(), &path, 1).unwrap().is_none());
        fs.remove_dir(&dir).unwrap();
    }
}
