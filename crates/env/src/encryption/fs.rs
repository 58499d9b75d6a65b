//! [`EncryptedFs`]: another file system, in which files of records have blocks of ciphertext.
//!
//! **Invariant:** what it writes of a file of records is a header and ciphertext. Names, lengths and times are the
//! file's own.

use std::path::Path;
use std::sync::OnceLock;

use forebay_base::Result;

use super::blocks;
use super::data_keys::DataKeys;
use super::file::{BlockFile, FrameFile, Shared};
use crate::fs::forward::forward_fs;
use crate::fs::{Access, File, FileSystem, ReadRequest};
use crate::sync::Arc;

/// What becomes of a block that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Reading it is an error.
    IsAnError,
    /// It shows as zeros, which nothing takes for a page: for whoever saves what is left of a file.
    Zeros,
}

/// See the module.
pub struct EncryptedFs {
    inner: Arc<dyn FileSystem>,
    keys: Arc<DataKeys>,
    damage: Damage,
}

/// How a file is encrypted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Block by block, here.
    Blocks,
    /// Frame by frame, by whoever writes it.
    Frames,
    /// Not at all: it has nothing of the user's.
    Plain,
}

impl Kind {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list" | "tree" | "values") => Self::Blocks,
            Some("log" | "manifest") => Self::Frames,
            _ => Self::Plain,
        }
    }
}

impl EncryptedFs {
    /// Files of `inner` by these keys.
    pub fn new(inner: Arc<dyn FileSystem>, keys: Arc<DataKeys>, damage: Damage) -> Arc<Self> {
        Arc::new(Self { inner, keys, damage })
    }

    fn shown(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        let keys = Arc::clone(&self.keys);
        match Kind::of(path) {
            Kind::Blocks => {
                let shared = Arc::new(Shared { keys, damage: self.damage, cipher: OnceLock::new() });
                Arc::new(BlockFile { inner, shared })
            }
            Kind::Frames => Arc::new(FrameFile { inner, keys }),
            Kind::Plain => inner,
        }
    }

    /// Blocks are not aligned to those of the device, so nothing goes around the system's cache.
    fn access(path: &Path, access: Access) -> Access {
        match (Kind::of(path), access) {
            (Kind::Blocks, Access::Direct) => Access::Buffered,
            _ => access,
        }
    }
}

impl FileSystem for EncryptedFs {
    forward_fs! { exists list remove shorten create_dir_all create_dir remove_dir sync_dir lock link_count identity absolute free_bytes helpers process_files_max }

    /// What is mapped would be plain, or what is stored.
    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let inner = self.inner.create(path, Self::access(path, access))?;
        if Kind::of(path) != Kind::Blocks {
            return Ok(self.shown(path, inner));
        }
        let begin = || {
            let (header, cipher) = self.keys.for_file()?;
            inner.write_at(0, &header.encode())?;
            Ok(cipher)
        };
        // Whoever gets no file removes none.
        let cipher = begin().inspect_err(|_| drop(self.inner.remove(path)))?;
        let shared =
            Shared { keys: Arc::clone(&self.keys), damage: self.damage, cipher: OnceLock::from(cipher) };
        Ok(Arc::new(BlockFile { inner, shared: Arc::new(shared) }))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        Ok(self.shown(path, self.inner.open(path, Self::access(path, access))?))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        Ok(self.shown(path, self.inner.open_read(path, Self::access(path, access))?))
    }

    fn stored(&self) -> Option<&dyn FileSystem> {
        Some(&*self.inner)
    }

    fn stored_bytes(&self, path: &Path, bytes: u64) -> u64 {
        match Kind::of(path) {
            Kind::Blocks => blocks::stored_bytes(bytes),
            Kind::Frames | Kind::Plain => bytes,
        }
    }

    fn encrypted_as(&self, path: &Path) -> Result<Option<(u32, u32)>> {
        if Kind::of(path) != Kind::Blocks {
            return Ok(None);
        }
        let file = self.inner.open_read(path, Access::Random)?;
        // Nothing is read by it, so that its spare is as good.
        BlockFile::header(&*file, Damage::Zeros).map(|header| Some((header.key, header.sum())))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        debug_assert!(Kind::of(from) == Kind::of(to), "a file stays what it is");
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        debug_assert!(Kind::of(from) == Kind::of(to), "a file stays what it is");
        self.inner.hard_link(from, to)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        let stored_bytes = |request: &ReadRequest<'_>| {
            request.file.stored_part(request.offset, request.into.len()).map_or(0, |(_, _, bytes)| bytes)
        };
        let mut stored: Vec<Vec<u8>> =
            requests.iter().map(|request| vec![0; stored_bytes(request)]).collect();
        let mut reads = Vec::with_capacity(requests.len());
        for (ReadRequest { file, offset, into, .. }, stored) in requests.iter_mut().zip(&mut stored) {
            reads.push(match file.stored_part(*offset, into.len()) {
                Some((inner, place, _)) => ReadRequest::new(inner, place, stored),
                None => ReadRequest::new(*file, *offset, into),
            });
        }
        self.inner.read_many(&mut reads);
        let outcomes: Vec<Result<usize>> = reads.into_iter().map(|read| read.outcome).collect();
        debug_assert_eq!(outcomes.len(), requests.len(), "each is answered");
        for ((request, stored), outcome) in requests.iter_mut().zip(&mut stored).zip(outcomes) {
            let ReadRequest { file, offset, into, .. } = request;
            request.outcome = match file.stored_part(*offset, into.len()) {
                Some(_) => outcome.and_then(|got| file.show(*offset, &mut stored[..got], into)),
                None => outcome,
            };
        }
    }
}
