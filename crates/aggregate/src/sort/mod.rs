//! [`SortAggregator`]: external sorting. The second thing to hold other aggregators against: it needs
//! little memory, writes sequentially, and can be read only when all is merged.
//!
//! 1. States are gathered in memory until the limit.
//! 2. They are sorted by (prefix, key), the states of each key merged, and written to a file: a run.
//! 3. To finalise, runs are merged by a loser tree, as many at once as memory allows, until one is left.
//!
//! What is added after that makes new runs, which the next finalising merges with the last one's result.
//!
//! **Invariant:** every state that was added is in the buffer or in exactly one run, also after an error.

mod buffer;
mod run;
mod run_files;
mod runs;

use std::path::PathBuf;

use forebay_base::limits::VALUE_BYTES_MAX;
use forebay_base::merge::Cursor;
use forebay_base::{Error, Order, Result};
use forebay_env::FileSystem;
use forebay_env::sync::Arc;

use crate::aggregate::{Aggregate, Merging};
use crate::aggregator::{Aggregator, Visit, check, check_length, lift, over_limit};
use crate::broken::Broken;
use buffer::Buffer;
use run::{BLOCK_BYTES, Run, RunCursor};
pub use run_files::RunFiles;
use runs::Runs;

/// Less memory than this is refused.
const MEMORY_BYTES_MIN: usize = 1 << 20;
/// What writing a run takes besides the buffer, about.
const WRITING_BYTES: usize = 3 * BLOCK_BYTES;

const _: () = assert!(WRITING_BYTES < MEMORY_BYTES_MIN, "the least memory writes a run");

/// An aggregator that sorts in files.
pub struct SortAggregator<A> {
    function: Arc<A>,
    memory_max: usize,
    buffer: Buffer,
    runs: Runs<Arc<Merging<Arc<A>>>>,
    lifted: Vec<u8>,
    state_bytes_max: usize,
    broken: Arc<Broken>,
}

/// All that was added, in one file, for as long as this lives.
struct Sorted {
    order: Order,
    run: Option<Arc<Run>>,
    broken: Arc<Broken>,
}

impl Sorted {
    /// The state of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(error) = self.broken.of(key) {
            return Err(error.clone());
        }
        self.run.as_ref().map_or(Ok(None), |run| run.get(self.order, key))
    }

    /// Shows every key and its state, and then tells of groups that are lost.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        if let Some(run) = &self.run {
            let mut cursor = RunCursor::new(run, self.order, None)?;
            while cursor.prefix().is_some() {
                let record = cursor.record();
                if self.broken.is_empty() || self.broken.of(record.key).is_none() {
                    visit(record.key, record.value)?;
                }
                cursor.advance()?;
            }
        }
        self.broken.first().map_or(Ok(()), |error| Err(error.clone()))
    }
}

impl<A: Aggregate> SortAggregator<A> {
    /// An empty one, which takes about `memory_max` bytes, and keeps files in `directory`, which is its own,
    /// for as long as it lives. Keys are read in `order`.
    pub fn new(
        function: A,
        order: Order,
        fs: Arc<dyn FileSystem>,
        directory: impl Into<PathBuf>,
        memory_max: usize,
    ) -> Result<Self> {
        if memory_max < MEMORY_BYTES_MIN {
            return Err(Error::invalid(format!(
                "a memory limit of {memory_max} bytes; sorting takes at least {MEMORY_BYTES_MIN}"
            )));
        }
        let function = Arc::new(function);
        let rule = Arc::new(Merging(Arc::clone(&function)));
        Ok(Self {
            runs: Runs::new(fs, directory.into(), order, rule, memory_max)?,
            function,
            memory_max,
            buffer: Buffer::default(),
            lifted: Vec::new(),
            state_bytes_max: VALUE_BYTES_MAX,
            broken: Arc::default(),
        })
    }

    /// How many bytes its files have now.
    pub fn disk_bytes(&self) -> u64 {
        self.runs.all().iter().map(|run| run.bytes()).sum()
    }

    /// How many keys there are, once finalised.
    pub fn keys(&self) -> u64 {
        self.runs.all().iter().map(|run| run.records()).sum()
    }

    /// The longest state that is kept; less than it is in tests.
    #[doc(hidden)]
    pub fn state_bytes_max(mut self, bytes: usize) -> Self {
        self.state_bytes_max = bytes;
        self
    }

    /// Takes groups that are lost: what comes to them is lost too.
    fn lose(&mut self, mut broken: Broken) {
        if !broken.is_empty() {
            Arc::make_mut(&mut self.broken).append(&mut broken);
        }
    }

    fn push(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        if !self.broken.is_empty() && self.broken.of(key).is_some() {
            return Ok(());
        }
        let room = self.memory_max - WRITING_BYTES;
        if !self.buffer.has_room(key, state, room) {
            self.spill()?;
            if !self.buffer.has_room(key, state, room) {
                // A record of a size that the buffer has not grown to, and cannot beside what it has.
                self.buffer = Buffer::default();
            }
            if !self.buffer.has_room(key, state, room) {
                return Err(over_limit(self.memory_max, "raise it to several times the longest state"));
            }
        }
        self.buffer.push(self.runs.order, key, state);
        Ok(())
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let order = self.runs.order;
        let mut writer = self.runs.writer()?;
        self.buffer.sort(order);
        let mut broken = Broken::default();
        self.buffer.for_each_key(&*self.function, order, |prefix, key, state| {
            match check_length(key, state, self.state_bytes_max) {
                Ok(()) => writer.push(prefix, key, state)?,
                Err(error) => broken.add(key, error),
            }
            Ok(())
        })?;
        self.runs.add(writer.finish()?);
        self.lose(broken);
        self.buffer.clear();
        Ok(())
    }

    /// All in one run; an error while there are more.
    fn finalized(&self) -> Result<Sorted> {
        let runs = self.runs.all();
        if !self.buffer.is_empty() || runs.len() > 1 {
            return Err(Error::invalid("states were added since the last call of finalize; call it first"));
        }
        let (run, broken) = (runs.first().cloned(), Arc::clone(&self.broken));
        Ok(Sorted { order: self.runs.order, run, broken })
    }
}

impl<A: Aggregate> Aggregator<A> for SortAggregator<A> {
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let mut lifted = std::mem::take(&mut self.lifted);
        let added = lift(&*self.function, key, value, &mut lifted).and_then(|()| self.push(key, &lifted));
        self.lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&*self.function, key, state)?;
        self.push(key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        self.spill()?;
        self.buffer = Buffer::default();
        // Of a merge that fails what was lost is still there.
        let (known, mut broken) = (&self.broken, Broken::default());
        let merged = self.runs.merge_all(&mut |record| {
            if known.of(record.key).is_some() || broken.of(record.key).is_some() {
                return false;
            }
            let kept = check_length(record.key, record.value, self.state_bytes_max);
            kept.map_err(|error| broken.add(record.key, error)).is_ok()
        });
        self.lose(broken);
        merged
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.finalized()?.get(key)
    }

    /// In the order given to [`new`](Self::new).
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.finalized()?.for_each(visit)
    }

    fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes()
            + self.runs.memory_bytes()
            + self.lifted.capacity()
            + self.broken.memory_bytes()
    }
}
