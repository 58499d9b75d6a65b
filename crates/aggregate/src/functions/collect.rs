//! Values themselves: how many are distinct, all of them up to a bound, or all of them as one text.

use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Error, Result};

use super::sorted::{Repeats, Rule, write_all};
use crate::{Aggregate, StateType};

const ALL_DISTINCT: Rule = Rule { repeats: Repeats::Folded, items_max: usize::MAX };

/// How many distinct values, exactly: a state holds each of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Distinct;

impl Aggregate for Distinct {
    type Input<'a> = &'a [u8];
    type Output = u64;

    fn of_nothing(&self) -> Option<Self::Output> {
        Some(0)
    }

    fn state_type(&self) -> StateType {
        StateType::new("distinct", 1)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        write_all(&[value], state);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        ALL_DISTINCT.merge::<&[u8]>(states.iter().copied(), |items, _| write_all(items, out));
    }

    fn finish(&self, state: &[u8]) -> Result<u64> {
        let items = ALL_DISTINCT.decode::<&[u8]>(state).ok_or_else(|| self.state_type().malformed(state))?;
        Ok(items.len() as u64)
    }
}

/// The values, up to a bound on how many: beyond it the least by bytes are kept, so that it does not matter
/// in which order they came, and it is said that others were left out.
#[derive(Clone, Copy, Debug)]
pub struct Collect {
    rule: Rule,
}

/// What was collected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collected {
    /// The least values, in order of their bytes.
    pub values: Vec<Vec<u8>>,
    /// Whether there were more than the bound allows.
    pub is_cut: bool,
}

impl Collect {
    /// Every value, as often as it came.
    pub fn list(values_max: usize) -> Result<Self> {
        Self::new(Repeats::Kept, values_max)
    }

    /// Every distinct value once.
    pub fn set(values_max: usize) -> Result<Self> {
        Self::new(Repeats::Folded, values_max)
    }

    fn new(repeats: Repeats, items_max: usize) -> Result<Self> {
        if items_max == 0 {
            return Err(Error::invalid("a collection must have room for at least 1 value"));
        }
        Ok(Self { rule: Rule { repeats, items_max } })
    }

    /// How many were left out, or of sets whether any, and the run of the others.
    fn split(state: &[u8]) -> Option<(u64, &[u8])> {
        let mut reader = Reader::new(state);
        let left_out = reader.varint()?;
        Some((left_out, reader.take(reader.remaining())?))
    }
}

impl Aggregate for Collect {
    type Input<'a> = &'a [u8];
    type Output = Collected;

    fn state_type(&self) -> StateType {
        let name = if self.rule.repeats == Repeats::Kept { "collect_list" } else { "collect_set" };
        StateType::new(name, 1).with("max", self.rule.items_max)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        put_varint(state, 0);
        write_all(&[value], state);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let parts = || states.iter().filter_map(|state| Self::split(state));
        let before = parts().map(|(left_out, _)| left_out);
        self.rule.merge::<&[u8]>(parts().map(|(_, run)| run), |items, more| {
            // A value that two sets left out cannot be told from two values: of sets it is only known
            // whether any was.
            let left_out = match self.rule.repeats {
                Repeats::Kept => before.fold(more, u64::saturating_add),
                Repeats::Folded => before.fold(more, u64::max).min(1),
            };
            put_varint(out, left_out);
            write_all(items, out);
        });
    }

    fn finish(&self, state: &[u8]) -> Result<Collected> {
        let decoded =
            Self::split(state).and_then(|(left_out, run)| Some((left_out, self.rule.decode::<&[u8]>(run)?)));
        let (left_out, items) = decoded.ok_or_else(|| self.state_type().malformed(state))?;
        Ok(Collected { values: items.into_iter().map(Vec::from).collect(), is_cut: left_out > 0 })
    }
}

/// The values as one text, in order of their bytes, with a separator between them. Its states are those of
/// [`Collect::list`].
#[derive(Clone, Debug)]
pub struct StringAgg {
    list: Collect,
    separator: Vec<u8>,
}

/// A text of values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The least values, with separators.
    pub text: Vec<u8>,
    /// Whether there were more than the bound allows.
    pub is_cut: bool,
}

impl StringAgg {
    /// The least `values_max` values, with `separator` between them.
    pub fn new(separator: impl Into<Vec<u8>>, values_max: usize) -> Result<Self> {
        Ok(Self { list: Collect::list(values_max)?, separator: separator.into() })
    }
}

impl Aggregate for StringAgg {
    type Input<'a> = &'a [u8];
    type Output = Joined;

    fn state_type(&self) -> StateType {
        self.list.state_type()
    }
    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        self.list.lift(value, state)
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.list.merge(states, out);
    }
    fn finish(&self, state: &[u8]) -> Result<Joined> {
        let Collected { values, is_cut } = self.list.finish(state)?;
        Ok(Joined { text: values.join(&self.separator[..]), is_cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(function: &impl Aggregate<Input<'static> = &'static [u8]>, values: &[&'static str]) -> Vec<u8> {
        let states: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let mut state = Vec::new();
                function.lift(value.as_bytes(), &mut state).expect("every value is taken");
                state
            })
            .collect();
        let mut out = Vec::new();
        function.merge(&states.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut out);
        out
    }

    #[test]
    fn the_least_values_are_kept_and_the_cut_is_told() -> Result<()> {
        let values = ["c", "a", "b", "a"];
        let list = Collect::list(3)?;
        let collected = list.finish(&merged(&list, &values))?;
        assert_eq!(
            collected,
            Collected { values: vec![b"a".into(), b"a".into(), b"b".into()], is_cut: true }
        );
        let set = Collect::set(3)?;
        let collected = set.finish(&merged(&set, &values))?;
        assert_eq!(
            collected,
            Collected { values: vec![b"a".into(), b"b".into(), b"c".into()], is_cut: false }
        );
        let text = StringAgg::new("; ", 10)?;
        let joined = text.finish(&merged(&text, &values))?;
        assert_eq!(joined, Joined { text: b"a; a; b; c".into(), is_cut: false });
        assert_eq!(Distinct.finish(&merged(&Distinct, &values))?, 3);
        Ok(())
    }
}
