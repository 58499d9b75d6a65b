//! What an engine's answer comes to. Two engines whose tallies are the same have counted the same.

use forebay_base::hash::{key_hash, mix};
use serde::{Deserialize, Serialize};

/// The sum of an answer, in whatever order its groups come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) groups: u64,
    /// Of all groups together.
    pub(crate) counted: u64,
    /// Of keys with their counts, where the engine is one of this program's own processes.
    pub(crate) checksum: Option<u64>,
}

impl Tally {
    #[inline]
    pub(crate) fn take(&mut self, key: &[u8], count: u64) {
        self.groups += 1;
        self.counted = self.counted.wrapping_add(count);
        let pair = mix(key_hash(key, 0).wrapping_add(count));
        self.checksum = Some(self.checksum.unwrap_or(0).wrapping_add(pair));
    }

    /// Why two answers of the same keys cannot both be right.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        if (self.groups, self.counted) != (other.groups, other.counted) {
            let Self { groups, counted, .. } = other;
            return Some(format!(
                "{} groups of {} adds, and not {groups} of {counted}",
                self.groups, self.counted
            ));
        }
        let differ = self.checksum.zip(other.checksum).is_some_and(|(one, other)| one != other);
        differ.then(|| "the right number of groups, and other counts for their keys".into())
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn of(groups: &[(&str, u64)]) -> Tally {
        let mut tally = Tally::default();
        groups.iter().for_each(|(key, count)| tally.take(key.as_bytes(), *count));
        tally
    }

    #[test]
    fn order_makes_no_difference_and_counts_do() {
        let tally = of(&[("a", 1), ("b", 2)]);
        assert_eq!(tally.differs(&of(&[("b", 2), ("a", 1)])), None);
        assert!(tally.differs(&of(&[("a", 2), ("b", 1)])).is_some());
        assert!(tally.differs(&of(&[("a", 1), ("c", 2)])).is_some());
        assert!(tally.differs(&of(&[("a", 1), ("b", 1), ("c", 1)])).is_some());
        assert_eq!(tally.differs(&Tally { checksum: None, ..tally.clone() }), None);
    }
}
