//! The planner without data: what a load would write, read, keep and take, from the engine's own planning
//! over counts. Nothing is opened and nothing is written.
//!
//! What the model assumes and how far off it is: `docs/simulate.md`.

mod forecast;
mod rates;

use forebay_base::codec::Codec;
use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::{Error, Order, POINTER_BYTES, Record, Result};
use forebay_layouts::ResidentBudget;
use forebay_layouts::TableOptions;
use forebay_layouts::inventory::ListModel;
use forebay_store::list::{ListOptions, ResidentRoom};
use forebay_store::log::batch::Payload;
use forebay_store::log::batches_of;

use crate::Options;
use crate::options::VALUES_SHARE_MIN;

pub use forebay_layouts::inventory::Keys;
pub use forecast::{Bursts, Forecast, Point};
pub use rates::{Bound, Rates, Times};

/// A batch has this many records, or fewer once it is as long as this.
const BATCH_RECORDS: u32 = 1000;
const BATCH_BYTES: usize = 4 << 20;
/// So many come into a write buffer at least: it is not much longer than it is meant to be.
const BATCHES_MIN: u64 = 16;
/// Beyond, a few keys are all that comes.
const ZIPF_PERCENT_MAX: u32 = 300;
/// More write buffers than this take minutes to count, and several gigabytes.
const WRITE_BUFFERS_MAX: u64 = 2_000_000;

/// What is to be loaded: puts of one size, with keys spread evenly.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of every key.
    pub key_bytes: u64,
    /// Bytes of every value.
    pub value_bytes: u64,
    /// How many records.
    pub records: u64,
    /// Which keys they have.
    pub keys: Keys,
}

/// A load that is only counted.
#[derive(Clone, Debug)]
pub struct Simulation {
    options: Options,
    table: TableOptions,
    load: Load,
    rates: Rates,
    buffer: Filling,
    /// What the table may keep in memory.
    room: ResidentRoom,
    is_saturated: bool,
}

/// How a write buffer is filled.
#[derive(Clone, Copy, Debug)]
struct Filling {
    records: u64,
    batch_records: u64,
    batch_bytes: u64,
}

impl Filling {
    /// What this many records take in the log.
    fn log_bytes(&self, records: u64) -> u64 {
        records.div_ceil(self.batch_records) * self.batch_bytes
    }
}

impl Load {
    fn validate(&self) -> Result<()> {
        let Self { key_bytes, value_bytes, records, keys } = *self;
        if key_bytes > KEY_BYTES_MAX as u64 || value_bytes > VALUE_BYTES_MAX as u64 {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}"
            )));
        }
        if key_bytes + value_bytes == 0 || records == 0 || keys.distinct() == Some(0) {
            return Err(Error::invalid(
                "a load needs at least one record, one byte in a record, and one key",
            ));
        }
        if let Keys::Zipf { exponent_percent, .. } = keys
            && exponent_percent > ZIPF_PERCENT_MAX
        {
            return Err(Error::invalid(format!(
                "the exponent of Zipf is {}; the planner knows up to {}",
                f64::from(exponent_percent) / 100.0,
                f64::from(ZIPF_PERCENT_MAX) / 100.0
            )));
        }
        Ok(())
    }

    /// Bytes of key and value of every record, as lists of such a table have it: of a value that stands apart, the
    /// pointer.
    pub fn listed_bytes(&self, table: &TableOptions) -> u64 {
        let value_bytes = if self.stands_apart(table) { POINTER_BYTES as u64 } else { self.value_bytes };
        self.key_bytes + value_bytes
    }

    fn stands_apart(&self, table: &TableOptions) -> bool {
        let is_long = |bytes_min| self.value_bytes >= bytes_min as u64;
        table.flush_leaves_bytes_min().is_some_and(is_long) && self.validate().is_ok() && {
            let batch = self.batch();
            let value_bytes = u64::from(batch.records()) * self.value_bytes;
            value_bytes as f64 >= VALUES_SHARE_MIN * batch.bytes().len() as f64
        }
    }

    fn batch(&self) -> Payload {
        self.batch_within(BATCH_BYTES)
    }

    fn batch_within(&self, bytes_max: usize) -> Payload {
        let (key, value) = (vec![0; self.key_bytes as usize], vec![0; self.value_bytes as usize]);
        let mut batch = Payload::default();
        while batch.records() < BATCH_RECORDS && batch.bytes().len() < bytes_max {
            batch.push(1, Order::Lexical, &Record::put(&key, &value));
        }
        batch
    }
}

