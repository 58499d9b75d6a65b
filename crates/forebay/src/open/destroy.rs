//! Removing a database's files: of one that is destroyed, and of one that was made for nothing.
//!
//! **Invariant:** all goes under the lock, whose file goes last, so that nobody else's is ever among it.

use std::io::ErrorKind;
use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::{Env, FileSystem, LockMode};
use forebay_store::{leases, names};

use crate::open::clear::is_ours;
use crate::open::enter::{lock, of_path};

/// What an opening made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// There was a database.
    Nothing,
    /// There was a directory.
    Files,
    Directory,
}

impl Made {
    /// Removes it again, under the lock of the opening that made it.
    pub(crate) fn take_back(self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Files => remove_locked(fs, dir),
            Self::Directory => remove_locked(fs, dir).and_then(|()| remove_dir(fs, dir)),
        }
    }
}

/// Removes a database: its files, and the directory if nothing else is in it.
pub(crate) fn destroy(env: &Env, dir: &Path) -> Result<()> {
    let fs = &*env.fs;
    let mut is_there = false;
    for root in [names::SUPERBLOCK, names::SUPERBLOCK_SPARE, names::DESTROYED] {
        is_there |= fs.exists(&dir.join(root)).map_err(|error| of_path(fs, dir, error))?;
    }
    if !is_there {
        return Err(no_database(fs, dir)?);
    }
    let _lock = lock(env, &dir.join(names::LOCK), LockMode::Exclusive)?;
    remove_locked(fs, dir)?;
    remove_dir(fs, dir)
}

/// The error of a directory that is missing, or is no database.
pub(crate) fn no_database(fs: &dyn FileSystem, dir: &Path) -> Result<Error> {
    let shown = dir.display();
    Ok(Error::NotFound(match fs.exists(dir)? {
        true => format!("{shown} is not a forebay database"),
        false => format!("there is no database at {shown}"),
    }))
}

/// Removes what a directory has of a database, whole or half made, and the directory if nothing else is in it.
pub(crate) fn remove_files(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let _lock = fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    remove_locked(fs, dir)?;
    remove_dir(fs, dir)
}

/// Removes what a crash has left of a database that was being destroyed.
pub(crate) fn finish(env: &Env, dir: &Path) -> Result<()> {
    let fs = &*env.fs;
    let _lock = match lock(env, &dir.join(names::LOCK), LockMode::Exclusive) {
        // Another process has done so, and the directory went with it.
        Err(error) if error.is_not_found() && !fs.exists(dir)? => return Ok(()),
        lock => lock?,
    };
    // Or it has made a new one.
    let is_there = |name: &str| fs.exists(&dir.join(name));
    if is_there(names::DESTROYED)? && !is_there(names::SUPERBLOCK)? { remove_locked(fs, dir) } else { Ok(()) }
}

/// An error where a process reads the directory.
fn refuse_readers(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match leases::held(fs, dir)?.first() {
        Some(held) => {
            let process = u32::try_from(held.process).ok().filter(|process| *process > 0);
            Err(Error::Locked { path: dir.join(names::READERS), process })
        }
        None => Ok(()),
    }
}

/// Removes what a directory has of a database, the file of its lock last: once that has no name, nobody is kept out.
fn remove_locked(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    refuse_readers(fs, dir)?;
    let destroyed = dir.join(names::DESTROYED);
    // By one step, for which a full disk has room: what a crash leaves is known from then on, and whoever opens it
    // goes on.
    let is_there = |name: &str| fs.exists(&dir.join(name));
    if is_there(names::SUPERBLOCK)? && is_there(names::DESTROYED)? {
        // Another name of the same file, to which no rename does anything.
        fs.remove(&destroyed)?;
    }
    let mut renamed = None;
    for root in [names::SUPERBLOCK, names::SUPERBLOCK_SPARE] {
        if is_there(root)? && !is_there(names::DESTROYED)? {
            fs.rename(&dir.join(root), &destroyed)?;
            renamed = Some(dir.join(root));
        }
    }
    // A reader holds its lease before it looks for the superblock: who has found that is seen now.
    let is_alone = refuse_readers(fs, dir).and_then(|()| fs.sync_dir(dir));
    is_alone.inspect_err(|_| {
        // The disk may have the old name for ever, and no later sync tells of that: whoever goes on renames it anew.
        renamed.map(|root| fs.rename(&destroyed, &root));
    })?;
    leases::remove_folder(fs, dir)?;
    let is_listed = |name: &String| is_ours(name) && name != names::DESTROYED && name != names::LOCK;
    for name in fs.list(dir)?.into_iter().filter(is_listed) {
        fs.remove(&dir.join(name))?;
    }
    fs.sync_dir(dir)?;
    if is_there(names::DESTROYED)? {
        fs.remove(&destroyed)?;
    }
    fs.remove(&dir.join(names::LOCK))
}

