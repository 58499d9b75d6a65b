//! [`KeyCounts`]: how many keys each database has, as they were counted last.
//!
//! **Invariant:** a count that is told has all writes that were answered before it was asked for. Keys that have expired may
//! be in it for a second.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay::Result;
use forebay_env::sync::Mutex;

use crate::shared::DATABASES;

/// For so long keys that expire are not looked for.
const KEPT_MILLISECONDS: u64 = 1000;

#[derive(Default)]
pub(crate) struct KeyCounts([KeyCount; DATABASES]);

#[derive(Default)]
struct KeyCount {
    /// How often keys were written.
    writes: AtomicU64,
    known: Mutex<Option<Known>>,
}

struct Known {
    writes: u64,
    at_milliseconds: u64,
    keys: u64,
}

impl KeyCounts {
    /// Notes that keys of a database were written, once others see them.
    pub(crate) fn written(&self, database: usize) {
        self.0[database].writes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn all_written(&self) {
        (0..DATABASES).for_each(|database| self.written(database));
    }

    /// How often keys of a database were written by now.
    pub(crate) fn writes(&self, database: usize) -> u64 {
        self.0[database].writes.load(Ordering::SeqCst)
    }

    /// How many keys there were behind so many writes. Who asks while somebody counts waits for that.
    pub(crate) fn of(
        &self,
        database: usize,
        now: u64,
        writes: u64,
        count: impl FnOnce() -> Result<u64>,
    ) -> Result<u64> {
        let mut known = self.0[database].known.lock();
        let is_new = |found: &&Known| {
            found.writes == writes
                && (0..KEPT_MILLISECONDS).contains(&now.wrapping_sub(found.at_milliseconds))
        };
        if let Some(found) = known.as_ref().filter(is_new) {
            return Ok(found.keys);
        }
        let keys = count()?;
        *known = Some(Known { writes, at_milliseconds: now, keys });
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_told_again_until_keys_are_written_or_may_have_expired() {
        let counts = KeyCounts::default();
        let ask = |at, keys: Option<u64>| {
            counts.of(3, at, counts.writes(3), || Ok(keys.expect("it is known"))).expect("it is counted")
        };
        assert_eq!(ask(5000, Some(7)), 7);
        counts.written(4);
        assert_eq!(ask(5999, None), 7);
        assert_eq!(ask(6000, Some(6)), 6);
        // A clock may be set back.
        assert_eq!(ask(100, Some(5)), 5);
        counts.written(3);
        assert_eq!(ask(100, Some(8)), 8);
        let before = counts.writes(3);
        counts.all_written();
        assert_eq!(ask(100, Some(0)), 0);
        // A count of before tells nobody of now.
        assert_eq!(counts.of(3, 100, before, || Ok(8)).ok(), Some(8));
        assert_eq!(ask(100, Some(0)), 0);
    }
}
