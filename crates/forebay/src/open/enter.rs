//! The directory of a database: taking its lock, and making it where there is none.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::{Env, FileLock, FileSystem, LockMode};
use forebay_store::log::frame::Secret;
use forebay_store::manifest::{AppendError, Edit, Manifest, Snapshot, Superblock};
use forebay_store::names;

use crate::context::{begin, create_dir_durably};
use crate::open::clear::is_ours;
use crate::open::destroy::{Made, finish};
use crate::options::Options;

/// The id of a new database's manifest.
const FIRST_MANIFEST: u64 = 1;

/// Takes the lock, and makes the database if there is none and that is wanted.
pub(crate) fn enter(env: &Env, dir: &Path, options: &Options) -> Result<(Option<FileLock>, Made)> {
    loop {
        match try_enter(env, dir, options).map_err(|error| of_path(&*env.fs, dir, error))? {
            Entered::In(lock, made) => return Ok((lock, made)),
            Entered::Destroyed => {}
        }
    }
}

/// The error of a path that cannot be a directory, told as that.
pub(crate) fn of_path(fs: &dyn FileSystem, dir: &Path, error: Error) -> Error {
    if !matches!(error, Error::Io { kind: ErrorKind::NotADirectory, .. }) {
        return error;
    }
    let (shown, is_file) = (dir.display(), fs.exists(dir).is_ok_and(|is_there| is_there));
    let what = if is_file { "is a file" } else { "has a file among its directories" };
    Error::NotFound(format!("{shown} {what}; a database is a directory: name that"))
}

enum Entered {
    /// With its lock; without one where what is damaged has none.
    In(Option<FileLock>, Made),
    /// Somebody destroyed it between the first look and the lock.
    Destroyed,
}

fn try_enter(env: &Env, dir: &Path, options: &Options) -> Result<Entered> {
    let fs = &*env.fs;
    let is_there = |name: &str| fs.exists(&dir.join(name));
    let is_database =
        || Ok(is_there(names::SUPERBLOCK)? || options.salvage && is_there(names::SUPERBLOCK_SPARE)?);
    let mut exists = is_database()?;
    let list = || match fs.list(dir) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        names => names,
    };
    let names = if exists { Vec::new() } else { list()? };
    if !exists {
        if names.iter().any(|name| !is_ours(name)) {
            return Err(Error::NotFound(format!(
                "{} is not a forebay database; it holds other files",
                dir.display()
            )));
        }
        // Another process may have made it in between.
        exists = is_there(names::SUPERBLOCK)?;
    }
    let mut made = Made::Files;
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    if !exists {
        let no_database = || Err(Error::NotFound(format!("there is no database at {}", dir.display())));
        if names.iter().any(|name| name == names::DESTROYED) {
            if options.read_only || !options.create_if_missing {
                return no_database();
            }
            finish(fs, dir)?;
            return Ok(Entered::Destroyed);
        }
        if has_remains(&names) {
            // One that is just being destroyed is locked, and no damage.
            match fs.lock(&dir.join(names::LOCK), LockMode::Shared) {
                Err(locked @ Error::Locked { .. }) => return Err(locked),
                _ if list()? != names => return Ok(Entered::Destroyed),
                _ => {}
            }
            let reason = "the superblock is missing, but lists, logs or manifests of a database are there";
            return Err(Error::corruption(&dir.join(names::SUPERBLOCK), 0, reason));
        }
        if !options.create_if_missing {
            return no_database();
        }
        if !fs.exists(dir)? {
            made = Made::Directory;
        }
        create_dir_durably(fs, dir)?;
    }
    let lock = match fs.lock(&dir.join(names::LOCK), mode) {
        Err(error) if error.is_not_found() && !fs.exists(dir)? => return Ok(Entered::Destroyed),
        // It may be among what is damaged, and nothing is to be made here.
        Err(error) if options.salvage && error.is_not_found() => return Ok(Entered::In(None, Made::Nothing)),
        Err(error) if options.read_only && error.is_not_found() => {
            // Whoever may write makes it.
            drop(fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?);
            fs.lock(&dir.join(names::LOCK), mode)?
        }
        lock => lock?,
    };
    if exists && !is_database()? {
        // Nor is the lock's file left behind, which may have been made just now.
        if mode == LockMode::Exclusive {
            fs.remove(&dir.join(names::LOCK))?;
        }
        return Ok(Entered::Destroyed);
    }
    if exists || is_there(names::SUPERBLOCK)? {
        return Ok(Entered::In(Some(lock), Made::Nothing));
    }
    make(env, dir, options).inspect_err(|_| drop(made.take_back(fs, dir)))?;
    Ok(Entered::In(Some(lock), made))
}

/// Whether there is more than what making a database leaves that a crash cut short: its first manifest at the most.
fn has_remains(names: &[String]) -> bool {
    let mut numbered = names.iter().filter_map(|name| names::parse(name));
    numbered.any(|file| file != (FIRST_MANIFEST, "manifest"))
}

/// Makes the files of an empty database.
fn make(env: &Env, dir: &Path, options: &Options) -> Result<()> {
    let (env, is_encrypted) = begin(env, dir, options)?;
    let fs = &*env.fs;
    // The sync of a name that was left here may have failed, and no later one tells of that: it is made anew.
    let left = names::manifest(dir, FIRST_MANIFEST);
    if fs.exists(&left)? {
        fs.remove(&left)?;
    }
    let first = Edit::Snapshot(Snapshot { next_id: 2, next_table: 1, ..Snapshot::default() });
    let manifest = Manifest::create(fs, dir, FIRST_MANIFEST, &first, Arc::default());
    let manifest = manifest.map_err(AppendError::into_cause)?;
    let current = manifest.current(Some(manifest.closed(0)));
    current.write(fs, dir).map_err(AppendError::into_cause)?;
    // Last of all: from here on the directory is a database.
    let (database_id, hash_seed) = ((env.entropy)(), (env.entropy)());
    // 0 is for none.
    let log_secret = Secret((env.entropy)().max(1));
    Superblock { database_id, hash_seed, log_secret, is_encrypted }.write(fs, dir)
}
