//! Values by their place in an order: the value at the least or greatest place, and the first this many.
//!
//! A place is bytes that are compared as such; [`ordered`](crate::ordered) makes them of numbers. Equal places are
//! told apart by the values' bytes, so that it does not matter which came first.

use std::cmp::Ordering;

use forebay_base::wire::{Reader, put_bytes};
use forebay_base::{Error, Result};

use super::sorted::{Item, Repeats, Rule, write_all};
use crate::{Aggregate, StateType};

/// Which end of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The first in order.
    Least,
    /// The last in order.
    Greatest,
}

/// The value at one end of an order: what others call `arg_min` and `arg_max`, or `first` and `last` by an
/// order column.
#[derive(Clone, Copy, Debug)]
pub struct ValueAt(pub End);

/// The place and the value of a state.
fn split(state: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(state);
    Some((reader.bytes()?, reader.take(reader.remaining())?))
}

impl Aggregate for ValueAt {
    /// Where in the order, and what.
    type Input<'a> = (&'a [u8], &'a [u8]);
    type Output = Vec<u8>;

    fn state_type(&self) -> StateType {
        StateType::new(if self.0 == End::Least { "arg_min" } else { "arg_max" }, 1)
    }

    fn lift(&self, (place, value): (&[u8], &[u8]), state: &mut Vec<u8>) -> Result<()> {
        put_bytes(state, place);
        state.extend_from_slice(value);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let pairs = states.iter().filter_map(|state| split(state));
        let best = if self.0 == End::Least { pairs.min() } else { pairs.max() };
        if let Some((place, value)) = best {
            put_bytes(out, place);
            out.extend_from_slice(value);
        }
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<u8>> {
        let (_, value) = split(state).ok_or_else(|| self.state_type().malformed(state))?;
        Ok(value.to_vec())
    }
}

/// A place and a value; the greatest comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ranked<'a> {
    place: &'a [u8],
    value: &'a [u8],
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.place, other.value).cmp(&(self.place, self.value))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Item<'a> for Ranked<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self { place: reader.bytes()?, value: reader.bytes()? })
    }
    fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.place);
        put_bytes(out, self.value);
    }
}

/// The values at the `k` greatest places, greatest first, each as often as it came.
#[derive(Clone, Copy, Debug)]
pub struct TopK {
    rule: Rule,
}

impl TopK {
    /// The first `k`.
    pub fn new(k: usize) -> Result<Self> {
        if k == 0 {
            return Err(Error::invalid("top_k must keep at least 1 value"));
        }
        Ok(Self { rule: Rule { repeats: Repeats::Kept, items_max: k } })
    }

    /// How many are kept.
    pub(crate) fn items_max(&self) -> usize {
        self.rule.items_max
    }

    /// Appends the state of places and values, the greatest first.
    pub(crate) fn write(ranked: &mut dyn Iterator<Item = (&[u8], &[u8])>, state: &mut Vec<u8>) {
        let items: Vec<Ranked<'_>> = ranked.map(|(place, value)| Ranked { place, value }).collect();
        write_all(&items, state);
    }
}

impl Aggregate for TopK {
    /// Where in the order, and what.
    type Input<'a> = (&'a [u8], &'a [u8]);
    /// Places and values.
    type Output = Vec<(Vec<u8>, Vec<u8>)>;

    fn state_type(&self) -> StateType {
        StateType::new("top_k", 1).with("k", self.rule.items_max)
    }

    fn lift(&self, (place, value): (&[u8], &[u8]), state: &mut Vec<u8>) -> Result<()> {
        write_all(&[Ranked { place, value }], state);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.rule.merge::<Ranked<'_>>(states.iter().copied(), |items, _| write_all(items, out));
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        let items =
            self.rule.decode::<Ranked<'_>>(state).ok_or_else(|| self.state_type().malformed(state))?;
        Ok(items.iter().map(|item| (item.place.to_vec(), item.value.to_vec())).collect())
    }
}
