//! The planner without data: what a load would write, read, keep and take, from the engine's own planning
//! over counts. Nothing is opened and nothing is written.
//!
//! What the model assumes and how far off it is: `docs/simulate.md`.

mod forecast;
mod rates;

use forebay_base::{Error, Record, Result};
use forebay_layouts::TableOptions;
use forebay_layouts::inventory::ListModel;
use forebay_layouts::write_buffer::SimulatedTree;
use forebay_store::list::ListOptions;
use forebay_store::log::batch::Payload;
use forebay_store::log::batches_of;

use crate::Options;

pub use forecast::{Bursts, Forecast, Point};
pub use rates::{Bound, Rates, Times};

/// Records of a batch.
const BATCH_RECORDS: u64 = 1000;

/// What is to be loaded: puts of one size, with keys spread evenly.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of every key.
    pub key_bytes: u64,
    /// Bytes of every value.
    pub value_bytes: u64,
    /// How many records.
    pub records: u64,
    /// Keys are drawn evenly from so many; `None` where no key comes twice.
    pub distinct_keys: Option<u64>,
}

/// A load that is only counted.
#[derive(Clone, Debug)]
pub struct Simulation {
    options: Options,
    table: TableOptions,
    load: Load,
    rates: Rates,
}

impl Simulation {
    /// Of a database under these options with one table. [`TableOptions::new`] over
    /// [`Options::buffer_bytes`] gives a table's usual options.
    pub fn new(options: Options, table: TableOptions, load: Load, rates: Rates) -> Result<Self> {
        options.validate()?;
        table.validate()?;
        rates.validate()?;
        if load.key_bytes + load.value_bytes == 0 || load.records == 0 || load.distinct_keys == Some(0) {
            return Err(Error::invalid("a load has at least one record of one byte, and one key"));
        }
        Ok(Self { options, table, load, rates })
    }

    /// Loads it all, and tells how things stand at the end and at `points` sizes in all on the way there, each
    /// twice the one before. `progress` is told the records so far.
    pub fn run(&self, points: u32, progress: &mut dyn FnMut(u64)) -> Result<Forecast> {
        let Load { key_bytes, value_bytes, records, distinct_keys } = self.load;
        let lists = ListModel {
            options: ListOptions {
                order: self.table.layout.order(0),
                filter_bits_per_key: self.table.filter_bits_per_key,
                codec: self.table.codec,
            },
            record_bytes: key_bytes + value_bytes,
            filter_memory_bytes_max: self.options.filter_bytes(),
        };
        let mut tree = SimulatedTree::new(self.table.tree, lists, distinct_keys)?;
        let (batches, batch_bytes) = batches_of(self.options.buffer_bytes(), &self.batch());
        let buffer_records = batches * BATCH_RECORDS;
        let mut state = Progress { batch_bytes, ..Progress::default() };
        let mut growth = Vec::new();
        for point in (0..points.clamp(1, u64::BITS)).rev() {
            let until = records >> point;
            // A full buffer is sealed when the next batch does not fit.
            while state.records + buffer_records < until {
                let rewritten = tree.absorb(buffer_records)?;
                state.bursts.push(rewritten);
                state.records += buffer_records;
                progress(state.records);
            }
            growth.push(self.point(&tree, &state, until));
        }
        let end = growth.pop().unwrap_or_default();
        Ok(Forecast::new(&self.options, &self.table, &self.load, &self.rates, end, growth))
    }

    fn batch(&self) -> Payload {
        let (key, value) = (vec![0; self.load.key_bytes as usize], vec![0; self.load.value_bytes as usize]);
        let mut batch = Payload::default();
        (0..BATCH_RECORDS).for_each(|_| batch.push(1, &Record::put(&key, &value)));
        batch
    }
}

/// How far a load is.
#[derive(Default)]
struct Progress {
    batch_bytes: u64,
    records: u64,
    /// What each write buffer called for, in bytes.
    bursts: Vec<u64>,
}
