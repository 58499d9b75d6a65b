//! Forebay itself, through its public face.

mod beside;

use std::path::Path;
use std::time::Duration;

use forebay::{
    Aggregator, Database, Layout, LevelDescription, Options, OrderedTable, Stats, Table, TableBuilder,
};
use forebay_aggregate::functions::Count;

use crate::{
    Adds, Batch, Durability, Engine, Failure, Kind, Observation, Setup, TableOptions, Transactor, Writer,
};
use beside::{OneTransactor, OneWriter, put};

const TABLE: &str = "bench";

/// The WB tree, in hash order, or in key order where a workload scans; or the layout that it asks for.
#[derive(Debug)]
pub struct Forebay;

impl Kind for Forebay {
    fn name(&self) -> &'static str {
        "forebay"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn adds(&self) -> Adds {
        Adds::Too
    }

    fn transacts(&self) -> bool {
        true
    }

    fn options(&self, setup: &Setup) -> String {
        let mut options = format!(
            "layout {}, memory_limit {}, sync_interval {:?}, durability {:?}",
            layout(setup).map_or_else(|error| error.to_string(), |layout| layout.to_string()),
            setup.memory_bytes,
            setup.sync_interval,
            durability(setup),
        );
        let TableOptions { node_bytes, fan_out, fast_per_slow, lists_max, .. } = setup.forebay;
        let told = [
            ("node_bytes", node_bytes),
            ("fan_out", fan_out.map(|value| value as u64)),
            ("fast_per_slow", fast_per_slow.map(u64::from)),
            ("lists_max", lists_max.map(|value| value as u64)),
            ("filter_bits_per_key", filter_bits(setup).map(u64::from)),
        ];
        for (name, value) in told {
            let value = value.map_or_else(|| "its own".into(), |value| value.to_string());
            options.push_str(&format!(", {name} {value}"));
        }
        if setup.adds {
            options.push_str(", an aggregator of count");
        }
        if let Some(repeats) = setup.forebay.repeats_max {
            options.push_str(&format!(", repeats_max {repeats}"));
        }
        if let Some(percent) = setup.forebay.resident_percent {
            options.push_str(&format!(", resident_percent {percent}"));
        }
        if let Some(ratio) = setup.forebay.read_compaction_ratio {
            options.push_str(&format!(", read_compaction_ratio {ratio}"));
        }
        if let Some(most) = setup.forebay.max_space_amplification {
            options.push_str(&format!(", max_space_amplification {most}"));
        }
        if let Some(seconds) = setup.forebay.reclaim_interval_seconds {
            options.push_str(&format!(", reclaim_interval {seconds}s"));
        }
        if let Some(bytes) = setup.forebay.values_apart {
            options.push_str(&format!(", values_apart {bytes}"));
        }
        if !has_log(setup) {
            options.push_str(", no log");
        }
        options
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let mut options = Options::default()
            .memory_limit(setup.memory_bytes)
            .background_threads(setup.background_threads)
            .sync_interval(setup.sync_interval)
            .log(has_log(setup))
            .durability(durability(setup));
        if let Some(percent) = setup.forebay.resident_percent {
            options = options.resident_percent(percent);
        }
        if let Some(bytes) = write_buffer_bytes(setup) {
            options = options.write_buffer(bytes);
        }
        if let Some(ratio) = setup.forebay.read_compaction_ratio {
            options = options.read_compaction_ratio(ratio);
        }
        let db = Database::open(dir, options)?;
        let tables = Tables::open(&db, setup)?;
        Ok(Box::new(Open { db, tables, durability: durability(setup), batch: forebay::Batch::new() }))
    }
}

fn write_buffer_bytes(setup: &Setup) -> Option<u64> {
    setup.forebay.write_buffer_share.map(|share| (setup.memory_bytes as f64 * share) as u64)
}

fn filter_bits(setup: &Setup) -> Option<u32> {
    setup.forebay.filter_bits_per_key.or(setup.filter_bits_per_key)
}

/// The table with the shape that is asked for.
fn shaped<K>(table: TableBuilder<K>, setup: &Setup) -> Result<TableBuilder<K>, Failure> {
    let mut table = table.layout(layout(setup)?);
    let TableOptions { node_bytes, fan_out, fast_per_slow, lists_max, .. } = setup.forebay;
    if let Some(bytes) = node_bytes {
        table = table.node_bytes(bytes);
    }
    if let Some(children) = fan_out {
        table = table.fan_out(children);
    }
    if let Some(ratio) = fast_per_slow {
        table = table.fast_per_slow(ratio);
    }
    if let Some(lists) = lists_max {
        table = table.lists_max(lists);
    }
    if let Some(repeats) = setup.forebay.repeats_max {
        table = table.repeats_max(repeats);
    }
    if let Some(most) = setup.forebay.max_space_amplification {
        table = table.max_space_amplification(most);
    }
    if let Some(seconds) = setup.forebay.reclaim_interval_seconds {
        table = table.reclaim_interval(Duration::from_secs(seconds));
    }
    if let Some(bytes) = setup.forebay.values_apart {
        table = table.values_apart(bytes);
    }
    if let Some(bits) = filter_bits(setup) {
        table = table.filter_bits_per_key(bits);
    }
    Ok(table)
}

fn layout(setup: &Setup) -> Result<Layout, Failure> {
    Ok(match &setup.forebay.layout {
        Some(name) => name.parse()?,
        None if setup.ordered => Layout::wb_tree_ordered(),
        None => Layout::wb_tree(),
    })
}

fn has_log(setup: &Setup) -> bool {
    setup.forebay.log.unwrap_or(true)
}

