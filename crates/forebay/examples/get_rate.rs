//! How long one get takes: `get_rate DIR TABLE KEYS [ROUNDS]` looks up each line of the file KEYS in a table of the
//! database in DIR, and prints the nanoseconds of a get in each round. `bench/python/gets.py` runs it beside Python, over
//! the same database and the same keys.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::hint::black_box;
use std::time::Instant;

use forebay::{Database, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, table, keys, rest @ ..] = &arguments[..] else {
        return Err("usage: get_rate DIR TABLE KEYS [ROUNDS]".into());
    };
    let rounds: usize = rest.first().map_or(Ok(3), |rounds| rounds.parse())?;
    let text = std::fs::read(keys)?;
    let keys: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|key| !key.is_empty()).collect();
    let db = Database::open(dir, Options::default().memory_limit(256 << 20))?;
    let table = db.table(table).existing(true).open()?;
    for key in keys.iter().take(1000) {
        assert!(table.get(key)?.is_some(), "all keys are there");
    }
    for _ in 0..rounds {
        let start = Instant::now();
        for key in &keys {
            black_box(table.get(key)?);
        }
        println!("{}", start.elapsed().as_nanos() as f64 / keys.len() as f64);
    }
    Ok(db.close()?)
}
