//! The inputs of an aggregation: opened one after the other, gunzipped where they have to be, and counted.
//! Files are gunzipped ahead on a thread of their own. A pipe is not: its thread might wait for ever.

use std::io::{self, BufReader, Cursor, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::thread::Scope;

use flate2::bufread::MultiGzDecoder;
use forebay::Error;
use forebay::aggregate::Aggregate;

use super::ahead::Ahead;
use super::engine::{Engine, Refused};
use super::reached::{Extent, Found, Packing, Place, Separator, State, Tracked};
use crate::commands::progress::Progress;
use crate::failure::Failure;
use crate::input::open::{Opened, open, open_at};
use crate::input::{Position, TroubleKind};

/// What a malformed record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnBad {
    Stop,
    Skip,
}

/// What the inputs came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// Values that were added.
    pub(super) records: u64,
    /// Malformed records that were passed over.
    pub(super) skipped: u64,
    /// Files that a store had counted before.
    pub(super) known_files: u64,
}

/// See the module.
pub(super) struct Inputs<'scope, 'env> {
    pub(super) files: &'env [PathBuf],
    pub(super) progress: &'env Progress,
    /// Of the threads that read ahead.
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) on_bad: OnBad,
    pub(super) tally: Tally,
}

impl<'scope, 'env> Inputs<'scope, 'env> {
    /// Opens an input, where reading it goes on; nothing where a store has all of it already.
    pub(super) fn open<A: Aggregate>(
        &mut self,
        path: &Path,
        engine: &Engine<A>,
        separator: Separator,
    ) -> Result<Option<Input<'scope>>, Failure> {
        let bytes_before = self.progress.bytes_read();
        if matches!(engine, Engine::Gathering(_)) {
            let (name, from) = self.unpacked(path, open(path)?)?;
            let (start, state) = (Position::default(), State::Stateless);
            return Ok(Some(Input { name, from, start, state, tracked: None, bytes_before }));
        }
        let is_gunzipped = separator != Separator::File;
        let tracked = Tracked::open(path, |head| !is_gunzipped || is_gzip(head, path))?;
        let (start, state) = match tracked.find(engine.reached(&tracked.key)?, separator)? {
            Found::New => (Position::default(), State::Stateless),
            Found::On(at, state) => (at, state),
            Found::Known => {
                self.tally.known_files += 1;
                return Ok(None);
            }
        };
        let from = match tracked.packing {
            Packing::Plain => open_at(path, start.offset)?,
            Packing::Packed => open(path)?,
        };
        let (name, mut from) = self.unpacked(path, from)?;
        if tracked.packing == Packing::Packed && is_gunzipped {
            io::copy(&mut (&mut from).take(start.offset), &mut io::sink())
                .map_err(|error| Failure::work(format!("cannot read {name}: {error}")))?;
        }
        Ok(Some(Input { name, from, start, state, tracked: Some(tracked), bytes_before }))
    }

    /// What begins as gzip data do is gunzipped, and so is what is called so.
    fn unpacked(&self, path: &Path, opened: Opened) -> Result<(String, Box<dyn Read + 'scope>), Failure> {
        let Opened { name, from, bytes } = opened;
        let mut from = Counted { from, progress: self.progress };
        let mut head = Vec::new();
        (&mut from)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|error| Failure::work(format!("cannot read {name}: {error}")))?;
        let is_gzip = is_gzip(&head, path);
        let whole = Cursor::new(head).chain(from);
        if !is_gzip {
            return Ok((name, Box::new(whole)));
        }
        let plain = MultiGzDecoder::new(BufReader::with_capacity(GZIP_BYTES, whole));
        let from: Box<dyn Read + 'scope> = match bytes {
            Some(_) => Box::new(Ahead::spawn(self.scope, plain)),
            None => Box::new(plain),
        };
        Ok((name, from))
    }

    /// Counts what was added, or says why it was not.
    #[inline]
    pub(super) fn note(
        &mut self,
        added: Result<(), Refused>,
        name: &str,
        at: impl FnOnce() -> Position,
    ) -> Result<(), Failure> {
        match added {
            Ok(()) => {
                self.tally.records += 1;
                self.progress.count(self.tally.records);
                Ok(())
            }
            Err(Refused::Record(Error::Invalid(reason))) => self.refuse(name, at(), &reason),
            Err(Refused::Record(error)) => self.refuse(name, at(), &error.to_string()),
            Err(Refused::Work(error)) => Err(error.into()),
        }
    }

    /// The next record could not be had.
    pub(super) fn trouble(&mut self, trouble: TroubleKind, name: &str, at: Position) -> Result<(), Failure> {
        match trouble {
            TroubleKind::Bad(reason) => self.refuse(name, at, &reason),
            TroubleKind::Read(error) => Err(Failure::work(format!("cannot read {name}: {error}"))),
        }
    }

    /// Counts a malformed record, or stops at it.
    #[cold]
    pub(super) fn refuse(&mut self, name: &str, at: Position, reason: &str) -> Result<(), Failure> {
        match self.on_bad {
            OnBad::Skip => {
                self.tally.skipped += 1;
                Ok(())
            }
            OnBad::Stop => Err(Failure::work(format!(
                "{name}: record {} at byte offset {}: {reason} (--skip-bad goes on)",
                at.number, at.offset
            ))),
        }
    }
}

