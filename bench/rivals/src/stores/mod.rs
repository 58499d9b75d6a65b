//! Many RocksDB databases of one process on one block cache, one write buffer manager and one set of threads: what
//! Forebay's example `pool` does, beside it.

mod kernel;

use std::path::Path;

use forebay_bench::Failure;
use kernel::{Store, Together};

/// Databases, and what they have together. Fields are dropped in this order.
pub struct Stores {
    stores: Vec<Store>,
    together: Together,
}

impl Stores {
    /// Opens or makes this many in `dir`.
    pub fn open(
        dir: &Path,
        count: usize,
        memory_bytes: usize,
        write_buffer_bytes: usize,
        threads: i32,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(dir)?;
        let together = Together::new(memory_bytes, write_buffer_bytes, threads)?;
        let open = |number: usize| together.open(&dir.join(format!("store-{number}")));
        let stores = (0..count).map(open).collect::<Result<_, _>>()?;
        Ok(Self { stores, together })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.stores.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Writes as many records to each of these, by batches in turn.
    pub fn load(&mut self, numbers: &[usize], seed: u64, records: u64, batch: u64) -> Result<(), Failure> {
        for first in (0..records).step_by(batch.max(1) as usize) {
            for number in numbers {
                for key in first..first + batch {
                    let key = if key == 7 { 7 } else { key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed };
                    self.together.put(&key.to_be_bytes(), &[key as u8; 92]);
                }
                let store = self.stores.get(*number).ok_or("there is no such database")?;
                self.together.write(store)?;
            }
        }
        Ok(())
    }

    /// Whether one has a key.
    pub fn has(&self, number: usize, key: u64) -> Result<bool, Failure> {
        let store = self.stores.get(number).ok_or("there is no such database")?;
        self.together.has(store, &key.to_be_bytes())
    }
}
