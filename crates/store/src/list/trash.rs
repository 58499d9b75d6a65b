//! Files that nothing refers to any more, until they are removed: once no reader of another process needs them.
//!
//! **Invariant:** a file that a manifest has named is removed only where no lease is held at a place before that from
//! which on the manifest names it no more.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, planted};
use forebay_env::fs::Opener;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::{Access, FileSystem};

use super::disk::DiskUse;
use crate::leases::{Held, Leases, Place};

/// A file that is to be removed.
#[derive(Debug)]
pub struct Leaving {
    path: PathBuf,
    /// Its bytes, and where they are counted.
    counted: Option<(Arc<DiskUse>, u64)>,
    /// The manifest names it no more from here on.
    since: Place,
}

impl Leaving {
    /// A file whose bytes are counted, and [let go](DiskUse::let_go).
    pub fn counted(path: PathBuf, disk: &Arc<DiskUse>, bytes: u64) -> Self {
        Self { counted: Some((Arc::clone(disk), bytes)), ..Self::from(path) }
    }

    /// It is not there any more, or none of this process's.
    fn gone(self) {
        if let Some((disk, bytes)) = self.counted {
            disk.remove(bytes);
        }
    }
}

impl From<PathBuf> for Leaving {
    fn from(path: PathBuf) -> Self {
        Self { path, counted: None, since: Place::default() }
    }
}

/// How far the manifest is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    now: Place,
    /// How far it was when it was opened.
    opened: Place,
    /// How far somebody had read by then, if that is further: edits that were lost.
    lost: Place,
}

impl Progress {
    /// What a lease at a place stands for. Whoever has read edits that were lost needs files that nothing tells of, until
    /// the lease is moved.
    fn trusted(&self, place: Place) -> Place {
        let is_ahead = place > self.now || place > self.opened && place <= self.lost;
        if is_ahead { Place::default() } else { place }
    }
}

/// Who may read the files whom this process's versions know nothing of, as it was found a moment ago.
#[derive(Clone, Copy, Debug)]
pub struct Strangers {
    /// The least place that a reader of another process is at; `None` where there is none.
    least: Option<Place>,
    /// Whether somebody has opened the directory earlier in this process.
    is_second: bool,
}

impl Strangers {
    /// Whether there is anybody. Files may lose their names under them, but no byte.
    pub fn is_any(&self) -> bool {
        !planted::is("files-cut-under-readers") && (self.is_second || self.least.is_some())
    }

    /// Whether some reader of another process may need what the manifest named before that place.
    fn need(&self, since: Place) -> bool {
        self.least.is_some_and(|least| least < since)
    }
}

/// What is given back of a file at one go.
const PIECE_BYTES: u64 = 4 << 20;

/// Files that nothing refers to any more, waiting to be removed by background work.
#[derive(Debug, Default)]
pub struct Trash {
    /// In the order in which manifests let go of them.
    waiting: Mutex<VecDeque<Leaving>>,
    /// Why the last removal failed, if it did.
    trouble: Mutex<Option<Error>>,
    opener: Option<Arc<Opener>>,
    /// Who may read what waits in other processes.
    leases: Option<Leases>,
    manifest: Mutex<Progress>,
    /// Whether the oldest that waits was found to be needed by a reader of another process.
    is_held: AtomicBool,
    /// Whether it is a reader's, which removes nothing.
    is_readers: bool,
}

impl Trash {
    /// For the files of the directory that was opened so. All that reads them keeps this.
    pub fn of(opener: Arc<Opener>, leases: Leases) -> Self {
        Self { opener: Some(opener), leases: Some(leases), ..Self::default() }
    }

    /// For who only reads the directory: nothing is ever removed.
    pub fn of_reader(opener: Arc<Opener>) -> Self {
        Self { opener: Some(opener), is_readers: true, ..Self::default() }
    }

    /// Who may read the files in other processes.
    pub fn leases(&self) -> Option<&Leases> {
        self.leases.as_ref()
    }

