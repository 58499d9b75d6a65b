//! What every part is handed: where the database is and under which options, its log, its counters, and whether work
//! may go on. None of it changes while the database is open, but by its own locks.

mod directory;
mod encryption;
mod health;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_base::{Error, Result, planted};
use forebay_env::fs::GatedFs;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::{Env, Haste, guest};
use forebay_store::buffer::ArenaPool;
use forebay_store::log::Log;
use forebay_store::log::recover::LogFiles;
use forebay_store::manifest::{AppendError, Superblock};
use forebay_store::salvage::Gaps;
use forebay_store::{Lease, Metrics};

use crate::options::{Buffers, Division, Options};
use crate::pool::Limit;

pub(crate) use directory::create_dir_durably;
pub(crate) use encryption::{Encryption, begin, unlock};
pub(crate) use health::{COMPACT, FLUSH, Health, may_stop_work};

pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// How much memory it may take.
    pub(crate) limit: Limit,
    pub(crate) superblock: Superblock,
    /// Its keys, where it is encrypted.
    pub(crate) encryption: Option<Encryption>,
    /// `None` when opened for reading only.
    pub(crate) log: Option<Log>,
    pub(crate) pool: Arc<ArenaPool>,
    pub(crate) metrics: Arc<Metrics>,
    /// Places of the log that were passed over when it was read, where that was wanted.
    pub(crate) gaps: Arc<Gaps>,
    /// All files are opened and changed through it: once it is closed, handles that are left only read.
    pub(crate) gate: Arc<GatedFs>,
    /// Tells this open database from every other one that this process opens.
    pub(crate) serial: u64,
    pub(crate) closing: AtomicBool,
    pub(crate) health: Health,
    /// Whether tables keep records in memory, which is then shared otherwise.
    pub(crate) keeps_records: AtomicBool,
    /// Whether it takes in what another database has committed, and nothing else.
    pub(crate) follows: AtomicBool,
    /// Where others may write, until the database is closed.
    pub(crate) lease: Option<Lease>,
    /// What readers in other processes are told that ask for numbers.
    pub(crate) answer: OnceLock<Answer>,
    /// The number up to which records are known to survive a power loss, where they are only read.
    pub(crate) seen_durable: AtomicU64,
}

/// The numbers of the database, as JSON; none once it is gone.
pub(crate) type Answer = Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

impl Context {
    /// The write buffers as they are now.
    pub(crate) fn buffers(&self) -> Buffers {
        self.division().buffers(self.keeps_records.load(Ordering::Relaxed))
    }

    /// How memory is divided, as much as there is of it now.
    pub(crate) fn division(&self) -> Division {
        self.options.divided(self.limit.bytes())
    }

    /// The log, or the reason why there is none.
    pub(crate) fn log(&self) -> Result<&Log> {
        refuse_guests()?;
        self.log.as_ref().ok_or_else(|| Error::invalid("the database is open for reading only"))
    }

    /// Among the databases of a pool: whether somebody may wait for background work from now on.
    pub(crate) fn set_haste(&self, haste: Haste) {
        self.limit.set_haste(&self.env.jobs, haste);
    }

