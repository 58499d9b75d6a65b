//! The directory of a database: taking its lock, and making it where there is none.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::{Env, FileLock, FileSystem, LockMode};
use forebay_store::log::frame::Secret;
use forebay_store::manifest::{AppendError, Edit, Manifest, Snapshot, Superblock};
use forebay_store::{Lease, names};

use crate::context::{begin, create_dir_durably};
use crate::open::clear::is_ours;
use crate::open::destroy::{Made, finish};
use crate::options::Options;

/// The id of a new database's manifest.
const FIRST_MANIFEST: u64 = 1;

/// A reader has the lock for no longer than this, to see whether anybody writes.
const READERS_MOMENT: Duration = Duration::from_millis(200);
/// How long it takes until it is tried again meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// What keeps others from changing or removing what is read.
pub(crate) enum Hold {
    Lock(FileLock),
    /// Others may write.
    Lease(Lease),
    /// What is damaged has no lock.
    Nothing,
}

/// Takes the lock, or a lease where the database is only to be read, and makes it if there is none and that is wanted.
pub(crate) fn enter(
    env: &Env,
    files: &Arc<dyn FileSystem>,
    dir: &Path,
    options: &Options,
) -> Result<(Hold, Made)> {
    loop {
        match try_enter(env, files, dir, options).map_err(|error| of_path(&*env.fs, dir, error))? {
            Entered::In(hold, made) => return Ok((hold, made)),
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

/// The error of a directory that is no database, told as what it is.
fn other(dir: &Path, names: &[String]) -> Error {
    let is_number = |text: &str| text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_catalog = |name: &String| name.strip_suffix(".backup").is_some_and(is_number);
    let shown = dir.display();
    Error::NotFound(match names.iter().any(is_catalog) {
        true => format!(
            "{shown} is a directory of backups, not a database; `forebay backups {shown} --verify` checks them"
        ),
        false => format!("{shown} is not a forebay database; it holds other files"),
    })
}

enum Entered {
    In(Hold, Made),
    /// Somebody destroyed it between the first look and the lock.
    Destroyed,
}

fn try_enter(env: &Env, files: &Arc<dyn FileSystem>, dir: &Path, options: &Options) -> Result<Entered> {
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
            return Err(other(dir, &names));
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
            finish(env, dir)?;
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
    if exists && options.read_only && !options.salvage {
        return enter_beside(env, files, dir, &is_database);
    }
    let lock = match lock(env, &dir.join(names::LOCK), mode) {
        Err(error) if error.is_not_found() && !fs.exists(dir)? => return Ok(Entered::Destroyed),
        // It may be among what is damaged, and nothing is to be made here.
        Err(error) if options.salvage && error.is_not_found() => {
            return Ok(Entered::In(Hold::Nothing, Made::Nothing));
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
        return Ok(Entered::In(Hold::Lock(lock), Made::Nothing));
    }
    make(env, dir, options).inspect_err(|_| drop(made.take_back(fs, dir)))?;
    Ok(Entered::In(Hold::Lock(lock), made))
}

/// Takes the lock. Readers that look whether somebody writes have it for a moment, which is waited for.
pub(super) fn lock(env: &Env, path: &Path, mode: LockMode) -> Result<FileLock> {
    let end = env.clock.now() + READERS_MOMENT;
    loop {
        let now = env.clock.now();
        match env.fs.lock(path, mode) {
            // Whatever process it names: a writer that was killed has left its number there.
            Err(Error::Locked { .. }) if now < end && is_of_readers(env, path, mode) => {
                env.jobs.wait_until(now + LOOK_INTERVAL, &mut || false);
            }
            lock => return lock,
        }
    }
}

/// Whether readers alone keep out who wants a lock: then one more may have it.
fn is_of_readers(env: &Env, path: &Path, mode: LockMode) -> bool {
    mode == LockMode::Exclusive && env.fs.lock(path, LockMode::Shared).is_ok()
}

/// Enters what was found and is only to be read.
fn enter_beside(
    env: &Env,
    files: &Arc<dyn FileSystem>,
    dir: &Path,
    is_database: &dyn Fn() -> Result<bool>,
) -> Result<Entered> {
    match beside(env, files, dir) {
        Err(error) if error.is_not_found() && !env.fs.exists(dir)? => Ok(Entered::Destroyed),
        // Somebody destroyed it before it was held.
        Ok(_) if !is_database()? => Ok(Entered::Destroyed),
        held => Ok(Entered::In(held?, Made::Nothing)),
    }
}

/// Holds what is to be read: by a lease, beside whom it may be written; where none can be written, as in a directory of
/// others, by keeping out whoever would write.
fn beside(env: &Env, files: &Arc<dyn FileSystem>, dir: &Path) -> Result<Hold> {
    let (fs, path) = (&*env.fs, dir.join(names::LOCK));
    let refused = match Lease::take(files, dir, &*env.entropy) {
        Ok(lease) => return Ok(Hold::Lease(lease)),
        Err(error) if error.is_too_many_files() || !fs.exists(dir)? => return Err(error),
        Err(refused) => refused,
    };
    let lock = match fs.lock(&path, LockMode::Shared) {
        Err(error) if error.is_not_found() => {
            // Whoever may write makes it.
            drop(fs.lock(&path, LockMode::Exclusive)?);
            fs.lock(&path, LockMode::Shared)
        }
        lock => lock,
    };
    match (lock, refused) {
        (Err(Error::Locked { process, .. }), Error::Io { operation, path, kind, reason }) => {
            let who = process.map_or("another process".into(), |process| format!("process {process}"));
            let needed = match kind {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "some hundred bytes of room for a file",
                _ => "the right to make files",
            };
            let reason = format!(
                "{reason}; {who} has the database open to write, and whoever reads beside it needs {needed} in {}",
                dir.join(names::READERS).display()
            );
            Err(Error::Io { operation, path, kind, reason })
        }
        (lock, _) => lock.map(Hold::Lock),
    }
}

/// Whether there is more than what making a database leaves that a crash cut short: its first manifest at the most.
fn has_remains(names: &[String]) -> bool {
    let mut numbered = names.iter().filter_map(|name| names::parse(name));
    numbered.any(|file| file != (FIRST_MANIFEST, "manifest"))
}

/// Makes the files of an empty database.
fn make(env: &Env, dir: &Path, options: &Options) -> Result<()> {
    let (database_id, hash_seed) = ((env.entropy)(), (env.entropy)());
    // 0 is for none.
    let log_secret = Secret((env.entropy)().max(1));
    let superblock = Superblock { database_id, hash_seed, log_secret, is_encrypted: options.is_encrypted() };
    let env = begin(env, dir, options, &superblock)?;
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
    superblock.write(fs, dir)
}
