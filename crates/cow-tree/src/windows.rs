//! Reading many pieces of a file that lie near one another, though not in the order in which they are wanted: leaves
//! that several appends have written, and values beside them. A piece is read by itself at first. Where a second one is
//! wanted nearby, or reading goes on from what is in memory, a whole window of the file is read.

use std::ops::Range;
use std::sync::Arc;

use forebay_base::limits::{BLOCK_BYTES, STEP_BYTES};
use forebay_base::{Error, Result};
use forebay_env::{Access, AlignedBuf, File};
use forebay_store::metrics::Cause;
use forebay_store::{MemoryClaim, Owner, read_ahead};
use smallvec::SmallVec;

use crate::extent::Extent;
use crate::file::Reader;
use crate::tree::Tree;

/// Who reads, and how.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// Background work.
    Job {
        /// What the bytes are counted as.
        cause: Cause,
        /// What it may take to read long pieces into.
        memory_bytes: usize,
    },
    /// A user's scan: leaves through the cache at first, values with their keys.
    Scan,
    /// The same, but values that are kept apart are left where they are until they are asked for.
    Keys,
    /// A check of all that is there: as a job, and not counted.
    Check,
}

/// As many windows, so that this many places of the file can be read in turns.
const WINDOWS: usize = 16;
/// A scan may stop anywhere, so its windows are short.
const SHORT_WINDOW_BYTES: usize = 64 << 10;
/// Once all scans' windows take this part of the limit, one is enough.
pub(crate) const SCANS_PART: u64 = 32;
/// Of a job that is given no memory.
const WINDOW_BYTES_MIN: usize = 4 * BLOCK_BYTES;

const _: () =
    assert!(SHORT_WINDOW_BYTES.is_multiple_of(BLOCK_BYTES) && SHORT_WINDOW_BYTES >= WINDOW_BYTES_MIN);
const _: () = assert!(WINDOW_BYTES_MIN <= STEP_BYTES && WINDOWS > 1);

/// The system fetches this many of them in one request.
const FETCHED_WINDOWS: u64 = 8;

/// Windows over a file.
pub(crate) struct Windows {
    tree: Tree,
    /// For checks, past the system's cache; else the tree's own handle is read from, opened when something is.
    direct: Option<Arc<dyn File>>,
    reader: Reader,
    window_bytes: usize,
    /// Whether all is read by windows, and fetched before.
    reads_on: bool,
    windows: SmallVec<[Window; WINDOWS]>,
    /// Where single pieces were read last, by the windows' numbers.
    noted: [u64; WINDOWS],
    turn: u64,
}

/// A piece of the file in memory.
struct Window {
    number: u64,
    used: u64,
    /// Up to where the system has been asked to fetch what follows.
    fetched_end: u64,
    bytes: AlignedBuf,
    _claim: MemoryClaim,
}

/// How a piece was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Alone,
    Window,
}

impl Windows {
    pub(crate) fn new(tree: &Tree, reading: Reading) -> Result<Self> {
        let mut direct = None;
        let (reader, window_bytes) = match reading {
            Reading::Job { cause, memory_bytes } => {
                let bytes = (memory_bytes / WINDOWS).clamp(WINDOW_BYTES_MIN, STEP_BYTES);
                (Reader::Job(cause), bytes / BLOCK_BYTES * BLOCK_BYTES)
            }
            Reading::Check => {
                direct = Some(tree.store().fs.open_read(tree.path(), Access::Direct)?);
                (Reader::Check, SHORT_WINDOW_BYTES)
            }
            Reading::Scan | Reading::Keys => (Reader::Lookup, SHORT_WINDOW_BYTES),
        };
        let (windows, noted) = (SmallVec::new(), [u64::MAX; WINDOWS]);
        let tree = tree.clone();
        Ok(Self { tree, direct, reader, window_bytes, reads_on: false, windows, noted, turn: 0 })
    }

    /// For a walk that reads on to the end: all is read by windows, and the system fetches what follows them.
    pub(crate) fn reading_on(self) -> Self {
        Self { reads_on: true, ..self }
    }

    pub(crate) fn reader(&self) -> Reader {
        self.reader
    }

