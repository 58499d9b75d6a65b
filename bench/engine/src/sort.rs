//! Forebay's external sort behind the seam: it counts what is given to it first and read afterwards, and shows what
//! sorting in files costs beside a table that can be read all the time.

use std::path::Path;

use forebay_aggregate::functions::Count;
use forebay_aggregate::{Aggregator, Order, SortAggregator};
use forebay_env::fs::RealFs;

use crate::{Adds, Batch, Engine, Failure, Kind, Setup};

/// [`SortAggregator`], with the engine's memory.
#[derive(Debug)]
pub struct Sort;

impl Kind for Sort {
    fn name(&self) -> &'static str {
        "forebay-sort"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn adds(&self) -> Adds {
        Adds::Only
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn options(&self, setup: &Setup) -> String {
        format!("order hashed, memory_max {}, no log", setup.memory_bytes)
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let (order, fs) = (Order::Hashed { seed: 1 }, RealFs::new());
        let memory_max = usize::try_from(setup.memory_bytes)?;
        Ok(Box::new(Open(SortAggregator::new(Count, order, fs, dir.join("runs"), memory_max)?)))
    }
}

struct Open(SortAggregator<Count>);

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.add(batch)
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        Ok(batch.iter().try_for_each(|(key, count)| self.0.add_state(key, count))?)
    }

    fn delete(&mut self, _: &[u8], _: usize) -> Result<(), Failure> {
        Err("a sort removes nothing".into())
    }

    fn get(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, Failure> {
        Err("a sort is read when all is sorted".into())
    }

    fn scan(&mut self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err("sorted by hashes it has no order to scan in".into())
    }

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.0.finalize()?;
        Ok(self.0.for_each(&mut |key, count| {
            each(key, count);
            Ok(())
        })?)
    }

    fn drain(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
