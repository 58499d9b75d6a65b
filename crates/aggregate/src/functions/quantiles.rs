//! Quantiles within a stated error: [`ApproxQuantiles`], one of the [sketches](super::sketches).

use datasketches::tdigest::TDigestMut;
use forebay_base::wire::{u32_at, u64_at};
use forebay_base::{Error, Result};

use super::sketches::{WEIGHT_MAX, refused};
use crate::columns::OfRun;
use crate::{Aggregate, StateType};

/// About which value stands at which share of all, by a t-digest. States of up to 512 values hold these, in order. Of
/// more, merging in another order may give other bytes: the law holds up to the sketch's error, which is least at both
/// ends.
#[derive(Clone, Debug)]
pub struct ApproxQuantiles {
    k: u16,
    ranks: Box<[f64]>,
}

impl ApproxQuantiles {
    /// The values at `ranks`, each from 0 to 1, with a compression of `k`, at least 10; 200 is usual.
    pub fn new(k: u16, ranks: impl Into<Box<[f64]>>) -> Result<Self> {
        let ranks = ranks.into();
        if ranks.is_empty() || !ranks.iter().all(|rank| (0.0..=1.0).contains(rank)) {
            return Err(Error::invalid("a quantile is a share from 0 to 1, such as 0.5"));
        }
        TDigestMut::new(k).map_err(|error| refused(&error))?;
        Ok(Self { k, ranks })
    }

    /// A digest of this compression in the library's own format; other formats of the same family are not
    /// told apart by length before they are read.
    fn read(&self, state: &[u8]) -> Option<TDigestMut> {
        let is_own_format = state.get(2).is_some_and(|&family| family != 0);
        let digest = is_own_format.then(|| TDigestMut::deserialize(state).ok())??;
        (digest.k() == self.k && digest.total_weight() < WEIGHT_MAX).then_some(digest)
    }

    /// All values of some states, in order, where they have nothing else, and so few that one state holds them as they
    /// are.
    fn few_values(&self, states: &[&[u8]]) -> Option<Vec<f64>> {
        let values = states.iter().map(|state| self.plain_values(state)).collect::<Option<Vec<_>>>()?;
        let count: usize = values.iter().map(|values| values.len()).sum();
        if count > UNMERGED_MAX {
            return None;
        }
        let mut all: Vec<f64> =
            values.into_iter().flatten().map(|value| f64::from_le_bytes(*value)).collect();
        // The standard stable sort finds the runs and merges them.
        all.sort_by(f64::total_cmp);
        (!all.is_empty() && all.iter().all(|value| value.is_finite())).then_some(all)
    }

    /// The state of values, all at once. Those that are no finite numbers are left out.
    pub fn of_values(&self, mut values: Vec<f64>) -> Vec<u8> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let mut state = Vec::new();
        if !values.is_empty() {
            self.write(&values, &mut state);
        }
        state
    }

    /// A state of any compression, in this one's. Of fewer values than stand as they are nothing is lost.
    pub fn converted(&self, state: &[u8]) -> Result<Vec<u8>> {
        let malformed = || self.state_type().malformed(state);
        let k = state.get(3..5).and_then(|k| Some(u16::from_le_bytes(k.try_into().ok()?)));
        let source = Self { k: k.ok_or_else(malformed)?, ranks: self.ranks.clone() };
        if let Some(values) = source.few_values(&[state]) {
            return Ok(self.of_values(values));
        }
        let digest = source.read(state).ok_or_else(malformed)?;
        let mut converted = TDigestMut::new(self.k).map_err(|error| refused(&error))?;
        converted.merge(&digest);
        Ok(converted.serialize())
    }

    /// What a state has, which other questions than quantiles can be asked.
    pub fn centroids(&self, state: &[u8]) -> Result<Centroids> {
        let malformed = || self.state_type().malformed(state);
        let mut digest = self.read(state).ok_or_else(malformed)?;
        let least = digest.min_value().ok_or_else(malformed)?;
        let greatest = digest.max_value().ok_or_else(malformed)?;
        if let Some(values) = self.few_values(&[state]) {
            let all = values.into_iter().map(|value| (value, 1)).collect();
            return Ok(Centroids { least, greatest, all });
        }
        let bytes = digest.serialize();
        let rest = bytes.get(CENTROIDS_AT..).unwrap_or_default();
        let all = rest.as_chunks::<16>().0.iter();
        let all = all.map(|one| (f64_at(one, 0), u64_at(one, 8))).collect();
        Ok(Centroids { least, greatest, all })
    }

    /// The values of a state that has nothing else.
    fn plain_values<'s>(&self, state: &'s [u8]) -> Option<&'s [[u8; 8]]> {
        let Some(([longs, VERSION, TDIGEST_FAMILY, k @ .., flags, 0, 0], rest)) =
            state.split_first_chunk::<8>()
        else {
            return None;
        };
        let (values, count) = match (*longs, *flags & !IS_REVERSED) {
            (OF_ONE, IS_SINGLE) => (rest, 1),
            (OF_MANY, 0) => {
                // How many centroids and values there are, and the least and greatest.
                let (head, values) = rest.split_first_chunk::<24>()?;
                (values, if u32_at(head, 0) == 0 { u32_at(head, 4) as usize } else { 0 })
            }
            _ => return None,
        };
        let (values, rest) = values.as_chunks::<8>();
        (u16::from_le_bytes(*k) == self.k && values.len() == count && rest.is_empty()).then_some(values)
    }
}

