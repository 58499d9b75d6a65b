//! [`CrashFs`]: files in memory, on a disk whose power can go at any operation.
//!
//! It shows what every process sees while the power is on (a [`MemoryFs`]), and keeps the [`Disk`]
//! under it. [`CrashFs::power_cycle`] draws what survives. A directory is durable only once its parent was
//! synced; until then it and all in it may vanish.
//!
//! **Invariant:** once the power is off no operation has an effect or an answer.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use forebay_base::{Error, Result};
use rustix::io::Errno;

use super::crash_file::CrashFile;
use super::inode::Inode;
use super::memory::{MemoryFs, Names, normal};
use super::pending::{Content, DataChange, Disk, NameChange};
use super::survival::survivor;
use super::{Access, File, FileLock, FileSystem, LockMode};
use crate::rng::Rng;
use crate::sync::{Arc, Mutex};

/// A file system that can lose power.
#[derive(Debug)]
pub struct CrashFs {
    machine: Arc<Machine>,
}

#[derive(Debug)]
pub(super) struct Machine {
    live: MemoryFs,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    rng: Rng,
    operations: u64,
    crash_at: u64,
    off: bool,
    /// How the name of the file ends whose next sync fails.
    failing: Option<String>,
    /// How the name ends with which the next sync of its directory fails.
    failing_name: Option<String>,
    /// The directory whose sync has failed so last.
    failed_dir: Option<PathBuf>,
    /// How the name of the file ends that is forgotten, and in how many reads.
    evicted: Option<(String, u64)>,
}

impl CrashFs {
    /// An empty disk; `seed` decides what crashes leave.
    pub fn new(seed: u64) -> Arc<Self> {
        Self::of(Disk::default(), Rng::new(seed))
    }

    fn of(disk: Disk, rng: Rng) -> Arc<Self> {
        let live = MemoryFs::of(names_of(&disk));
        Self::running(live, disk, rng, 0)
    }

    fn running(live: MemoryFs, disk: Disk, rng: Rng, operations: u64) -> Arc<Self> {
        let state = State {
            disk,
            rng,
            operations,
            crash_at: u64::MAX,
            off: false,
            failing: None,
            failing_name: None,
            failed_dir: None,
            evicted: None,
        };
        Arc::new(Self { machine: Arc::new(Machine { live, state: Mutex::new(state) }) })
    }

    /// The power goes in the `operation`-th mutating operation, counted from 1 since this file system
    /// was made; its effect may be anything between none and all. `operations() + 1` is the next one.
    pub fn crash_at(&self, operation: u64) {
        self.machine.state.lock().crash_at = operation;
    }

    /// The next sync of a file whose name ends so fails as the kernel's does: what was written since the sync before
    /// never reaches the disk, though every process sees it and later syncs succeed, unless it is written again.
    pub fn fail_next_sync(&self, kind: &str) {
        self.machine.state.lock().failing = Some(kind.to_owned());
    }

    /// The next sync of a directory in which a name that ends so has changed fails like that: no change of a name in
    /// it since the sync before reaches the disk.
    pub fn fail_next_sync_of_name(&self, kind: &str) {
        self.machine.state.lock().failing_name = Some(kind.to_owned());
    }

    /// The directory whose sync has failed because of that, if one has since this was asked last.
    pub fn take_failed_dir(&self) -> Option<PathBuf> {
        self.machine.state.lock().failed_dir.take()
    }

    /// Before the n-th read from now on of a file whose name ends so, counted from 1, memory forgets it: from then on
    /// every process sees what the disk has, or gets once it has written all. That differs where a sync has failed.
    pub fn evict_at_read(&self, kind: &str, read: u64) {
        self.machine.state.lock().evicted = Some((kind.to_owned(), read));
    }

    /// The next sync does not fail, and nothing is forgotten: the disk is well again.
    pub fn heal(&self) {
        let state = &mut *self.machine.state.lock();
        (state.failing, state.failing_name, state.evicted) = (None, None, None);
    }

    /// How many mutating operations were begun.
    pub fn operations(&self) -> u64 {
        self.machine.state.lock().operations
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.machine.state.lock().off
    }

