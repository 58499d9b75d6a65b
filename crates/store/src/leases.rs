//! Leases: what keeps the writer of a database from removing files that readers of other processes may still need. See
//! `docs/internals/leases.md`.
//!
//! A reader has a file of its own in a folder of the directory, and holds its lock. It says up to where the reader has
//! read the manifest: a file that the manifest lets go of behind that place is needed. Whoever can take the lock knows
//! that its reader is dead.
//!
//! **Invariant:** a reader holds its lease before it reads `CURRENT`, and the writer looks for leases after the edit is
//! durable that lets a file go, and before it removes that file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::wire::{u32_at, u64_at};
use forebay_base::{Error, Result, checksum, planted};
use forebay_env::sync::Mutex;
use forebay_env::{Access, File, FileLock, FileSystem, LockMode, process};

use crate::names;

/// What a lease says begins here: before it the lock may note who holds it.
const RECORD_AT: u64 = 64;
const RECORD_BYTES: usize = 32;
const VERSION: u32 = 1;
/// How often another name is tried.
const TRIES_MAX: usize = 100;

const LEASE: &str = "lease";
const ASK: &str = "ask";
const ANSWER: &str = "stats";
/// An answer that is being written.
const DRAFT: &str = "draft";

/// How far manifests were read: which of them, and up to where. Manifests number on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The manifest's id.
    pub manifest: u64,
    /// Where its last edit ends.
    pub bytes: u64,
}

/// A lease that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The process that reads; 0 where that is not known.
    pub process: u64,
    /// Files that were let go of up to here it does not need.
    pub place: Place,
}

