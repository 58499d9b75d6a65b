//! What a table is told when it is made, and keeps.

use std::fmt;
use std::str::FromStr;

use forebay_base::codec::Codec;
use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Error, Order, Result};
use forebay_buffer_tree::TreeOptions;

use crate::rule::RuleName;

/// How a table's records are organised on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// The WB tree: fastest to write; in hash order, or in key order for ranges.
    WriteBuffer {
        /// Whether keys are kept in their own order.
        ordered: bool,
    },
}

impl Layout {
    /// The WB tree in hash order.
    pub fn write_buffer() -> Self {
        Self::WriteBuffer { ordered: false }
    }

    /// The WB tree in key order.
    pub fn write_buffer_ordered() -> Self {
        Self::WriteBuffer { ordered: true }
    }

    /// Whether ranges of keys can be scanned.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::WriteBuffer { ordered: true })
    }

    /// The order of its records in a database with this seed.
    pub fn order(&self, seed: u64) -> Order {
        if self.is_ordered() { Order::Lexical } else { Order::Hashed { seed } }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ordered() { "write-buffer:ordered" } else { "write-buffer" })
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "write-buffer" => Ok(Self::write_buffer()),
            "write-buffer:ordered" => Ok(Self::write_buffer_ordered()),
            _ => Err(Error::invalid(format!(
                "layout `{text}` is unknown; this version has write-buffer and write-buffer:ordered"
            ))),
        }
    }
}

/// The most filter bits that a key may have: more buy nothing.
pub const FILTER_BITS_MAX: u32 = 64;

/// Everything a table keeps of its options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TableOptions {
    /// Its organisation.
    pub layout: Layout,
    /// Filter memory for each key of each list, in bits; 0 for no filters.
    pub filter_bits_per_key: u32,
    /// Page compression.
    pub codec: Codec,
    /// The tree's shape.
    pub tree: TreeOptions,
}

impl TableOptions {
    /// What a table has that is told nothing but its layout, over write buffers of this size.
    pub fn new(layout: Layout, write_buffer_bytes: u64) -> Self {
        let tree = TreeOptions { node_bytes: write_buffer_bytes, ..TreeOptions::default() };
        // A filter in the order of the hashes does more with a bit.
        let filter_bits_per_key = if layout.is_ordered() { 14 } else { 11 };
        Self { layout, filter_bits_per_key, codec: Codec::default(), tree }
    }

    /// Says which option is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        if self.filter_bits_per_key > FILTER_BITS_MAX {
            return Err(Error::invalid(format!(
                "filter_bits_per_key is {}; more than {FILTER_BITS_MAX} bits buy nothing",
                self.filter_bits_per_key
            )));
        }
        self.tree.validate()
    }

    /// The bytes of what the catalog itself does not keep, and of the table's rule.
    pub fn encode(&self, rule: &RuleName) -> Vec<u8> {
        let mut out = vec![1, self.layout.is_ordered() as u8, self.codec as u8];
        put_varint(&mut out, self.filter_bits_per_key as u64);
        rule.encode(&mut out);
        out
    }

    /// Reads [`encode`](Self::encode)'s bytes; the tree's options come from its catalog.
    pub fn decode(bytes: &[u8], tree: TreeOptions) -> Option<(Self, RuleName)> {
        let mut from = Reader::new(bytes);
        let layout = match (from.u8()?, from.u8()?) {
            (1, ordered @ (0 | 1)) => Layout::WriteBuffer { ordered: ordered == 1 },
            _ => return None,
        };
        let codec = Codec::from_byte(from.u8()?)?;
        let filter_bits_per_key = u32::try_from(from.varint()?).ok()?;
        let rule = RuleName::decode(&mut from)?;
        Some((Self { layout, filter_bits_per_key, codec, tree }, rule))
    }
}