/// Values in order, of which each stands for so many about it, and the least and the greatest of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Centroids {
    /// Exactly.
    pub least: f64,
    /// Exactly.
    pub greatest: f64,
    /// Each a mean, and how many it is of. One of one is that.
    pub all: Vec<(f64, u64)>,
}

fn f64_at(bytes: &[u8], at: usize) -> f64 {
    f64::from_bits(u64_at(bytes, at))
}

/// Where a state of more than one value that has no unmerged ones has its centroids.
const CENTROIDS_AT: usize = 32;
/// No more values are in a state as they are: they would take more than what they are merged to.
const UNMERGED_MAX: usize = 512;
/// The family of these digests, in the library's own format, and its version.
const TDIGEST_FAMILY: u8 = 20;
const VERSION: u8 = 1;
/// What a state begins with that has one value, or more: so many times eight bytes come before values.
const OF_ONE: u8 = 1;
const OF_MANY: u8 = 2;
const IS_SINGLE: u8 = 2;
const IS_REVERSED: u8 = 4;

impl OfRun for ApproxQuantiles {
    fn takes(&self, value: f64) -> bool {
        value.is_finite()
    }

    /// A few values stand as they are behind the head that the library reads: merging takes them together.
    fn write(&self, values: &[f64], state: &mut Vec<u8>) {
        let digest = || {
            let mut digest = TDigestMut::new(self.k).ok()?;
            values.iter().for_each(|value| digest.update(*value));
            Some(digest.serialize())
        };
        match values {
            [least, .., greatest] if values.len() <= UNMERGED_MAX => {
                state.extend_from_slice(&[OF_MANY, VERSION, TDIGEST_FAMILY]);
                state.extend_from_slice(&self.k.to_le_bytes());
                state.extend_from_slice(&[0; 3]);
                state.extend_from_slice(&0_u32.to_le_bytes());
                state.extend_from_slice(&(values.len() as u32).to_le_bytes());
                for value in [least, greatest].into_iter().chain(values) {
                    state.extend_from_slice(&value.to_le_bytes());
                }
            }
            _ => state.extend(digest().into_iter().flatten()),
        }
    }
}

impl Aggregate for ApproxQuantiles {
    type Input<'a> = f64;
    /// The values at the ranks asked for.
    type Output = Vec<f64>;

    fn state_type(&self) -> StateType {
        StateType::new("tdigest", 1).with("k", self.k)
    }

    fn lift(&self, value: f64, state: &mut Vec<u8>) -> Result<()> {
        if !value.is_finite() {
            return Err(Error::invalid(format!("a quantile takes finite numbers, not {value}")));
        }
        let mut digest = TDigestMut::new(self.k).map_err(|error| refused(&error))?;
        digest.update(value);
        state.extend_from_slice(&digest.serialize());
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        if let Some(values) = self.few_values(states) {
            return self.write(&values, out);
        }
        let mut digests = states.iter().filter_map(|state| self.read(state));
        let Some(mut merged) = digests.next() else { return };
        for digest in digests {
            if merged.total_weight() < WEIGHT_MAX {
                merged.merge(&digest);
            }
        }
        out.extend_from_slice(&merged.serialize());
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<f64>> {
        let malformed = || self.state_type().malformed(state);
        let mut digest = self.read(state).ok_or_else(malformed)?;
        digest.quantiles(&self.ranks).ok().flatten().ok_or_else(malformed)
    }
}
