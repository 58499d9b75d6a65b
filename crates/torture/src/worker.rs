//! The process that writes until it is killed, and tells on its output what was acknowledged: a line a batch, with its
//! number, its last sequence number, what it survives, and how far all survives a power loss.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use forebay::{Batch, Database, Durability, Layout, Result};
use forebay_env::Env;
use forebay_testkit::{Change, Config, Op, Tables, Write as Wanted};

use crate::history;

/// What to write, and where.
#[derive(Args, Clone)]
pub(crate) struct Task {
    /// The database.
    pub(crate) path: PathBuf,
    /// What batches are drawn from.
    #[arg(long)]
    pub(crate) seed: u64,
    /// The first table's layout.
    #[arg(long)]
    pub(crate) layout: Layout,
    /// The first batch.
    #[arg(long)]
    pub(crate) from: u64,
}

/// Writes until the process is killed or a write fails.
pub(crate) fn run(task: &Task) -> Result<()> {
    let config = history::config(task.layout, task.seed);
    let db = config.open(&Env::real(), &task.path)?;
    let tables = Tables::open(&db, &config)?;
    let mut told = std::io::stdout().lock();
    for number in task.from.. {
        let (sequence, durability) = write(&db, &tables, &config, task.seed, number)?;
        let kept = match durability {
            Durability::Memory => "memory",
            Durability::Os => "os",
            Durability::Disk => "disk",
        };
        let durable = db.durable_sequence();
        if writeln!(told, "{number} {sequence} {kept} {durable}").and_then(|()| told.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes batch `number`, and gives its last sequence number and what was asked for it.
pub(crate) fn write(
    db: &Database,
    tables: &Tables,
    config: &Config,
    seed: u64,
    number: u64,
) -> Result<(u64, Durability)> {
    let drawn = history::batch(config, seed, number);
    for op in &drawn.before {
        match op {
            Op::Flush => db.flush()?,
            Op::Compact(table) => tables.compact(*table)?,
            Op::Rewrite(table, what) => tables.rewrite(*table, *what)?,
            Op::CompactRange(table, bounds) => tables.compact_range(*table, bounds)?,
            _ => db.sync()?,
        }
    }
    let mut batch = Batch::new();
    drawn.changes.iter().for_each(|change| tables.push(&mut batch, change));
    let sequence = match drawn.changes.last() {
        Some(Change { table, write: Wanted::Metadata(bytes), .. }) => {
            tables.aggregator(*table).commit(batch, drawn.durability, bytes)?
        }
        _ => db.commit(batch, drawn.durability)?,
    };
    Ok((sequence, drawn.durability))
}
