//! Sketches: answers within a stated error, from states of bounded size. They are those of Apache
//! DataSketches, and so are their bytes: what is stored here can be read by its Java, C++ and Python
//! libraries, and the other way round.
//!
//! **Invariant:** bytes that would make the library overflow, allocate without bound or give up are refused
//! before it sees them.

use datasketches::codec::{SketchBytes, SketchSlice};
use datasketches::error::ErrorKind;
use datasketches::frequencies::{ErrorType, FrequentItemValue, FrequentItemsSketch};
use datasketches::hash::value::raw_bytes;
use datasketches::theta::{CompactThetaSketch, ThetaSketchBuilder, ThetaUnionBuilder};
use forebay_base::{Error, Result};

use crate::{Aggregate, StateType};

/// No state counts more values than this, so that no sum of a few overflows.
pub(super) const WEIGHT_MAX: u64 = 1 << 56;

pub(super) fn refused(error: &datasketches::error::Error) -> Error {
    Error::invalid(error.message())
}

/// About how many distinct values, by a Theta sketch: the `2^lg_k` least hashes. Its states can also be
/// intersected and subtracted, by the library. The standard error is `1 / sqrt(2^lg_k)`.
#[derive(Clone, Copy, Debug)]
pub struct ThetaDistinct {
    lg_k: u8,
}

impl ThetaDistinct {
    /// With `2^lg_k` hashes of eight bytes, 5 to 26.
    pub fn new(lg_k: u8) -> Result<Self> {
        if !(5..=26).contains(&lg_k) {
            return Err(Error::invalid(format!("a Theta sketch takes an lg_k of 5 to 26, not {lg_k}")));
        }
        Ok(Self { lg_k })
    }
}

impl Aggregate for ThetaDistinct {
    type Input<'a> = &'a [u8];
    type Output = f64;

    fn of_nothing(&self) -> Option<Self::Output> {
        Some(0.0)
    }

    fn state_type(&self) -> StateType {
        StateType::new("theta", 1).with("lg_k", self.lg_k)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        // The least table: what is kept of one value does not depend on its size.
        let mut sketch = ThetaSketchBuilder::default().lg_k(5).build().map_err(|error| refused(&error))?;
        sketch.update(raw_bytes::from_slice(value));
        state.extend_from_slice(&sketch.compact(true).serialize());
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let Ok(mut union) = ThetaUnionBuilder::default().lg_k(self.lg_k).build() else { return };
        for sketch in states.iter().filter_map(|state| CompactThetaSketch::deserialize(state).ok()) {
            // Only another hash seed can be refused, and such bytes are not of this type.
            let _ = union.update(&sketch);
        }
        out.extend_from_slice(&union.to_sketch(true).serialize());
    }

    fn finish(&self, state: &[u8]) -> Result<f64> {
        let sketch =
            CompactThetaSketch::deserialize(state).map_err(|_| self.state_type().malformed(state))?;
        Ok(sketch.estimate())
    }
}

/// About which texts are most frequent. While there are fewer distinct ones than three quarters of the
/// sketch's size, counts are exact; else they are up to the stated error too high, and order matters within
/// it.
#[derive(Clone, Copy, Debug)]
pub struct FrequentItems {
    map_size: usize,
}

/// Any bytes, as the library writes a string's.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Text(Vec<u8>);

impl FrequentItemValue for Text {
    fn serialize_size(item: &Self) -> usize {
        size_of::<u32>() + item.0.len()
    }
    fn serialize_value(&self, bytes: &mut SketchBytes) {
        bytes.write_u32_le(self.0.len() as u32);
        bytes.write(&self.0);
    }
    fn deserialize_value(cursor: &mut SketchSlice<'_>) -> Result<Self, datasketches::error::Error> {
        let short = || datasketches::error::Error::new(ErrorKind::InvalidData, "a text is cut off");
        let length = cursor.read_u32_le().map_err(|_| short())? as usize;
        let text = cursor.remaining().get(..length).ok_or_else(short)?.to_vec();
        cursor.advance(length as u64);
        Ok(Self(text))
    }
}

/// One frequent text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrequentItem {
    /// The text, or any bytes.
    pub item: Vec<u8>,
    /// How often it came at least.
    pub count_min: u64,
    /// How often it came at most.
    pub count_max: u64,
}

impl FrequentItems {
    /// With room for `map_size` texts, a power of two from 8.
    pub fn new(map_size: usize) -> Result<Self> {
        FrequentItemsSketch::<Text>::new(map_size).map_err(|error| refused(&error))?;
        Ok(Self { map_size })
    }

    fn read(&self, state: &[u8]) -> Option<FrequentItemsSketch<Text>> {
        // The library makes a map of the size that the bytes name: that must be ours.
        let is_own_size = state.get(3).is_some_and(|&lg| u32::from(lg) == self.map_size.trailing_zeros());
        let sketch = is_own_size.then(|| FrequentItemsSketch::deserialize(state).ok())??;
        (sketch.total_weight() < WEIGHT_MAX && sketch.maximum_error() < WEIGHT_MAX).then_some(sketch)
    }
}

impl Aggregate for FrequentItems {
    type Input<'a> = &'a [u8];
    /// All that may have come more often than the error, most frequent first.
    type Output = Vec<FrequentItem>;

    fn state_type(&self) -> StateType {
        StateType::new("frequent", 2).with("size", self.map_size)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        let mut sketch = FrequentItemsSketch::new(self.map_size).map_err(|error| refused(&error))?;
        sketch.update(Text(value.to_vec()));
        state.extend_from_slice(&sketch.serialize());
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let mut sketches = states.iter().filter_map(|state| self.read(state));
        let Some(mut merged) = sketches.next() else { return };
        for sketch in sketches {
            if merged.total_weight() < WEIGHT_MAX && merged.maximum_error() < WEIGHT_MAX {
                merged.merge(&sketch);
            }
        }
        out.extend_from_slice(&merged.serialize());
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<FrequentItem>> {
        let sketch = self.read(state).ok_or_else(|| self.state_type().malformed(state))?;
        let rows = sketch.frequent_items(ErrorType::NoFalseNegatives);
        let mut items: Vec<FrequentItem> = rows
            .iter()
            .map(|row| FrequentItem {
                item: row.item().0.clone(),
                count_min: row.lower_bound(),
                count_max: row.upper_bound(),
            })
            .collect();
        items.sort_by(|one, other| (other.count_max, &one.item).cmp(&(one.count_max, &other.item)));
        Ok(items)
    }
}
