//! What tables of tests merge by. Whatever is merged twice, or not at all, or in another order where order matters,
//! shows in the value.

use std::hash::{DefaultHasher, Hash, Hasher};

use forebay::{MergeRule, Result};
use forebay_aggregate::{Aggregate, StateType};

/// What a table merges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Merging {
    /// Nothing.
    #[default]
    None,
    /// Operands, by [`Suffix`].
    Operands,
    /// The same, of entries that expire: those that have the same expiry behind them.
    Lives,
    /// Operands, of which the greatest stays: by a rule that the engine has.
    Greatest,
    /// States of a fixed length.
    Tally,
    /// States that grow.
    Bag,
}

impl Merging {
    /// Every kind, nothing more often than the others.
    pub const ALL: [Self; 6] = [Self::None, Self::None, Self::None, Self::Operands, Self::Tally, Self::Bag];

    /// Whether there are operands.
    pub fn has_operands(self) -> bool {
        self.has_own_rule() || self == Self::Greatest
    }

    /// Whether they are merged by a rule of the test's.
    pub fn has_own_rule(self) -> bool {
        matches!(self, Self::Operands | Self::Lives)
    }

    /// Whether all records are states.
    pub fn has_states(self) -> bool {
        matches!(self, Self::Tally | Self::Bag)
    }

    /// What a key's value becomes when an operand, or a value to be aggregated, is merged into it.
    pub fn merged(self, operand: &[u8], older: Option<&[u8]>) -> Vec<u8> {
        let mut merged = Vec::new();
        match (self, older) {
            (Self::None | Self::Operands | Self::Greatest, None) => merged.extend_from_slice(operand),
            (Self::None | Self::Operands, Some(older)) => Suffix.merge(b"", operand, older, &mut merged),
            (Self::Greatest, Some(older)) => merged.extend_from_slice(operand.max(older)),
            (Self::Lives, Some(older)) if expiry_of(operand) == expiry_of(older) => {
                let value = |stored: &'_ [u8]| stored[..stored.len() - EXPIRY_BYTES].to_vec();
                Suffix.merge(b"", &value(operand), &value(older), &mut merged);
                merged.extend_from_slice(expiry_of(operand));
            }
            (Self::Lives, _) => merged.extend_from_slice(operand),
            (Self::Tally | Self::Bag, older) => {
                let (multiset, mut state) = (Multiset(self), Vec::new());
                multiset.lift(operand, &mut state).expect("it refuses nothing");
                let states: Vec<&[u8]> = older.into_iter().chain([&state[..]]).collect();
                multiset.merge(&states, &mut merged);
            }
        }
        merged
    }
}

/// What a stored value ends with, where entries expire.
const EXPIRY_BYTES: usize = 8;

fn expiry_of(stored: &[u8]) -> &[u8] {
    &stored[stored.len() - EXPIRY_BYTES..]
}

/// Joins what comes to values of at most 1,000 bytes.
#[derive(Debug)]
pub struct Short;

impl MergeRule for Short {
    fn name(&self) -> &str {
        "short/1"
    }
    fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(older);
        out.extend_from_slice(newer);
    }
    fn value_bytes_max(&self) -> usize {
        1_000
    }
}

/// Joins what comes in the order in which it came, and keeps the end.
#[derive(Debug)]
pub struct Suffix;

const SUFFIX_BYTES: usize = 300;

impl MergeRule for Suffix {
    fn name(&self) -> &str {
        "suffix/1"
    }

    fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        let joined = [older, newer].concat();
        out.extend_from_slice(&joined[joined.len().saturating_sub(SUFFIX_BYTES)..]);
    }
}

/// A multiset of values: how many, then the sum of their hashes ([`Merging::Tally`]) or the lowest of their hashes,
/// each as often as it came ([`Merging::Bag`]).
#[derive(Debug)]
pub struct Multiset(pub Merging);

const HASHES_MAX: usize = 30;

impl Aggregate for Multiset {
    type Input<'a> = &'a [u8];
    type Output = Vec<u8>;

    fn state_type(&self) -> StateType {
        StateType::new("multiset", 1).with("kind", format!("{:?}", self.0))
    }

    fn state_bytes(&self) -> Option<usize> {
        (self.0 == Merging::Tally).then_some(16)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        state.extend_from_slice(&1u64.to_le_bytes());
        state.extend_from_slice(&hasher.finish().to_le_bytes());
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let numbers = |state: &&[u8]| -> Vec<u64> {
            state.as_chunks().0.iter().map(|&number| u64::from_le_bytes(number)).collect()
        };
        let states: Vec<Vec<u64>> = states.iter().map(numbers).collect();
        let count: u64 = states.iter().filter_map(|state| state.first()).sum();
        let mut hashes: Vec<u64> = states.iter().flat_map(|state| state.iter().skip(1)).copied().collect();
        hashes.sort_unstable();
        hashes.truncate(HASHES_MAX);
        if self.0 == Merging::Tally {
            hashes = vec![
                states.iter().filter_map(|state| state.get(1)).fold(0, |sum, &hash| sum.wrapping_add(hash)),
            ];
        }
        [count].iter().chain(&hashes).for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<u8>> {
        if state.len() < 16 || !state.len().is_multiple_of(8) {
            return Err(self.state_type().malformed(state));
        }
        Ok(state.to_vec())
    }
}