    /// Notes how far the manifest is at an opening, before anything is added.
    pub fn begin(&self, place: Place) {
        let read = self.leases.as_ref().map(Leases::held).unwrap_or_default();
        let lost = read.iter().map(|held| held.place).filter(|&read| read > place).max().unwrap_or_default();
        *self.manifest.lock() = Progress { now: place, opened: place, lost };
    }

    /// Notes how far the manifest is, durably: what is added from now on is named no more from there.
    pub fn reach(&self, place: Place) {
        let mut manifest = self.manifest.lock();
        debug_assert!(manifest.now <= place, "manifests go on: {place:?} after {manifest:?}");
        manifest.now = place;
    }

    /// The leases that are held, at the places that they stand for.
    fn held(&self) -> Vec<Held> {
        let held = self.leases.as_ref().map(Leases::held).unwrap_or_default();
        let manifest = *self.manifest.lock();
        held.into_iter().map(|held| Held { place: manifest.trusted(held.place), ..held }).collect()
    }

    /// Looks who may read the directory's files. It lists a folder, and asks for the lock of each lease.
    pub fn strangers(&self) -> Strangers {
        let is_second = self.opener.as_ref().is_some_and(|opener| opener.is_second());
        Strangers { least: self.held().iter().map(|held| held.place).min(), is_second }
    }

    /// Whether some reader of another process may need what the manifest named before where it is now.
    pub fn is_needed(&self) -> bool {
        let strangers = self.strangers();
        strangers.need(self.manifest.lock().now)
    }

    /// Adds a file that nobody of this process reads any more.
    pub fn add(&self, file: impl Into<Leaving>) {
        let file = file.into();
        if self.is_readers {
            return file.gone();
        }
        // Under the lock, so that all stand in their order.
        let mut waiting = self.waiting.lock();
        let since = self.manifest.lock().now;
        waiting.push_back(Leaving { since, ..file });
    }

    /// Removes a file, now or, where that fails or somebody may need it, when the trash is emptied later.
    pub fn remove(&self, fs: &dyn FileSystem, file: impl Into<Leaving>) {
        if self.is_readers {
            return self.add(file);
        }
        self.remove_beside(&self.strangers(), fs, file);
    }

    /// The same, where it was looked who is there after the manifest had let it go.
    pub fn remove_beside(&self, strangers: &Strangers, fs: &dyn FileSystem, file: impl Into<Leaving>) {
        let now = self.manifest.lock().now;
        match strangers.need(now) {
            true => self.add(file),
            false => _ = self.try_to_remove(fs, file.into()),
        }
    }

    /// The same of a file that no manifest has named: nobody can need it.
    pub fn discard(&self, fs: &dyn FileSystem, file: impl Into<Leaving>) {
        self.try_to_remove(fs, file.into());
    }

    fn try_to_remove(&self, fs: &dyn FileSystem, file: Leaving) -> bool {
        let trouble = fs.remove(&file.path).err().filter(|error| !error.is_not_found());
        let failed = trouble.is_some();
        *self.trouble.lock() = trouble;
        match failed {
            true => self.add(file),
            false => file.gone(),
        }
        !failed
    }

    /// Why files stay that should go, if so.
    pub fn trouble(&self) -> Option<Error> {
        self.trouble.lock().clone()
    }

    /// Whether files stay because readers of other processes may need them, as was found when some were to go.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Removes a piece of what has waited longest. `false` where nothing waits, where that fails, or where somebody may
    /// need it.
    pub fn remove_some(&self, fs: &dyn FileSystem) -> bool {
        let Some(oldest) = self.waiting.lock().pop_front() else {
            self.is_held.store(false, Ordering::Relaxed);
            return false;
        };
        let strangers = self.strangers();
        let is_held = strangers.need(oldest.since);
        self.is_held.store(is_held, Ordering::Relaxed);
        if is_held {
            self.waiting.lock().push_front(oldest);
            return false;
        }
        if !strangers.is_any() && fs.shorten(&oldest.path, PIECE_BYTES).unwrap_or(false) {
            self.waiting.lock().push_front(oldest);
            return true;
        }
        self.try_to_remove(fs, oldest)
    }