fn encode(held: &Held) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..16].copy_from_slice(&held.process.to_le_bytes());
    bytes[16..24].copy_from_slice(&held.place.manifest.to_le_bytes());
    bytes[24..32].copy_from_slice(&held.place.bytes.to_le_bytes());
    let sum = checksum::plain(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What bytes say. One that says nothing that is understood may need all there is.
fn decode(bytes: &[u8]) -> Held {
    let is_sound = bytes.len() == RECORD_BYTES
        && checksum::plain(&bytes[4..]) == u32_at(bytes, 0)
        && u32_at(bytes, 4) == VERSION;
    if !is_sound {
        return Held { process: 0, place: Place::default() };
    }
    let place = Place { manifest: u64_at(bytes, 16), bytes: u64_at(bytes, 24) };
    Held { process: u64_at(bytes, 8), place }
}

fn folder(dir: &Path) -> PathBuf {
    dir.join(names::READERS)
}

fn path(folder: &Path, stem: &str, kind: &str) -> PathBuf {
    folder.join(format!("{stem}.{kind}"))
}

/// A reader's lease, given back when it is dropped. The system gives the lock back however the process ends.
pub struct Lease {
    fs: Arc<dyn FileSystem>,
    folder: PathBuf,
    stem: String,
    file: Arc<dyn File>,
    place: Mutex<Place>,
    /// Whether the folder was made for it.
    has_made_folder: bool,
    lock: Option<FileLock>,
}

impl Lease {
    /// Takes one in `dir`. It needs all files until it is [moved](Self::move_to).
    pub fn take(fs: &Arc<dyn FileSystem>, dir: &Path, entropy: &dyn Fn() -> u64) -> Result<Self> {
        let folder = folder(dir);
        let mut last = None;
        for _ in 0..TRIES_MAX {
            let has_made_folder = !fs.exists(&folder)?;
            if has_made_folder {
                fs.create_dir_all(&folder)?;
            }
            let stem = format!("{:016x}", entropy());
            match Self::named(fs, &folder, stem, has_made_folder) {
                // A writer has just looked whether it is held; or another reader has removed the folder.
                Err(error @ Error::Locked { .. }) => last = Some(error),
                Err(error) if error.is_not_found() && fs.exists(dir)? => last = Some(error),
                taken => return taken,
            }
        }
        Err(last.unwrap_or_else(|| Error::bug("a lease was tried for and not taken")))
    }

    fn named(fs: &Arc<dyn FileSystem>, folder: &Path, stem: String, has_made_folder: bool) -> Result<Self> {
        let path = path(folder, &stem, LEASE);
        let lock = fs.lock(&path, LockMode::Exclusive)?;
        let (fs, folder, place) = (Arc::clone(fs), folder.to_path_buf(), Mutex::default());
        let file = match fs.open(&path, Access::Buffered) {
            Ok(file) => file,
            Err(error) => {
                drop(fs.remove(&path));
                return Err(error);
            }
        };
        let lease = Self { fs, folder, stem, file, place, has_made_folder, lock: Some(lock) };
        lease.write(Place::default())?;
        Ok(lease)
    }

    fn write(&self, place: Place) -> Result<()> {
        let held = Held { process: u64::from(process::id()), place };
        self.file.write_at(RECORD_AT, &encode(&held))
    }

    /// Says that what was let go of up to this place is not needed. On an error it may be kept for longer.
    pub fn move_to(&self, place: Place) -> Result<()> {
        let mut at = self.place.lock();
        // What was given up is not asked for again: where a manifest lost an edit that was read, all is read anew.
        if *at < place {
            self.write(place)?;
            *at = place;
        }
        Ok(())
    }

    /// Asks the writer for its numbers.
    pub fn ask(&self) -> Result<()> {
        self.end_ask();
        self.fs.create(&path(&self.folder, &self.stem, ASK), Access::Buffered).map(drop)
    }

    /// What the writer has answered, if it has.
    pub fn answer(&self) -> Result<Option<Vec<u8>>> {
        match read_whole(&*self.fs, &path(&self.folder, &self.stem, ANSWER)) {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Wants no answer any more.
    pub fn end_ask(&self) {
        // The answer goes last: none comes once nobody asks.
        [ASK, ANSWER].iter().for_each(|kind| drop(self.fs.remove(&path(&self.folder, &self.stem, kind))));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What cannot be removed now the writer removes, who finds that nobody holds it.
        self.end_ask();
        let _ = self.fs.remove(&path(&self.folder, &self.stem, LEASE));
        self.lock.take();
        if self.has_made_folder {
            let _ = self.fs.remove_dir(&self.folder);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({})", self.stem)
    }
}

fn read_whole(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open_read(path, Access::Buffered)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// The leases that are held in `dir`. What dead readers have left is removed.
pub fn held(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<Held>> {
    let folder = folder(dir);
    let names = match fs.list(&folder) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        names => names?,
    };
    if planted::is("leases-not-looked-at") {
        return Ok(Vec::new());
    }
    let (mut held, mut stems) = (Vec::new(), Vec::new());
    for stem in names.iter().filter_map(|name| name.strip_suffix(".lease")) {
        let path = path(&folder, stem, LEASE);
        match fs.lock(&path, LockMode::Shared) {
            Ok(_dead) => {
                // Its name goes while the lock is held: whoever is just about to take it sees that it is gone.
                let _ = fs.remove(&path);
                continue;
            }
            Err(error) if error.is_not_found() => continue,
            Err(Error::Locked { .. }) => held.push(read(fs, &path)),
            // Whether somebody holds it is not known.
            Err(_) => held.push(Held { process: 0, place: Place::default() }),
        }
        stems.push(stem);
    }
    for name in &names {
        let is_left = name.split_once('.').is_none_or(|(stem, kind)| kind != LEASE && !stems.contains(&stem));
        if is_left {
            let _ = fs.remove(&folder.join(name));
        }
    }
    Ok(held)
}

fn read(fs: &dyn FileSystem, path: &Path) -> Held {
    let read = || {
        let mut bytes = [0; RECORD_BYTES];
        let got = fs.open_read(path, Access::Buffered)?.read_at(RECORD_AT, &mut bytes)?;
        Ok::<_, Error>(decode(&bytes[..got]))
    };
    read().unwrap_or(Held { process: 0, place: Place::default() })
}

/// Removes the folder and what is in it, of a database that nobody reads.
pub fn remove_folder(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let folder = folder(dir);
    match fs.list(&folder) {
        Err(error) if error.is_not_found() => Ok(()),
        names => {
            names?.iter().try_for_each(|name| fs.remove(&folder.join(name)))?;
            fs.remove_dir(&folder)
        }
    }
}

/// The leases of a directory, as its writer looks at them.
pub struct Leases {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl Leases {
    /// Those of `dir`.
    pub fn new(fs: &Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self { fs: Arc::clone(fs), dir: dir.to_path_buf() }
    }

    /// Those that are held. Where that cannot be known, one that needs all there is.
    pub fn held(&self) -> Vec<Held> {
        held(&*self.fs, &self.dir).unwrap_or_else(|_| vec![Held { process: 0, place: Place::default() }])
    }

    /// The least place that any of them is at; `None` where nobody reads.
    pub fn least(&self) -> Option<Place> {
        self.held().into_iter().map(|held| held.place).min()
    }

    /// The readers that ask and have no answer yet.
    pub fn asking(&self) -> Vec<String> {
        let names = self.fs.list(&folder(&self.dir)).unwrap_or_default();
        let asking =
            names.iter().filter_map(|name| Some(name.strip_suffix(ASK)?.strip_suffix('.')?.to_owned()));
        asking.filter(|stem| !names.contains(&format!("{stem}.{ANSWER}"))).collect()
    }

    /// Answers one of them: its file is there whole, or not at all.
    pub fn answer(&self, stem: &str, bytes: &[u8]) -> Result<()> {
        let folder = folder(&self.dir);
        let draft = path(&folder, stem, DRAFT);
        self.fs.create(&draft, Access::Buffered)?.write_at(0, bytes)?;
        if !self.fs.exists(&path(&folder, stem, ASK))? {
            // Nobody would remove it.
            return self.fs.remove(&draft);
        }
        self.fs.rename(&draft, &path(&folder, stem, ANSWER))
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leases({})", self.dir.display())
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::fs::{FaultyFs, MemoryFs};

    use super::*;

    const DIR: &str = "/db";

    fn place(manifest: u64, bytes: u64) -> Place {
        Place { manifest, bytes }
    }

    fn memory() -> (Arc<MemoryFs>, Arc<dyn FileSystem>) {
        let memory = MemoryFs::new();
        let fs: Arc<dyn FileSystem> = Arc::clone(&memory) as _;
        fs.create_dir_all(Path::new(DIR)).unwrap();
        (memory, fs)
    }

    fn take(fs: &Arc<dyn FileSystem>, number: u64) -> Lease {
        Lease::take(fs, Path::new(DIR), &|| number).unwrap()
    }

    #[test]
    fn a_lease_holds_what_it_says_until_it_goes() {
        let (_, fs) = memory();
        let leases = Leases::new(&fs, Path::new(DIR));
        assert_eq!(leases.least(), None);
        let (one, other) = (take(&fs, 1), take(&fs, 2));
        assert_eq!(leases.least(), Some(Place::default()), "one that has not read yet needs all");
        one.move_to(place(3, 700)).unwrap();
        assert_eq!(leases.least(), Some(Place::default()));
        other.move_to(place(3, 800)).unwrap();
        assert_eq!(leases.least(), Some(place(3, 700)));
        let process = u64::from(process::id());
        assert!(leases.held().iter().all(|held| held.process == process));
        drop(one);
        assert_eq!(leases.least(), Some(place(3, 800)));
        drop(other);
        assert_eq!(leases.least(), None);
        assert!(fs.list(&folder(Path::new(DIR))).unwrap_or_default().is_empty());
    }

    #[test]
    fn what_a_dead_reader_leaves_is_removed_and_what_is_torn_holds_everything() {
        let (memory, fs) = memory();
        let leases = Leases::new(&fs, Path::new(DIR));
        let lease = take(&fs, 5);
        lease.move_to(place(9, 9)).unwrap();
        lease.ask().unwrap();
        let files = memory.snapshot_files();
        drop(lease);
        let folder = folder(Path::new(DIR));
        fs.create_dir_all(&folder).unwrap();
        files.into_iter().for_each(|(path, bytes)| memory.replace_file(&path, bytes));
        assert_eq!(fs.list(&folder).unwrap().len(), 2);
        assert_eq!(leases.least(), None, "its lock is free");
        assert!(fs.list(&folder).unwrap().is_empty());

        let lease = take(&fs, 6);
        lease.move_to(place(2, 100)).unwrap();
        let path = path(&folder, "0000000000000006", LEASE);
        let whole = memory.snapshot_files()[&path].clone();
        for cut in RECORD_AT as usize..whole.len() {
            let mut torn = whole.clone();
            torn[cut] ^= 1;
            memory.replace_file(&path, torn);
            assert_eq!(leases.least(), Some(Place::default()), "byte {cut}");
            memory.replace_file(&path, whole[..cut].to_vec());
            assert_eq!(leases.least(), Some(Place::default()), "{cut} bytes");
        }
        memory.replace_file(&path, whole);
        assert_eq!(leases.least(), Some(place(2, 100)));
    }

    #[test]
    fn where_leases_cannot_be_looked_at_all_is_held() {
        let (memory, fs) = memory();
        let _lease = take(&fs, 7);
        let faulty = FaultyFs::new(memory as Arc<dyn FileSystem>);
        let behind: Arc<dyn FileSystem> = Arc::clone(&faulty) as _;
        let leases = Leases::new(&behind, Path::new(DIR));
        for rule in ["list * all io-error", "lock * all io-error"] {
            faulty.rule(rule).unwrap();
            assert_eq!(leases.least(), Some(Place::default()), "{rule}");
            faulty.clear();
        }
    }

    #[test]
    fn a_name_that_is_taken_is_not_taken_again() {
        let (_, fs) = memory();
        let first = take(&fs, 1);
        let numbers = Mutex::new(vec![2, 1, 1]);
        let second = Lease::take(&fs, Path::new(DIR), &|| numbers.lock().pop().unwrap()).unwrap();
        assert_eq!((&*first.stem, &*second.stem), ("0000000000000001", "0000000000000002"));
        assert_eq!(held(&*fs, Path::new(DIR)).unwrap().len(), 2);
    }

    #[test]
    fn an_answer_comes_whole_and_goes_with_who_asked() {
        let (_, fs) = memory();
        let (leases, lease) = (Leases::new(&fs, Path::new(DIR)), take(&fs, 8));
        assert!(leases.asking().is_empty());
        lease.ask().unwrap();
        let asking = leases.asking();
        assert_eq!(asking, ["0000000000000008"]);
        assert_eq!(lease.answer().unwrap(), None);
        leases.answer(&asking[0], b"{}").unwrap();
        assert!(leases.asking().is_empty(), "it has its answer");
        assert_eq!(lease.answer().unwrap().as_deref(), Some(&b"{}"[..]));
        lease.end_ask();
        leases.answer(&asking[0], b"late").unwrap();
        assert_eq!(lease.answer().unwrap(), None, "nobody asks any more");
        drop(lease);
        assert!(!fs.exists(&folder(Path::new(DIR))).unwrap());
    }
}
