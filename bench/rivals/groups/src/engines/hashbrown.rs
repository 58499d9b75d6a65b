//! The hash table of Rust's standard library, by its crate, as one would write it in a minute.

use hashbrown::HashMap;

use super::{Engine, each_key};
use crate::Failure;
use crate::blocks::Blocks;

/// Of the lock file; the crate does not tell.
const VERSION: &str = "0.17";

/// Keys in memory of their own.
#[derive(Default)]
pub(super) struct Boxed(HashMap<Box<[u8]>, u64>);

/// Keys of 64 bits, in place.
#[derive(Default)]
pub(super) struct Numbers(HashMap<u64, u64>);

impl Engine for Boxed {
    fn version(&self) -> String {
        VERSION.into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        each_key(blocks, |key| {
            match self.0.get_mut(key) {
                Some(count) => *count += 1,
                None => drop(self.0.insert(key.into(), 1)),
            }
            Ok(())
        })
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.0.iter().for_each(|(key, count)| visit(key, *count));
        Ok(())
    }
}

impl Engine for Numbers {
    fn version(&self) -> String {
        VERSION.into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        each_key(blocks, |key| {
            *self.0.entry(u64::from_le_bytes(key.try_into()?)).or_default() += 1;
            Ok(())
        })
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.0.iter().for_each(|(key, count)| visit(&key.to_le_bytes(), *count));
        Ok(())
    }
}
