//! What a buffer tree is told.

use forebay_base::codec::Codec;
use forebay_base::{Error, Result};
use forebay_env::Jobs;
use forebay_env::sync::Arc;

use crate::stages::Stages;

const BUFFER_BYTES_MIN: usize = 4 << 10;
/// Places in a buffer are numbers of 32 bits, with room for a record that is longer than a buffer.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// A node has half as many children at least, and two where it has any.
const FAN_OUT_MIN: usize = 4;

/// How nodes hold what was merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// As it is: the buffer tree without compression, the thesis's BT.
    Off,
    /// Whole records through a compressor: the Compressed Buffer Tree before its columns.
    Rows(Codec),
    /// Hashes, sizes, and keys with their states as columns, the last through a compressor.
    Columns(Codec),
    /// The same with keys and states apart, each through a compressor of its own.
    Apart {
        /// That of keys.
        keys: Codec,
        /// That of states.
        states: Codec,
    },
}

/// How a [`BufferTreeAggregator`](super::BufferTreeAggregator) is built. The default is what the thesis measures with
/// "unless specified" [5.5], but for LZ4 in Snappy's place and two threads.
#[derive(Clone, Debug)]
pub struct TreeShape {
    pub(super) roots: usize,
    pub(super) buffer_bytes: usize,
    pub(super) fan_out: usize,
    pub(super) packing: Packing,
    pub(super) trees: usize,
    pub(super) threads: usize,
    pub(super) hash_bits: u32,
    pub(super) jobs: Option<Jobs>,
    pub(super) stages: Option<Arc<Stages>>,
}

impl Default for TreeShape {
    fn default() -> Self {
        Self {
            roots: 4,
            buffer_bytes: 30 << 20,
            fan_out: 64,
            packing: Packing::Columns(Codec::Lz4),
            trees: 1,
            threads: 2,
            hash_bits: u32::BITS,
            jobs: None,
            stages: None,
        }
    }
}

impl TreeShape {
    /// Buffers of a root, one of which is filled while others are sorted and emptied [5.4.1].
    pub fn roots(mut self, count: usize) -> Self {
        self.roots = count;
        self
    }

    /// A node is full at so many bytes, before packing; 4 KiB to 1 GiB.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Children that a node has at most, 4 or more; it has half of that at least, but for the root.
    pub fn fan_out(mut self, count: usize) -> Self {
        self.fan_out = count;
        self
    }

    /// How nodes hold what was merged.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Trees between which keys are divided [5.4.1]. All are worked on by the same threads.
    pub fn trees(mut self, count: usize) -> Self {
        self.trees = count;
        self
    }

    /// How many threads work: the one that adds and others behind it. With 1 it does all by itself.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Counts what each stage takes.
    pub fn stages(mut self, stages: Arc<Stages>) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Orders by so many bits of the hash alone, so that many collide.
    #[doc(hidden)]
    pub fn hash_bits(mut self, bits: u32) -> Self {
        self.hash_bits = bits;
        self
    }

    /// Who drives the workers; a seeded stepper in tests.
    #[doc(hidden)]
    pub fn jobs(mut self, jobs: Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }

    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid(format!("a buffer tree needs {what}")));
        if self.roots == 0 || self.trees == 0 || self.threads == 0 {
            return refuse("a root buffer, a tree and a thread, or more of them");
        }
        if self.fan_out < FAN_OUT_MIN {
            return refuse("a fan-out of 4 or more");
        }
        if !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&self.buffer_bytes) {
            return refuse("buffers of 4 KiB to 1 GiB");
        }
        Ok(())
    }
}