fn durability(setup: &Setup) -> forebay::Durability {
    match setup.durability {
        _ if !has_log(setup) => forebay::Durability::Memory,
        Durability::Memory => forebay::Durability::Memory,
        Durability::Os => forebay::Durability::Os,
        Durability::Disk => forebay::Durability::Disk,
    }
}

enum Tables {
    Hashed(Table),
    Ordered(OrderedTable),
    Counts(Aggregator<Count>),
}

impl Tables {
    fn open(db: &Database, setup: &Setup) -> Result<Self, Failure> {
        Ok(match (setup.adds, setup.ordered) {
            (true, _) => Self::Counts(shaped(db.aggregator(TABLE, Count), setup)?.open()?),
            (false, true) => Self::Ordered(shaped(db.table(TABLE), setup)?.open_ordered()?),
            (false, false) => Self::Hashed(shaped(db.table(TABLE), setup)?.open()?),
        })
    }

    fn table(&self) -> Result<&Table, Failure> {
        match self {
            Self::Hashed(table) => Ok(table),
            Self::Ordered(table) => Ok(table),
            Self::Counts(_) => Err("counts are added to, and not put or removed".into()),
        }
    }
}

struct Open {
    db: Database,
    tables: Tables,
    durability: forebay::Durability,
    /// Kept for its memory; empty between calls.
    batch: forebay::Batch,
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        if matches!(self.tables, Tables::Counts(_)) {
            // To a key that is absent it is the same.
            return self.add(batch);
        }
        let Self { db, durability, batch: kept, .. } = self;
        put(db, self.tables.table()?, kept, batch, *durability)
    }

    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        let table = self.tables.table().ok()?;
        Some(Box::new(OneWriter {
            db: &self.db,
            table,
            durability: self.durability,
            batch: forebay::Batch::new(),
        }))
    }

    fn transactor(&self) -> Option<Box<dyn Transactor + '_>> {
        let (db, table, durability) = (&self.db, self.tables.table().ok()?, self.durability);
        Some(Box::new(OneTransactor { db, table, durability, value: Vec::new() }))
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let Tables::Counts(counts) = &self.tables else { return Err("its values are no counts".into()) };
        for (key, count) in batch.iter() {
            self.batch.add_state(counts, key, count);
        }
        self.db.write(&mut self.batch, self.durability)?;
        Ok(())
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        let table = self.tables.table()?;
        for key in keys.chunks_exact(key_bytes) {
            self.batch.delete(table, key);
        }
        self.db.write(&mut self.batch, self.durability)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = match &self.tables {
            Tables::Counts(counts) => counts.get_state(key)?,
            _ => self.tables.table()?.get(key)?,
        };
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn multi_get(
        &mut self,
        keys: &[u8],
        key_bytes: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Failure> {
        let keys: Vec<&[u8]> = keys.chunks_exact(key_bytes).collect();
        for (number, value) in self.tables.table()?.multi_get(&keys)?.iter().enumerate() {
            each(number, value.as_deref());
        }
        Ok(())
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let Tables::Ordered(table) = &self.tables else {
            return Err("a table in hash order cannot be scanned".into());
        };
        let mut cursor = table.cursor()?;
        for number in 0..limit {
            if number == 0 {
                cursor.seek(from)?
            } else {
                cursor.next()?
            };
            let Some((key, value)) = cursor.entry() else { break };
            each(key, value);
        }
        Ok(())
    }

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let Tables::Counts(counts) = &self.tables else { return Err("its values are no counts".into()) };
        for entry in counts.iter()? {
            let (key, count) = entry?;
            each(&key, &count.to_le_bytes());
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        Ok(self.db.wait_until_idle()?)
    }

    fn device_reads(&self) -> Option<u64> {
        Some(self.db.device_reads())
    }

    fn index_memory_bytes(&self) -> Option<u64> {
        let memory = self.db.stats().memory;
        Some(memory.filters + memory.page_search)
    }

    fn lists_per_path(&self) -> Option<f64> {
        Some(lists_per_path(&self.db.stats()))
    }

    fn observe(&self) -> Option<Observation> {
        let stats = self.db.stats();
        Some(Observation {
            table_bytes_written: stats.list_bytes_written.values().sum(),
            table_bytes_read: stats.list_bytes_read.values().sum(),
            table_bytes: stats.tables.iter().map(|table| table.space.disk_bytes).sum(),
            table_live_bytes: stats.tables.iter().map(|table| table.space.live_bytes).sum(),
            table_limit_bytes: stats.tables.iter().map(|table| table.space.limit_bytes).sum(),
            lists_per_path: lists_per_path(&stats),
        })
    }

    fn set_layout(&mut self, layout: &str) -> Result<(), Failure> {
        Ok(self.tables.table()?.set_layout(layout.parse()?)?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        drop(self.tables);
        Ok(self.db.close()?)
    }
}

/// Over all levels on disk, a path having a node of each, or a list of each run.
fn lists_per_path(stats: &Stats) -> f64 {
    let has_nodes = |layout: &str| layout.parse::<Layout>().is_ok_and(|layout| layout.has_nodes());
    let of = |has_nodes: bool, level: &LevelDescription| match has_nodes {
        true => level.lists as f64 / level.nodes as f64,
        false => level.lists_max as f64,
    };
    let tables = stats.tables.iter().map(|table| (has_nodes(&table.layout), table.levels.iter()));
    let on_disk = |level: &&LevelDescription| level.nodes > 0 && !level.in_memory;
    tables.flat_map(|(nodes, levels)| levels.filter(on_disk).map(move |level| of(nodes, level))).sum()
}
