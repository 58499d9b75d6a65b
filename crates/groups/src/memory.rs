//! [`Groups`]: groups in memory, which go on in files where that is full.

use std::path::PathBuf;

use forebay::aggregate::AggregatorOptions;
use forebay::{Error, GroupFiles, Result};
use forebay_aggregate::arrow::{PartialSchema, RecordBatchAggregator};
use forebay_env::Env;
use forebay_env::sync::{Arc, RwLock};

/// More threads are not started.
pub const THREADS_MAX: usize = 64;

/// Groups in memory, and where they go that have no room. What they are is told by what they are given first.
pub struct Groups {
    options: AggregatorOptions,
    /// Where groups go that have no room: of these groups alone.
    spill: Option<PathBuf>,
    made: RwLock<Made>,
}

enum Made {
    /// The types of the columns are not known yet.
    NotYet,
    Here(Arc<RecordBatchAggregator>),
    Closed,
}

impl Groups {
    /// None yet. They take so many bytes of memory, and beyond that a directory of their own in `spill`.
    pub fn new(memory: Option<u64>, spill: Option<PathBuf>, threads: usize) -> Result<Self> {
        let threads = threads.clamp(1, THREADS_MAX);
        let mut options = AggregatorOptions::default().threads(threads).adders(threads);
        if let Some(bytes) = memory {
            options = options.memory_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        // What a killed process left may be of this process's number.
        let named = |place: PathBuf| -> Result<PathBuf> {
            let place = Env::real().fs.absolute(&place)?;
            let secret = forebay_env::hash_secret();
            Ok(place.join(format!("forebay-groups-{}-{secret:016x}", std::process::id())))
        };
        let spill = spill.map(named).transpose()?;
        if let Some(spill) = &spill {
            options = options.spill_to(GroupFiles::new(spill));
        }
        Ok(Self { options, spill, made: RwLock::new(Made::NotYet) })
    }

    /// The groups, which are made by what they are given first. [`Error::closed`] once they are closed.
    pub fn begun(
        &self,
        schema: impl FnOnce() -> Result<PartialSchema>,
    ) -> Result<Arc<RecordBatchAggregator>> {
        if let Some(here) = self.here()? {
            return Ok(here);
        }
        let mut made = self.made.write();
        match &*made {
            Made::NotYet => {
                let here = Arc::new(RecordBatchAggregator::of_schema(schema()?, self.options.clone())?);
                *made = Made::Here(Arc::clone(&here));
                Ok(here)
            }
            Made::Here(here) => Ok(Arc::clone(here)),
            Made::Closed => Err(Error::closed()),
        }
    }

    /// The groups, if it is known what they are.
    pub fn here(&self) -> Result<Option<Arc<RecordBatchAggregator>>> {
        match &*self.made.read() {
            Made::NotYet => Ok(None),
            Made::Here(here) => Ok(Some(Arc::clone(here))),
            Made::Closed => Err(Error::closed()),
        }
    }

    /// Lets go of memory and files.
    pub fn close(&self) {
        let made = std::mem::replace(&mut *self.made.write(), Made::Closed);
        drop(made);
        if let Some(spill) = &self.spill {
            // Streams that are still read have files in it; then it stays, and is empty once they are gone.
            let _ = Env::real().fs.remove_dir(spill);
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.close();
    }
}
