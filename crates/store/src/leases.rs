//! Leases: what keeps the writer of a database from removing files that readers of other processes may still need. See
//! `docs/internals/leases.md`.
//!
//! A reader has a file of its own in a folder of the directory, and holds its lock. It says up to where the reader has
//! read the manifest: a file that the manifest lets go of behind that place is needed. Whoever can take the lock knows
//! that its reader is dead.
//!
//! **Invariant:** a reader holds its lease before it reads `CURRENT`, and the writer looks for leases after the edit is
//! durable that lets a file go, and before it removes that file.

use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
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
/// So many leases are looked at. Where there are more, everything is needed.
const LOOKED_AT_MAX: usize = 1024;

/// How far manifests were read: which of them, and up to where. Manifests number on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The manifest's id.
    pub manifest: u64,
    /// Where its last edit ends.
    pub bytes: u64,
}

/// A lease that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The process that reads; 0 where that is not known.
    pub process: u64,
    /// Files that were let go of up to here it does not need.
    pub place: Place,
    /// Why nothing more is known of it, if so.
    pub trouble: Option<String>,
}

impl Held {
    /// One that may need all there is.
    fn unknown(trouble: String) -> Self {
        Self { process: 0, place: Place::default(), trouble: Some(trouble) }
    }
}

fn encode(process: u32, place: Place) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..16].copy_from_slice(&u64::from(process).to_le_bytes());
    bytes[16..24].copy_from_slice(&place.manifest.to_le_bytes());
    bytes[24..32].copy_from_slice(&place.bytes.to_le_bytes());
    let sum = checksum::plain(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What bytes say, if that is understood.
fn decode(bytes: &[u8]) -> Option<Held> {
    let is_sound = bytes.len() == RECORD_BYTES
        && checksum::plain(&bytes[4..]) == u32_at(bytes, 0)
        && u32_at(bytes, 4) == VERSION;
    let place = || Place { manifest: u64_at(bytes, 16), bytes: u64_at(bytes, 24) };
    is_sound.then(|| Held { process: u64_at(bytes, 8), place: place(), trouble: None })
}

fn folder(dir: &Path) -> PathBuf {
    dir.join(names::READERS)
}

fn path(folder: &Path, stem: &str, kind: &str) -> PathBuf {
    folder.join(format!("{stem}.{kind}"))
}

/// The number of a lease and the kind of file, of a name that is one of theirs. Others are nobody's business.
fn parse(name: &str) -> Option<(&str, &str)> {
    let (stem, kind) = name.split_once('.')?;
    let is_number = stem.len() == 16 && stem.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_number && [LEASE, ASK, ANSWER].contains(&kind)).then_some((stem, kind))
}

/// A reader's lease, given back when it is dropped. The system gives the lock back however the process ends.
pub struct Lease {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    taken: Mutex<Taken>,
}

/// The file that a reader holds.
struct Taken {
    stem: String,
    file: Arc<dyn File>,
    place: Place,
    /// Whether the folder was made for it.
    has_made_folder: bool,
    lock: Option<FileLock>,
    /// Whose it is.
    process: u32,
}

impl Lease {
    /// Takes one in `dir`. It needs all files until it is [moved](Self::move_to).
    pub fn take(fs: &Arc<dyn FileSystem>, dir: &Path, entropy: &dyn Fn() -> u64) -> Result<Self> {
        let taken = Mutex::new(Taken::new(fs, dir, entropy)?);
        Ok(Self { fs: Arc::clone(fs), dir: dir.to_path_buf(), taken })
    }

    /// Takes another one where somebody has removed its file, so that no writer knows of it. Then all that was read may
    /// be gone.
    pub fn renew(&self, entropy: &dyn Fn() -> u64) -> Result<bool> {
        let mut taken = self.taken.lock();
        if taken.has_its_name(&*self.fs, &self.dir) {
            return Ok(false);
        }
        *taken = Taken::new(&self.fs, &self.dir, entropy)?;
        Ok(true)
    }

    /// Says that what was let go of up to this place is not needed: where the manifest has lost edits that were read, an
    /// earlier one than before. On an error more may be kept.
    pub fn move_to(&self, place: Place) -> Result<()> {
        let mut taken = self.taken.lock();
        if taken.place != place {
            taken.write(place)?;
            taken.place = place;
        }
        Ok(())
    }

    /// Gives it back: nothing is needed any more. A child of a fork has none to give back: its parent may read yet.
    pub fn give_back(&self) {
        let is_own = |taken: &Taken| taken.lock.is_some() && taken.process == process::id();
        if !is_own(&self.taken.lock()) {
            return;
        }
        // What cannot be removed now the writer removes, who finds that nobody holds it.
        self.end_ask();
        let _ = self.fs.remove(&self.path(LEASE));
        let mut taken = self.taken.lock();
        taken.lock.take();
        if taken.has_made_folder {
            let _ = self.fs.remove_dir(&folder(&self.dir));
        }
    }

