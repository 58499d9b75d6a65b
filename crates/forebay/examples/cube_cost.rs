//! What a cube costs beside its finest groups alone: `cube_cost [VALUES [VALUES_PER_BATCH [REPEATS]]]`. Values have three
//! columns; of each batch, every group gets about `REPEATS`. Each line tells the time until all is committed and flushed,
//! in all and as a multiple of that of the finest groups.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::time::Instant;

use forebay::aggregate::functions::SumInt;
use forebay::aggregate::{Groupings, group_key};
use forebay::{Batch, Database, Durability, Layout, Options, Result};

const COUNTRIES: u64 = 20;
const YEARS: u64 = 25;

/// How many values, in all, in a batch, and of each group of a batch.
struct Work {
    values: u64,
    batch: u64,
    repeats: u64,
}

impl Work {
    /// A drawn key: country, year, product.
    fn key(&self, number: u64, key: &mut Vec<u8>) {
        // SplitMix64.
        let mut drawn = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let group = (drawn ^ drawn >> 31) % (self.batch / self.repeats).max(1);
        key.clear();
        let (country, year, product) =
            (group % COUNTRIES, 2000 + group / COUNTRIES % YEARS, group / (COUNTRIES * YEARS));
        for column in [country, year, product] {
            group_key::push(key, Some(column.to_string().as_bytes()));
        }
    }

    fn timed(&self, name: &str, work: impl FnOnce(&Database) -> Result<()>) -> Result<f64> {
        let dir = std::env::temp_dir().join(format!("forebay-cube-cost-{name}-{}", std::process::id()));
        let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
        let start = Instant::now();
        work(&db)?;
        db.flush()?;
        let seconds = start.elapsed().as_secs_f64();
        db.close()?;
        Database::destroy(&dir)?;
        Ok(seconds)
    }

    fn aggregator(&self, db: &Database) -> Result<()> {
        let sums = db.aggregator("sums", SumInt).layout(Layout::wb_tree_ordered()).open()?;
        let mut key = Vec::new();
        for begin in (0..self.values).step_by(self.batch as usize) {
            let mut batch = Batch::new();
            for number in begin..(begin + self.batch).min(self.values) {
                self.key(number, &mut key);
                batch.add(&sums, &key, number as i64);
            }
            db.commit(batch, Durability::Os)?;
        }
        Ok(())
    }

    fn cube(&self, db: &Database, groupings: Groupings) -> Result<()> {
        let sums = db.cube("sums", SumInt, groupings).open()?;
        let mut key = Vec::new();
        for begin in (0..self.values).step_by(self.batch as usize) {
            let mut batch = sums.batch();
            for number in begin..(begin + self.batch).min(self.values) {
                self.key(number, &mut key);
                batch.add(&key, number as i64)?;
            }
            batch.commit(Durability::Os, b"")?;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let number = |at: usize, usual| numbers.get(at).copied().unwrap_or(usual).max(1);
    let work = Work { values: number(0, 2_000_000), batch: number(1, 100_000), repeats: number(2, 10) };
    // What is measured first pays for the program's beginning.
    work.timed("first", |db| work.aggregator(db))?;
    let aggregator = work.timed("aggregator", |db| work.aggregator(db))?;
    let finest = work.timed("finest", |db| work.cube(db, Groupings::sets(3, [[0, 1, 2]])?))?;
    let rollup = work.timed("rollup", |db| work.cube(db, Groupings::rollup(3)?))?;
    let cube = work.timed("cube", |db| work.cube(db, Groupings::cube(3)?))?;
    for (name, seconds) in
        [("aggregator", aggregator), ("finest groups", finest), ("rollup", rollup), ("cube", cube)]
    {
        println!("{name:>13}: {seconds:.3} s, {:.2}", seconds / finest);
    }
    Ok(())
}
