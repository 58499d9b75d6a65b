//! Backups of databases in a directory, each whole by itself, that share the files that they have in common.
//!
//! **Invariant:** a backup's catalogue is there only once all its pieces are durable, and no piece goes before the
//! catalogues that name it.

mod catalog;
mod shelf;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use forebay_base::{Error, Result};
use forebay_env::{Access, Env, FileLock, LockMode};
use forebay_store::names;
use serde::Serialize;

use crate::Database;
use crate::context::create_dir_durably;
use crate::history::{Target, refuse_inside};
use crate::open::is_ours;
use catalog::{Catalog, Entry};
use shelf::{Shelf, UNFINISHED};

/// What is made for a backup is made here first.
const SCRATCH: &str = "forebay.unfinished";
/// A catalogue is not longer.
const CATALOG_BYTES_MAX: u64 = 1 << 30;
/// Held while backups are taken or removed, and shared by who reads them.
const LOCK: &str = "LOCK";

/// A directory of backups.
///
/// A backup is taken of a database that is open, while writes go on. It has a moment of all tables, durably, and is
/// whole by itself: any other may be removed. Lists and value files never change, so a backup copies those that no
/// earlier backup has; of trees, to which `jungle` appends, it copies what came since. The directory may be on another
/// file system, and be copied elsewhere by any tool: a file in it never changes once it has its name.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Backups, Database, Options};
/// let db = Database::open("/db", Options::default().env(env.clone()))?;
/// db.table("users").open()?.put("ada", "1815")?;
/// let backups = Backups::open_in(&env, "/backups")?;
/// let taken = backups.take(&db)?;
/// backups.restore(taken.number, "/restored")?;
/// let restored = Database::open("/restored", Options::default().env(env))?;
/// assert_eq!(restored.table("users").open()?.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Backups {
    env: Env,
    dir: PathBuf,
}

/// A backup, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Backup {
    /// Its number. They only grow.
    pub number: u64,
    /// When it was taken, in milliseconds since 1970.
    pub taken_at_milliseconds: u64,
    /// The number of the last record that is in it.
    pub last_sequence: u64,
    /// How many files it has.
    pub files: usize,
    /// How long they are together.
    pub bytes: u64,
}

/// A backup that was just taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// Its number.
    pub number: u64,
    /// The number of the last record that is in it.
    pub last_sequence: u64,
    /// How long its files are together.
    pub bytes: u64,
    /// How much of that was copied; earlier backups have the rest.
    pub copied_bytes: u64,
}

