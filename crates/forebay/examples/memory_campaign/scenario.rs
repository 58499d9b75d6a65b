//! What is done to a database, phase after phase, each in a process of its own.

use std::ops::Range;
use std::path::PathBuf;

use forebay::{Batch, Database, Durability, Layout, Options, Table};

use crate::Failure;
use crate::meter::{Meter, anonymous_bytes};

/// A life: a load that ends as by a crash, recovery, lookups, scans, and a burst of writes after more lookups.
pub(crate) const SCENARIOS: [&str; 3] = ["life", "runs", "snapshots"];

const BATCH_RECORDS: u64 = 1000;
const GETS: u64 = 100_000;
const MULTI_GET_KEYS: u64 = 1000;
const CURSORS: u64 = 32;
/// This many runs a lookup or scan asks in a layout that keeps all: of those there are fewer.
const RUNS: u64 = 600;
const GETS_OF_RUNS: u64 = 2000;
const CURSORS_OF_RUNS: u64 = 4;
/// A lookup for so much of the limit: each reads a page, and most pages are read more than once.
const LOOKUP_BYTES: u64 = 1 << 10;
/// What is written at last, as a part of all.
const BURST_PART: u64 = 4;
const SNAPSHOTS: u64 = 10_000;

/// One line of the table.
pub(crate) struct Cell {
    pub(crate) layout: String,
    pub(crate) limit_bytes: u64,
    pub(crate) scenario: String,
    pub(crate) records: u64,
    pub(crate) dir: PathBuf,
}

impl Cell {
    /// How many lookups and cursors there are.
    fn turns(&self) -> (u64, u64) {
        if self.scenario == "runs" { (GETS_OF_RUNS, CURSORS_OF_RUNS) } else { (GETS, CURSORS) }
    }

    /// Whether the scenario says anything of the layout.
    pub(crate) fn is_for_layout(&self) -> bool {
        self.scenario != "runs" || self.layout == "no-merge"
    }

    pub(crate) fn phases(&self) -> &'static [&'static str] {
        match self.scenario.as_str() {
            "life" => &["load", "recover", "get", "scan", "burst"],
            "runs" => &["runs", "get", "scan"],
            "snapshots" => &["snapshots"],
            _ => &["no such scenario"],
        }
    }

    pub(crate) fn arguments(&self, phase: &str) -> Vec<String> {
        let Self { layout, limit_bytes, scenario, records, dir } = self;
        let numbers = [limit_bytes, records].map(|number| number.to_string());
        [&[layout.clone(), scenario.clone()], &numbers[..], &[dir.display().to_string(), phase.to_string()]]
            .concat()
    }

    pub(crate) fn of_arguments(arguments: &[String]) -> Result<(Self, String), Failure> {
        let [layout, scenario, limit_bytes, records, dir, phase] = arguments else {
            return Err("a child wants six arguments".into());
        };
        let (layout, scenario, dir) = (layout.clone(), scenario.clone(), dir.into());
        let cell =
            Self { layout, scenario, limit_bytes: limit_bytes.parse()?, records: records.parse()?, dir };
        Ok((cell, phase.clone()))
    }

    fn open(&self, phase: &str) -> Result<(Database, Table), Failure> {
        let mut options = Options::default().memory_limit(self.limit_bytes);
        if self.scenario == "runs" {
            // A buffer more or less comes to one run.
            let bytes = 20 * self.records / RUNS;
            options = options.write_buffer(bytes.min(self.limit_bytes / 8));
        }
        let database = Database::open(&self.dir, options)?;
        if phase == "recover" {
            eprintln!("opened: {} MiB", anonymous_bytes() >> 20);
        }
        let layout: Layout = self.layout.parse()?;
        let table = database.table("t").layout(layout).open()?;
        Ok((database, table))
    }
}

/// Whether the process is to end without closing the database.
pub(crate) fn dies(phase: &str) -> bool {
    phase == "load"
}

pub(crate) fn perform(cell: &Cell, phase: &str, meter: &Meter) -> Result<(), Failure> {
    let (database, table) = cell.open(phase)?;
    match phase {
        "runs" => load(&database, &table, 0..cell.records, meter)?,
        "load" => {
            load(&database, &table, 0..cell.records, meter)?;
            // Nothing is dropped: what follows ends the process.
            std::mem::forget(table);
            std::mem::forget(database);
            return Ok(());
        }
        "recover" => drop(table.get(key(1))?),
        "get" => get(cell, &table)?,
        "scan" => scan(cell, &database, &table)?,
        "burst" => burst(cell, &database, &table, meter)?,
        "snapshots" => snapshots(&database, &table, cell.records)?,
        _ => return Err(format!("there is no scenario with a phase `{phase}`").into()),
    }
    if std::env::var_os("MEMORY_STATS").is_some() {
        let memory = database.stats().memory;
        eprintln!("{phase}: {} MiB now, {memory:?}", anonymous_bytes() >> 20);
    }
    drop(table);
    database.close()?;
    Ok(())
}

