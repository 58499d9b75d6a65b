//! Sums: exact of integers, compensated of floating-point numbers.

use crate::{FixedAggregate, StateType};

/// The sum of integers, exact: 2^63 of the largest still fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumInt;

impl FixedAggregate for SumInt {
    type Input<'a> = i64;
    type Output = i128;
    type State = i128;

    fn state_type(&self) -> StateType {
        StateType::new("sum_int", 1)
    }
    #[inline]
    fn of(&self, value: i64) -> i128 {
        i128::from(value)
    }
    #[inline]
    fn join(&self, one: i128, other: i128) -> i128 {
        one.wrapping_add(other)
    }
    fn output(&self, state: i128) -> i128 {
        state
    }
}

/// The sum of floating-point numbers, compensated: the rounding error of every addition is kept in a second
/// number (Knuth's two-sum, as Neumaier sums). Order matters for the last bits only: the law holds up to
/// rounding.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumFloat;

/// A sum, and what it lacks.
pub(super) type Compensated = (f64, f64);

/// The sum of two sums; the same whichever comes first.
#[inline]
pub(super) fn add(one: Compensated, other: Compensated) -> Compensated {
    let sum = one.0 + other.0;
    if !sum.is_finite() {
        // Infinite or undefined for good; one form of undefined, so that bytes are equal.
        return (if sum.is_nan() { f64::NAN } else { sum }, 0.0);
    }
    let part = sum - one.0;
    let error = (one.0 - (sum - part)) + (other.0 - part);
    (sum, (one.1 + other.1) + error)
}

impl FixedAggregate for SumFloat {
    type Input<'a> = f64;
    type Output = f64;
    type State = Compensated;

    fn state_type(&self) -> StateType {
        StateType::new("sum_float", 1)
    }
    #[inline]
    fn of(&self, value: f64) -> Compensated {
        (value, 0.0)
    }
    #[inline]
    fn join(&self, one: Compensated, other: Compensated) -> Compensated {
        add(one, other)
    }
    fn output(&self, (sum, lack): Compensated) -> f64 {
        sum + lack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_beside_large_ones_are_not_lost() {
        let values = [1.0, 1e100, 1.0, -1e100];
        let sum =
            values.map(|value| (value, 0.0)).into_iter().reduce(add).map(|state| SumFloat.output(state));
        assert_eq!(sum, Some(2.0));
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        assert_eq!(SumFloat.output(add((f64::INFINITY, 0.0), (1.0, 0.5))), f64::INFINITY);
        assert!(SumFloat.output(add((f64::INFINITY, 0.0), (f64::NEG_INFINITY, 0.0))).is_nan());
    }
}
