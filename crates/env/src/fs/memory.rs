//! [`MemoryFs`]: files in memory, with the semantics of real ones.
//!
//! **Invariant:** names and content are apart, as on disk: a name leads to an inode, a handle holds an
//! inode. So handles survive renaming and removing, and hard links share bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result};

use super::inode::{Inode, write_into};
use super::{Access, File, FileLock, FileSystem, Identity, LockMode};
use crate::sync::{Arc, Mutex};

/// Longer than any test's file; a wild length is an error, not a dead machine.
const FILE_BYTES_MAX: u64 = 1 << 34;
/// What `free_bytes` answers.
const FREE_BYTES: u64 = 1 << 40;

/// A file system in memory.
#[derive(Debug, Default)]
pub struct MemoryFs {
    names: Mutex<Names>,
}

/// The tree: the roots `/` and `` always exist and are not listed.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) files: BTreeMap<PathBuf, Arc<Inode>>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) next_id: u64,
}

struct MemoryFile {
    path: PathBuf,
    inode: Arc<Inode>,
    writable: bool,
}

impl MemoryFs {
    /// An empty file system.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn of(names: Names) -> Self {
        Self { names: Mutex::new(names) }
    }

    /// Every file's content, by path.
    pub fn snapshot_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let names = self.names.lock();
        names.files.iter().map(|(path, inode)| (path.clone(), inode.bytes.read().clone())).collect()
    }

    /// Replaces a file's content behind everybody's back, or makes the file.
    pub fn replace_file(&self, path: &Path, bytes: Vec<u8>) {
        let mut names = self.names.lock();
        let id = names.next_id;
        names.next_id += 1;
        let inode = names.files.entry(normal(path)).or_insert_with(|| Inode::new(id, Vec::new()));
        *inode.bytes.write() = bytes;
    }

    /// A copy that shares nothing with this one; locks are not held in it.
    pub fn deep_clone(&self) -> Arc<Self> {
        Arc::new(Self::of(self.copy()))
    }

    /// Names and contents, apart from those of this one.
    pub(super) fn copy(&self) -> Names {
        let names = self.names.lock();
        let mut copies = BTreeMap::new();
        let mut copy = |inode: &Arc<Inode>| {
            let fresh = || Inode::new(inode.id, inode.bytes.read().clone());
            Arc::clone(copies.entry(inode.id).or_insert_with(fresh))
        };
        let files = names.files.iter().map(|(path, inode)| (path.clone(), copy(inode))).collect();
        Names { files, dirs: names.dirs.clone(), next_id: names.next_id }
    }

    /// The inode `path` leads to.
    pub(super) fn inode(&self, path: &Path) -> Option<Arc<Inode>> {
        self.names.lock().files.get(&normal(path)).cloned()
    }

    /// The inodes that have a name.
    pub(super) fn named_inodes(&self) -> BTreeSet<u64> {
        self.names.lock().files.values().map(|inode| inode.id).collect()
    }

    fn find(&self, operation: &'static str, path: &Path) -> Result<Arc<Inode>> {
        self.inode(path).ok_or_else(|| failure(operation, path, ErrorKind::NotFound))
    }

    fn find_or_create(&self, operation: &'static str, path: &Path) -> Result<Arc<Inode>> {
        let mut names = self.names.lock();
        names.check_parent(operation, path)?;
        if names.has_dir(path) {
            return Err(failure(operation, path, ErrorKind::IsADirectory));
        }
        if let Some(inode) = names.files.get(&normal(path)) {
            return Ok(Arc::clone(inode));
        }
        debug_assert!(
            names.files.values().all(|inode| inode.id < names.next_id),
            "a number is never given again"
        );
        let inode = Inode::new(names.next_id, Vec::new());
        names.next_id += 1;
        names.files.insert(normal(path), Arc::clone(&inode));
        Ok(inode)
    }
}

impl Names {
    fn has_dir(&self, dir: &Path) -> bool {
        let dir = normal(dir);
        dir.parent().is_none() || self.dirs.contains(&dir)
    }

    fn check_parent(&self, operation: &'static str, path: &Path) -> Result<()> {
        match normal(path).parent() {
            Some(parent) if self.has_dir(parent) => Ok(()),
            _ => Err(failure(operation, path, ErrorKind::NotFound)),
        }
    }

    fn children<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let inside = move |path: &&PathBuf| path.parent() == Some(dir);
        self.files.keys().filter(inside).chain(self.dirs.iter().filter(inside))
    }
}

/// `path` without its `.` and doubled slashes: one spelling for each file.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn failure(operation: &'static str, path: &Path, kind: ErrorKind) -> Error {
    Error::io(operation, path, &kind.into())
}

impl MemoryFile {
    fn opened(path: &Path, inode: Arc<Inode>, writable: bool) -> Arc<dyn File> {
        Arc::new(Self { path: path.to_path_buf(), inode, writable })
    }

    fn check_write(&self, operation: &'static str, end: Option<u64>) -> Result<()> {
        if !self.writable {
            // What the kernel says to a write on a read-only handle.
            let bad_handle = io::Error::from(rustix::io::Errno::BADF);
            return Err(Error::io(operation, &self.path, &bad_handle));
        }
        match end {
            Some(end) if end <= FILE_BYTES_MAX => Ok(()),
            _ => Err(failure(operation, &self.path, ErrorKind::FileTooLarge)),
        }
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        Ok(self.inode.read_at(offset, into))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_write("write", offset.checked_add(bytes.len() as u64))?;
        write_into(&mut self.inode.bytes.write(), offset as usize, bytes);
        Ok(())
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.write_at(offset, bytes).map(|()| true)
    }