    /// Switches the power off, if it is still on, and returns the file system the next start finds. Each
    /// call draws anew from the same state of the disk.
    pub fn power_cycle(&self) -> Arc<Self> {
        let state = &mut *self.machine.state.lock();
        state.off = true;
        let left = survivor(&state.disk, &mut state.rng);
        Self::of(left, state.rng.fork())
    }

    /// The process dies, and the power stays: the next start finds every file as it was seen, and what was not synced
    /// is still not durable. Locks are free. For this file system the power is off.
    pub fn process_cycle(&self) -> Arc<Self> {
        let state = &mut *self.machine.state.lock();
        state.off = true;
        let (disk, rng, operations) = (state.disk.clone(), state.rng.fork(), state.operations);
        let live = MemoryFs::of(self.machine.live.copy());
        Self::running(live, disk, rng, operations)
    }

    /// Every file's content as processes see it, durable or not, by path.
    pub fn snapshot_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.machine.live.snapshot_files()
    }
}

/// The live tree of a disk without pending changes.
fn names_of(disk: &Disk) -> Names {
    let inodes: BTreeMap<u64, Arc<Inode>> =
        disk.files.iter().map(|(&id, content)| (id, Inode::new(id, content.durable.clone()))).collect();
    let next_id = inodes.last_key_value().map_or(0, |(last, _)| last + 1);
    let find = |(path, id): (&PathBuf, &u64)| Some((path.clone(), Arc::clone(inodes.get(id)?)));
    Names { files: disk.names.iter().filter_map(find).collect(), dirs: disk.dirs.clone(), next_id }
}

fn power_is_off(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, &io::Error::other("power is off"))
}

impl Machine {
    /// Does a mutating operation, unless the power is off or goes now.
    pub(super) fn mutate<T>(
        &self,
        operation: &'static str,
        path: &Path,
        apply: impl FnOnce(&mut Disk, u64) -> Result<T>,
    ) -> Result<T> {
        let state = &mut *self.state.lock();
        if state.off {
            return Err(power_is_off(operation, path));
        }
        debug_assert!(state.operations < state.crash_at, "the power went at an operation that is over");
        state.operations += 1;
        if state.operations < state.crash_at {
            return apply(&mut state.disk, state.operations);
        }
        state.off = true;
        if state.rng.chance(50) {
            // It was on its way: among the pending changes, or even durable, but nobody was told.
            drop(apply(&mut state.disk, state.operations));
        }
        Err(power_is_off(operation, path))
    }

    /// Whether a sync of this file is to fail now.
    pub(super) fn fails_sync(&self, path: &Path) -> bool {
        let failing = &mut self.state.lock().failing;
        let fails = failing.as_ref().is_some_and(|kind| path.to_string_lossy().ends_with(kind.as_str()));
        fails && failing.take().is_some()
    }

    /// Whether a sync of this directory is to fail now.
    fn fails_sync_of_names(&self, dir: &Path) -> bool {
        let state = &mut *self.state.lock();
        let Some(kind) = &state.failing_name else { return false };
        let fails = state.disk.changes_name(dir, kind);
        if fails {
            (state.failing_name, state.failed_dir) = (None, Some(dir.to_path_buf()));
        }
        fails
    }

    /// What a file has if it is forgotten now, before it is read.
    pub(super) fn evicted(&self, path: &Path, inode: u64) -> Option<Vec<u8>> {
        let state = &mut *self.state.lock();
        let (kind, left) = state.evicted.as_mut()?;
        if !path.to_string_lossy().ends_with(kind.as_str()) {
            return None;
        }
        *left -= 1;
        if *left > 0 {
            return None;
        }
        state.evicted = None;
        state.disk.files.get(&inode).map(Content::with_pending)
    }

    pub(super) fn check_power(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.state.lock().off { Err(power_is_off(operation, path)) } else { Ok(()) }
    }

    fn inode(&self, path: &Path) -> Result<Arc<Inode>> {
        self.live.inode(path).ok_or_else(|| Error::io("open", path, &io::ErrorKind::NotFound.into()))
    }