/// The `index`th key, in no order.
fn key(index: u64) -> [u8; 8] {
    let mut word = index.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)).to_be_bytes()
}

fn load(database: &Database, table: &Table, indexes: Range<u64>, meter: &Meter) -> Result<(), Failure> {
    let mut batch = Batch::new();
    let (mut told_bytes, tells) = (0, std::env::var_os("MEMORY_STATS").is_some());
    for index in indexes {
        batch.put(table, key(index), index.to_le_bytes());
        if (index + 1) % BATCH_RECORDS == 0 {
            database.write(&mut batch, Durability::Os)?;
            batch.clear();
            if tells && meter.peak_bytes() > told_bytes + (1 << 20) {
                told_bytes = meter.peak_bytes();
                let stats = database.stats();
                eprintln!(
                    "{index}: peak {} now {} {:?} files {}",
                    told_bytes >> 20,
                    anonymous_bytes() >> 20,
                    stats.memory,
                    stats.list_files
                );
            }
        }
    }
    database.write(&mut batch, Durability::Os)?;
    Ok(())
}

fn get(cell: &Cell, table: &Table) -> Result<(), Failure> {
    let (records, gets) = (cell.records, cell.turns().0);
    for turn in 0..gets {
        // Half of them are there.
        let index = turn.wrapping_mul(0x9e37_79b9) % (2 * records);
        let found = table.get(key(index))?;
        if found.is_some() != (index < records) {
            return Err(format!("key {index} is {found:?}").into());
        }
    }
    for turn in 0..gets / MULTI_GET_KEYS {
        let indexes = (0..MULTI_GET_KEYS).map(|at| (turn * MULTI_GET_KEYS + at).wrapping_mul(0x85eb_ca6b));
        let keys: Vec<_> = indexes.map(|index| key(index % records)).collect();
        let found = table.multi_get(&keys)?;
        if found.iter().any(Option::is_none) {
            return Err("multi_get misses a key".into());
        }
    }
    Ok(())
}

/// Lookups while nobody writes, which have the memory of write buffers, until that is full of pages; then writes at full
/// speed.
fn burst(cell: &Cell, database: &Database, table: &Table, meter: &Meter) -> Result<(), Failure> {
    database.wait_until_idle()?;
    let lookups = cell.limit_bytes / LOOKUP_BYTES;
    for turn in 0..lookups {
        table.get(key(turn.wrapping_mul(0x9e37_79b9) % cell.records))?;
    }
    load(database, table, cell.records..cell.records + cell.records / BURST_PART, meter)
}

fn scan(cell: &Cell, database: &Database, table: &Table) -> Result<(), Failure> {
    let records = cell.records;
    let mut count = 0;
    for entry in table.iter()? {
        entry?;
        count += 1;
    }
    if count != records {
        return Err(format!("a scan has {count} entries and not {records}").into());
    }
    let layout = table.layout()?;
    if !layout.is_ordered() {
        return Ok(());
    }
    let table = database.table("t").layout(layout).open_ordered()?;
    let mut cursors = Vec::new();
    for index in 0..cell.turns().1 {
        let mut scan = table.range(&key(index)[..]..)?;
        scan.by_ref().take(1000).try_for_each(|entry| entry.map(drop))?;
        cursors.push(scan);
    }
    Ok(())
}

fn snapshots(database: &Database, table: &Table, records: u64) -> Result<(), Failure> {
    let mut held = Vec::new();
    let mut batch = Batch::new();
    for turn in 0..SNAPSHOTS {
        let part = records * turn / SNAPSHOTS..records * (turn + 1) / SNAPSHOTS;
        part.for_each(|index| batch.put(table, key(index), index.to_le_bytes()));
        database.write(&mut batch, Durability::Os)?;
        batch.clear();
        held.push(database.snapshot());
    }
    for (turn, snapshot) in held.iter().enumerate().step_by(100) {
        let (seen, unseen) = (records * turn as u64 / SNAPSHOTS, records - 1);
        if snapshot.get(table, key(seen))?.is_none()
            || turn == 0 && snapshot.get(table, key(unseen))?.is_some()
        {
            return Err(format!("snapshot {turn} does not show what it should").into());
        }
    }
    Ok(())
}
