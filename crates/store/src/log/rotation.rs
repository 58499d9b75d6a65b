//! Getting the next segment ready: a recycled arena, and a file whose blocks and name are there already.

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::{Access, Appender, File, FileSystem};

use crate::buffer::{ArenaPool, WriteBuffer};
use crate::names;

/// An empty segment and the buffer that mirrors it.
pub struct Rotation {
    pub(super) buffer: Arc<WriteBuffer>,
    pub(super) appender: Appender,
    pub(super) file: Arc<dyn File>,
}

impl Rotation {
    /// Creates the segment file for an arena of at least `bytes_min` bytes, with its blocks reserved and its name durable. A retired
    /// segment, if given, is renamed rather than a new file allocated.
    pub fn prepare(
        fs: &dyn FileSystem,
        dir: &Path,
        id: u64,
        pool: &Arc<ArenaPool>,
        bytes_min: usize,
        retired: Option<u64>,
    ) -> Result<Self> {
        let (arena, appender) = pool.take(bytes_min);
        let path = names::log(dir, id);
        let open = || {
            let file = match retired {
                Some(old) => {
                    fs.rename(&names::log(dir, old), &path)?;
                    fs.open(&path, Access::Buffered)?
                }
                None => fs.create(&path, Access::Buffered)?,
            };
            file.reserve(arena.capacity() as u64)?;
            fs.sync_dir(dir)?;
            Ok(file)
        };
        let file = open().inspect_err(|_| {
            // A full disk must not be filled further by every new try.
            let _ = fs.remove(&path);
        })?;
        Ok(Self { buffer: Arc::new(WriteBuffer::new(id, arena, Some(Arc::clone(pool)))), appender, file })
    }

    /// The buffer that will be active.
    pub fn buffer(&self) -> &Arc<WriteBuffer> {
        &self.buffer
    }
}