impl Backups {
    /// The backups in a directory, which is made at the first one.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(&Env::real(), dir)
    }

    /// As [`open`](Self::open), in another environment.
    pub fn open_in(env: &Env, dir: impl AsRef<Path>) -> Result<Self> {
        let dir = env.fs.absolute(dir.as_ref()).unwrap_or_else(|_| dir.as_ref().to_path_buf());
        let is_database = env.fs.exists(&dir.join(names::SUPERBLOCK)).map_err(|error| match error {
            Error::Io { kind: ErrorKind::NotADirectory, .. } => Error::invalid(format!(
                "{} is a file, or has one among its directories; backups have a directory of their own: name that",
                dir.display()
            )),
            error => error,
        })?;
        if is_database {
            let dir = dir.display();
            return Err(Error::invalid(format!("{dir} is a database; name another directory for backups")));
        }
        Ok(Self { env: env.clone(), dir })
    }

    /// All of them, oldest first. A catalogue that is damaged is an error that names it; remove its file to have the
    /// others.
    pub fn list(&self) -> Result<Vec<Backup>> {
        Ok(self.catalogs()?.iter().map(Backup::of).collect())
    }

    /// The number of the newest.
    pub fn newest(&self) -> Result<u64> {
        self.catalogs()?.last().map(|newest| newest.number).ok_or_else(|| none_in(&self.dir))
    }

    /// Takes a backup of a database as it is now. Returns once it is durable. A backup that is not finished, for want
    /// of space or in a crash, is none; the next one clears away what is left of it.
    pub fn take(&self, db: &Database) -> Result<Taken> {
        let (fs, engine) = (&*self.env.fs, db.engine());
        refuse_inside(fs, &self.dir, &engine.context.dir, "the database")?;
        refuse_inside(fs, &engine.context.dir, &self.dir, "the directory of its backups")?;
        create_dir_durably(fs, &self.dir)?;
        let _lock = self.lock(LockMode::Exclusive)?;
        let catalogs = self.catalogs()?;
        let database = engine.context.superblock.database_id;
        if catalogs.iter().any(|catalog| catalog.database != database) {
            let dir = self.dir.display();
            return Err(Error::invalid(format!(
                "{dir} has backups of another database; name a directory of its own for each"
            )));
        }
        self.clear(&catalogs)?;
        let earlier: Vec<&Entry> = catalogs.iter().rev().flat_map(|catalog| &catalog.entries).collect();
        let number = catalogs.last().map_or(1, |last| last.number.saturating_add(1));
        let scratch = self.dir.join(SCRATCH);
        fs.create_dir_all(&scratch)?;
        let mut shelf = self.shelf();
        let mut entries = Vec::new();
        let copied = engine.history.copy_to(&scratch, &mut |part| {
            entries.push(shelf.put(part, number, &earlier)?);
            Ok(())
        })?;
        for (name, bytes) in &copied.made {
            entries.push(shelf.put_own(&scratch.join(name), name, *bytes, number)?);
        }
        let copied_bytes = shelf.copied_bytes;
        let taken_at_milliseconds = self.env.clock.unix_milliseconds();
        let last_sequence = copied.last_sequence;
        let catalog = Catalog { number, database, taken_at_milliseconds, last_sequence, entries };
        let bytes = Backup::of(&catalog).bytes;
        debug_assert!(copied_bytes <= bytes, "what was copied is in it");
        // Pieces before the catalogue that names them.
        fs.sync_dir(&self.dir)?;
        self.write(&catalog)?;
        self.clear_scratch()?;
        Ok(Taken { number, last_sequence, bytes, copied_bytes })
    }

    /// Makes a database of a backup, in a directory that is new or empty. Each byte is checked on the way; one that is
    /// damaged ends it, with an error that names the file, and what was made is no database.
    pub fn restore(&self, number: u64, target: impl AsRef<Path>) -> Result<()> {
        let (fs, target) = (&*self.env.fs, target.as_ref());
        let _lock = self.lock(LockMode::Shared)?;
        let catalog = self.find(number)?;
        refuse_inside(fs, target, &self.dir, "the directory of backups")?;
        let taken = Target::take(fs, target)?;
        // So that it can be tried again.
        self.fill(target, &catalog).inspect_err(|_| {
            taken.clear();
        })
    }

    fn fill(&self, target: &Path, catalog: &Catalog) -> Result<()> {
        let fs = &*self.env.fs;
        let is_root = |entry: &&Entry| [names::SUPERBLOCK, names::SUPERBLOCK_SPARE].contains(&&*entry.name);
        let (roots, others): (Vec<&Entry>, Vec<&Entry>) = catalog.entries.iter().partition(is_root);
        debug_assert!(!roots.is_empty() && !others.is_empty(), "a catalogue has what every database has");
        let shelf = self.shelf();
        // So that it is no database before it is whole.
        for entries in [others, roots] {
            for entry in entries {
                let file = fs.create(&target.join(&entry.name), Access::Buffered)?;
                shelf.read(entry, &mut |at, bytes| file.write_at(at, bytes))?;
                file.sync()?;
            }
            fs.sync_dir(target)?;
        }
        Ok(())
    }

    /// Reads every byte of a backup and checks that it is as it was copied: returns what is damaged, an error for each
    /// file. A database that was damaged as the backup was taken is found by [`Database::verify`] of it, or of what was
    /// restored.
    pub fn verify(&self, number: u64) -> Result<Vec<Error>> {
        let _lock = self.lock(LockMode::Shared)?;
        let catalog = self.find(number)?;
        let shelf = self.shelf();
        let check = |entry| shelf.read(entry, &mut |_, _| Ok(())).err();
        Ok(catalog.entries.iter().filter_map(check).collect())
    }

    /// Removes all but the newest so many, at least one, and the files that only those had.
    pub fn keep(&self, newest: usize) -> Result<()> {
        if newest == 0 {
            return Err(Error::invalid(
                "keep at least one backup: else numbers, and names with them, would begin anew; to have none, remove the \
                 directory",
            ));
        }
        let _lock = self.lock(LockMode::Exclusive)?;
        let mut catalogs = self.catalogs()?;
        // What a crash has left of a rename, too: between two names of one file the next would do nothing.
        self.clear(&catalogs)?;
        let kept = catalogs.split_off(catalogs.len().saturating_sub(newest));
        self.withdraw(&catalogs)?;
        self.clear(&kept)
    }

    /// Has catalogues count for nothing, durably.
    fn withdraw(&self, catalogs: &[Catalog]) -> Result<()> {
        let fs = &*self.env.fs;
        let paths: Vec<_> = catalogs.iter().map(|catalog| self.paths_of(catalog.number)).collect();
        let renamed = paths.iter().try_for_each(|[path, unfinished]| fs.rename(path, unfinished));
        renamed.and_then(|()| fs.sync_dir(&self.dir)).inspect_err(|_| {
            // The disk may have the old names for ever, and no later sync tells of that: whoever goes on renames them
            // anew.
            paths.iter().for_each(|[path, unfinished]| drop(fs.rename(unfinished, path)));
        })
    }

    /// `None` where there are backups and nothing to lock by, as in a copy that leaves out empty files, and none is
    /// changed.
    fn lock(&self, mode: LockMode) -> Result<Option<FileLock>> {
        match self.env.fs.lock(&self.dir.join(LOCK), mode) {
            Err(error) if error.is_not_found() && mode == LockMode::Shared => {
                match self.catalogs()?.is_empty() {
                    true => Err(none_in(&self.dir)),
                    false => Ok(None),
                }
            }
            Err(error) if error.is_not_found() => Err(none_in(&self.dir)),
            lock => lock.map(Some),
        }
    }

    fn shelf(&self) -> Shelf<'_> {
        Shelf { fs: &*self.env.fs, dir: &self.dir, copied_bytes: 0 }
    }

    /// All catalogues, oldest first.
    fn catalogs(&self) -> Result<Vec<Catalog>> {
        let fs = &*self.env.fs;
        if !fs.exists(&self.dir)? {
            return Ok(Vec::new());
        }
        let mut numbers: Vec<u64> =
            fs.list(&self.dir)?.iter().filter_map(|name| catalog::number_of(name)).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| self.read(number)).collect()
    }

    fn find(&self, number: u64) -> Result<Catalog> {
        match self.read(number) {
            Err(error) if error.is_not_found() => {
                let dir = self.dir.display();
                Err(Error::NotFound(format!(
                    "there is no backup {number} in {dir}; `forebay backups {dir}` lists those there are"
                )))
            }
            read => read,
        }
    }

    fn read(&self, number: u64) -> Result<Catalog> {
        let path = self.dir.join(catalog::name_of(number));
        let file = self.env.fs.open_read(&path, Access::Buffered)?;
        let length = file.len()?;
        if length > CATALOG_BYTES_MAX {
            return Err(Error::corruption(&path, CATALOG_BYTES_MAX, "a catalogue is never so long"));
        }
        let mut bytes = vec![0; length as usize];
        let got = file.read_at(0, &mut bytes)?;
        Catalog::decode(&bytes[..got], &path)
    }

    /// The path of a backup's catalogue, and of one that counts for nothing.
    fn paths_of(&self, number: u64) -> [PathBuf; 2] {
        let name = catalog::name_of(number);
        [self.dir.join(&name), self.dir.join(format!("{name}{UNFINISHED}"))]
    }

    fn write(&self, catalog: &Catalog) -> Result<()> {
        let fs = &*self.env.fs;
        let [path, unfinished] = self.paths_of(catalog.number);
        let file = fs.create(&unfinished, Access::Buffered)?;
        file.write_at(0, catalog.encode().as_bytes())?;
        file.sync()?;
        // After a failed sync no later one makes the name durable: nobody may take it for the newest backup.
        fs.rename(&unfinished, &path).and_then(|()| fs.sync_dir(&self.dir)).inspect_err(|_| {
            let _ = fs.rename(&path, &unfinished);
        })
    }

    /// Removes what no backup names.
    fn clear(&self, catalogs: &[Catalog]) -> Result<()> {
        let fs = &*self.env.fs;
        self.clear_scratch()?;
        // Catalogues that were removed are gone for good before their pieces go.
        fs.sync_dir(&self.dir)?;
        let pieces = catalogs.iter().flat_map(|catalog| &catalog.entries).flat_map(|entry| &entry.pieces);
        let named: BTreeSet<&str> = pieces.map(|piece| &*piece.name).collect();
        let is_stray = |name: &&String| is_piece(name) && !named.contains(&***name);
        for stray in fs.list(&self.dir)?.iter().filter(is_stray) {
            fs.remove(&self.dir.join(stray))?;
        }
        fs.sync_dir(&self.dir)
    }

    fn clear_scratch(&self) -> Result<()> {
        let (fs, scratch) = (&*self.env.fs, self.dir.join(SCRATCH));
        if fs.exists(&scratch)? {
            for name in fs.list(&scratch)?.iter().filter(|name| is_ours(name)) {
                fs.remove(&scratch.join(name))?;
            }
            // Not where something else is in it.
            fs.remove_dir(&scratch)?;
        }
        Ok(())
    }
}

impl Backup {
    fn of(catalog: &Catalog) -> Self {
        let Catalog { number, taken_at_milliseconds, last_sequence, ref entries, .. } = *catalog;
        let bytes = entries.iter().map(Entry::bytes).sum();
        Self { number, taken_at_milliseconds, last_sequence, files: entries.len(), bytes }
    }
}

fn none_in(dir: &Path) -> Error {
    Error::NotFound(format!("there are no backups in {}", dir.display()))
}

/// Whether a file may be a piece, or the beginning of something: nothing else of the directory is ever removed.
fn is_piece(name: &str) -> bool {
    let whole = name.strip_suffix(UNFINISHED).unwrap_or(name);
    if catalog::number_of(whole).is_some() {
        return whole != name;
    }
    let of = whole.split_once('-').map_or("", |(of, _)| of);
    let roots = [names::CURRENT, names::SUPERBLOCK, names::SUPERBLOCK_SPARE, names::KEYS, names::KEYS_SPARE];
    names::parse(of).is_some() || roots.contains(&of)
}
