//! Checkpoints that meet in one directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay::{Database, Options, Result};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::Mutex;
use forebay_env::{Access, Env, File, FileLock, FileSystem, LockMode};

/// Files in memory. Something is done once amid a checkpoint: between its look at where it goes and its first file, when the
/// names in the root are synced; or once it has the lock there.
struct Between {
    inner: Arc<MemoryFs>,
    is_locked: bool,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Between {
    fn come(&self) {
        // It may come here, too, and nothing more is done then.
        let then = self.then.lock().take();
        if let Some(then) = then {
            then();
        }
    }
}

impl FileSystem for Between {
    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.create(path, access)
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open(path, access)
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open_read(path, access)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn link_count(&self, path: &Path) -> Result<u64> {
        self.inner.link_count(path)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.inner.absolute(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)?;
        if dir == Path::new("/") && !self.is_locked {
            self.come();
        }
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        let lock = self.inner.lock(path, mode)?;
        if self.is_locked && path.starts_with("/copy") {
            self.come();
        }
        Ok(lock)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.inner.free_bytes(dir)
    }
}

/// Both saw an empty directory. The one that came too late failed, and cleared away what the other had made, which was
/// acknowledged by then.
#[test]
fn of_two_checkpoints_into_one_directory_the_acknowledged_one_stays() {
    for is_locked in [false, true] {
        let fs = Arc::new(Between { inner: MemoryFs::new(), is_locked, then: Mutex::default() });
        let env = Env::simulated(Arc::<Between>::clone(&fs), 1);
        let options = || Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
        let db = Arc::new(Database::open("/db", options()).unwrap());
        let table = db.table("t").open().unwrap();
        table.put("in a list", "1").unwrap();
        db.flush().unwrap();
        table.put("in the log", "2").unwrap();
        let (other, came) = (Arc::clone(&db), Arc::new(Mutex::default()));
        let told = Arc::clone(&came);
        *fs.then.lock() = Some(Box::new(move || *told.lock() = Some(other.checkpoint("/copy").map(drop))));
        let own = db.checkpoint("/copy").map(drop);
        let other = came.lock().take().unwrap();
        let (done, refused, why) =
            if is_locked { (own, other, "is held") } else { (other, own, "/copy is not empty") };
        done.unwrap();
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
        let copy = Database::open("/copy", options()).unwrap();
        let table = copy.table("t").existing(true).open().unwrap();
        for (key, value) in [("in a list", "1"), ("in the log", "2")] {
            assert_eq!(table.get(key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
        }
    }
}

/// Who was killed as it had the directory, and had made nothing there yet, left a lock, and nobody could try again.
#[test]
fn a_lock_alone_is_no_copy() {
    let fs = MemoryFs::new();
    let options = || Options::default().memory_limit(1 << 20).env(Env::simulated(fs.clone(), 2));
    let db = Database::open("/db", options()).unwrap();
    fs.create_dir_all(Path::new("/copy")).unwrap();
    fs.create(Path::new("/copy/LOCK"), Access::Buffered).unwrap();
    db.checkpoint("/copy").unwrap();
    Database::open("/copy", options()).unwrap();
}