    fn written_from(&self, offset: u64) -> u64 {
        let bytes = self.inode.bytes.read();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let behind = bytes.get(start..).unwrap_or_default();
        // Blocks of zeros are taken for such that were never written.
        behind
            .iter()
            .position(|&byte| byte != 0)
            .map_or(u64::MAX, |ahead| (offset + ahead as u64) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64)
            .max(offset)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.inode.bytes.read().len() as u64)
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.check_write("set the length of", Some(bytes))?;
        let mut content = self.inode.bytes.write();
        content.resize(bytes as usize, 0);
        content.shrink_to_fit();
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.check_write("reserve space for", Some(bytes))?;
        let mut content = self.inode.bytes.write();
        let len = content.len().max(bytes as usize);
        content.resize(len, 0);
        Ok(())
    }

    fn reserve_tail(&self, _: u64) -> bool {
        false
    }

    fn identity(&self) -> Result<Option<Identity>> {
        Ok(Some(Identity { inode: (0, self.inode.id), born: None, modified: None }))
    }

    /// Nothing is more durable for it; but whoever syncs has written what there is to write.
    fn sync(&self) -> Result<()> {
        self.inode.bytes.write().shrink_to_fit();
        Ok(())
    }
}

impl FileSystem for MemoryFs {
    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        if access == Access::Foreign && self.exists(path)? {
            return Err(failure("open", path, ErrorKind::AlreadyExists));
        }
        let inode = self.find_or_create("open", path)?;
        inode.bytes.write().clear();
        Ok(MemoryFile::opened(path, inode, true))
    }

    fn open(&self, path: &Path, _: Access) -> Result<Arc<dyn File>> {
        Ok(MemoryFile::opened(path, self.find("open", path)?, true))
    }

    fn open_read(&self, path: &Path, _: Access) -> Result<Arc<dyn File>> {
        Ok(MemoryFile::opened(path, self.find("open for reading", path)?, false))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let names = self.names.lock();
        Ok(names.has_dir(path) || names.files.contains_key(&normal(path)))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let names = self.names.lock();
        if !names.has_dir(dir) {
            return Err(failure("list", dir, ErrorKind::NotFound));
        }
        let dir = normal(dir);
        let inside = names.files.keys().filter(|path| path.parent() == Some(&dir));
        let mut found: Vec<String> =
            inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut names = self.names.lock();
        names.check_parent("rename", to)?;
        if names.has_dir(to) {
            return Err(failure("rename", from, ErrorKind::IsADirectory));
        }
        let inode = names.files.get(&normal(from)).cloned();
        let inode = inode.ok_or_else(|| failure("rename", from, ErrorKind::NotFound))?;
        // Two names of one file: the system's rename then does nothing, and so do we.
        if names.files.get(&normal(to)).is_none_or(|old| old.id != inode.id) {
            names.files.remove(&normal(from));
            names.files.insert(normal(to), inode);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.names.lock().files.remove(&normal(path));
        removed.map(drop).ok_or_else(|| failure("remove", path, ErrorKind::NotFound))
    }

    fn link_count(&self, path: &Path) -> Result<u64> {
        let inode = self.find("look for", path)?;
        Ok(self.names.lock().files.values().filter(|other| other.id == inode.id).count() as u64)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let inode = self.find("link", from)?;
        let mut names = self.names.lock();
        names.check_parent("link", to)?;
        if names.has_dir(to) || names.files.contains_key(&normal(to)) {
            return Err(failure("link", to, ErrorKind::AlreadyExists));
        }
        names.files.insert(normal(to), inode);
        Ok(())
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let mut names = self.names.lock();
        let dir = normal(dir);
        if dir.ancestors().any(|part| names.files.contains_key(part)) {
            return Err(failure("create directory", &dir, ErrorKind::AlreadyExists));
        }
        let parts = dir.ancestors().filter(|part| part.parent().is_some());
        names.dirs.extend(parts.map(Path::to_path_buf));
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let mut names = self.names.lock();
        let dir = normal(dir);
        if names.children(&dir).next().is_some() {
            return Err(failure("remove directory", &dir, ErrorKind::DirectoryNotEmpty));
        }
        let removed = names.dirs.remove(&dir);
        removed.then_some(()).ok_or_else(|| failure("remove directory", &dir, ErrorKind::NotFound))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let known = self.names.lock().has_dir(dir);
        known.then_some(()).ok_or_else(|| failure("sync directory", dir, ErrorKind::NotFound))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        loop {
            let inode = match mode {
                LockMode::Shared => self.find("lock", path)?,
                LockMode::Exclusive => self.find_or_create("lock", path)?,
            };
            let lock = inode.try_lock(mode);
            let lock = lock.ok_or_else(|| Error::Locked { path: path.to_path_buf(), process: None })?;
            // It may have lost its name in between.
            if self.inode(path).is_some_and(|named| named.id == inode.id) {
                return Ok(lock);
            }
        }
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.sync_dir(dir).map(|()| FREE_BYTES)
    }
}
