//! How many values, and how many of which something holds. Counts wrap at 2^64, which no count reaches.

use crate::{FixedAggregate, StateType};

/// How many values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl FixedAggregate for Count {
    type Input<'a> = ();
    type Output = u64;
    type State = u64;

    fn state_type(&self) -> StateType {
        StateType::new("count", 1)
    }
    #[inline]
    fn of(&self, (): ()) -> u64 {
        1
    }
    #[inline]
    fn join(&self, one: u64, other: u64) -> u64 {
        one.wrapping_add(other)
    }
    fn output(&self, state: u64) -> u64 {
        state
    }
}

/// How many of the values are true. Its states are counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountIf;

impl FixedAggregate for CountIf {
    type Input<'a> = bool;
    type Output = u64;
    type State = u64;

    fn state_type(&self) -> StateType {
        FixedAggregate::state_type(&Count)
    }
    #[inline]
    fn of(&self, value: bool) -> u64 {
        u64::from(value)
    }
    #[inline]
    fn join(&self, one: u64, other: u64) -> u64 {
        Count.join(one, other)
    }
    fn output(&self, state: u64) -> u64 {
        state
    }
}