    fn path(&self, kind: &str) -> PathBuf {
        path(&folder(&self.dir), &self.taken.lock().stem, kind)
    }

    /// Asks the writer for its numbers.
    pub fn ask(&self) -> Result<()> {
        self.end_ask();
        self.fs.create(&self.path(ASK), Access::Foreign).map(drop)
    }

    /// What the writer has answered, if it has.
    pub fn answer(&self) -> Result<Option<Vec<u8>>> {
        match read_whole(&*self.fs, &self.path(ANSWER)) {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Wants no answer any more.
    pub fn end_ask(&self) {
        // The answer goes last: none comes once nobody asks.
        [ASK, ANSWER].iter().for_each(|kind| drop(self.fs.remove(&self.path(kind))));
    }
}

impl Taken {
    fn new(fs: &Arc<dyn FileSystem>, dir: &Path, entropy: &dyn Fn() -> u64) -> Result<Self> {
        let (folder, mut last) = (folder(dir), None);
        for _ in 0..TRIES_MAX {
            let has_made_folder = !fs.exists(&folder)?;
            if has_made_folder && fs.exists(dir)? {
                match fs.create_dir(&folder) {
                    // A writer has found it empty, and removed it.
                    Err(error) if error.is_not_found() => {
                        last = Some(error);
                        continue;
                    }
                    made => made?,
                }
            }
            match Self::named(fs, &folder, format!("{:016x}", entropy()), has_made_folder) {
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
        let lock = Some(fs.lock(&path, LockMode::Exclusive)?);
        let taken = fs.open(&path, Access::Foreign).and_then(|file| {
            // A writer of another user must be able to look at it.
            file.share()?;
            let process = process::id();
            let taken = Self { stem, file, place: Place::default(), has_made_folder, lock, process };
            taken.write(Place::default()).map(|()| taken)
        });
        taken.inspect_err(|_| drop(fs.remove(&path)))
    }

    fn write(&self, place: Place) -> Result<()> {
        self.file.write_at(RECORD_AT, &encode(process::id(), place))
    }

    /// Whether its file still has the name by which writers look for it; also where that cannot be known now.
    fn has_its_name(&self, fs: &dyn FileSystem, dir: &Path) -> bool {
        let inode = |file: &dyn File| Ok::<_, Error>(file.identity()?.map(|found| found.inode));
        let named = fs.open_read(&path(&folder(dir), &self.stem, LEASE), Access::Foreign);
        match named.and_then(|named| Ok(inode(&*named)? == inode(&*self.file)?)) {
            Ok(is_same) => is_same,
            Err(error) => !error.is_not_found(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({})", self.taken.lock().stem)
    }
}

fn read_whole(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open_read(path, Access::Foreign)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn is_denied(error: &Error) -> bool {
    matches!(error, Error::Io { kind: ErrorKind::PermissionDenied, .. })
}

/// The leases that are held in `dir`. What dead readers have left is removed.
pub fn held(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<Held>> {
    let folder = folder(dir);
    let names = match fs.list(&folder) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        // Of a reader that could give it to nobody: if it is empty it goes, and nobody has a lease.
        Err(error) if is_denied(&error) && fs.remove_dir(&folder).is_ok() => return Ok(Vec::new()),
        names => names?,
    };
    if planted::is("leases-not-looked-at") {
        return Ok(Vec::new());
    }
    let known: Vec<(&str, &str)> = names.iter().filter_map(|name| parse(name)).collect();
    let (mut held, mut stems) = (Vec::new(), BTreeSet::new());
    for &(stem, _) in known.iter().filter(|(_, kind)| *kind == LEASE) {
        if held.len() >= LOOKED_AT_MAX {
            held.push(Held::unknown(format!("{} has more leases than are looked at", folder.display())));
            return Ok(held);
        }
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
            Err(error) => held.push(Held::unknown(error.to_string())),
        }
        stems.insert(stem);
    }
    for (stem, kind) in known {
        if kind != LEASE && !stems.contains(stem) {
            let _ = fs.remove(&path(&folder, stem, kind));
        }
    }
    Ok(held)
}

fn read(fs: &dyn FileSystem, path: &Path) -> Held {
    let read = || {
        let mut bytes = [0; RECORD_BYTES];
        let got = fs.open_read(path, Access::Foreign)?.read_at(RECORD_AT, &mut bytes)?;
        decode(&bytes[..got]).ok_or_else(|| Error::corruption(path, RECORD_AT, "this is no lease yet"))
    };
    read().unwrap_or_else(|error: Error| Held::unknown(error.to_string()))
}

/// Removes the folder and what is in it, of a database that nobody reads. What others have put there stays, and what may
/// not be removed, as in a folder of another user: it holds nothing.
pub fn remove_folder(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let folder = folder(dir);
    let names = match fs.list(&folder) {
        Err(error) if error.is_not_found() => return Ok(()),
        // Nobody can have a lease where nobody may look.
        Err(error) if is_denied(&error) => return Ok(()),
        names => names?,
    };
    let may_stay = |error: &Error| {
        let is_full = matches!(error, Error::Io { kind: ErrorKind::DirectoryNotEmpty, .. });
        error.is_not_found() || is_full || is_denied(error)
    };
    // A reader that has found no database removes its own meanwhile, or makes one.
    let remove =
        |removed: Result<()>| removed.or_else(|error| if may_stay(&error) { Ok(()) } else { Err(error) });
    let mut known = names.iter().filter(|name| parse(name).is_some());
    known.try_for_each(|name| remove(fs.remove(&folder.join(name))))?;
    remove(fs.remove_dir(&folder))
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
        held(&*self.fs, &self.dir).unwrap_or_else(|error| vec![Held::unknown(error.to_string())])
    }

    /// The readers that ask and have no answer yet.
    pub fn asking(&self) -> Vec<String> {
        let names = self.fs.list(&folder(&self.dir)).unwrap_or_default();
        let asking = names.iter().filter_map(|name| parse(name)).filter(|(_, kind)| *kind == ASK);
        let asking = asking.filter(|(stem, _)| !names.contains(&format!("{stem}.{ANSWER}")));
        asking.map(|(stem, _)| stem.to_owned()).collect()
    }

    /// Answers one of them: its file is there whole, or not at all.
    pub fn answer(&self, stem: &str, bytes: &[u8]) -> Result<()> {
        let (folder, draft) = (folder(&self.dir), self.dir.join(names::ANSWER_DRAFT));
        self.fs.create(&draft, Access::Buffered)?.write_at(0, bytes)?;
        let answered = match self.fs.exists(&path(&folder, stem, ASK)) {
            Ok(true) => self.fs.rename(&draft, &path(&folder, stem, ANSWER)),
            // Nobody would remove it.
            _ => self.fs.remove(&draft),
        };
        answered.inspect_err(|_| drop(self.fs.remove(&draft)))
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

    fn least(leases: &Leases) -> Option<Place> {
        leases.held().into_iter().map(|held| held.place).min()
    }

    fn take(fs: &Arc<dyn FileSystem>, number: u64) -> Lease {
        Lease::take(fs, Path::new(DIR), &|| number).unwrap()
    }

    #[test]
    fn a_lease_holds_what_it_says_until_it_goes() {
        let (_, fs) = memory();
        let leases = Leases::new(&fs, Path::new(DIR));
        assert_eq!(least(&leases), None);
        let (one, other) = (take(&fs, 1), take(&fs, 2));
        assert_eq!(least(&leases), Some(Place::default()), "one that has not read yet needs all");
        one.move_to(place(3, 700)).unwrap();
        assert_eq!(least(&leases), Some(Place::default()));
        other.move_to(place(3, 800)).unwrap();
        assert_eq!(least(&leases), Some(place(3, 700)));
        let process = u64::from(process::id());
        assert!(leases.held().iter().all(|held| held.process == process));
        drop(one);
        assert_eq!(least(&leases), Some(place(3, 800)));
        drop(other);
        assert_eq!(least(&leases), None);
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
        assert_eq!(least(&leases), None, "its lock is free");
        assert!(fs.list(&folder).unwrap().is_empty());

        let lease = take(&fs, 6);
        lease.move_to(place(2, 100)).unwrap();
        let path = path(&folder, "0000000000000006", LEASE);
        let whole = memory.snapshot_files()[&path].clone();
        for cut in RECORD_AT as usize..whole.len() {
            let mut torn = whole.clone();
            torn[cut] ^= 1;
            memory.replace_file(&path, torn);
            assert_eq!(least(&leases), Some(Place::default()), "byte {cut}");
            memory.replace_file(&path, whole[..cut].to_vec());
            assert_eq!(least(&leases), Some(Place::default()), "{cut} bytes");
        }
        memory.replace_file(&path, whole);
        assert_eq!(least(&leases), Some(place(2, 100)));
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
            assert_eq!(least(&leases), Some(Place::default()), "{rule}");
            let trouble = leases.held()[0].trouble.clone().unwrap();
            assert!(trouble.contains("/db/readers"), "{rule}: {trouble}");
            faulty.clear();
        }
    }

    #[test]
    fn a_name_that_is_taken_is_not_taken_again() {
        let (_, fs) = memory();
        let first = take(&fs, 1);
        let numbers = Mutex::new(vec![2, 1, 1]);
        let second = Lease::take(&fs, Path::new(DIR), &|| numbers.lock().pop().unwrap()).unwrap();
        assert_eq!(
            (&*first.taken.lock().stem, &*second.taken.lock().stem),
            ("0000000000000001", "0000000000000002")
        );
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

    /// Whoever had removed a lease let the writer remove what its reader read, and the reader knew nothing of it.
    #[test]
    fn a_lease_that_has_lost_its_name_is_taken_anew() {
        let (_, fs) = memory();
        let (dir, lease) = (Path::new(DIR), take(&fs, 1));
        lease.move_to(place(1, 1)).unwrap();
        assert!(!lease.renew(&|| 2).unwrap());
        fs.remove(&path(&folder(dir), "0000000000000001", LEASE)).unwrap();
        assert!(lease.renew(&|| 2).unwrap() && !lease.renew(&|| 3).unwrap());
        assert_eq!(least(&Leases::new(&fs, dir)), Some(Place::default()));
        // Or another's is there by that name.
        let other = path(&folder(dir), "0000000000000002", LEASE);
        fs.remove(&other).unwrap();
        fs.create(&other, Access::Foreign).unwrap();
        assert!(lease.renew(&|| 4).unwrap());
        drop(lease);
        assert!(held(&*fs, dir).unwrap().is_empty());
    }

    /// A child of a fork that let go of its parent's reader removed the parent's lease.
    #[test]
    fn a_lease_is_given_back_by_the_process_that_took_it() {
        let (_, fs) = memory();
        let (leases, lease) = (Leases::new(&fs, Path::new(DIR)), take(&fs, 1));
        lease.taken.lock().process ^= 1;
        lease.give_back();
        assert_eq!(least(&leases), Some(Place::default()));
        lease.taken.lock().process ^= 1;
        lease.give_back();
        assert_eq!(least(&leases), None);
    }

    /// A folder that has more in it than leases could not be removed, and the database was neither whole nor gone.
    #[test]
    fn what_is_none_of_theirs_stays_and_is_in_nobodys_way() {
        let (_, fs) = memory();
        let (dir, folder) = (Path::new(DIR), folder(Path::new(DIR)));
        drop(take(&fs, 1));
        fs.create_dir_all(&folder).unwrap();
        for name in ["notes.lease", "0000000000000009.ask", "000000000000000G.stats", "README"] {
            fs.create(&folder.join(name), Access::Buffered).unwrap();
        }
        assert!(held(&*fs, dir).unwrap().is_empty());
        let others = ["000000000000000G.stats", "README", "notes.lease"];
        assert_eq!(fs.list(&folder).unwrap(), others);
        remove_folder(&*fs, dir).unwrap();
        assert_eq!(fs.list(&folder).unwrap(), others);
        others.iter().for_each(|name| fs.remove(&folder.join(name)).unwrap());
        remove_folder(&*fs, dir).unwrap();
        remove_folder(&*fs, dir).unwrap();
        assert!(!fs.exists(&folder).unwrap());
    }

    /// Whoever may put names beside the leases had the writer cut its own files, by links of the names of answers.
    #[test]
    fn links_that_others_put_beside_leases_are_not_followed() {
        let dir = std::env::temp_dir().join(format!("forebay-leases-{}", process::id()));
        let fs: Arc<dyn FileSystem> = forebay_env::fs::RealFs::new();
        fs.create_dir_all(&dir).unwrap();
        let victim = dir.join("00000012.list");
        fs.create(&victim, Access::Buffered).unwrap().write_at(0, b"precious").unwrap();
        let (leases, lease) = (Leases::new(&fs, &dir), Lease::take(&fs, &dir, &|| 1).unwrap());
        let folder = folder(&dir);
        for name in ["0000000000000001.stats", "0000000000000001.draft", "0000000000000002.lease"] {
            std::os::unix::fs::symlink(&victim, folder.join(name)).unwrap();
        }
        assert!(lease.answer().is_err(), "it is a link");
        fs.create(&path(&folder, "0000000000000001", ASK), Access::Foreign).unwrap();
        leases.answer("0000000000000001", b"{}").unwrap();
        assert_eq!(lease.answer().unwrap().as_deref(), Some(&b"{}"[..]));
        let held = leases.held();
        assert!(held.iter().any(|held| held.trouble.as_ref().is_some_and(|why| why.contains("2.lease"))));
        lease.ask().unwrap();
        assert_eq!(read_whole(&*fs, &victim).unwrap(), b"precious");
        drop(lease);
        fs.remove(&folder.join("0000000000000001.draft")).unwrap();
        remove_folder(&*fs, &dir).unwrap();
        fs.remove(&victim).unwrap();
        fs.remove_dir(&dir).unwrap();
    }
}
