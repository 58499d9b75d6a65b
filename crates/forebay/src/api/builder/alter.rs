//! Options of a table changed in use.

use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_buffer_tree::TreeOptions;
use forebay_layouts::{RuleName, TableOptions};

use super::{AskedOptions, TableBuilder};
use crate::context::refuse_guests;

impl<K> TableBuilder<K> {
    /// Gives a table that is there the options that were asked for, and leaves the others as they are. Reads and writes
    /// go on; what is written from then on goes by the new options, and what there is once merges come to it: a
    /// node or a run that nothing is added to stays as it is. A crash leaves all old options or all new ones.
    ///
    /// [`f64::INFINITY`] takes away a bound on space amplification, [`Duration::MAX`] a reclaim interval, and `None` a
    /// prefix filter. A bound below
    /// what the table takes has its writers wait until merges have come down to it: compact first. A reclaim interval
    /// that comes so counts for lists and for the log as it is written from then on, not for a log segment that is about
    /// to be used again; files of values that other tables keep apart, which may have old records, are written anew one
    /// after the other, and take as long as that takes. Entries get a new time to live where
    /// their table is opened after this.
    ///
    /// Refused are options that older records could not be read with: a time to live or values apart for a table that was
    /// made without, or none for one that has them, another time to live where operands are merged, and other filters
    /// for trees (layout `jungle`). Layouts are changed by [`Table::set_layout`](crate::Table::set_layout); rules and
    /// compaction filters are given when a table is opened. A [follower](crate::Follower) has the time to live that its
    /// source has, and all else as it likes.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Codec, Database, Options};
    /// let db = Database::open("/db", Options::default().env(env))?;
    /// let events = db.table("events").open()?;
    /// events.put("k", "v")?;
    /// db.table("events").codec(Codec::Lz4).filter_bits_per_key(16).alter()?;
    /// assert_eq!(events.get("k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn alter(&self) -> Result<()> {
        refuse_guests()?;
        self.check_name()?;
        if self.filter.0.is_some() {
            return Err(Error::invalid(format!(
                "table `{}`: a compaction filter is given when the table is opened, and not altered",
                self.name
            )));
        }
        if self.asked.time_to_live.is_some() {
            // It decides what is written.
            self.engine.context.refuse_followers()?;
        }
        self.engine.relayout.alter(&self.name, |table| {
            if self.rule.name != RuleName::None {
                self.agrees_on_rule(&table.rule)?;
            }
            Ok(self.asked.instead_of(&table.options))
        })
    }
}

impl AskedOptions {
    /// What was asked for, and else what there was.
    fn instead_of(&self, before: &TableOptions) -> TableOptions {
        let most = self.max_space_amplification.map(|most| Some(most).filter(|most| *most != f64::INFINITY));
        let interval =
            self.reclaim_interval.map(|interval| Some(interval).filter(|all| *all != Duration::MAX));
        let tree = before.tree;
        TableOptions {
            layout: self.layout.unwrap_or(before.layout),
            filter_bits_per_key: self.filter_bits_per_key.unwrap_or(before.filter_bits_per_key),
            prefix_filter: self.prefix_filter.unwrap_or(before.prefix_filter),
            codec: self.codec.unwrap_or(before.codec),
            max_space_amplification: most.unwrap_or(before.max_space_amplification),
            reclaim_interval: interval.unwrap_or(before.reclaim_interval),
            time_to_live: self.time_to_live.or(before.time_to_live),
            apart_bytes_min: self.apart_bytes_min.or(before.apart_bytes_min),
            tree: TreeOptions {
                node_bytes: self.node_bytes.unwrap_or(tree.node_bytes),
                fan_out: self.fan_out.unwrap_or(tree.fan_out),
                fast_per_slow: self.fast_per_slow.unwrap_or(tree.fast_per_slow),
                lists_max: self.lists_max.unwrap_or(tree.lists_max),
                repeats_max: self.repeats_max.unwrap_or(tree.repeats_max),
            },
        }
    }
}