    fn handle(self: &Arc<Self>, live: Arc<dyn File>) -> Result<Arc<dyn File>> {
        let inode = self.inode(live.path())?;
        Ok(CrashFile::opened(Arc::clone(self), live, inode))
    }

    /// Notes on `disk` that `make` may have made or cut the file at `path`.
    fn create<T>(
        &self,
        disk: &mut Disk,
        operation: u64,
        path: &Path,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.live.inode(path);
        let was_empty = before.as_ref().is_none_or(|inode| inode.bytes.read().is_empty());
        let made = make()?;
        let inode = self.inode(path)?;
        if before.is_none() {
            let known = disk.files.insert(inode.id, Content::default());
            debug_assert!(known.is_none(), "a new file has a number of its own");
            disk.change_names(operation, NameChange::Link { path: normal(path), inode: inode.id });
        } else if !was_empty && inode.bytes.read().is_empty() {
            disk.change(operation, inode.id, DataChange::Len(0));
        }
        Ok(made)
    }
}

impl FileSystem for CrashFs {
    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let machine = &self.machine;
        machine.mutate("open", path, |disk, number| {
            let live = machine.create(disk, number, path, || machine.live.create(path, access))?;
            machine.handle(live)
        })
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.machine.check_power("open", path)?;
        self.machine.handle(self.machine.live.open(path, access)?)
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.machine.check_power("open for reading", path)?;
        self.machine.handle(self.machine.live.open_read(path, access)?)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.machine.check_power("look for", path)?;
        self.machine.live.exists(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.machine.check_power("list", dir)?;
        self.machine.live.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let live = &self.machine.live;
        self.machine.mutate("rename", from, |disk, number| {
            let replaced = live.inode(to);
            live.rename(from, to)?;
            let inode = self.machine.inode(to)?.id;
            // Between two names of one file a rename does nothing.
            if replaced.is_none_or(|old| old.id != inode) {
                let change = NameChange::Rename { from: normal(from), to: normal(to), inode };
                disk.change_names(number, change);
            }
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let live = &self.machine.live;
        self.machine.mutate("remove", path, |disk, number| {
            let removed = live.inode(path);
            live.remove(path)?;
            if let Some(inode) = removed {
                disk.change_names(number, NameChange::Unlink { path: normal(path), inode: inode.id });
            }
            Ok(())
        })
    }

    fn link_count(&self, path: &Path) -> Result<u64> {
        self.machine.check_power("look for", path)?;
        self.machine.live.link_count(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.machine.mutate("link", to, |disk, number| {
            self.machine.live.hard_link(from, to)?;
            let inode = self.machine.inode(to)?.id;
            disk.change_names(number, NameChange::Link { path: normal(to), inode });
            Ok(())
        })
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let live = &self.machine.live;
        self.machine.mutate("create directory", dir, |disk, number| {
            let dir = normal(dir);
            let mut missing: Vec<&Path> =
                dir.ancestors().filter(|part| !live.exists(part).unwrap_or(true)).collect();
            live.create_dir_all(&dir)?;
            missing.reverse();
            disk.pending.extend(
                missing.into_iter().map(|part| (number, NameChange::Make { dir: part.to_path_buf() })),
            );
            Ok(())
        })
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.machine.mutate("remove directory", dir, |disk, number| {
            self.machine.live.remove_dir(dir)?;
            disk.change_names(number, NameChange::Drop { dir: normal(dir) });
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let live = &self.machine.live;
        let fails = self.machine.fails_sync_of_names(&normal(dir));
        self.machine.mutate("sync directory", dir, |disk, _| {
            live.sync_dir(dir)?;
            if fails {
                disk.lose_names(&normal(dir));
                return Err(Error::io("sync directory", dir, &io::Error::from(Errno::IO)));
            }
            disk.sync_dir(&normal(dir), &live.named_inodes());
            Ok(())
        })
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        self.machine.check_power("lock", path)?;
        if self.machine.live.exists(path)? {
            return self.machine.live.lock(path, mode);
        }
        let machine = &self.machine;
        machine.mutate("lock", path, |disk, number| {
            machine.create(disk, number, path, || machine.live.lock(path, mode))
        })
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.machine.check_power("measure", dir)?;
        self.machine.live.free_bytes(dir)
    }
}
