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

    /// How many keys there are. Who asks while somebody counts waits for that.
    pub(crate) fn of(&self, database: usize, now: u64, count: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let one = &self.0[database];
        let mut known = one.known.lock();
        let writes = one.writes.load(Ordering::SeqCst);
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
        let none = || panic!("it is known");
        assert_eq!(counts.of(3, 5000, || Ok(7)).ok(), Some(7));
        counts.written(4);
        assert_eq!(counts.of(3, 5999, none).ok(), Some(7));
        assert_eq!(counts.of(3, 6000, || Ok(6)).ok(), Some(6));
        // A clock may be set back.
        assert_eq!(counts.of(3, 100, || Ok(5)).ok(), Some(5));
        counts.written(3);
        assert_eq!(counts.of(3, 100, || Ok(8)).ok(), Some(8));
        counts.all_written();
        assert_eq!(counts.of(3, 100, || Ok(0)).ok(), Some(0));
    }
}
