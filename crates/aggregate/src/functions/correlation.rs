//! How far two columns go together: count, means, squared distances and the product of distances, merged as Chan, Golub
//! and LeVeque merge a variance.

use crate::{FixedAggregate, StateType};

/// Which measure a state is finished to. The states are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Pearson's coefficient, from -1 to 1.
    Coefficient,
    /// Its square: the share of one column's variance that a straight line over the other explains.
    Determination,
}

/// How far pairs of numbers lie on a straight line; the law holds up to rounding. There is no answer where either
/// number is always the same.
#[derive(Clone, Copy, Debug)]
pub struct Correlation(pub Fit);

impl FixedAggregate for Correlation {
    type Input<'a> = (f64, f64);
    type Output = Option<f64>;
    /// Count; both means; squared distances of both, and the product of distances.
    type State = (u64, (f64, f64), (f64, f64, f64));

    fn state_type(&self) -> StateType {
        StateType::new("correlation", 1)
    }

    #[inline]
    fn of(&self, pair: (f64, f64)) -> Self::State {
        (1, pair, (0.0, 0.0, 0.0))
    }

    #[inline]
    fn join(&self, one: Self::State, other: Self::State) -> Self::State {
        // The lighter is added to the heavier, so that it does not matter which comes first.
        let order = one.0.cmp(&other.0);
        let order = order.then_with(|| one.1.0.total_cmp(&other.1.0));
        let order = order.then_with(|| one.1.1.total_cmp(&other.1.1));
        let (light, heavy) = if order.is_lt() { (one, other) } else { (other, one) };
        let count = light.0.wrapping_add(heavy.0);
        let share = light.0 as f64 / count as f64;
        let (x, y) = (light.1.0 - heavy.1.0, light.1.1 - heavy.1.1);
        let means = (heavy.1.0 + x * share, heavy.1.1 + y * share);
        let weight = share * heavy.0 as f64;
        let squares = (
            (light.2.0 + heavy.2.0) + x * x * weight,
            (light.2.1 + heavy.2.1) + y * y * weight,
            (light.2.2 + heavy.2.2) + x * y * weight,
        );
        let all = [means.0, means.1, squares.0, squares.1, squares.2];
        match all.iter().all(|number| number.is_finite()) {
            true => (count, means, squares),
            // Nothing is known any more; one form of that, so that bytes are equal.
            false => (count, (f64::NAN, f64::NAN), (f64::NAN, f64::NAN, f64::NAN)),
        }
    }

    fn output(&self, (_, _, (x, y, product)): Self::State) -> Option<f64> {
        if x == 0.0 || y == 0.0 {
            return None;
        }
        // Rounding may lead a little beyond. Roots apart, so that no product overflows.
        let coefficient = (product / x.sqrt() / y.sqrt()).clamp(-1.0, 1.0);
        Some(match self.0 {
            Fit::Coefficient => coefficient,
            Fit::Determination => coefficient * coefficient,
        })
    }
}
