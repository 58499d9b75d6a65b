//! Forebay's plain aggregator: a hash table over packed keys.

use forebay_aggregate::functions::Count;
use forebay_aggregate::{Aggregator, HashAggregator};

use super::{Engine, each_key, forebay};
use crate::Failure;
use crate::blocks::Blocks;

pub(super) struct Hash(HashAggregator<Count>);

impl Hash {
    pub(super) fn new() -> Self {
        Self(HashAggregator::new(Count, usize::MAX))
    }
}

impl Engine for Hash {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        each_key(blocks, |key| Ok(self.0.add(key, ())?))
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        Ok(forebay::show(&self.0, visit)?)
    }
}