impl Simulation {
    /// Of a database under these options with one table. [`TableOptions::new`] over
    /// [`Options::buffer_bytes`] gives a table's usual options.
    pub fn new(options: Options, table: TableOptions, load: Load, rates: Rates) -> Result<Self> {
        Self::by_batches(options, table, load, rates, BATCH_BYTES)
    }

    /// Of batches that are no longer than this.
    pub(crate) fn by_batches(
        options: Options,
        table: TableOptions,
        load: Load,
        rates: Rates,
        batch_bytes_max: usize,
    ) -> Result<Self> {
        options.validate()?;
        table.validate()?;
        rates.validate()?;
        load.validate()?;
        if load.keys.are_skewed() && table.layout.has_nodes() {
            return Err(Error::invalid(format!(
                "the planner spreads keys evenly over {}; simulate Zipf with a layout of sorted runs, such as jungle",
                table.layout
            )));
        }
        if table.codec != Codec::None {
            return Err(Error::invalid(
                "the planner cannot know how well values compress; simulate without a codec",
            ));
        }
        let buffers = options.division().buffers(table.layout.keeps_in_memory());
        let room = options.division().resident_room();
        let options = options.write_buffer(buffers.bytes).write_buffers(buffers.count);
        let batch = load.batch_within(batch_bytes_max.min((buffers.bytes / BATCHES_MIN) as usize));
        let batch_records = u64::from(batch.records());
        let (batches, batch_bytes) = batches_of(buffers.bytes, &batch);
        let buffer = Filling { records: batches * batch_records, batch_records, batch_bytes };
        if load.records / buffer.records > WRITE_BUFFERS_MAX {
            return Err(Error::invalid(format!(
                "{} records fill more than {WRITE_BUFFERS_MAX} write buffers of {} bytes, too many to count; \
                 raise the memory limit or the write buffer",
                load.records, buffers.bytes
            )));
        }
        Ok(Self { options, table, load, rates, buffer, room, is_saturated: false })
    }

    /// The same of writers that are as fast as they are let, so that merges lag behind and files that they free stay
    /// meanwhile. Else each write buffer comes once all is done. Trees of nodes are counted as else, and layouts that
    /// keep records in memory, whose writers wait for room there.
    pub fn saturated(self) -> Self {
        let layout = self.table.layout;
        Self { is_saturated: !layout.has_nodes() && !layout.keeps_in_memory(), ..self }
    }

    /// What filters may take beside the order over full buffers.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.options.division().filter_bytes_beside(size_of::<u64>() as u64 * self.buffer.records)
    }

    /// Loads it all, and tells how things stand at the end and at `points` sizes in all on the way there, each
    /// twice the one before. `progress` is told the records so far.
    pub fn run(&self, points: u32, progress: &mut dyn FnMut(u64)) -> Result<Forecast> {
        let records = self.load.records;
        let sizes = (0..points.clamp(1, u64::BITS)).rev().map(|point| records >> point);
        let mut growth = self.points(sizes.filter(|&until| until > 0), progress)?;
        let end = growth.pop().unwrap_or_default();
        Ok(Forecast::new(&self.options, &self.table, &self.load, &self.rates, end, growth))
    }

    /// How things stand at each of these sizes, which ascend.
    pub(crate) fn points(
        &self,
        sizes: impl Iterator<Item = u64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Point>> {
        let Load { key_bytes, value_bytes, keys, .. } = self.load;
        let lists = ListModel {
            options: ListOptions {
                order: self.table.layout.order(0),
                filter_bits_per_key: self.table.filter_bits_per_key,
                prefix_filter: None,
                codec: self.table.codec,
                apart_bytes_min: None,
            },
            record_bytes: self.load.listed_bytes(&self.table),
            key_bytes,
            pointed_bytes: if self.load.stands_apart(&self.table) { value_bytes } else { 0 },
            filter_memory_bytes_max: self.filter_bytes(),
        };
        let room = ResidentBudget::of(self.room);
        let mut tree = forebay_layouts::simulated(&self.table, lists, keys, room)?;
        if self.is_saturated {
            tree.lag(self.options.division().buffers(false).free_debt_bytes());
        }
        let mut state = Progress::default();
        let mut points = Vec::new();
        for until in sizes {
            // A full buffer is sealed when the next batch does not fit.
            while state.records + self.buffer.records < until {
                state.bursts.push(tree.flush(self.buffer.records)?);
                state.records += self.buffer.records;
                progress(state.records);
            }
            points.push(self.point(&*tree, &state, until));
        }
        Ok(points)
    }
}

/// How far a load is.
#[derive(Default)]
struct Progress {
    /// Records that left the write buffer.
    records: u64,
    /// What each write buffer called for, in bytes.
    bursts: Vec<u64>,
}
