//! [`TracedFs`]: another file system, counted and, on demand, written down.
//!
//! **Invariant:** only operations that succeeded are counted and logged; the log keeps their order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_base::Result;

use super::{Access, File, FileSystem};
use crate::fs::forward::{forward_file, forward_fs};
use crate::sync::{Arc, Mutex};

/// A file system that counts what is asked of it.
pub struct TracedFs {
    inner: Arc<dyn FileSystem>,
    trace: Arc<Trace>,
}

/// How often each operation was done, and on how many bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Files synced.
    pub syncs: u64,
    /// Directories synced.
    pub dir_syncs: u64,
    /// Files made or cut to nothing by opening.
    pub creates: u64,
    /// Existing files opened.
    pub opens: u64,
    /// Files renamed.
    pub renames: u64,
    /// Names removed.
    pub removes: u64,
    /// Names added.
    pub links: u64,
    /// Lengths set and space reserved.
    pub resizes: u64,
}

#[derive(Debug, Default)]
struct Trace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By file extension; directories and files without one under the empty name.
    counts: BTreeMap<String, Counts>,
    log: Option<Log>,
}

#[derive(Debug)]
struct Log {
    root: PathBuf,
    lines: Vec<String>,
}

struct TracedFile {
    inner: Arc<dyn File>,
    trace: Arc<Trace>,
}

impl TracedFs {
    /// `inner`, counted from zero.
    pub fn new(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self { inner, trace: Arc::default() })
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.trace.state.lock().counts.values().fold(Counts::default(), |sum, counts| sum.plus(counts))
    }

    /// What was done so far to files of this extension (without the dot).
    pub fn counts_of(&self, extension: &str) -> Counts {
        self.trace.state.lock().counts.get(extension).copied().unwrap_or_default()
    }

    /// How many reads of files of this extension.
    pub fn reads_of(&self, extension: &str) -> u64 {
        self.counts_of(extension).reads
    }

    /// Forgets the counts.
    pub fn reset_counts(&self) {
        self.trace.state.lock().counts.clear();
    }

    /// Writes down every change from now on, with paths relative to `root`: `create 000003.list`,
    /// `write 000003.list 0+4096`, `sync 000003.list`, `rename a b`, `sync_dir .`.
    pub fn start_log(&self, root: &Path) {
        self.trace.state.lock().log = Some(Log { root: root.to_path_buf(), lines: Vec::new() });
    }

    /// The lines since `start_log` or the last call; logging goes on.
    pub fn take_log(&self) -> Vec<String> {
        self.trace.state.lock().log.as_mut().map(|log| std::mem::take(&mut log.lines)).unwrap_or_default()
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(TracedFile { inner, trace: Arc::clone(&self.trace) })
    }
}

impl Counts {
    fn plus(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            write_bytes: self.write_bytes + other.write_bytes,
            syncs: self.syncs + other.syncs,
            dir_syncs: self.dir_syncs + other.dir_syncs,
            creates: self.creates + other.creates,
            opens: self.opens + other.opens,
            renames: self.renames + other.renames,
            removes: self.removes + other.removes,
            links: self.links + other.links,
            resizes: self.resizes + other.resizes,
        }
    }
}

impl Trace {
    fn count(&self, path: &Path, add: impl FnOnce(&mut Counts)) {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let state = &mut *self.state.lock();
        if !state.counts.contains_key(extension) {
            state.counts.insert(extension.to_owned(), Counts::default());
        }
        state.counts.get_mut(extension).map(add);
    }

    /// Logs `operation path rest`.
    fn log(&self, operation: &str, path: &Path, rest: impl FnOnce(&Log) -> String) {
        if let Some(log) = &mut self.state.lock().log {
            let line = format!("{operation} {}{}", log.shown(path), rest(log));
            log.lines.push(line);
        }
    }

    fn log_plain(&self, operation: &str, path: &Path) {
        self.log(operation, path, |_| String::new());
    }
}

impl Log {
    fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
    }
}

impl File for TracedFile {
    forward_file! { path written_from len reserve_tail identity }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let count = self.inner.read_at(offset, into)?;
        self.trace.count(self.path(), |counts| {
            counts.reads += 1;
            counts.read_bytes += count as u64;
        });
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.trace.count(self.path(), |counts| {
            counts.writes += 1;
            counts.write_bytes += bytes.len() as u64;
        });
        self.trace.log("write", self.path(), |_| format!(" {offset}+{}", bytes.len()));
        Ok(())
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.write_at(offset, bytes).map(|()| true)
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.inner.set_len(bytes)?;
        self.trace.count(self.path(), |counts| counts.resizes += 1);
        self.trace.log("set_len", self.path(), |_| format!(" {bytes}"));
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.inner.reserve(bytes)?;
        self.trace.count(self.path(), |counts| counts.resizes += 1);
        self.trace.log("reserve", self.path(), |_| format!(" {bytes}"));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()?;
        self.trace.count(self.path(), |counts| counts.syncs += 1);
        self.trace.log_plain("sync", self.path());
        Ok(())
    }
}

impl FileSystem for TracedFs {
    forward_fs! { exists list shorten link_count identity absolute lock helpers free_bytes }

    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let file = self.inner.create(path, access)?;
        self.trace.count(path, |counts| counts.creates += 1);
        self.trace.log_plain("create", path);
        Ok(self.file(file))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let file = self.inner.open(path, access)?;
        self.trace.count(path, |counts| counts.opens += 1);
        Ok(self.file(file))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let file = self.inner.open_read(path, access)?;
        self.trace.count(path, |counts| counts.opens += 1);
        Ok(self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)?;
        self.trace.count(to, |counts| counts.renames += 1);
        self.trace.log("rename", from, |log| format!(" {}", log.shown(to)));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)?;
        self.trace.count(path, |counts| counts.removes += 1);
        self.trace.log_plain("remove", path);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)?;
        self.trace.count(to, |counts| counts.links += 1);
        self.trace.log("link", from, |log| format!(" {}", log.shown(to)));
        Ok(())
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.inner.create_dir_all(dir)?;
        self.trace.log_plain("create_dir", dir);
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)?;
        self.trace.log_plain("remove_dir", dir);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)?;
        self.trace.count(Path::new(""), |counts| counts.dir_syncs += 1);
        self.trace.log_plain("sync_dir", dir);
        Ok(())
    }
}