/// An input that is read.
pub(super) struct Input<'a> {
    /// What to call it in messages.
    pub(super) name: String,
    pub(super) from: Box<dyn Read + 'a>,
    /// Where `from` begins, and what else reading on there needs.
    pub(super) start: Position,
    pub(super) state: State,
    /// The file, where a store keeps track of it.
    tracked: Option<Tracked>,
    /// What was read of all inputs before this one.
    bytes_before: u64,
}

impl<'a> Input<'a> {
    /// What is to be read.
    pub(super) fn take(&mut self) -> Box<dyn Read + 'a> {
        mem::replace(&mut self.from, Box::new(io::empty()))
    }

    /// Notes that everything before a place is added.
    #[cold]
    pub(super) fn reach<A: Aggregate>(&self, place: Place, engine: &mut Engine<A>) -> Result<(), Failure> {
        match &self.tracked {
            Some(tracked) => engine.reach(&tracked.key, tracked.reached(place)?),
            None => Ok(()),
        }
    }

    /// Notes that all of it is added; `next` is where reading would go on if it grew, by default at its end.
    pub(super) fn end<A: Aggregate>(
        &self,
        records: u64,
        next: Option<Position>,
        state: State,
        progress: &Progress,
        engine: &mut Engine<A>,
    ) -> Result<(), Failure> {
        let end = self.start.offset + progress.bytes_read() - self.bytes_before;
        let at = next.unwrap_or(Position { number: records, offset: end });
        self.reach(Place { at, end, extent: Extent::Whole, state }, engine)
    }
}

/// What gzip data begin with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Whether a file that begins so is gzip data.
fn is_gzip(head: &[u8], path: &Path) -> bool {
    head.starts_with(&MAGIC) || !head.is_empty() && path.extension().is_some_and(|ending| ending == "gz")
}

/// How much of them is read at once.
const GZIP_BYTES: usize = 64 << 10;

/// Counts what is read.
struct Counted<'a> {
    from: Box<dyn Read + Send>,
    progress: &'a Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.progress.read(read as u64);
        Ok(read)
    }
}

/// How long all inputs are together, where that is known; a failure where one is not there.
pub(super) fn bytes(files: &[PathBuf]) -> Result<Option<u64>, Failure> {
    files.iter().try_fold(Some(0), |sum: Option<u64>, path| {
        let bytes = open(path)?.bytes;
        Ok(sum.zip(bytes).map(|(sum, bytes)| sum + bytes))
    })
}
