//! Averages: a count and a sum.

use super::sum::{Compensated, add};
use crate::{FixedAggregate, StateType};

/// The mean of floating-point numbers; the law holds up to rounding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average;

impl FixedAggregate for Average {
    type Input<'a> = f64;
    type Output = f64;
    type State = (u64, Compensated);

    fn state_type(&self) -> StateType {
        StateType::new("avg", 1)
    }
    #[inline]
    fn of(&self, value: f64) -> Self::State {
        (1, (value, 0.0))
    }
    #[inline]
    fn join(&self, one: Self::State, other: Self::State) -> Self::State {
        (one.0.wrapping_add(other.0), add(one.1, other.1))
    }
    fn output(&self, (count, (sum, lack)): Self::State) -> f64 {
        (sum + lack) / count as f64
    }
}

/// The mean of integers, from their exact sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct AverageInt;

impl FixedAggregate for AverageInt {
    type Input<'a> = i64;
    type Output = f64;
    type State = (u64, i128);

    fn state_type(&self) -> StateType {
        StateType::new("avg_int", 1)
    }
    #[inline]
    fn of(&self, value: i64) -> Self::State {
        (1, i128::from(value))
    }
    #[inline]
    fn join(&self, one: Self::State, other: Self::State) -> Self::State {
        (one.0.wrapping_add(other.0), one.1.wrapping_add(other.1))
    }
    fn output(&self, (count, sum): Self::State) -> f64 {
        sum as f64 / count as f64
    }
}