fn remove_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.remove_dir(dir) {
        // Files or directories of others are in it.
        Err(Error::Io { kind: ErrorKind::DirectoryNotEmpty, .. }) => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs, TracedFs};

    use super::*;
    use crate::{Database, Options};

    const DIR: &str = "/all/db";

    fn open(env: &Env) -> Result<Database> {
        Database::open(DIR, Options::default().memory_limit(1 << 20).env(env.clone()))
    }

    /// A database with one record, by somebody else.
    fn somebody_elses(env: &Env) {
        let db = open(env).unwrap();
        db.table("t").open().unwrap().put(b"key", b"value").unwrap();
        db.close().unwrap();
    }

    fn is_whole(env: &Env) -> bool {
        let db = open(env).unwrap();
        db.table("t").open().unwrap().get(b"key").unwrap().as_deref() == Some(&b"value"[..])
    }

    /// A crash left what was neither a database nor nothing: it could be opened no more, and not be destroyed either.
    #[test]
    fn what_a_crash_left_of_a_destroyed_database_can_be_destroyed() {
        let dir = Path::new(DIR);
        for operation in 1.. {
            let fs = CrashFs::new(operation);
            let env = Env::simulated(fs.clone(), operation);
            let db = Database::open(dir, Options::default().memory_limit(1 << 20).env(env.clone())).unwrap();
            db.table("t").open().unwrap().put(b"k", b"v").unwrap();
            db.flush().unwrap();
            db.close().unwrap();
            fs.crash_at(fs.operations() + operation);
            let outcome = destroy(&env, dir);
            assert_eq!(outcome.is_err(), fs.is_off(), "operation {operation}");
            let is_over = !fs.is_off();
            let env = Env::simulated(fs.power_cycle(), operation);
            match destroy(&env, dir) {
                Ok(()) => assert!(!env.fs.exists(dir).unwrap(), "operation {operation}"),
                Err(Error::NotFound(_)) => {
                    // The lock's file is nobody's, and in nobody's way.
                    let names =
                        if env.fs.exists(dir).unwrap() { env.fs.list(dir).unwrap() } else { Vec::new() };
                    assert!(names.iter().all(|name| name == names::LOCK), "operation {operation}: {names:?}");
                    Database::open(dir, Options::default().memory_limit(1 << 20).env(env)).unwrap();
                }
                Err(error) => panic!("operation {operation}: {error}"),
            }
            if is_over {
                assert!(operation > 6);
                break;
            }
        }
    }

    /// Nor by opening, where one is to be made: a disk that failed once, and then a crash, and nobody knew what was
    /// there.
    #[test]
    fn what_a_crash_left_of_a_destroyed_database_gives_way_to_a_new_one() {
        for operation in 1.. {
            let fs = CrashFs::new(operation);
            let env = Env::simulated(fs.clone(), operation);
            somebody_elses(&env);
            fs.crash_at(fs.operations() + operation);
            let outcome = destroy(&env, Path::new(DIR));
            let left = if operation % 2 == 0 { fs.power_cycle() } else { fs.process_cycle() };
            let env = Env::simulated(left, operation);
            let looks = Options::default().memory_limit(1 << 20).env(env.clone()).create_if_missing(false);
            let is_there = Database::open(DIR, looks).is_ok();
            let db = open(&env).unwrap();
            let is_whole = db.table("t").open().unwrap().get(b"key").unwrap().is_some();
            assert_eq!(is_there, is_whole, "operation {operation}");
            drop(db);
            if outcome.is_ok() {
                assert!(operation > 6 && !is_whole);
                break;
            }
        }
    }

    /// A sync that failed told of nothing later: after a power loss the superblock was there again, and alone.
    #[test]
    fn a_sync_that_failed_leaves_the_database_whole() {
        for seed in 0..8 {
            for operation in 1.. {
                let fs = CrashFs::new(seed);
                let env = Env::simulated(fs.clone(), seed);
                somebody_elses(&env);
                fs.fail_next_sync_of_name(names::DESTROYED);
                destroy(&env, Path::new(DIR)).unwrap_err();
                assert!(is_whole(&env));
                fs.crash_at(fs.operations() + operation);
                let outcome = destroy(&env, Path::new(DIR)).and_then(|()| open(&env)).map(drop);
                open(&Env::simulated(fs.power_cycle(), operation)).unwrap();
                if outcome.is_ok() {
                    assert!(operation > 20);
                    break;
                }
            }
        }
    }

    /// Opening said that there is no such directory, where it was to make one.
    #[test]
    fn what_another_process_has_removed_meanwhile_needs_no_removal() {
        finish(&Env::memory(1), Path::new(DIR)).unwrap();
    }

    /// A rename may leave both names. Of a database that is whole the other one is no word.
    #[test]
    fn a_database_that_is_whole_is_not_destroyed_by_a_name_beside_it() {
        let env = Env::memory(1);
        somebody_elses(&env);
        let destroyed = Path::new(DIR).join(names::DESTROYED);
        let leave = || env.fs.hard_link(&Path::new(DIR).join(names::SUPERBLOCK), &destroyed).unwrap();
        leave();
        finish(&env, Path::new(DIR)).unwrap();
        assert!(is_whole(&env));
        assert!(!env.fs.exists(&destroyed).unwrap());
        leave();
        destroy(&env, Path::new(DIR)).unwrap();
        assert!(!env.fs.exists(Path::new(DIR)).unwrap());
    }

    /// A command that failed closed the database that it had made, and then removed what was there under that name:
    /// what somebody else had written meanwhile.
    #[test]
    fn what_is_taken_back_is_locked_until_it_is_gone() {
        for made_before in [false, true] {
            let faulty = FaultyFs::new(MemoryFs::new());
            let fs = TracedFs::new(faulty.clone());
            let env = Env::simulated(fs.clone(), 1);
            if made_before {
                env.fs.create_dir_all(Path::new(DIR)).unwrap();
            }
            let db = open(&env).unwrap();
            let table = db.table("t").open().unwrap();
            faulty.rule("lock * all io-error").unwrap();
            fs.start_log(Path::new(DIR));
            db.take_back().unwrap();
            let log = fs.take_log();
            let last = log.iter().rev().find(|line| line.starts_with("remove ")).unwrap();
            assert!(last.ends_with("LOCK"), "{log:?}");
            faulty.clear();
            assert_eq!(
                env.fs.exists(Path::new(DIR)).unwrap(),
                made_before,
                "a directory that was there stays"
            );
            assert!(table.put(b"late", b"value").is_err());
            somebody_elses(&env);
        }
    }

    /// A command whose opening failed removed what was there under that name, where nothing had been when it had
    /// looked.
    #[test]
    fn what_somebody_else_has_made_is_not_taken_back() {
        let env = Env::memory(1);
        somebody_elses(&env);
        open(&env).unwrap().take_back().unwrap();
        assert!(is_whole(&env));
    }

    /// An opening that failed left a database that it had made, or a part of one.
    #[test]
    fn an_opening_that_fails_takes_back_what_it_made_and_nothing_else() {
        for was_there in [false, true] {
            for operation in 1.. {
                let fs = FaultyFs::new(MemoryFs::new());
                let env = Env::simulated(fs.clone(), operation);
                if was_there {
                    somebody_elses(&env);
                }
                fs.rule(&format!("any * #{operation} io-error")).unwrap();
                let opened = open(&env);
                fs.clear();
                match opened {
                    Ok(db) => {
                        db.close().unwrap();
                        if fs.fired() == 0 {
                            assert!(operation > 20, "{operation}");
                            break;
                        }
                    }
                    Err(_) if was_there => assert!(is_whole(&env), "operation {operation}"),
                    Err(_) => {
                        let names = env.fs.list(Path::new(DIR)).unwrap_or_default();
                        assert!(names.is_empty(), "operation {operation}: {names:?}");
                        somebody_elses(&env);
                    }
                }
            }
        }
    }
}
