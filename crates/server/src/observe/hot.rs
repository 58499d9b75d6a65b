//! [`HotKeys`]: the keys that commands name most often lately, by a space-saving sketch (Metwally, Agrawal and El Abbadi,
//! 2005) of a sample. What it takes does not depend on how many keys there are.
//!
//! **Invariant:** a key that is in more than one of [`PLACES`] of the samples has a place.

use std::collections::HashMap;

use forebay_env::Rng;
use forebay_env::sync::Mutex;

/// So many keys are counted.
const PLACES: usize = 256;
/// About one request of so many is looked at: a power of two.
const SAMPLED: u64 = 128;
/// What is kept of a key.
const KEY_BYTES_MAX: usize = 128;
/// Counts are halved so often.
const HALVED_SECONDS: u64 = 10;

/// Which requests of a loop are looked at. The steps are drawn, so that no pattern of requests hides from them.
pub(crate) struct Sampler {
    left: u64,
    rng: Rng,
}

impl Sampler {
    pub(crate) fn new(seed: u64) -> Self {
        Self { left: SAMPLED, rng: Rng::new(seed) }
    }

    pub(crate) fn takes(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = 1 + self.rng.below(2 * SAMPLED - 1);
        true
    }
}

/// A key, and how much of the sample it is.
#[derive(Debug, PartialEq)]
pub(crate) struct Hot {
    pub(crate) database: usize,
    /// Its beginning, escaped.
    pub(crate) key: String,
    pub(crate) share: f64,
    /// How much of that were commands that write.
    pub(crate) writes: f64,
}

#[derive(Debug)]
struct Place {
    hash: u64,
    database: usize,
    key: Vec<u8>,
    /// So many of its count may be of those that had the place before.
    inherited: u64,
    writes: u64,
}

#[derive(Debug, Default)]
struct Sketch {
    counts: Vec<u64>,
    places: Vec<Place>,
    by_hash: HashMap<u64, usize>,
    samples: u64,
    halved_at: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct HotKeys(Mutex<Sketch>);

impl HotKeys {
    /// Notes that a command of the sample names a key.
    pub(crate) fn note(&self, database: usize, key: &[u8], writes: bool, now_seconds: u64) {
        self.0.lock().note(database, key, writes, now_seconds);
    }

    /// Notes a command of the sample that names none.
    pub(crate) fn note_other(&self) {
        self.0.lock().samples += 1;
    }

    /// The hottest first.
    pub(crate) fn hottest(&self, most: usize, now_seconds: u64) -> Vec<Hot> {
        let mut sketch = self.0.lock();
        sketch.halve(now_seconds);
        let Sketch { counts, places, samples, .. } = &*sketch;
        let sure = |at: &usize| counts[*at].saturating_sub(places[*at].inherited);
        // What was seen once or twice says nothing.
        let mut all: Vec<usize> = (0..places.len()).filter(|at| sure(at) > 2).collect();
        all.sort_by_key(|at| (std::cmp::Reverse(sure(at)), *at));
        let shown = |at: usize| {
            let Place { database, key, writes, .. } = &places[at];
            let share = sure(&at) as f64 / (*samples).max(1) as f64;
            let writes = (*writes as f64 / sure(&at) as f64).min(1.0);
            Hot { database: *database, key: key.escape_ascii().to_string(), share, writes }
        };
        all.into_iter().take(most).map(shown).collect()
    }
}

impl Sketch {
    fn note(&mut self, database: usize, key: &[u8], writes: bool, now: u64) {
        self.halve(now);
        self.samples += 1;
        let hash = rapidhash::v3::rapidhash_v3(key) ^ (database as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = match self.by_hash.get(&hash) {
            Some(at) => *at,
            None => self.place(hash, database, key),
        };
        self.counts[at] += 1;
        self.places[at].writes += u64::from(writes);
    }

    /// A place for a new key: that of the one that was seen least.
    fn place(&mut self, hash: u64, database: usize, key: &[u8]) -> usize {
        let kept = key[..key.len().min(KEY_BYTES_MAX)].to_vec();
        let place = |inherited| Place { hash, database, key: kept, inherited, writes: 0 };
        let at = match self.places.len() {
            PLACES => (0..PLACES).min_by_key(|at| self.counts[*at]).unwrap_or(0),
            free => free,
        };
        if at == self.places.len() {
            self.counts.push(0);
            self.places.push(place(0));
        } else {
            let before = std::mem::replace(&mut self.places[at], place(self.counts[at]));
            self.by_hash.remove(&before.hash);
        }
        self.by_hash.insert(hash, at);
        at
    }

    fn halve(&mut self, now: u64) {
        let times = u32::try_from(now.saturating_sub(self.halved_at) / HALVED_SECONDS).unwrap_or(u32::MAX);
        if times > 0 {
            let by = |number: &mut u64| *number = number.checked_shr(times).unwrap_or(0);
            self.halved_at = now;
            by(&mut self.samples);
            self.counts.iter_mut().for_each(by);
            self.places.iter_mut().for_each(|place| {
                by(&mut place.inherited);
                by(&mut place.writes);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_keys_have_places_however_many_others_there_are() {
        let (keys, mut sampler, mut samples) = (HotKeys::default(), Sampler::new(7), 0);
        for number in 0..1_000_000_u32 {
            if sampler.takes() {
                samples += 1;
                match number % 10 {
                    0..3 => keys.note(0, b"hot\xff", number % 2 == 0, 1),
                    3 => keys.note(1, b"warm", true, 1),
                    4 => keys.note_other(),
                    _ => keys.note(0, format!("{number}").as_bytes(), false, 1),
                }
            }
        }
        assert!((1_000_000 / 160..1_000_000 / 100).contains(&samples), "{samples} samples");
        let all = keys.hottest(2, 1);
        assert_eq!([&all[0].key[..], &all[1].key], ["hot\\xff", "warm"]);
        assert_eq!([all[0].database, all[1].database], [0, 1]);
        assert!((0.25..0.32).contains(&all[0].share) && (0.08..0.12).contains(&all[1].share), "{all:?}");
        assert!((0.6..0.75).contains(&all[0].writes) && all[1].writes > 0.99, "{all:?}");
        assert!(keys.0.lock().places.len() == PLACES && keys.0.lock().by_hash.len() == PLACES);
    }

    #[test]
    fn what_was_hot_cools_down() {
        let keys = HotKeys::default();
        (0..1000).for_each(|_| keys.note(0, b"before", false, 5));
        (0..1000).for_each(|_| keys.note(0, &[b'n'; 5000], false, 15));
        let all = keys.hottest(9, 15);
        assert_eq!((all.len(), all[0].key.len(), &all[1].key[..]), (2, KEY_BYTES_MAX, "before"));
        assert!(all[0].share > 0.6 && all[1].share < 0.4, "{all:?}");
        assert_eq!(keys.hottest(9, u64::MAX), []);
    }
}
