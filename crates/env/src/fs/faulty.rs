//! [`FaultyFs`]: another file system, of which chosen operations fail.
//!
//! **Invariant:** an operation without a fault does exactly what the file system inside does; one with a
//! fault does nothing, but for the half of a short write.

use std::io;
use std::path::Path;

use forebay_base::{Error, Result};
use rustix::io::Errno;

use super::rules::{Fault, Rule};
use super::{Access, File, FileLock, FileSystem, LockMode};
use crate::fs::forward::{forward_file, forward_fs};
use crate::sync::{Arc, Mutex};

/// A file system with rules for what fails.
pub struct FaultyFs {
    inner: Arc<dyn FileSystem>,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    matched: u64,
    fired: u64,
}

struct FaultyFile {
    inner: Arc<dyn File>,
    faults: Arc<Faults>,
}

impl FaultyFs {
    /// `inner`, at first without faults.
    pub fn new(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self { inner, faults: Arc::default() })
    }

    /// Adds a rule such as `write *.list #7 no-space`, `sync *.log all io-error` or
    /// `any * from:40 no-space`. Every rule sees every operation; the first with a fault wins.
    pub fn rule(&self, text: &str) -> Result<()> {
        let rule = text.parse()?;
        self.faults.state.lock().rules.push(rule);
        Ok(())
    }

    /// Removes all rules: the disk is well again.
    pub fn clear(&self) {
        self.faults.state.lock().rules.clear();
    }

    /// How many operations were asked for so far: what `any * #n` counts, had it been there from the start.
    pub fn matched(&self) -> u64 {
        self.faults.state.lock().matched
    }

    /// How many of them failed by a rule.
    pub fn fired(&self) -> u64 {
        self.faults.state.lock().fired
    }

    fn file(&self, opened: Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
        let faults = Arc::clone(&self.faults);
        opened.map(|inner| -> Arc<dyn File> { Arc::new(FaultyFile { inner, faults }) })
    }
}

impl Faults {
    fn draw(&self, operation: &'static str, paths: &[&Path]) -> Option<Fault> {
        let state = &mut *self.state.lock();
        state.matched += 1;
        // Every rule counts this operation, also when an earlier one decides it.
        let faults: Vec<Fault> =
            state.rules.iter_mut().filter_map(|rule| rule.fault(operation, paths)).collect();
        state.fired += u64::from(!faults.is_empty());
        faults.first().copied()
    }

    fn check(&self, operation: &'static str, path: &Path) -> Result<()> {
        self.check_both(operation, path, path)
    }

    fn check_both(&self, operation: &'static str, path: &Path, other: &Path) -> Result<()> {
        self.draw(operation, &[path, other]).map_or(Ok(()), |fault| Err(error_of(fault, operation, path)))
    }
}

fn error_of(fault: Fault, operation: &'static str, path: &Path) -> Error {
    let cause = if fault == Fault::NoSpace { Errno::NOSPC } else { Errno::IO };
    Error::io(operation, path, &io::Error::from(cause))
}

impl File for FaultyFile {
    forward_file! { path written_from len reserve_tail identity }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.faults.check("read", self.path())?;
        self.inner.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let Some(fault) = self.faults.draw("write", &[self.path()]) else {
            return self.inner.write_at(offset, bytes);
        };
        if fault == Fault::Short {
            self.inner.write_at(offset, &bytes[..bytes.len() / 2])?;
        }
        Err(error_of(fault, "write", self.path()))
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.write_at(offset, bytes).map(|()| true)
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.faults.check("set_len", self.path())?;
        self.inner.set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.faults.check("reserve", self.path())?;
        self.inner.reserve(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.faults.check("sync", self.path())?;
        self.inner.sync()
    }
}

impl FileSystem for FaultyFs {
    forward_fs! { exists link_count identity absolute helpers free_bytes }

    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.faults.check("create", path)?;
        self.file(self.inner.create(path, access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.faults.check("open", path)?;
        self.file(self.inner.open(path, access))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.faults.check("open", path)?;
        self.file(self.inner.open_read(path, access))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.faults.check("list", dir)?;
        self.inner.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.faults.check_both("rename", from, to)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.faults.check("remove", path)?;
        self.inner.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.faults.check_both("link", to, from)?;
        self.inner.hard_link(from, to)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.faults.check("create_dir", dir)?;
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.faults.check("remove_dir", dir)?;
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.faults.check("sync_dir", dir)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        self.faults.check("lock", path)?;
        self.inner.lock(path, mode)
    }
}