    /// Reads and checks a node or a value, and makes it whole.
    pub(crate) fn read(&mut self, extent: Extent, bytes: &mut Vec<u8>) -> Result<Source> {
        let length = self.window_bytes as u64;
        let end = extent.at.saturating_add(extent.bytes as u64);
        let numbers = extent.at / length..end.div_ceil(length);
        self.turn += 1;
        // Of long pieces nothing is gained by reading what is around them.
        let is_long = extent.bytes as usize > self.window_bytes / 2 || end > self.tree.total_bytes();
        if is_long || !numbers.clone().all(|number| self.is_wanted(number)) {
            if !is_long {
                numbers.for_each(|number| self.noted[(number % WINDOWS as u64) as usize] = number);
            }
            self.tree.read_whole(extent, bytes, self.reader)?;
            return Ok(Source::Alone);
        }
        bytes.clear();
        for number in numbers {
            let start = (number * length).max(extent.at) - number * length;
            let stop = ((number + 1) * length).min(end) - number * length;
            let window = self.window(number);
            let copied = window.map(|window| bytes.extend_from_slice(&window[start as usize..stop as usize]));
            match copied {
                // What of a window cannot be read takes nothing with it that stands beside it.
                Err(_) if self.tree.salvage().is_some() => {
                    self.tree.read_whole(extent, bytes, self.reader)?;
                    return Ok(Source::Alone);
                }
                copied => copied?,
            }
        }
        debug_assert_eq!(bytes.len(), extent.bytes as usize, "windows lie side by side");
        self.tree.file().check(extent, bytes)?;
        self.tree.unpack(extent, bytes)?;
        Ok(Source::Window)
    }

    /// Whether all of a piece is in windows that are here.
    pub(crate) fn has(&self, extent: Extent) -> bool {
        let length = self.window_bytes as u64;
        let mut numbers = extent.at / length..extent.at.saturating_add(extent.bytes as u64).div_ceil(length);
        numbers.all(|number| self.windows.iter().any(|window| window.number == number))
    }

    /// Whether a window is here or should be read.
    fn is_wanted(&self, number: u64) -> bool {
        self.reads_on
            || self.noted.contains(&number)
            || self.windows.iter().any(|window| window.number.abs_diff(number) <= 1)
    }

    fn window(&mut self, number: u64) -> Result<&[u8]> {
        let found = self.windows.iter().position(|window| window.number == number);
        let index = match found {
            Some(index) => index,
            None => self.load(number)?,
        };
        let window = &mut self.windows[index];
        window.used = self.turn;
        Ok(&window.bytes)
    }

    /// Reads a window in the place of the one that was not used for the longest time.
    fn load(&mut self, number: u64) -> Result<usize> {
        let memory = &self.tree.store().metrics.memory;
        let is_crowded = matches!(self.reader, Reader::Lookup) && memory.exceeds(Owner::Scanning, SCANS_PART);
        if self.windows.is_empty() || self.windows.len() < WINDOWS && !is_crowded {
            let owner = if matches!(self.reader, Reader::Lookup) { Owner::Scanning } else { Owner::Merging };
            let claim = memory.claim(owner, self.window_bytes as u64);
            let bytes = AlignedBuf::zeroed(self.window_bytes);
            self.windows.push(Window { number: u64::MAX, used: 0, fetched_end: 0, bytes, _claim: claim });
        }
        let at = number * self.window_bytes as u64;
        debug_assert!(at < self.tree.total_bytes(), "a window is of what there is");
        let length = (self.window_bytes as u64).min(self.tree.total_bytes() - at) as usize;
        let file = self.file()?;
        let fetched_end = self.fetch(&*file, number, at..at + length as u64);
        let oldest = self.windows.iter().enumerate().min_by_key(|(_, window)| window.used);
        let Some(index) = oldest.map(|(index, _)| index) else {
            return Err(Error::bug("no windows to read into"));
        };
        let window = &mut self.windows[index];
        // Whatever happens below, what it held is gone.
        (window.number, window.used) = (u64::MAX - 1, self.turn);
        window.fetched_end = fetched_end;
        self.reader.count(&self.tree.store().metrics, length);
        self.tree.file().read_at(&*file, at, &mut window.bytes[..length])?;
        window.number = number;
        Ok(index)
    }

    fn file(&self) -> Result<Arc<dyn File>> {
        self.direct.as_ref().map_or_else(|| self.tree.handle(), Ok).cloned()
    }

    /// Has the system fetch what follows a window, for a walk that reads on. Returns up to where it has been asked to.
    fn fetch(&self, file: &dyn File, number: u64, window: Range<u64>) -> u64 {
        if !self.reads_on {
            return 0;
        }
        let before = self.windows.iter().find(|window| Some(window.number) == number.checked_sub(1));
        let fetched_end = before.map_or(0, |window| window.fetched_end);
        let stretch_bytes = FETCHED_WINDOWS * self.window_bytes as u64;
        read_ahead(file, window, stretch_bytes, fetched_end, self.tree.total_bytes())
    }
}
