//! Variance and standard deviation: count, mean and sum of squared distances, merged as Chan, Golub and
//! LeVeque do.

use crate::{FixedAggregate, StateType};

/// Which measure of spread a state is finished to. The states are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// The variance of all there are.
    VariancePopulation,
    /// The variance of what these are a sample of; there is none of a single value.
    VarianceSample,
    /// The square root of the first.
    DeviationPopulation,
    /// The square root of the second.
    DeviationSample,
}

/// How far values lie from their mean; the law holds up to rounding.
#[derive(Clone, Copy, Debug)]
pub struct Variance(pub Spread);

impl FixedAggregate for Variance {
    type Input<'a> = f64;
    type Output = Option<f64>;
    type State = (u64, f64, f64);

    fn state_type(&self) -> StateType {
        StateType::new("variance", 1)
    }

    #[inline]
    fn of(&self, value: f64) -> Self::State {
        (1, value, 0.0)
    }

    #[inline]
    fn join(&self, one: Self::State, other: Self::State) -> Self::State {
        // The lighter is added to the heavier, so that it does not matter which comes first.
        let order = one.0.cmp(&other.0).then_with(|| one.1.total_cmp(&other.1));
        let (light, heavy) = if order.is_lt() { (one, other) } else { (other, one) };
        let count = light.0.wrapping_add(heavy.0);
        let (share, distance) = (light.0 as f64 / count as f64, light.1 - heavy.1);
        let mean = heavy.1 + distance * share;
        if !mean.is_finite() {
            // What is infinitely far away makes no spread a number; one form of that, so that bytes are equal.
            return (count, f64::NAN, f64::NAN);
        }
        (count, mean, (light.2 + heavy.2) + distance * distance * share * heavy.0 as f64)
    }

    fn output(&self, (count, _, squares): Self::State) -> Option<f64> {
        let (spare, is_root) = match self.0 {
            Spread::VariancePopulation => (0, false),
            Spread::VarianceSample => (1, false),
            Spread::DeviationPopulation => (0, true),
            Spread::DeviationSample => (1, true),
        };
        let divisor = count.checked_sub(spare).filter(|&divisor| divisor > 0)?;
        let variance = squares / divisor as f64;
        Some(if is_root { variance.sqrt() } else { variance })
    }
}
