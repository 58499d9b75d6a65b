//! What a table that is there tells of its workload.

use std::path::Path;
use std::time::Duration;

use forebay::advise::{Workload, Writes};
use forebay::{Layout, Table};

use crate::args::Common;
use crate::database::{Access, known_table, open};
use crate::failure::Failure;

/// How long it waits for the numbers of a process that has the database open to write.
const PATIENCE: Duration = Duration::from_secs(2);

/// A table as it is, and what was done with its database.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) layout: Layout,
    pub(super) values_apart: Option<u32>,
    records: u64,
    record_bytes: f64,
    /// About how many distinct keys there are.
    keys: f64,
    /// Records that were ever written to the database.
    written: u64,
    /// Since its writer has opened it.
    writes: u64,
    gets: u64,
    /// Bytes of a key, by a look at some.
    key_bytes: f64,
    merges: bool,
}

/// So many entries are looked at.
const SAMPLED: usize = 1000;
/// Of a table whose entries nobody can show, as its rule is a program's own.
const USUAL_KEY_BYTES: f64 = 16.0;

/// What some entries are like, on average.
struct Sample {
    key_bytes: f64,
    record_bytes: f64,
}

impl Sample {
    fn of(table: &Table) -> Option<Self> {
        let (mut count, mut keys, mut values) = (0, 0, 0);
        for entry in table.iter().ok()?.take(SAMPLED) {
            let (key, value) = entry.ok()?;
            (count, keys, values) = (count + 1, keys + key.len(), values + value.len());
        }
        let mean = |bytes: usize| bytes as f64 / f64::from(count);
        (count > 0).then(|| Self { key_bytes: mean(keys), record_bytes: mean(keys + values) })
    }
}

impl Running {
    pub(super) fn of(path: &Path, name: &str, common: &Common) -> Result<Self, Failure> {
        let db = open(path, common, Access::Read)?;
        let table = known_table(&db, name)?;
        let layout = table.layout()?;
        let stats = match db.writer_stats(PATIENCE)? {
            Some(stats) => stats,
            None => db.stats(),
        };
        let Some(own) = stats.tables.iter().find(|table| table.name == name) else {
            return Err(Failure::work(format!("nothing is known of table `{name}`")));
        };
        let records: u64 = own.levels.iter().map(|level| level.records).sum();
        let bytes: u64 = own.levels.iter().map(|level| level.bytes).sum();
        if records == 0 {
            return Err(Failure::work(format!(
                "table `{name}` has nothing in files yet: say what is known with --record and --records, \
                 without a database"
            )));
        }
        let record_bytes = bytes as f64 / records as f64;
        let space = &own.space;
        // Files have page headers and filters, too, in proportion.
        let outdated = space.live_file_bytes.saturating_sub(space.live_bytes) as f64
            / space.live_file_bytes.max(1) as f64;
        let keys = (records as f64 * (1.0 - outdated)).max(1.0);
        let described = db.describe().tables.into_iter().find(|described| described.name == name);
        let described = described.as_ref();
        let values_apart = described.and_then(|table| table.values_apart_bytes_min);
        let sample = Sample::of(&table).unwrap_or(Sample { key_bytes: USUAL_KEY_BYTES, record_bytes });
        let running = Self {
            layout,
            values_apart,
            records,
            // Lists have pointers to values that stand apart.
            record_bytes: if values_apart.is_some() { sample.record_bytes } else { record_bytes },
            keys,
            written: stats.last_sequence,
            writes: stats.user_records,
            gets: stats.gets,
            key_bytes: sample.key_bytes.min(record_bytes),
            merges: described.is_some_and(|table| table.rule.is_some()),
        };
        drop(table);
        db.close()?;
        Ok(running)
    }

    /// What is not told is taken from here.
    pub(super) fn workload(&self) -> Workload {
        let key_bytes = self.key_bytes.round().max(1.0);
        let rewrites = (self.written.max(self.records) as f64 / self.keys - 1.0).max(0.0);
        Workload {
            key_bytes: key_bytes as u64,
            value_bytes: (self.record_bytes - key_bytes).max(0.0).round() as u64,
            keys: self.keys as u64,
            rewrites,
            writes_per_second: self.writes as f64,
            writes: if self.merges { Writes::Operands } else { Writes::Puts },
            gets_per_second: self.gets as f64,
            ordered: self.layout.is_ordered(),
            ..Workload::default()
        }
    }
}
