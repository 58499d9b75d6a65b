//! Options that a table gets in use: it has them from then on, also once it is opened again.

use std::collections::BTreeMap;

use forebay::{Error, Result, TableDescription};

use crate::harness::Harness;
use crate::{Altered, TABLES, name_of};

impl Harness {
    /// Gives a table other options.
    pub(crate) fn alter(&self, table: usize, altered: &Altered) -> Result<()> {
        let Some(mut wanted) = self.described().remove(&name_of(table)) else { return Ok(()) };
        let Altered { node_bytes, fan_out, fast_per_slow, lists_max, repeats_max, .. } = *altered;
        let Altered { filter_bits_per_key, codec, values_apart, reclaim_interval, .. } = *altered;
        let bits = wanted.filter_bits_per_key;
        let mut asked = self
            .db()
            .table(&name_of(table))
            .node_bytes(node_bytes)
            .fan_out(fan_out)
            .fast_per_slow(fast_per_slow)
            .lists_max(lists_max)
            .repeats_max(repeats_max)
            .filter_bits_per_key(filter_bits_per_key)
            .codec(codec);
        (wanted.node_bytes, wanted.fan_out, wanted.fast_per_slow) = (node_bytes, fan_out, fast_per_slow);
        (wanted.lists_max, wanted.repeats_max) = (lists_max, repeats_max);
        (wanted.filter_bits_per_key, wanted.codec) =
            (filter_bits_per_key, format!("{codec:?}").to_lowercase());
        if self.tables().ordered(table).is_some() {
            let prefixes = altered.prefix_filter.filter(|_| filter_bits_per_key > 0);
            asked = asked.prefix_filter(prefixes);
            wanted.prefix_filter = prefixes.map(|prefixes| prefixes.to_string());
        }
        // What a table promises, or keeps apart, it goes on doing, by another number.
        if wanted.values_apart_bytes_min.is_some() {
            asked = asked.values_apart(values_apart);
            wanted.values_apart_bytes_min = Some(values_apart);
        }
        if wanted.reclaim_interval_seconds.is_some() {
            asked = asked.reclaim_interval(reclaim_interval);
            wanted.reclaim_interval_seconds = Some(reclaim_interval.as_secs());
        }
        if wanted.max_space_amplification.is_some() {
            asked = asked.max_space_amplification(altered.max_space_amplification);
            wanted.max_space_amplification = Some(altered.max_space_amplification);
        }
        match asked.alter() {
            Err(Error::Invalid(reason)) => {
                let has_trees = bits != filter_bits_per_key && reason.contains("it has trees");
                // A crash, or a want of room, has left it in hash order, or it is of states.
                assert!(has_trees || reason.contains("prefix_filter"), "{altered:?}: {reason}");
                Ok(())
            }
            outcome => {
                outcome?;
                let now = self.described().remove(&name_of(table)).map(|now| options_of(&now));
                assert_eq!(now, Some(options_of(&wanted)), "options that were given");
                Ok(())
            }
        }
    }

    /// Closes and opens.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let before = self.open.as_ref().map(|_| self.told_options()).unwrap_or_default();
        self.close()?;
        self.open_again()?;
        let mut now = self.told_options();
        now.retain(|name, _| before.contains_key(name));
        assert_eq!(now, before, "options of tables after closing in order");
        Ok(())
    }

    /// The options of each table, but for the layout.
    fn told_options(&self) -> BTreeMap<String, String> {
        self.described().into_iter().map(|(name, table)| (name, options_of(&table))).collect()
    }

    fn described(&self) -> BTreeMap<String, TableDescription> {
        let names: Vec<String> = (0..TABLES).map(name_of).collect();
        let tables = self.db().describe().tables.into_iter().filter(|table| names.contains(&table.name));
        tables.map(|table| (table.name.clone(), table)).collect()
    }
}

fn options_of(table: &TableDescription) -> String {
    let TableDescription { node_bytes, fan_out, fast_per_slow, lists_max, repeats_max, codec, .. } = table;
    let TableDescription { filter_bits_per_key, prefix_filter, max_space_amplification, .. } = table;
    let TableDescription { reclaim_interval_seconds, time_to_live_milliseconds, .. } = table;
    format!(
        "node_bytes {node_bytes}, fan_out {fan_out}, fast_per_slow {fast_per_slow}, lists_max {lists_max}, repeats_max \
         {repeats_max}, codec {codec}, filter_bits_per_key {filter_bits_per_key}, prefix_filter {prefix_filter:?}, \
         max_space_amplification {max_space_amplification:?}, reclaim_interval {reclaim_interval_seconds:?}, time_to_live \
         {time_to_live_milliseconds:?}, values_apart {:?}",
        table.values_apart_bytes_min
    )
}
