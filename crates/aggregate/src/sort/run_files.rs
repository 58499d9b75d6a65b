//! [`RunFiles`]: groups for which memory has no room, as sorted runs. What comes is in order, so each time is a run as it
//! is; who reads has all merged to one first. For who reads all once, at the end: a place that can be read at any
//! moment merges in the background.

use std::path::PathBuf;

use forebay_base::merge::Cursor;
use forebay_base::{Combine, Error, Order, Result};
use forebay_env::FileSystem;
use forebay_env::sync::{Arc, Mutex};

use super::run::{Run, RunCursor};
use super::runs::Runs;
use crate::spilled::{
    ExpectedGroups, GroupsView, HASH_SEED, SpillTarget, SpillTerms, SpilledGroups, Unpublished,
};

/// See the module.
#[derive(Clone)]
pub struct RunFiles {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
}

impl RunFiles {
    /// In this directory, which is the aggregator's own. Its files have no names once they are open, so that nothing of
    /// them outlives the process.
    pub fn new(fs: Arc<dyn FileSystem>, directory: impl Into<PathBuf>) -> Self {
        Self { fs, directory: directory.into() }
    }
}

impl SpillTarget for RunFiles {
    fn open(&self, terms: SpillTerms) -> Result<Box<dyn SpilledGroups>> {
        let order = Order::Hashed { seed: HASH_SEED };
        let (fs, directory) = (Arc::clone(&self.fs), self.directory.clone());
        let runs = Runs::new(fs, directory, order, terms.rule, terms.memory_bytes)?;
        Ok(Box::new(Spilled(Mutex::new(runs))))
    }
}

struct Spilled(Mutex<Runs<Arc<dyn Combine>>>);

impl SpilledGroups for Spilled {
    fn write<'s>(
        &'s self,
        mut groups: Box<dyn Cursor + Send>,
        _expected: ExpectedGroups,
    ) -> Result<Box<dyn Unpublished + 's>> {
        let mut writer = {
            let mut runs = self.0.lock();
            runs.tend(&mut |_| true)?;
            runs.writer()?
        };
        while let Some(prefix) = groups.prefix() {
            let record = groups.record();
            writer.push(prefix, record.key, record.value)?;
            groups.advance()?;
        }
        Ok(Box::new(Written { spilled: self, run: writer.finish()? }))
    }

    /// Of one run: all are merged.
    fn view(&self) -> Result<Arc<dyn GroupsView>> {
        let mut runs = self.0.lock();
        // States that are too long are told of by who reads them.
        runs.merge_all(&mut |_| true)?;
        Ok(Arc::new(Whole { run: runs.all().first().cloned(), order: runs.order }))
    }

    fn memory_bytes(&self) -> usize {
        self.0.lock().memory_bytes()
    }

    fn device_reads(&self) -> u64 {
        0
    }
}

/// All that was published, in one run, if there was anything.
struct Whole {
    run: Option<Arc<Run>>,
    order: Order,
}

impl GroupsView for Whole {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.run.as_ref().map_or(Ok(None), |run| run.get(self.order, key))
    }

    fn cursor(&self, behind: Option<&[u8]>) -> Result<Box<dyn Cursor + Send>> {
        let run = self.run.as_ref().ok_or_else(|| Error::bug("who walks what was spilled has spilled"))?;
        Ok(Box::new(RunCursor::new(run, self.order, behind)?))
    }
}

struct Written<'s> {
    spilled: &'s Spilled,
    run: Run,
}

impl Unpublished for Written<'_> {
    fn publish(self: Box<Self>) -> Result<()> {
        let Self { spilled, run } = *self;
        spilled.0.lock().add(run);
        Ok(())
    }
}
