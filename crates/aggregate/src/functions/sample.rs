//! A weighted sample without replacement, after Efraimidis and Spirakis: every item draws a number from the
//! exponential distribution of its weight, and the least numbers stay.
//!
//! The draw is a seeded hash of item and weight, so the sample is the same in whatever order and parts the
//! items come. So equal items of equal weight are one item: what is to count each time needs something of
//! its own in its bytes, such as a row number.

use forebay_base::hash::{key_hash, mix};
use forebay_base::wire::{Reader, put_bytes};
use forebay_base::{Error, Result};

use super::sorted::{Item, Repeats, Rule, write_all};
use crate::{Aggregate, StateType};

/// A sample of at most this many items.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    rule: Rule,
    seed: u64,
}

/// What was drawn, by the bits of positive numbers, whose order is the numbers'.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn<'a> {
    draw: u64,
    item: &'a [u8],
    weight: u64,
}

impl<'a> Item<'a> for Drawn<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self { draw: reader.u64()?, weight: reader.u64()?, item: reader.bytes()? })
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.draw.to_le_bytes());
        out.extend_from_slice(&self.weight.to_le_bytes());
        put_bytes(out, self.item);
    }
}

impl Sample {
    /// At most `items_max` items. Samples of one seed are the same sample.
    pub fn new(items_max: usize, seed: u64) -> Result<Self> {
        if items_max == 0 {
            return Err(Error::invalid("a sample must have room for at least 1 item"));
        }
        Ok(Self { rule: Rule { repeats: Repeats::Folded, items_max }, seed })
    }
}

impl Aggregate for Sample {
    /// An item and its weight, a positive number.
    type Input<'a> = (&'a [u8], f64);
    /// Items and their weights, in the order in which they were drawn.
    type Output = Vec<(Vec<u8>, f64)>;

    fn state_type(&self) -> StateType {
        StateType::new("sample", 1).with("k", self.rule.items_max).with("seed", self.seed)
    }

    fn lift(&self, (item, weight): (&[u8], f64), state: &mut Vec<u8>) -> Result<()> {
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(Error::invalid(format!("a sample takes weights above 0, not {weight}")));
        }
        let hash = key_hash(item, mix(self.seed ^ weight.to_bits()));
        // Evenly from between 0 and 1; the library's logarithm is the same on every machine.
        let even = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        // The last of them rounds to 1, which is drawn never.
        let even = even.min(1.0 - f64::EPSILON / 2.0);
        let draw = -libm::log(even) / weight;
        debug_assert!(even > 0.0 && even < 1.0 && draw >= 0.0, "draws sort as their bits do");
        write_all(&[Drawn { draw: draw.to_bits(), item, weight: weight.to_bits() }], state);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.rule.merge::<Drawn<'_>>(states.iter().copied(), |items, _| write_all(items, out));
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        let items = self.rule.decode::<Drawn<'_>>(state).ok_or_else(|| self.state_type().malformed(state))?;
        Ok(items.iter().map(|drawn| (drawn.item.to_vec(), f64::from_bits(drawn.weight))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_items_are_drawn_more_often() -> Result<()> {
        let mut heavy_first = 0;
        for seed in 0..2000 {
            let sample = Sample::new(1, seed)?;
            let (mut light, mut heavy, mut merged) = (Vec::new(), Vec::new(), Vec::new());
            sample.lift((b"light", 1.0), &mut light)?;
            sample.lift((b"heavy", 3.0), &mut heavy)?;
            sample.merge(&[&light, &heavy], &mut merged);
            heavy_first += u32::from(sample.finish(&merged)?[0].0 == b"heavy");
        }
        assert!((1430..1570).contains(&heavy_first), "{heavy_first} of 2000, 1500 expected");
        assert!(Sample::new(1, 0)?.lift((b"", 0.0), &mut Vec::new()).is_err());
        Ok(())
    }
}
