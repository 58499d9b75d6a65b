//! LevelDB.

mod kernel;

use std::ffi::c_int;
use std::path::Path;

use forebay_bench::{Batch, Engine, Failure, Kind, Setup, Writer};

use crate::native::writes::{self, Beside};
use crate::sync::Pace;
use crate::{text, wait};
use kernel::Db;

const MIB: u64 = 1 << 20;
/// A level above 0 is due for compaction beyond this many bytes; each further level holds ten times as much.
const LEVEL_1_BYTES: f64 = 10.0 * MIB as f64;
/// Level 0 is due at this many files.
const LEVEL_0_FILES: usize = 4;
const LEVELS: usize = 7;
/// Without any change for so long, what is due never comes.
const STUCK_POLLS: u32 = 120 * wait::POLLS_PER_SECOND;

pub(crate) struct LevelDb;

/// What can be told to it.
struct Options {
    write_buffer_bytes: usize,
    cache_bytes: usize,
    file_bytes_max: usize,
    filter_bits_per_key: c_int,
}

impl Options {
    fn new(setup: &Setup) -> Self {
        // There are two of them, one being filled and one being written out.
        let write_buffer_bytes = (64 * MIB).min(setup.memory_bytes / 4);
        Self {
            write_buffer_bytes: write_buffer_bytes as usize,
            cache_bytes: setup.memory_bytes.saturating_sub(2 * write_buffer_bytes) as usize,
            // Its own 2 MiB would make thousands of files, and of each write buffer thirty.
            file_bytes_max: (64 * MIB) as usize,
            filter_bits_per_key: setup.filter_bits_per_key.unwrap_or(10) as c_int,
        }
    }
}

impl Kind for LevelDb {
    fn name(&self) -> &'static str {
        "leveldb"
    }

    fn version(&self) -> String {
        kernel::version()
    }

    fn options(&self, setup: &Setup) -> String {
        let options = Options::new(setup);
        let numbers = [
            ("write_buffer_size", options.write_buffer_bytes.to_string()),
            ("block_cache", options.cache_bytes.to_string()),
            ("max_file_size", options.file_bytes_max.to_string()),
            ("filter_policy", format!("bloom:{}", options.filter_bits_per_key)),
            ("compression", "none".to_string()),
        ];
        let notes = [
            ("note.background_threads", "1, whatever the setup says"),
            ("note.mmap", "the first 1000 tables are mapped and bypass the block cache; it cannot be told"),
            ("note.read_ahead", "mapped tables are read ahead as the device does; it cannot be told"),
            ("note.table_memory", "filters and indexes of open tables are outside every budget"),
            ("note.write_ahead_log", "on at every durability; it cannot be told"),
        ];
        let notes = notes.map(|(name, value)| (name, value.to_string()));
        text::lines(numbers.into_iter().chain(notes).map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let db = Db::open(dir, &Options::new(setup))?;
        Ok(Box::new(Open { db, pace: Pace::new(setup), key_bytes: setup.key_bytes }))
    }
}

struct Open {
    db: Db,
    pace: Pace,
    key_bytes: usize,
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        writes::put(self.db.hand(), &self.pace, batch)
    }

    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        let hand = self.db.another().ok()?;
        Some(Box::new(Beside { hand, pace: self.pace.clone() }))
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        writes::delete(self.db.hand(), &self.pace, keys, key_bytes)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        self.db.get(key, value)
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.db.scan(from, limit, each)
    }

    fn drain(&mut self) -> Result<(), Failure> {
        // No key is so large, so this writes the memtable out and compacts nothing.
        self.db.compact_at(&vec![0xff; self.key_bytes + 1]);
        let mut before = String::new();
        let mut same_polls = 0;
        wait::until(|| {
            let tables =
                self.db.property_text(c"leveldb.sstables").ok_or("LevelDB does not tell its tables")?;
            same_polls = if tables == before { same_polls + 1 } else { 0 };
            if same_polls > STUCK_POLLS {
                return Err("LevelDB leaves a compaction undone".into());
            }
            before = tables;
            Ok(!is_due(&before))
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Whether LevelDB owes a compaction, by its own rule: it cannot be asked. The inputs of a running compaction
/// are in the text until it is done.
fn is_due(tables: &str) -> bool {
    let mut level = 0;
    let mut files = [0_usize; LEVELS];
    let mut bytes = [0_u64; LEVELS];
    for line in tables.lines() {
        if let Some(header) = line.strip_prefix("--- level ") {
            level = header.trim_end_matches(" ---").parse().unwrap_or(0).min(LEVELS - 1);
        } else if let Some((_, rest)) = line.split_once(':') {
            // ` NUMBER:BYTES['first' @ .. : . .. 'last' @ .. : .]`
            let length = rest.split('[').next().and_then(|length| length.parse::<u64>().ok());
            files[level] += 1;
            bytes[level] += length.unwrap_or(0);
        }
    }
    // The last level has nowhere to go.
    let is_level_due = |level: usize| bytes[level] as f64 >= LEVEL_1_BYTES * 10_f64.powi(level as i32 - 1);
    files[0] >= LEVEL_0_FILES || (1..LEVELS - 1).any(is_level_due)
}

#[cfg(test)]
mod tests {
    use super::is_due;

    fn tables(level: usize, files: usize, bytes: u64) -> String {
        let file = format!(" 12:{bytes}['a:[1' @ 5 : 1 .. 'b' @ 7 : 1]\n").repeat(files);
        format!("--- level 0 ---\n--- level {level} ---\n{file}--- level 6 ---\n 9:99999999999['a' .. 'b']\n")
    }

    #[test]
    fn levels_are_due_by_files_or_by_bytes() {
        assert!(!is_due(""));
        assert!(!is_due(&tables(0, 3, 1 << 40)));
        assert!(is_due(&tables(0, 4, 1)));
        assert!(!is_due(&tables(1, 2, 5_242_879)));
        assert!(is_due(&tables(1, 2, 5_242_880)));
        assert!(!is_due(&tables(2, 1, 104_857_599)));
        assert!(is_due(&tables(2, 1, 104_857_600)));
    }
}