    /// Somebody waits for background work, until this is dropped.
    pub(crate) fn begin_wait(&self) -> Waiter<'_> {
        self.limit.begin_wait(&self.env.jobs);
        Waiter(self)
    }

    /// Where the log is.
    pub(crate) fn log_files(&self) -> LogFiles<'_> {
        LogFiles {
            fs: &*self.env.fs,
            dir: &self.dir,
            secret: self.superblock.log_secret,
            jobs: &self.env.jobs,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Why nothing can be written any more, if so: a failed sync, or a background panic.
    pub(crate) fn fatal(&self) -> Option<Error> {
        self.log.as_ref().and_then(Log::poisoned).map(Error::Poisoned)
    }

    /// Refuses what only a database that takes writes of its own can do.
    pub(crate) fn refuse_followers(&self) -> Result<()> {
        match self.follows.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::invalid(
                "the database follows another one, and takes nothing else; write to that one, or promote this one: open it \
                 as a database",
            )),
        }
    }

    /// The reason why nothing can be written any more, if there is one.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.fatal() {
            Some(fatal) => Err(fatal),
            None if self.is_closing() => Err(Error::closed()),
            None => Ok(()),
        }
    }

    /// Where there is no table of a name that was asked for.
    pub(crate) fn no_table(&self, name: &str) -> Error {
        Error::NotFound(format!("there is no table `{name}` in {}", self.dir.display()))
    }

    /// Stops all further writes for this reason.
    pub(crate) fn poison(&self, cause: &impl fmt::Display) {
        if let Some(log) = &self.log {
            log.poison(&cause.to_string());
        }
    }

    /// The cause of an error after which it may be unknown what is on the disk: that stops all further writes.
    pub(crate) fn judge(&self, error: AppendError) -> Error {
        if let AppendError::Unknown(cause) = &error
            && !planted::is("unknown-outcome-passed-over")
        {
            self.poison(cause);
        }
        error.into_cause()
    }

    /// Makes the names of files durable. A failure stops all further writes: a later sync would say that all is well,
    /// and names that were made before the failure may be lost all the same.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        let synced = self.env.fs.sync_dir(&self.dir);
        synced.inspect_err(|error| self.poison(error))
    }

    /// Waits for background work, or for the reason why it does not get on.
    pub(crate) fn wait_for(
        &self,
        trouble: impl Fn() -> Option<Error>,
        done: impl Fn() -> bool,
    ) -> Result<()> {
        let mut verdict = Ok(());
        let _waiter = self.begin_wait();
        // What counts is what was seen: by the time it is told it may be otherwise.
        self.env.jobs.wait(&mut || {
            let reason = || self.fatal().or_else(&trouble).or_else(|| self.is_closing().then(Error::closed));
            let (is_done, reason) = if done() { (true, None) } else { (false, reason()) };
            let is_over = is_done || reason.is_some();
            verdict = reason.map_or(Ok(()), Err);
            is_over
        });
        verdict
    }

    /// Notes that a writer has waited since then.
    pub(crate) fn stalled_since(&self, started: Duration) {
        let stalled = self.env.clock.now().saturating_sub(started);
        self.metrics.stall_nanoseconds.add(stalled.as_nanos() as u64);
    }

    /// Lets nothing be changed any more. What is opened to be read from here on is this database's, or an error: the
    /// directory may be another's by then.
    pub(crate) fn shut_gate(&self) {
        debug_assert!(self.is_closing(), "what is to be changed yet comes before");
        let (dir, superblock) = (self.dir.clone(), self.superblock);
        self.gate.close(move |fs| {
            let found = Superblock::read(fs, &dir);
            match found {
                Ok(found) if found == superblock => Ok(()),
                Err(error) if !error.is_not_found() => Err(error),
                _ => Err(Error::NotFound(format!(
                    "{} and was removed since, so nothing can be read from {} any more",
                    Error::CLOSED,
                    dir.display()
                ))),
            }
        });
    }
}

/// Whoever waits for background work: that is no leisure then.
pub(crate) struct Waiter<'a>(&'a Context);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.limit.end_wait(&self.0.env.jobs);
    }
}

/// What is wrong with a table's options, with the table's name.
pub(crate) fn of_table(name: &str, error: Error) -> Error {
    match error {
        Error::Invalid(reason) => Error::invalid(format!("table `{name}`: {reason}")),
        error => error,
    }
}

// Guests are merge rules, functions and filters of users. They are asked in the midst of work, which may hold what they
// would wait for if they asked a database in turn.

/// Refuses what a merge rule, a function or a filter asks of a database.
pub(crate) fn refuse_guests() -> Result<()> {
    match guest::is_inside() {
        false => Ok(()),
        true => Err(Error::invalid(
            "a merge rule, an aggregation function or a compaction filter must not call a database while it runs",
        )),
    }
}

/// The same where no error can be given. Who called for the guest's answer is told, as of a panic.
pub(crate) fn stop_guests() {
    if let Err(error) = refuse_guests() {
        guest::leave(error.to_string());
    }
}
