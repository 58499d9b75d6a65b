//! Kyoto Cabinet's file hash table: every record is in one file, found by a table of buckets in memory-mapped
//! space. It has no order, no log and no background work.

mod kernel;

use std::ffi::CString;
use std::path::Path;

use forebay_bench::{Adds, Batch, Engine, Failure, Kind, Setup};

use crate::native::path_text;
use crate::sync::{Pace, SyncWhen};
use crate::text;
use kernel::Db;

/// What four-byte addresses of eight-byte steps reach, and to spare.
const SMALL_FILE_BYTES_MAX: u64 = 8 << 30;

pub(crate) struct KyotoHash;

fn options(setup: &Setup) -> Vec<(&'static str, String)> {
    // A head of about 12 bytes and padding to eight, and twice as many buckets as records.
    let record_bytes = (setup.key_bytes + setup.value_bytes) as u64 + 20 + 2 * 6;
    let is_small = setup.records_expected * record_bytes < SMALL_FILE_BYTES_MAX;
    vec![
        ("apow", "3".to_string()),
        ("bnum", (2 * setup.records_expected).max(1024).to_string()),
        ("msiz", (setup.memory_bytes / 8 * 7).to_string()),
        // Lists in buckets, for there is hardly more than one record in any; short addresses where they reach.
        ("opts", if is_small { "ls" } else { "l" }.to_string()),
    ]
}

impl Kind for KyotoHash {
    fn name(&self) -> &'static str {
        "kyoto-hash"
    }

    fn version(&self) -> String {
        kernel::version()
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn adds(&self) -> Adds {
        Adds::Too
    }

    fn options(&self, setup: &Setup) -> String {
        let notes = [
            ("note.atomicity", "records of a batch are written one by one"),
            (
                "note.crash",
                "a database that was not closed is repaired at the next open, with what is readable",
            ),
            ("note.memory", "beyond msiz the page cache, whose size only the system limits"),
            ("note.read_ahead", "mapped space is read ahead as the device does; it cannot be told"),
        ];
        let notes = notes.map(|(name, value)| (name, value.to_string()));
        text::lines(options(setup).into_iter().chain(notes).map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let mut path = path_text(&dir.join("records.kch"))?.into_bytes();
        if path.contains(&b'#') {
            return Err("Kyoto Cabinet takes no path with a #".into());
        }
        for (name, value) in options(setup) {
            path.extend_from_slice(format!("#{name}={value}").as_bytes());
        }
        let db = Db::open(&CString::new(path)?)?;
        Ok(Box::new(Open { db, pace: Pace::new(setup), value_bytes: setup.value_bytes, adds: setup.adds }))
    }
}

struct Open {
    db: Db,
    pace: Pace,
    value_bytes: usize,
    /// Whether values are its own numbers.
    adds: bool,
}

impl Open {
    fn sync_when_due(&mut self) -> Result<(), Failure> {
        match self.pace.next() {
            SyncWhen::Later => Ok(()),
            SyncWhen::Now => self.db.sync(),
        }
    }
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        if self.adds {
            return self.add(batch);
        }
        for (key, value) in batch.iter() {
            self.db.set(key, value)?;
        }
        self.sync_when_due()
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        for (key, count) in batch.iter() {
            self.db.add(key, i64::from_le_bytes(count.try_into()?))?;
        }
        self.sync_when_due()
    }

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut turned = Vec::new();
        self.db.for_each(&mut |key, number| {
            turned.clear();
            turned.extend(number.iter().rev());
            each(key, &turned);
        })
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        keys.chunks_exact(key_bytes).try_for_each(|key| self.db.remove(key))?;
        self.sync_when_due()
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let start = value.len();
        value.resize(start + self.value_bytes, 0);
        let length = self.db.get(key, &mut value[start..])?;
        if length.is_some_and(|length| length != self.value_bytes) {
            return Err("a value has another length than the setup told".into());
        }
        if length.is_none() {
            value.truncate(start);
        }
        if self.adds {
            value[start..].reverse();
        }
        Ok(length.is_some())
    }

    fn scan(&mut self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err("a hash table has no order to scan in".into())
    }

    /// Its debt is what the kernel has not yet written.
    fn drain(&mut self) -> Result<(), Failure> {
        self.db.sync()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.db.close()
    }
}
