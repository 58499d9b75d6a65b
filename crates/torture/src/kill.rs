//! Rounds of: a process writes, it or its disk is lost after this many acknowledged batches, and what is left is
//! judged.
//!
//! In every other round the judge opens a copy, so that one crash comes on top of another with nothing between.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use forebay::{Durability, Error, Layout, Result};
use forebay_env::Rng;
use tempfile::TempDir;

use crate::Asked;
use crate::disk::Disk;
use crate::kernel::Journal;
use crate::oracle::{Acknowledged, Oracle};

/// Batches that a round acknowledges before the crash, at most.
const BATCHES_MAX: u64 = 300;
/// A disk's size. Small, so that freeing and allocating meet.
const DISK_MEBIBYTES: u64 = 96;

/// `kill -9`.
pub(crate) fn kill(asked: &Asked) -> Result<()> {
    let folder = TempDir::with_prefix_in("torture-kill-", &asked.dir).map_err(|error| io(&error))?;
    for layout in asked.layouts() {
        let path = folder.path().join(file_name(layout));
        let mut rounds = Rounds::new(asked, layout);
        for _ in 0..asked.rounds {
            let (told, _) = rounds.write(&path, |child| child.kill().map_err(|error| io(&error)))?;
            rounds.judge(&path, &told, Durability::Os)?;
        }
        rounds.report("kills");
        std::fs::remove_dir_all(&path).map_err(|error| io(&error))?;
    }
    Ok(())
}

/// Power cuts.
pub(crate) fn power(asked: &Asked) -> Result<()> {
    for layout in asked.layouts() {
        let mut disk = Disk::new(&asked.dir, DISK_MEBIBYTES)?;
        let path = disk.root().join("db");
        let mut rounds = Rounds::new(asked, layout);
        for _ in 0..asked.rounds {
            let journal = if rounds.rng.chance(50) { Journal::Flushed } else { Journal::Lost };
            let (mut told, before) = rounds.write(&path, |child| {
                disk.cut(journal)?;
                child.kill().map_err(|error| io(&error))
            })?;
            told[before..].iter_mut().for_each(Acknowledged::doubt);
            disk.restart()?;
            rounds.judge(&path, &told, Durability::Disk)?;
        }
        rounds.report("power cuts");
    }
    Ok(())
}

/// One database through its rounds.
struct Rounds {
    layout: Layout,
    seed: u64,
    rng: Rng,
    oracle: Oracle,
    round: u64,
    batches: u64,
}

impl Rounds {
    fn new(asked: &Asked, layout: Layout) -> Self {
        let seed = asked.seed;
        Self { layout, seed, rng: Rng::new(seed), oracle: Oracle::new(layout, seed), round: 0, batches: 0 }
    }

    /// Has a process write, brings the crash over it, and gives all that it acknowledged, and how much of it before the
    /// crash began.
    fn write(
        &mut self,
        path: &Path,
        crash: impl FnOnce(&mut Child) -> Result<()>,
    ) -> Result<(Vec<Acknowledged>, usize)> {
        let program = std::env::current_exe().map_err(|error| io(&error))?;
        let mut command = Command::new(program);
        command.arg("worker").arg(path).args(["--seed", &self.seed.to_string()]);
        command.args(["--layout", &self.layout.to_string(), "--from", &self.oracle.next.to_string()]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| io(&error))?;
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut told = Vec::new();
        let wanted = self.rng.below(BATCHES_MAX);
        let mut is_alive = true;
        while is_alive && ((told.len() as u64) < wanted || has_more(&output)) {
            is_alive = read(&mut output, &mut told);
        }
        if !is_alive {
            let output = child.wait_with_output().map_err(|error| io(&error))?;
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(Error::Invalid(format!(
                "round {} of {}: the process ended by itself: {why}",
                self.round, self.layout
            )));
        }
        let before = told.len();
        crash(&mut child)?;
        while read(&mut output, &mut told) {}
        child.wait().map_err(|error| io(&error))?;
        self.batches += told.len() as u64;
        Ok((told, before))
    }

    fn judge(&mut self, path: &Path, told: &[Acknowledged], survives: Durability) -> Result<()> {
        self.round += 1;
        println!("{} seed {} round {}: {} batches", self.layout, self.seed, self.round, told.len());
        if self.round.is_multiple_of(2) {
            return self.oracle.judge(path, told, survives);
        }
        let copy = path.with_extension("copy");
        copy_files(path, &copy).map_err(|error| io(&error))?;
        self.oracle.judge(&copy, told, survives)?;
        std::fs::remove_dir_all(&copy).map_err(|error| io(&error))
    }

    fn report(&self, what: &str) {
        println!(
            "{}: {} {what}, {} batches acknowledged, nothing lost",
            self.layout, self.round, self.batches
        );
    }
}

/// Reads a line. `false` at the end.
fn read(output: &mut BufReader<ChildStdout>, told: &mut Vec<Acknowledged>) -> bool {
    let mut line = String::new();
    let length = output.read_line(&mut line).unwrap_or(0);
    told.extend(Acknowledged::parse(&line));
    length > 0
}

/// Whether something was said that was not read.
fn has_more(output: &BufReader<ChildStdout>) -> bool {
    !output.buffer().is_empty() || rustix::io::ioctl_fionread(output.get_ref()).is_ok_and(|bytes| bytes > 0)
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    // A crash may have come before the database was made.
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

pub(crate) fn file_name(layout: Layout) -> String {
    layout.to_string().replace([':', ',', '='], "-")
}

pub(crate) fn io(error: &std::io::Error) -> Error {
    Error::Invalid(error.to_string())
}
