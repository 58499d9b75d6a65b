//! [`BoundedFs`]: another file system, of whose files only this many are open at a time.
//!
//! A file that is opened to be read is closed again when others need its place, and opened by its path at the next
//! read. One that may be written to stays open, for what is to become of its writes is told to the handle that made
//! them.
//!
//! **Invariant:** what is open is counted before it is opened. More than the bound is open only where all of it is
//! being written, or read at this moment.
//!
//! **Invariant:** who asks for a read-only file sees to it that its name stays as long as the file is read, or that
//! another file of that name is refused: see [`GatedFs::close`](super::GatedFs::close).

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use forebay_base::{Error, Result};

use super::handles::{Closable, Handles, Opened};
use super::{Access, File, FileLock, FileSystem, Identity, LockMode, ReadRequest};
use crate::fs::forward::forward_fs;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, RwLock, Weak};

/// A file system of whose files only this many are open at a time.
pub struct BoundedFs {
    inner: Arc<dyn FileSystem>,
    handles: Arc<Handles>,
}

/// This many reads hold their files at once.
const READS_MAX: usize = 64;

impl BoundedFs {
    /// `inner`, with up to `files_max` descriptors.
    pub fn new(inner: Arc<dyn FileSystem>, files_max: usize) -> Arc<Self> {
        let handles = Handles::new(files_max, inner.process_files_max());
        Arc::new(Self { inner, handles })
    }

    /// How many descriptors files have that are open now.
    pub fn open_files(&self) -> usize {
        self.handles.open()
    }

    /// A file that stays open.
    fn held(&self, access: Access, open: impl Fn() -> Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
        let opened = self.handles.open_by(access, open)?;
        Ok(Arc::new(HeldFile(opened)))
    }
}

/// A file that is open as long as somebody has it.
struct HeldFile(Arc<Opened>);

/// A file that is opened when it is read.
struct ReadFile {
    path: PathBuf,
    access: Access,
    fs: Arc<dyn FileSystem>,
    handles: Arc<Handles>,
    opened: RwLock<Option<Arc<Opened>>>,
    /// Which file it was when it was opened first.
    identity: OnceLock<Identity>,
    /// It was read since the last time that one was sought to be closed.
    is_recent: AtomicBool,
    me: Weak<Self>,
}

impl ReadFile {
    /// The open file, which stays open as long as the caller has it.
    fn opened(&self) -> Result<Arc<Opened>> {
        let opened = self.opened.read().clone();
        if let Some(opened) = opened {
            if !self.is_recent.load(Ordering::Relaxed) {
                self.is_recent.store(true, Ordering::Relaxed);
            }
            return Ok(opened);
        }
        let opened = self.handles.open_by(self.access, || self.fs.open_read(&self.path, self.access))?;
        self.check(opened.file())?;
        let mut place = self.opened.write();
        if let Some(other) = &*place {
            // Somebody else was quicker.
            return Ok(Arc::clone(other));
        }
        *place = Some(Arc::clone(&opened));
        drop(place);
        let me: Weak<dyn Closable> = Weak::<Self>::clone(&self.me);
        self.handles.add(me);
        Ok(opened)
    }
}

impl ReadFile {
    /// Refuses another file that has got the name since: a copy of the database that went its own way has files of the
    /// same names, each of which is sound.
    fn check(&self, file: &dyn File) -> Result<()> {
        let Some(identity) = file.identity()? else { return Ok(()) };
        match self.identity.get_or_init(|| identity) {
            known if identity.is_same(known) => Ok(()),
            _ => Err(Error::invalid(format!(
                "{} is another file than the one that was read before: it, or its directory, was replaced under the open \
                 database; put it back, or open the database anew",
                self.path.display()
            ))),
        }
    }
}

impl Closable for ReadFile {
    fn is_recent(&self) -> bool {
        self.is_recent.swap(false, Ordering::Relaxed)
    }

    fn is_open(&self) -> bool {
        self.opened.read().is_some()
    }

    fn close(&self) {
        // Closed outside the lock: that may take its time.
        let opened = self.opened.write().take();
        drop(opened);
    }
}

