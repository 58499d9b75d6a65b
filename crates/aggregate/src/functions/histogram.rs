//! How many values fall between fixed bounds.

use forebay_base::{Error, Result};

use crate::{Aggregate, Plain, StateType};

/// The most bounds a histogram may have.
const BOUNDS_MAX: usize = 4096;

/// Counts of values between fixed bounds: a state is one count below each bound and one above the last.
/// NaN counts as above.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: Box<[f64]>,
}

/// One bin of a finished histogram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bin {
    /// Values in it are below this; the last one's is infinite.
    pub below: f64,
    /// How many are below it and not below the bin before.
    pub count: u64,
}

impl Histogram {
    /// A histogram of these bounds, which are numbers that rise.
    pub fn new(bounds: impl Into<Box<[f64]>>) -> Result<Self> {
        let bounds = bounds.into();
        let rises = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if bounds.is_empty() || bounds.len() > BOUNDS_MAX || !rises || !bounds.iter().all(|b| b.is_finite()) {
            return Err(Error::invalid(format!(
                "a histogram takes 1 to {BOUNDS_MAX} bounds that rise, as in 0;10;100"
            )));
        }
        // One zero, so that equal bounds print equally.
        Ok(Self { bounds: bounds.iter().map(|bound| bound + 0.0).collect() })
    }

    fn bytes(&self) -> usize {
        (self.bounds.len() + 1) * u64::BYTES
    }
}

impl Aggregate for Histogram {
    type Input<'a> = f64;
    type Output = Vec<Bin>;

    fn state_type(&self) -> StateType {
        let bounds: Vec<String> = self.bounds.iter().map(f64::to_string).collect();
        StateType::new("histogram", 1).with("bounds", bounds.join(";"))
    }

    fn state_bytes(&self) -> Option<usize> {
        Some(self.bytes())
    }

    fn lift(&self, value: f64, state: &mut Vec<u8>) -> Result<()> {
        let start = state.len();
        state.resize(start + self.bytes(), 0);
        let bin = if value.is_nan() {
            self.bounds.len()
        } else {
            self.bounds.partition_point(|&bound| bound <= value)
        };
        debug_assert!(bin <= self.bounds.len(), "behind the last bound is one more bin");
        1u64.write(&mut state[start + bin * u64::BYTES..]);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let Some((first, others)) = states.split_first() else { return };
        let start = out.len();
        out.extend_from_slice(first);
        for other in others {
            self.merge_in_place(&mut out[start..], other);
        }
    }

    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        for (one, other) in state.chunks_exact_mut(u64::BYTES).zip(other.chunks_exact(u64::BYTES)) {
            if let (Some((count, _)), Some((more, _))) = (u64::read(one), u64::read(other)) {
                count.wrapping_add(more).write(one);
            }
        }
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<Bin>> {
        if state.len() != self.bytes() {
            return Err(self.state_type().malformed(state));
        }
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = state.chunks_exact(u64::BYTES).filter_map(u64::read).map(|(count, _)| count);
        Ok(bounds.zip(counts).map(|(below, count)| Bin { below, count }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_below_the_first_greater_bound() -> Result<()> {
        let histogram = Histogram::new([0.0, 10.0])?;
        for (value, bin) in [(-1.0, 0), (0.0, 1), (9.9, 1), (10.0, 2), (f64::NAN, 2), (f64::INFINITY, 2)] {
            let mut state = Vec::new();
            histogram.lift(value, &mut state)?;
            let counts: Vec<u64> = histogram.finish(&state)?.iter().map(|bin| bin.count).collect();
            assert_eq!(counts.iter().position(|&count| count == 1), Some(bin), "{value}");
        }
        Ok(())
    }

    #[test]
    fn bounds_must_rise() {
        for bounds in [vec![], vec![1.0, 1.0], vec![f64::NAN], vec![2.0, 1.0]] {
            assert!(Histogram::new(bounds).is_err());
        }
    }
}
