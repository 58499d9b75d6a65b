//! From a source to the table, batch by batch.

use std::io;
use std::path::Path;

use forebay::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay::{Batch, Database, Durability, Table};
use hdrhistogram::Histogram;

use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::input::format::Format;
use crate::input::{Position, Source, TroubleKind};
use crate::output::counted;
use crate::progress::Progress;

/// A batch is committed at this size, however few its records are.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// What a malformed record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnBad {
    Stop,
    Skip,
}

/// Why the load stopped before the end of the input.
pub(super) enum Stop {
    Read(io::Error),
    Header(String),
    Bad(Position, String),
    Engine(forebay::Error),
}

impl Stop {
    /// What is wrong with an input, and, where its name tells another format than it is read as, that.
    pub(super) fn by_format(self, asked: Option<Format>, path: &Path) -> Self {
        let is_other = asked.zip(Format::of(path)).is_some_and(|(asked, named)| asked != named);
        let told = |reason: String| {
            format!("{reason}; --format says how it is read, and its name says another format")
        };
        match self {
            Self::Header(reason) if is_other => Self::Header(told(reason)),
            Self::Bad(at, reason) if is_other => Self::Bad(at, told(reason)),
            stop => stop,
        }
    }

    /// Says it of the input called `name`.
    pub(super) fn into_failure(self, name: &str, acknowledged: u64) -> Failure {
        match self {
            Self::Read(error) => Failure::work(format!(
                "cannot read {name}: {error} (loaded before it: {})",
                counted(acknowledged, "record")
            )),
            Self::Header(reason) => Failure::work(format!("{name}: {reason}")),
            Self::Bad(at, reason) => Failure::work(format!(
                "{name}: record {} at byte offset {}: {reason} (loaded before it: {}; --skip-bad goes on)",
                at.number,
                at.offset,
                counted(acknowledged, "record"),
            )),
            Self::Engine(error) if acknowledged > 0 => Failure::work(format!(
                "{} (loaded before it: {})",
                Failure::from(error),
                counted(acknowledged, "record")
            )),
            Self::Engine(error) => error.into(),
        }
    }
}

/// What a load came to.
pub(super) struct Tally {
    pub(super) records: u64,
    pub(super) skipped: u64,
    pub(super) input_bytes: u64,
    /// Of keys and values.
    pub(super) record_bytes: u64,
    pub(super) seconds: f64,
    /// Of commits, in nanoseconds.
    pub(super) latency: Histogram<u64>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            records: 0,
            skipped: 0,
            input_bytes: 0,
            record_bytes: 0,
            seconds: 0.0,
            latency: new_histogram(),
        }
    }
}

/// What takes in a whole source.
pub(super) trait Sink {
    fn take_all(&mut self, source: impl Source + Send + 'static) -> Result<(), Stop>;
}

/// See the module.
pub(super) struct Pump<'a> {
    db: &'a Database,
    table: &'a Table,
    progress: &'a Progress,
    durability: Durability,
    batch_records: usize,
    on_bad: OnBad,
    batch: Batch,
    waiting: usize,
    tally: Tally,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        db: &'a Database,
        table: &'a Table,
        progress: &'a Progress,
        durability: Durability,
        batch_records: usize,
        on_bad: OnBad,
    ) -> Self {
        Self {
            db,
            table,
            progress,
            durability,
            batch_records,
            on_bad,
            batch: Batch::new(),
            waiting: 0,
            tally: Tally::new(),
        }
    }

    fn commit(&mut self, bytes_read: u64) -> Result<(), Stop> {
        if self.waiting > 0 {
            let watch = Stopwatch::start();
            self.db.write(&mut self.batch, self.durability).map_err(Stop::Engine)?;
            self.tally
                .latency
                .saturating_record(u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX));
            self.tally.records += self.waiting as u64;
            self.waiting = 0;
        }
        self.tally.input_bytes = bytes_read;
        self.progress.acknowledge(self.tally.records, bytes_read);
        Ok(())
    }

    /// What it came to.
    pub(super) fn tally(self) -> Tally {
        self.tally
    }
}

impl Sink for Pump<'_> {
    /// What stands before a bad record is committed.
    fn take_all(&mut self, mut source: impl Source + Send + 'static) -> Result<(), Stop> {
        loop {
            let reason = match source.next() {
                Ok(Some((key, value))) => match over_limit(key, value) {
                    None => {
                        self.batch.put(self.table, key, value);
                        self.tally.record_bytes += (key.len() + value.len()) as u64;
                        self.waiting += 1;
                        if self.waiting >= self.batch_records || self.batch.encoded_bytes() >= BATCH_BYTES_MAX
                        {
                            self.commit(source.bytes_read())?;
                        }
                        continue;
                    }
                    Some(reason) => reason,
                },
                Ok(None) => return self.commit(source.bytes_read()),
                Err(trouble) => match *trouble {
                    TroubleKind::Bad(reason) => reason,
                    TroubleKind::Read(error) => {
                        self.commit(source.bytes_read())?;
                        return Err(Stop::Read(error));
                    }
                },
            };
            match self.on_bad {
                OnBad::Skip => self.tally.skipped += 1,
                OnBad::Stop => {
                    self.commit(source.bytes_read())?;
                    return Err(Stop::Bad(source.position(), reason));
                }
            }
        }
    }
}

/// From 1 ns to 1 hour, to three digits.
fn new_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 3_600_000_000_000, 3) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("constant bounds are valid: {error}"),
    }
}

#[inline]
pub(super) fn over_limit(key: &[u8], value: &[u8]) -> Option<String> {
    if key.len() > KEY_BYTES_MAX {
        return Some(format!("the key has {} bytes; at most {KEY_BYTES_MAX} are allowed", key.len()));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Some(format!("the value has {} bytes; at most {VALUE_BYTES_MAX} are allowed", value.len()));
    }
    None
}