impl File for ReadFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.opened()?.file().read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.opened()?.file().write_at(offset, bytes)
    }

    fn written_from(&self, offset: u64) -> u64 {
        self.opened().map_or(offset, |opened| opened.file().written_from(offset))
    }

    fn len(&self) -> Result<u64> {
        self.opened()?.file().len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.opened()?.file().set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.opened()?.file().reserve(bytes)
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        self.opened().is_ok_and(|opened| opened.file().reserve_tail(bytes))
    }

    fn will_need(&self, offset: u64, bytes: usize) {
        if let Ok(opened) = self.opened() {
            opened.file().will_need(offset, bytes);
        }
    }

    fn wont_need(&self, offset: u64, bytes: usize) {
        if let Ok(opened) = self.opened() {
            opened.file().wont_need(offset, bytes);
        }
    }

    fn held_open(&self) -> Result<Option<Arc<dyn File>>> {
        Ok(Some(Arc::new(HeldFile(self.opened()?))))
    }

    fn sync(&self) -> Result<()> {
        self.opened()?.file().sync()
    }
}

impl File for HeldFile {
    fn path(&self) -> &Path {
        self.0.file().path()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.0.file().read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.file().write_at(offset, bytes)
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.0.file().store_at(offset, bytes)
    }

    fn written_from(&self, offset: u64) -> u64 {
        self.0.file().written_from(offset)
    }

    fn len(&self) -> Result<u64> {
        self.0.file().len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.0.file().set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.0.file().reserve(bytes)
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        self.0.file().reserve_tail(bytes)
    }

    fn will_need(&self, offset: u64, bytes: usize) {
        self.0.file().will_need(offset, bytes);
    }

    fn wont_need(&self, offset: u64, bytes: usize) {
        self.0.file().wont_need(offset, bytes);
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.0.file().handle()
    }

    fn identity(&self) -> Result<Option<Identity>> {
        self.0.file().identity()
    }

    fn sync(&self) -> Result<()> {
        self.0.file().sync()
    }
}

impl FileSystem for BoundedFs {
    forward_fs! { maps_files exists rename remove hard_link create_dir_all remove_dir link_count identity absolute free_bytes helpers process_files_max }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.held(access, || self.inner.create(path, access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.held(access, || self.inner.open(path, access))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let file = Arc::new_cyclic(|me| ReadFile {
            path: path.to_path_buf(),
            access,
            fs: Arc::clone(&self.inner),
            handles: Arc::clone(&self.handles),
            opened: RwLock::default(),
            identity: OnceLock::new(),
            is_recent: AtomicBool::new(false),
            me: Weak::clone(me),
        });
        // What cannot be opened is an error here, as anywhere.
        file.opened()?;
        Ok(file)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        for requests in requests.chunks_mut(READS_MAX.min(self.handles.max() / 4).max(1)) {
            let held: Vec<_> = requests.iter().map(|request| request.file.held_open()).collect();
            let mut reads = Vec::with_capacity(requests.len());
            for (request, held) in requests.iter_mut().zip(&held) {
                let ReadRequest { file, offset, into, outcome } = request;
                match held {
                    Err(error) => *outcome = Err(error.clone()),
                    Ok(held) => {
                        let file = held.as_deref().unwrap_or(*file);
                        reads.push((ReadRequest::new(file, *offset, into), outcome));
                    }
                }
            }
            let (mut reads, outcomes): (Vec<_>, Vec<_>) = reads.into_iter().unzip();
            debug_assert_eq!(reads.len(), outcomes.len(), "each read has one outcome");
            self.inner.read_many(&mut reads);
            outcomes.into_iter().zip(reads).for_each(|(outcome, read)| *outcome = read.outcome);
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.handles.retrying(|| self.inner.list(dir))
    }

    fn shorten(&self, path: &Path, by: u64) -> Result<bool> {
        self.handles.retrying(|| self.inner.shorten(path, by))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.handles.retrying(|| self.inner.sync_dir(dir))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        self.handles.retrying(|| self.inner.lock(path, mode))
    }
}
