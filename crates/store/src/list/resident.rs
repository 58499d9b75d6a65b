//! The bytes of a list in memory, which may move to a file while they are read: see [`Attic`].
//!
//! **Invariant:** whoever reads gets the same bytes before, while and after they move.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::Result;
use forebay_base::limits::BLOCK_BYTES;
use forebay_env::sync::{Mutex, RwLock};
use forebay_env::{Attic, File, FileSystem, in_pages};

use super::file::ListFile;
use crate::memory::{MemoryClaim, MemoryUse, Owner};

/// What a list in memory takes, and where its bytes are now.
pub(super) struct Resident {
    file: Arc<Moving>,
    claim: Mutex<MemoryClaim>,
    /// What it takes wherever its bytes are.
    beside_bytes: u64,
    /// With its bytes in memory.
    pub(super) bytes: u64,
}

struct Moving {
    path: PathBuf,
    place: RwLock<Place>,
}

#[derive(Clone)]
struct Place {
    file: Arc<dyn File>,
    is_filed: bool,
}

impl Resident {
    /// Of a file in memory that has this many bytes of pages, with what the list has beside. And the file by which to
    /// read from now on.
    pub(super) fn new(
        fs: &dyn FileSystem,
        file: Arc<dyn File>,
        pages_bytes: u64,
        beside_bytes: u64,
        memory: &Arc<MemoryUse>,
    ) -> (Self, Arc<dyn File>) {
        // What stands behind the pages, which are read by whole blocks, is beside. This memory goes back to the
        // system; an allocator would keep it, between what else comes and goes.
        let file = match in_pages(&*file, (pages_bytes as usize).next_multiple_of(BLOCK_BYTES)) {
            Ok(pages) => {
                let _ = fs.remove(file.path());
                pages
            }
            Err(_) => file,
        };
        let bytes = file.len().unwrap_or(pages_bytes) + beside_bytes;
        let claim = Mutex::new(memory.claim(Owner::Resident, bytes));
        let file = Arc::new(Moving {
            path: file.path().to_path_buf(),
            place: RwLock::new(Place { file, is_filed: false }),
        });
        (Self { file: Arc::clone(&file), claim, beside_bytes, bytes }, file)
    }

    /// Whether its bytes are in a file now.
    pub(super) fn is_filed(&self) -> bool {
        self.file.place.read().is_filed
    }

    /// Moves the bytes, unless they have moved already or cannot.
    pub(super) fn move_to(&self, attic: &mut Attic) -> Result<bool> {
        let mut claim = self.claim.lock();
        let Place { file, is_filed } = self.file.place.read().clone();
        if is_filed {
            return Ok(false);
        }
        let Some(moved) = attic.take_file(&*file)? else { return Ok(false) };
        *self.file.place.write() = Place { file: moved, is_filed: true };
        claim.resize(self.beside_bytes);
        Ok(true)
    }
}

impl ListFile {
    /// Whether it takes memory that can [move](Self::move_to).
    pub fn is_in_memory(&self) -> bool {
        self.ready().and_then(|body| body.resident.as_ref()).is_some_and(|resident| !resident.is_filed())
    }

    /// Moves a list in memory to a file, for those who still see it: they read on. Says whether anything has moved.
    pub fn move_to(&self, attic: &mut Attic) -> Result<bool> {
        let Some(resident) = self.ready().and_then(|body| body.resident.as_ref()) else { return Ok(false) };
        let has_moved = resident.move_to(attic)?;
        if has_moved {
            // Else its name would keep it.
            let _ = self.store().fs.remove(&self.path());
        }
        Ok(has_moved)
    }
}

impl Moving {
    fn now(&self) -> Arc<dyn File> {
        Arc::clone(&self.place.read().file)
    }
}

impl File for Moving {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.now().read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.now().write_at(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.now().len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.now().set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.now().reserve(bytes)
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        self.now().reserve_tail(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.now().sync()
    }
}
