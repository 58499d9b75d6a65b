//! Readers beside a writer, all of them processes: one is killed at any moment, time after time, and another takes its
//! place. What a reader sees is right to the last record, whatever else goes on, and never goes back. Once all is over no
//! file is left that nothing names.
//!
//! Batch `n` of a seed is the same in every process, and batches that a crash has taken are written again under the same
//! numbers. So each process knows what there is at each number.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use forebay::{Database, Durability, Error, Layout, Result};
use forebay_env::{Env, Rng};
use forebay_testkit::{Config, Model, Tables, assert_same};
use tempfile::TempDir;

use crate::kill::{file_name, io};
use crate::oracle::accept;
use crate::worker::Task;
use crate::{Asked, history};

/// Batches that a round acknowledges before somebody is killed, at most.
const BATCHES_MAX: u64 = 120;
/// Readers at a time.
const READERS: usize = 2;
/// A reader begins anew after so many looks.
const LOOKS_MAX: usize = 9;
/// How long files may stay once nobody reads them, in tenths of a second.
const PATIENCE: usize = 300;

/// What there is at each number.
struct Known {
    config: Config,
    seed: u64,
    model: Model,
    /// The next batch.
    next: u64,
}

impl Known {
    fn new(layout: Layout, seed: u64) -> Self {
        let config = history::config(layout, seed);
        Self { model: Model::new(config.merging), config, seed, next: 0 }
    }

    /// Holds what is seen of all up to `sequence` against the model.
    fn check(&mut self, tables: &Tables, sequence: u64) -> Result<()> {
        let before = self.model.last_sequence();
        assert!(before <= sequence, "{before} was seen, and now only {sequence}");
        while self.model.last_sequence() < sequence {
            accept(&mut self.model, tables, &self.config, self.seed, self.next);
            self.next += 1;
        }
        assert_eq!(self.model.last_sequence(), sequence, "a batch is seen in part");
        self.model.roll_back(sequence, Durability::Disk);
        assert_same(tables, &self.config, self.model.now())
    }

    fn open(&self, path: &Path) -> Result<(Database, Tables)> {
        let db = Database::open(path, self.config.options(&Env::real()).read_only(true))?;
        let tables = Tables::open(&db, &self.config)?;
        Ok((db, tables))
    }
}

/// The process that reads until it is killed, and tells on its output the number of the last record of each look.
pub(crate) fn read(task: &Task) -> Result<()> {
    let mut known = Known::new(task.layout, task.seed);
    let mut told = std::io::stdout().lock();
    loop {
        let (db, tables) = known.open(&task.path)?;
        for _ in 0..LOOKS_MAX {
            let sequence = db.refresh()?;
            known.check(&tables, sequence)?;
            if writeln!(told, "{sequence}").and_then(|()| told.flush()).is_err() {
                return Ok(());
            }
        }
    }
}

/// The campaign.
pub(crate) fn run(asked: &Asked) -> Result<()> {
    let folder = TempDir::with_prefix_in("torture-readers-", &asked.dir).map_err(|error| io(&error))?;
    for layout in asked.layouts() {
        let mut campaign = Campaign::new(layout, asked.seed, folder.path().join(file_name(layout)))?;
        for round in 0..asked.rounds {
            campaign.round(round)?;
        }
        campaign.end()?;
    }
    Ok(())
}

/// A process that says what it does, line by line.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(what: &str, known: &Known, layout: Layout, path: &Path) -> Result<Self> {
        let program = std::env::current_exe().map_err(|error| io(&error))?;
        let mut command = Command::new(program);
        command.arg(what).arg(path).args(["--seed", &known.seed.to_string()]);
        command.args(["--layout", &layout.to_string(), "--from", &known.next.to_string()]);
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| io(&error))?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self { child, output })
    }

    /// Waits until it has said something.
    fn listen(&mut self) -> Result<()> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap_or(0) > 0 {
            return Ok(());
        }
        let mut why = String::new();
        self.child.stderr.take().map(|mut errors| errors.read_to_string(&mut why));
        Err(Error::Invalid(format!("a process ended by itself: {why}")))
    }

    fn kill(mut self) -> Result<()> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| io(&error))
    }
}

struct Campaign {
    layout: Layout,
    path: PathBuf,
    rng: Rng,
    /// As of when the writer was begun.
    known: Known,
    writer: Process,
    readers: Vec<Process>,
    killed: (u64, u64),
    looks: u64,
}

impl Campaign {
    fn new(layout: Layout, seed: u64, path: PathBuf) -> Result<Self> {
        let known = Known::new(layout, seed);
        let mut writer = Process::start("worker", &known, layout, &path)?;
        writer.listen()?;
        let rng = Rng::new(seed ^ 0x7265_6164);
        Ok(Self { layout, path, rng, known, writer, readers: Vec::new(), killed: (0, 0), looks: 0 })
    }

    /// Lets all of them go on for a while, and kills one.
    fn round(&mut self, round: u64) -> Result<()> {
        while self.readers.len() < READERS {
            let from = Known::new(self.layout, self.known.seed);
            self.readers.push(Process::start("reader", &from, self.layout, &self.path)?);
        }
        for _ in 0..self.rng.below(BATCHES_MAX) {
            self.writer.listen()?;
        }
        for reader in &mut self.readers {
            // One that is not listened to stops before long, and holds what it has.
            for _ in 0..self.rng.below(4) {
                reader.listen()?;
                self.looks += 1;
            }
        }
        let is_writer = self.rng.chance(40);
        println!(
            "{} seed {} round {}: {}",
            self.layout,
            self.known.seed,
            round + 1,
            if is_writer { "writer" } else { "reader" }
        );
        if !is_writer {
            self.killed.1 += 1;
            let victim = self.rng.index(self.readers.len());
            return self.readers.swap_remove(victim).kill();
        }
        self.killed.0 += 1;
        self.writer.child.kill().and_then(|()| self.writer.child.wait()).map_err(|error| io(&error))?;
        let (db, tables) = self.known.open(&self.path)?;
        self.known.check(&tables, db.last_sequence())?;
        drop((tables, db));
        self.writer = Process::start("worker", &self.known, self.layout, &self.path)?;
        self.writer.listen()
    }

    /// Ends all processes, and sees that nothing is left of what they held.
    fn end(self) -> Result<()> {
        let Self { layout, path, mut known, writer, readers, killed, looks, .. } = self;
        readers.into_iter().try_for_each(Process::kill)?;
        writer.kill()?;
        let db = known.config.open(&Env::real(), &path)?;
        let tables = Tables::open(&db, &known.config)?;
        known.check(&tables, db.last_sequence())?;
        db.wait_until_idle()?;
        let mut files = Vec::new();
        for _ in 0..PATIENCE {
            files = left(&path);
            if files.len() as u64 == db.stats().list_files {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(files.len() as u64, db.stats().list_files, "files that nothing names: {files:?}");
        assert_eq!(db.stats().readers, [], "readers that are dead");
        let report = db.verify(&mut |_, _| ())?;
        assert!(report.problems.is_empty(), "verify found: {:?}", report.problems);
        drop(tables);
        db.close()?;
        let leases = std::fs::read_dir(path.join("readers")).map_or(0, Iterator::count);
        assert_eq!(leases, 0, "leases of dead readers are left");
        println!("{layout}: {} writers and {} readers killed, {looks} looks, all right", killed.0, killed.1);
        Ok(())
    }
}

/// Lists and trees that there are.
fn left(path: &Path) -> Vec<String> {
    let names = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".list") || name.ends_with(".tree")).collect()
}
