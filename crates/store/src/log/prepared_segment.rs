//! Getting the next segment ready: a recycled arena, and a file whose blocks and name are there already.

use std::path::Path;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::{Access, Appender, Arena, File, FileSystem};

use crate::buffer::{ArenaPool, WriteBuffer};
use crate::names;

/// How long the first segment is where the disk is full: as much as its smallest piece.
const SHORT_BYTES: usize = 4 << 10;

/// Why a segment could not be got ready.
#[derive(Debug)]
pub enum PrepareError {
    /// Nothing of it is left. The retired segment, if it was not renamed, can be used another time.
    Refused(Error, Option<u64>),
    /// The directory could not be synced: names that were made in it since it last was may be lost, and a later sync
    /// would not tell. Nothing more may be written.
    Unknown(Error),
}

impl PrepareError {
    /// What failed.
    pub fn into_cause(self) -> Error {
        match self {
            Self::Refused(error, _) | Self::Unknown(error) => error,
        }
    }
}

/// The file of a segment that nothing is written to yet.
pub struct SegmentFile {
    id: u64,
    file: Arc<dyn File>,
    reserved_bytes: u64,
}

impl SegmentFile {
    /// Creates it with blocks for `bytes` reserved and its name durable. A retired segment, if given, is renamed rather
    /// than a new file allocated; but not where its file has another name too, in a checkpoint or in what this is one
    /// of: what is written here would change it there.
    pub fn prepare(
        fs: &dyn FileSystem,
        dir: &Path,
        id: u64,
        bytes: u64,
        retired: Option<u64>,
    ) -> Result<Self, PrepareError> {
        let path = names::log(dir, id);
        let is_renamed = match retired {
            Some(old) => take_over(fs, &names::log(dir, old), &path)
                .map_err(|error| PrepareError::Refused(error, retired))?,
            None => false,
        };
        let open = || {
            let file = match is_renamed {
                true => fs.open(&path, Access::Buffered)?,
                false => fs.create(&path, Access::Buffered)?,
            };
            file.reserve(bytes)?;
            Ok(file)
        };
        let file = open().map_err(|error| {
            // A full disk must not be filled further by every new try.
            let _ = fs.remove(&path);
            PrepareError::Refused(error, None)
        })?;
        fs.sync_dir(dir).map_err(PrepareError::Unknown)?;
        Ok(Self { id, file, reserved_bytes: bytes })
    }

    /// The segment's id.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// An empty segment and the buffer that mirrors it.
pub struct PreparedSegment {
    pub(super) buffer: Arc<WriteBuffer>,
    pub(super) appender: Appender,
    pub(super) file: Arc<dyn File>,
}

impl PreparedSegment {
    /// The segment that a database which is being opened begins with. On a full disk it is a very short one: so the
    /// database can be read, and room be made in it; a write that finds no place waits for a longer one.
    pub fn first(fs: &dyn FileSystem, dir: &Path, id: u64, pool: &Arc<ArenaPool>) -> Result<Self> {
        match SegmentFile::prepare(fs, dir, id, pool.arena_bytes() as u64, None) {
            Ok(file) => Self::new(file, pool, 0),
            Err(PrepareError::Refused(error, _)) if error.is_no_space() => {
                let short = SegmentFile::prepare(fs, dir, id, SHORT_BYTES as u64, None);
                Self::mirrored(short.map_err(PrepareError::into_cause)?, pool, pool.make(SHORT_BYTES))
            }
            Err(error) => Err(error.into_cause()),
        }
    }

    /// Gives a segment a buffer of at least `bytes_min` bytes, and its file as many blocks. If those cannot be had the
    /// file stays.
    pub fn new(file: SegmentFile, pool: &Arc<ArenaPool>, bytes_min: usize) -> Result<Self> {
        Self::mirrored(file, pool, pool.take(bytes_min))
    }

    fn mirrored(
        segment: SegmentFile,
        pool: &Arc<ArenaPool>,
        (arena, appender): (Arc<Arena>, Appender),
    ) -> Result<Self> {
        debug_assert!(appender.is_empty(), "a new segment has nothing of an old one");
        let SegmentFile { id, file, reserved_bytes } = segment;
        let capacity = arena.capacity() as u64;
        // So the arena goes back to the pool whatever happens.
        let buffer = Arc::new(WriteBuffer::new(id, arena, Some(Arc::clone(pool))));
        if capacity > reserved_bytes {
            file.reserve(capacity)?;
        }
        Ok(Self { buffer, appender, file })
    }

    /// The buffer that will be active.
    pub fn buffer(&self) -> &Arc<WriteBuffer> {
        &self.buffer
    }
}

/// Gives a retired segment's file another name. `false`, and the file goes, where it has one more.
fn take_over(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<bool> {
    match fs.link_count(from) {
        Ok(1) => {}
        Ok(_) if planted::is("recycled-links") => {}
        Ok(_) => return fs.remove(from).map(|()| false),
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error),
    }
    fs.rename(from, to)?;
    Ok(true)
}
