//! Sparsehash and TBB's concurrent hash table, which the thesis compares with.

mod kernel;

use super::{Engine, each_block};
use crate::Failure;
use crate::blocks::Blocks;
pub(super) use kernel::Keys;
use kernel::{Shared, Table};

/// Google's `sparse_hash_map`, on one thread.
pub(super) struct Sparse(Table);

impl Sparse {
    pub(super) fn new(keys: Keys, key_bytes_max: usize) -> Result<Self, Failure> {
        Ok(Self(Table::sparse(keys, key_bytes_max)?))
    }
}

impl Engine for Sparse {
    fn version(&self) -> String {
        env!("SPARSEHASH_VERSION").into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        each_block(blocks, |block| self.0.add(block))
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.0.each(visit);
        Ok(())
    }
}

/// Threading Building Blocks' `concurrent_hash_map`, on several threads.
pub(super) struct Concurrent {
    table: Shared,
    threads: usize,
}

impl Concurrent {
    pub(super) fn new(keys: Keys, key_bytes_max: usize, threads: usize) -> Result<Self, Failure> {
        Ok(Self { table: Shared::new(keys, key_bytes_max)?, threads })
    }
}

impl Engine for Concurrent {
    fn version(&self) -> String {
        kernel::concurrent_version()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        let table = &self.table;
        std::thread::scope(|scope| {
            let add = || scope.spawn(|| each_block(blocks, |block| table.add(block)));
            let threads: Vec<_> = (0..self.threads).map(|_| add()).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.table.each(visit);
        Ok(())
    }
}