    /// Removes all that is waiting, but for what somebody may need. Tells whether anything is otherwise than before: a
    /// file is gone, or the first could not be removed. Who tries again after each wake is not woken by its own failures.
    pub fn empty(&self, fs: &dyn FileSystem) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(last) = waiting.back().map(|last| last.since) else {
            self.is_held.store(false, Ordering::Relaxed);
            return false;
        };
        drop(waiting);
        let least = self.strangers().least.unwrap_or(last);
        waiting = self.waiting.lock();
        // What is in no order goes with what is before it, later.
        let going = waiting.iter().take_while(|file| file.since <= least).count();
        let going: Vec<Leaving> = waiting.drain(..going).collect();
        self.is_held.store(!waiting.is_empty(), Ordering::Relaxed);
        drop(waiting);
        let was_well = self.trouble().is_none();
        let mut any_gone = false;
        for file in going {
            any_gone |= self.try_to_remove(fs, file);
        }
        any_gone || was_well && self.trouble().is_some()
    }

    /// The leases of other processes, and how many bytes of what waits each of them may need.
    pub fn held_by_readers(&self, fs: &dyn FileSystem) -> Vec<(Held, u64)> {
        let held = self.held();
        if held.is_empty() {
            return Vec::new();
        }
        // The lengths of most are known. Of others, such as segments, they are asked for without the lock.
        let of = |file: &Leaving| match &file.counted {
            Some((_, bytes)) => (Ok(*bytes), file.since),
            None => (Err(file.path.clone()), file.since),
        };
        let waiting: Vec<(Result<u64, PathBuf>, Place)> = self.waiting.lock().iter().map(of).collect();
        let ask = |path: PathBuf| fs.open_read(&path, Access::Buffered).and_then(|file| file.len());
        let sized: Vec<(u64, Place)> = waiting
            .into_iter()
            .map(|(bytes, since)| (bytes.unwrap_or_else(|path| ask(path).unwrap_or(0)), since))
            .collect();
        let needed = |place: Place| sized.iter().filter(move |(_, since)| place < *since);
        held.into_iter()
            .map(|held| {
                let bytes = needed(held.place).map(|(bytes, _)| bytes).sum();
                (held, bytes)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Result;
    use forebay_env::fs::{FaultyFs, MemoryFs, RealFs};

    use crate::leases::Lease;

    use super::*;

    /// Of whoever opens `dir` now.
    fn of(fs: &Arc<dyn FileSystem>, dir: &std::path::Path) -> Trash {
        Trash::of(Opener::new(&**fs, dir), Leases::new(fs, dir))
    }

    fn make(fs: &dyn FileSystem, path: &std::path::Path, bytes: u64) -> Result<()> {
        fs.create(path, Access::Buffered)?.set_len(bytes)
    }

    #[test]
    fn what_others_of_this_process_may_read_goes_whole() {
        let dir = std::env::temp_dir().join(format!("forebay-strangers-{}", std::process::id()));
        let real: Arc<dyn FileSystem> = RealFs::new();
        let fs = &*real;
        fs.create_dir_all(&dir).unwrap();
        make(fs, &dir.join("long"), 2 * PIECE_BYTES).unwrap();
        let first = Opener::new(fs, &dir);
        let read = fs.open_read(&dir.join("long"), Access::Buffered).unwrap();
        // Another of the same files.
        let other: Arc<dyn FileSystem> = RealFs::new();
        let trash = of(&other, &dir);
        assert!(trash.strangers().is_any());
        let link = dir.with_extension("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(of(&real, &link).strangers().is_any(), "by another name");
        fs.remove(&link).unwrap();
        trash.add(dir.join("long"));
        assert!(trash.remove_some(fs) && !fs.exists(&dir.join("long")).unwrap());
        assert_eq!(read.len().unwrap(), 2 * PIECE_BYTES);
        drop(first);
        assert!(!trash.strangers().is_any());
        fs.remove_dir(&dir).unwrap();
    }

    #[test]
    fn files_go_one_by_one_and_large_ones_piece_by_piece() {
        let dir = std::env::temp_dir().join(format!("forebay-trash-{}", std::process::id()));
        let real: Arc<dyn FileSystem> = RealFs::new();
        for (fs, pieces) in [(real, [3, 1, 1]), (MemoryFs::new(), [1, 1, 1])] {
            let fs = &*fs;
            fs.create_dir_all(&dir).unwrap();
            let (trash, disk) = (Trash::default(), Arc::new(DiskUse::default()));
            let names = ["long", "linked", "short"];
            for (name, bytes) in names.into_iter().zip([2 * PIECE_BYTES + 1, 2 * PIECE_BYTES, PIECE_BYTES]) {
                make(fs, &dir.join(name), bytes).unwrap();
                disk.found(bytes);
                disk.retire(bytes);
                disk.let_go(bytes);
                trash.add(Leaving::counted(dir.join(name), &disk, bytes));
            }
            fs.hard_link(&dir.join("linked"), &dir.join("other")).unwrap();
            for (name, pieces) in names.into_iter().zip(pieces) {
                for _ in 0..pieces {
                    assert!(fs.exists(&dir.join(name)).unwrap(), "{name}");
                    assert!(trash.remove_some(fs));
                }
                assert!(!fs.exists(&dir.join(name)).unwrap(), "{name}");
            }
            assert!(!trash.remove_some(fs) && disk.bytes() == 0 && disk.leaving_bytes() == 0);
            let other = fs.open_read(&dir.join("other"), Access::Buffered).unwrap();
            assert_eq!(other.len().unwrap(), 2 * PIECE_BYTES, "who has another name keeps all of it");
            fs.remove(&dir.join("other")).unwrap();
            fs.remove_dir(&dir).unwrap();
        }
    }

    /// Who empties the trash and wakes others where that has changed anything would keep them awake for ever else.
    #[test]
    fn files_that_cannot_be_removed_are_news_once() {
        let fs = FaultyFs::new(MemoryFs::new());
        let (trash, dir) = (Trash::default(), std::path::Path::new("/db"));
        fs.create_dir_all(dir).unwrap();
        for name in ["a", "b"] {
            make(&*fs, &dir.join(name), 10).unwrap();
            trash.add(dir.join(name));
        }
        fs.rule("remove * all io-error").unwrap();
        assert!(trash.empty(&*fs) && trash.trouble().is_some());
        assert!(!trash.empty(&*fs) && trash.trouble().is_some());
        fs.clear();
        assert!(trash.empty(&*fs) && trash.trouble().is_none());
        assert!(!trash.empty(&*fs) && fs.list(dir).unwrap().is_empty());
    }

    /// What a reader of another process may need stays until it has read on, or is gone; what came before it does not.
    #[test]
    fn what_a_lease_holds_stays_until_it_has_moved_on() {
        let fs: Arc<dyn FileSystem> = MemoryFs::new();
        let dir = std::path::Path::new("/db");
        fs.create_dir_all(dir).unwrap();
        let (trash, place) = (of(&fs, dir), |bytes| Place { manifest: 1, bytes });
        let there = || fs.list(dir).unwrap();
        for name in ["a", "b", "c", "d"] {
            make(&*fs, &dir.join(name), 10).unwrap();
        }
        trash.reach(place(10));
        trash.add(dir.join("a"));
        let lease = Lease::take(&fs, dir, &|| 1).unwrap();
        assert!(!trash.remove_some(&*fs) && trash.is_held(), "it may have read anything so far");
        lease.move_to(place(10)).unwrap();
        trash.reach(place(20));
        trash.add(dir.join("b"));
        trash.remove(&*fs, dir.join("c"));
        trash.discard(&*fs, dir.join("d"));
        assert_eq!(there(), ["a", "b", "c"], "nobody was ever told of the last");
        assert!(trash.empty(&*fs) && trash.is_held());
        assert_eq!(there(), ["b", "c"]);
        assert!(!trash.empty(&*fs));
        let held = trash.held_by_readers(&*fs);
        assert_eq!((held.len(), held[0].1), (1, 20));
        assert_eq!(held[0].0.process, u64::from(forebay_env::process::id()));
        lease.move_to(place(20)).unwrap();
        assert!(trash.remove_some(&*fs) && !trash.is_held());
        assert_eq!(there(), ["c"]);
        trash.reach(place(30));
        make(&*fs, &dir.join("e"), 10).unwrap();
        trash.add(dir.join("e"));
        assert!(trash.remove_some(&*fs) && !trash.remove_some(&*fs));
        assert_eq!(there(), ["e"]);
        drop(lease);
        assert!(trash.remove_some(&*fs) && there().is_empty());
    }

    /// A reader had read an edit that could not be made durable. What it was told of was removed at the next opening, and
    /// once other edits had got that far all that it read.
    #[test]
    fn who_has_read_what_was_lost_needs_everything_until_it_has_looked_again() {
        let fs: Arc<dyn FileSystem> = MemoryFs::new();
        let dir = std::path::Path::new("/db");
        fs.create_dir_all(dir).unwrap();
        let (trash, place) = (of(&fs, dir), |bytes| Place { manifest: 1, bytes });
        let (lease, other) = (Lease::take(&fs, dir, &|| 1).unwrap(), Lease::take(&fs, dir, &|| 2).unwrap());
        lease.move_to(place(30)).unwrap();
        other.move_to(place(10)).unwrap();
        trash.begin(place(10));
        for (name, end) in [("a", 20), ("b", 30), ("c", 40)] {
            assert!(trash.is_needed(), "{end}");
            make(&*fs, &dir.join(name), 10).unwrap();
            trash.reach(place(end));
            other.move_to(place(end)).unwrap();
            trash.remove(&*fs, dir.join(name));
            assert!(!trash.empty(&*fs) && trash.is_held(), "{end}");
        }
        assert_eq!(trash.held_by_readers(&*fs).iter().map(|(_, bytes)| bytes).sum::<u64>(), 30);
        lease.move_to(place(20)).unwrap();
        assert!(!trash.empty(&*fs), "it may be where it was, or have looked again");
        lease.move_to(place(40)).unwrap();
        assert!(trash.empty(&*fs) && fs.list(dir).unwrap().is_empty());
        // Of what is not noted as durable yet nobody knows whether it will be.
        lease.move_to(place(50)).unwrap();
        assert!(trash.is_needed());
        trash.reach(place(50));
        other.move_to(place(50)).unwrap();
        assert!(!trash.is_needed());
    }

    #[test]
    fn a_reader_removes_nothing() {
        let (fs, dir) = (MemoryFs::new(), std::path::Path::new("/db"));
        fs.create_dir_all(dir).unwrap();
        make(&*fs, &dir.join("a"), 10).unwrap();
        let (trash, disk) = (Trash::of_reader(Opener::new(&*fs, dir)), Arc::new(DiskUse::default()));
        disk.found(10);
        disk.retire(10);
        disk.let_go(10);
        trash.add(Leaving::counted(dir.join("a"), &disk, 10));
        trash.remove(&*fs, dir.join("a"));
        assert!(!trash.remove_some(&*fs) && !trash.empty(&*fs));
        assert_eq!((fs.list(dir).unwrap().len(), disk.bytes(), disk.leaving_bytes()), (1, 0, 0));
    }
}
