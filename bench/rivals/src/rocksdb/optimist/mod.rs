//! Transactions that read and write, by RocksDB's `OptimisticTransactionDB`.

mod kernel;

use forebay_bench::{Change, Failure, Transactor};

use crate::sync::Pace;
pub(super) use kernel::Transacts;

/// One thread's transactions.
pub(super) struct Optimist<'a> {
    transacts: Transacts<'a>,
    pace: Pace,
    /// Kept for their memory.
    old: Vec<u8>,
    new: Vec<u8>,
}

impl<'a> Optimist<'a> {
    pub(super) fn new(transacts: Transacts<'a>, pace: Pace) -> Self {
        Self { transacts, pace, old: Vec::new(), new: Vec::new() }
    }
}

impl Transactor for Optimist<'_> {
    fn transact(&mut self, keys: &[u8], key_bytes: usize, change: &mut Change<'_>) -> Result<u64, Failure> {
        let Self { transacts, pace, old, new } = self;
        let sync = pace.next();
        let mut tries = 0;
        loop {
            tries += 1;
            transacts.begin(sync);
            for key in keys.chunks_exact(key_bytes) {
                old.clear();
                let is_there = transacts.get(key, old)?;
                change(is_there.then_some(&old[..]), new);
                transacts.put(key, new)?;
            }
            if transacts.commit()? {
                return Ok(tries);
            }
        }
    }
}
