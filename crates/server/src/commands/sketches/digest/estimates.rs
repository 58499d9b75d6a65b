//! What centroids answer. Each of one is that value, and so are answers about it; in between values lie evenly from the
//! middle of one centroid to that of the next.

use forebay_aggregate::functions::Centroids;

/// See the module.
pub(super) struct Estimates {
    pub(super) least: f64,
    pub(super) greatest: f64,
    /// How many came.
    pub(super) count: u64,
    all: Vec<Placed>,
}

/// A centroid, and how many are before it.
#[derive(Clone, Copy)]
struct Placed {
    before: f64,
    value: f64,
    weight: f64,
}

impl Placed {
    /// Where it stands for those that come before it, or behind it.
    fn middle(self, is_from_above: bool) -> f64 {
        match (self.weight <= 1.0, is_from_above) {
            (true, true) => self.before,
            (true, false) => self.end(),
            (false, _) => self.before + self.weight / 2.0,
        }
    }

    fn end(self) -> f64 {
        self.before + self.weight
    }
}

/// The place in between of a number between two.
fn between(at: f64, (from, to): (f64, f64), (low, high): (f64, f64)) -> f64 {
    if to <= from {
        return low;
    }
    let share = ((at - from) / (to - from)).clamp(0.0, 1.0);
    // Of the greatest numbers the difference is beyond all of them.
    (low * (1.0 - share) + high * share).clamp(low, high)
}

impl Estimates {
    pub(super) fn new(of: &Centroids) -> Self {
        let mut before = 0.0;
        let placed = |&(value, weight): &(f64, u64)| {
            let placed = Placed { before, value, weight: weight as f64 };
            before = placed.end();
            placed
        };
        let all = of.all.iter().map(placed).collect();
        let count = of.all.iter().map(|one| one.1).fold(0, u64::saturating_add);
        Self { least: of.least, greatest: of.greatest, count, all }
    }

    /// Where the last of so many centroids stands, and its value; or the begin of all.
    fn last_of(&self, count: usize) -> (f64, f64) {
        let last = count.checked_sub(1).and_then(|at| self.all.get(at));
        last.map_or((0.0, self.least), |last| (last.middle(false), last.value))
    }

    /// The same of the first behind so many, or the end of all.
    fn next_of(&self, count: usize) -> (f64, f64) {
        let next = self.all.get(count);
        next.map_or((self.count as f64, self.greatest), |next| (next.middle(true), next.value))
    }

    /// The value that so many come before, of all in order.
    pub(super) fn value_at(&self, place: f64) -> f64 {
        if place <= 0.0 {
            return self.least;
        }
        let at = self.all.partition_point(|one| one.end() <= place);
        let Some(one) = self.all.get(at) else { return self.greatest };
        if one.weight <= 1.0 {
            return one.value;
        }
        let behind = usize::from(place >= one.middle(true));
        let (last, next) = (self.last_of(at + behind), self.next_of(at + behind));
        between(place, (last.0, next.0), (last.1, next.1))
    }

    /// How many are less than a value, and half of those that are equal to it.
    pub(super) fn rank(&self, value: f64) -> f64 {
        if value < self.least {
            return 0.0;
        }
        if value > self.greatest {
            return self.count as f64;
        }
        let less = self.all.partition_point(|one| one.value < value);
        let not_more = self.all.partition_point(|one| one.value <= value);
        if less < not_more {
            let (from, to) = (self.all[less].before, self.all[not_more - 1].end());
            return from + (to - from) / 2.0;
        }
        let (last, next) = (self.last_of(less), self.next_of(less));
        between(value, (last.1, next.1), (last.0, next.0))
    }

    /// The mean of what is left without the lowest and the highest.
    pub(super) fn mean_between(&self, low: f64, high: f64) -> f64 {
        let count = self.count as f64;
        let (low, high) = ((count * low).floor(), (count * high).ceil());
        let (mut weight, mut mean) = (0.0, 0.0);
        for one in &self.all {
            let part = one.end().min(high) - one.before.max(low);
            if part > 0.0 {
                weight += part;
                // No sum, which could be beyond all numbers.
                mean += one.value * (part / weight) - mean * (part / weight);
            }
        }
        if weight > 0.0 { mean } else { f64::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(f64, u64)]) -> Estimates {
        let (least, greatest) = (all[0].0, all[all.len() - 1].0);
        Estimates::new(&Centroids { least, greatest, all: all.to_vec() })
    }

    /// As many as stand by themselves are answered exactly.
    #[test]
    fn single_values_are_exact() {
        let all = of(&[1.0, 2.0, 2.0, 3.0, 3.0, 3.0].map(|value| (value, 1)));
        let values: Vec<f64> = (0..7).map(|place| all.value_at(f64::from(place))).collect();
        assert_eq!(values, [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        let ranks = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0].map(|value| all.rank(value));
        assert_eq!(ranks, [0.0, 0.5, 1.0, 2.0, 3.0, 4.5, 6.0]);
        assert!((all.mean_between(0.2, 0.8) - 10.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn values_lie_evenly_between_centroids() {
        let all =
            Estimates::new(&Centroids { least: 0.0, greatest: 40.0, all: vec![(10.0, 10), (30.0, 10)] });
        let values = [0.0, 2.5, 5.0, 10.0, 15.0, 17.5, 20.0].map(|place| all.value_at(place));
        assert_eq!(values, [0.0, 5.0, 10.0, 20.0, 30.0, 35.0, 40.0]);
        for value in [0.0, 5.0, 10.0, 20.0, 30.0, 35.0, 40.0] {
            assert!((all.value_at(all.rank(value)) - value).abs() < 1e-9, "{value}");
        }
        let huge = of(&[(f64::MIN, 2), (f64::MAX, 2)]);
        assert!((0..=4).all(|place| huge.value_at(f64::from(place)).is_finite()));
        assert!(huge.rank(0.0).is_finite() && huge.mean_between(0.0, 1.0).is_finite());
    }
}
