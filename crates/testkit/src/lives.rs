//! How long entries live, beside the model.

use std::time::Duration;

use forebay::Result;

use crate::harness::{Harness, after, until};
use crate::seen::split;
use crate::{Change, Life, Write};

const NEVER: u64 = u64::MAX;

impl Harness {
    /// Asks when an entry expires, or says so.
    pub(crate) fn change_life(&mut self, table: usize, key: &[u8], life: &Life) -> Result<()> {
        let now = self.engine_time();
        let (Some(plain), Some(shown)) = (self.tables().plain(table).cloned(), self.certain(table, key))
        else {
            return Ok(());
        };
        // Where a write waits for room first, it may have got later until it looks.
        if self.config.time_to_live(table).is_none() || self.config.max_space_amplification[table].is_some() {
            return Ok(());
        }
        let old = shown.map(|value| {
            let stored = self.model.table(table).get(key).map_or(&[][..], |stored| stored);
            (value, split(stored).1)
        });
        let put = |value: &[u8], expiry: u64| {
            vec![Change { table, key: key.to_vec(), write: Write::Put(until(value, expiry)) }]
        };
        let end = match life {
            Life::Ask => {
                let wanted = old.map(|(value, expiry)| (value, (expiry != NEVER).then_some(expiry)));
                assert_eq!(plain.get_with_expiry(key)?, wanted, "a value, and when it expires");
                return Ok(());
            }
            Life::Merge(operand, milliseconds) => {
                return self.merge_life(table, key, operand, old.map(|(_, expiry)| expiry), *milliseconds);
            }
            Life::End(milliseconds) => now + milliseconds,
            Life::Persist => NEVER,
        };
        let outcome = if end == NEVER { plain.persist(key) } else { plain.expire(key, end) };
        let changes = old.as_ref().map_or(Vec::new(), |(value, _)| put(value, end));
        let is_meant = old.as_ref().is_some_and(|(_, expiry)| *expiry != end);
        if let Some(was_there) = self.replaced(is_meant, changes, outcome)? {
            assert_eq!(was_there, old.is_some(), "whether there was an entry");
        }
        Ok(())
    }

    /// Merges an operand into the entry that is there, whose expiry is given, or begins one.
    fn merge_life(
        &mut self,
        table: usize,
        key: &[u8],
        operand: &[u8],
        old: Option<u64>,
        milliseconds: u64,
    ) -> Result<()> {
        let Some(plain) = self.tables().plain(table).cloned() else { return Ok(()) };
        let ttl = Duration::from_millis(milliseconds);
        if !self.config.merging[table].has_operands() {
            assert!(plain.merge_with_ttl(key, operand, ttl).is_err(), "an operand without a rule");
            return Ok(());
        }
        let expiry = old.unwrap_or_else(|| after(self.engine_time(), ttl));
        let outcome = plain.merge_with_ttl(key, operand, ttl);
        let write = Write::Merge(until(operand, expiry));
        let changes = vec![Change { table, key: key.to_vec(), write }];
        if let Some(told) = self.replaced(true, changes, outcome)? {
            assert_eq!(told, (expiry != NEVER).then_some(expiry), "when the entry expires");
        }
        Ok(())
    }
}
