//! A small disk that is full, and is freed again, with one database open all the time.
//!
//! 1. Ballast takes all but a little of what is free.
//! 2. Operations go on until one fails, or for a while: answers stay right.
//! 3. The ballast goes. Within a bounded number of tries writes succeed again, without opening anew, and all that was
//!    acknowledged is there.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use forebay::{Durability, Error, Layout, Result};
use forebay_env::{Env, Rng};
use forebay_testkit::{Change, Generator, Harness, Kind, Op, Write};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::disk::Disk;
use crate::{Asked, history};

const DISK_MEBIBYTES: u64 = 24;
/// What ballast leaves, at most.
const LEFT_BYTES_MAX: u64 = 64 << 10;
/// Operations from one full disk to the next, at most.
const OPERATIONS_MAX: u64 = 400;
/// Tries until a freed disk must take writes again, and how long background work has from one to the next.
const TRIES_MAX: u64 = 200;
const TRY: Duration = Duration::from_millis(20);

/// This many full disks for each layout.
pub(crate) fn run(asked: &Asked) -> Result<()> {
    for layout in asked.layouts() {
        let disk = Disk::new(&asked.dir, DISK_MEBIBYTES)?;
        let (failed, tries) = fill_and_free(asked, layout, &disk.root())?;
        let rounds = asked.rounds;
        println!(
            "{layout}: {rounds} full disks, {failed} failed operations, healed within {tries} tries, nothing lost"
        );
    }
    Ok(())
}

fn fill_and_free(asked: &Asked, layout: Layout, root: &Path) -> Result<(u64, u64)> {
    let config = history::config(layout, asked.seed);
    let mut rng = Rng::new(asked.seed);
    let generator = Generator::new(rng.fork(), &config).without_turns();
    let mut generator = generator.without(Kind::Checkpoint).without(Kind::Reopen).without(Kind::SetLayout);
    let mut harness = Harness::new(Env::real(), config, &root.join("db"))?;
    let (mut failed, mut tries_most) = (0, 0);
    for round in 0..asked.rounds {
        println!("{layout} seed {} round {round}", asked.seed);
        let ballast = fill(root, rng.below(LEFT_BYTES_MAX))?;
        for _ in 0..rng.below(OPERATIONS_MAX) {
            let op = generator.draw();
            if let Err(error) = harness.apply(&op) {
                judge(&op, &error);
                failed += 1;
            }
        }
        harness.check_all()?;
        std::fs::remove_file(&ballast).map_err(|error| Error::Invalid(error.to_string()))?;
        tries_most = tries_most.max(resume(&mut harness, round)?);
        harness.check_all()?;
        harness.apply(&Op::Verify)?;
    }
    harness.close()?;
    Ok((failed, tries_most))
}

/// Leaves this many bytes of what is free, roughly.
fn fill(root: &Path, left_bytes: u64) -> Result<std::path::PathBuf> {
    let path = root.join("ballast");
    let invalid = |error: std::io::Error| Error::Invalid(format!("{}: {error}", path.display()));
    let file = File::create(&path).map_err(invalid)?;
    let free = statvfs(root).map_err(|error| invalid(error.into()))?;
    // The file system keeps some of it to itself.
    let mut bytes = free.f_bfree * free.f_frsize;
    while bytes > 0 && fallocate(&file, FallocateFlags::empty(), 0, bytes).is_err() {
        bytes = bytes.saturating_sub(64 << 10);
    }
    file.set_len(bytes.saturating_sub(left_bytes)).map_err(invalid)?;
    Ok(path)
}

fn judge(op: &Op, error: &Error) {
    assert!(!error.is_corruption() && !error.is_bug(), "{op:?} took a full disk for another fault: {error}");
    assert!(!matches!(error, Error::Poisoned(_)), "{op:?}: a full disk stopped writes for good: {error}");
}

/// Writes until it works; gives how many tries it took.
fn resume(harness: &mut Harness, round: u64) -> Result<u64> {
    let write = Write::Put(round.to_be_bytes().to_vec());
    let change = Change { table: 0, key: b"resumed".to_vec(), write };
    for number in 1.. {
        let outcome = harness.commit(std::slice::from_ref(&change), Durability::Disk);
        match outcome.and_then(|()| harness.apply(&Op::Flush)) {
            Ok(()) => return Ok(number),
            Err(error) if number == TRIES_MAX => return Err(error),
            Err(error) => judge(&Op::Flush, &error),
        }
        std::thread::sleep(TRY);
    }
    Ok(TRIES_MAX)
}
