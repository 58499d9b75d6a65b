//! A table of a test, opened or made with its options.

use forebay::{Database, Keep, Layout, Result};

use super::Handle;
use crate::config::ASIDE;
use crate::{Config, Merging, Multiset, Suffix, Tripping, is_dropped};

pub(super) fn open(db: &Database, config: &Config, number: usize) -> Result<Handle> {
    let (name, merging) = (name_of(number), config.merging[number]);
    // One that is there may have got another layout since it was made.
    let found = db.tables().into_iter().find(|(table, _)| *table == name).map(|(_, layout)| layout);
    let mut layout = found.unwrap_or_else(|| layout_of(config, number));
    if layout.is_ordered() != keeps_order(config, number) && !merging.has_states() {
        // A crash came while it had another order.
        let table = db.table(&name);
        let table = if merging.has_own_rule() {
            table.merge_rule(Tripping(Suffix, config.trip.clone()))
        } else {
            table
        };
        layout = layout_of(config, number);
        table.open()?.set_layout(layout)?;
    }
    macro_rules! with_options {
        ($builder:expr) => {{
            let mut builder = $builder.layout(layout);
            // One that is there may have got others since.
            if found.is_none() {
                builder = builder
                    .node_bytes(config.node_bytes)
                    .fan_out(config.fan_out)
                    .fast_per_slow(config.fast_per_slow)
                    .lists_max(config.lists_max)
                    .repeats_max(config.repeats_max)
                    .filter_bits_per_key(config.filter_bits_per_key)
                    .codec(config.codec)
                    .prefix_filter(config.prefix_filter(number));
                if let Some(most) = config.max_space_amplification[number] {
                    builder = builder.max_space_amplification(most);
                }
                if let Some(interval) = config.reclaim_interval[number] {
                    builder = builder.reclaim_interval(interval);
                }
                if let Some(bytes) = config.apart_bytes_min(number) {
                    builder = builder.values_apart(bytes);
                }
            }
            builder
        }};
    }
    if merging.has_states() {
        return with_options!(db.aggregator(&name, Tripping(Multiset(merging), config.trip.clone())))
            .deletes(config.deletes_states)
            .open()
            .map(Handle::States);
    }
    let mut builder = with_options!(db.table(&name));
    // One that is there has it.
    if merging == Merging::Greatest && found.is_none() {
        builder = builder.merge_rule(forebay::StoredRule::max());
    }
    if merging.has_own_rule() {
        builder = builder.merge_rule(Tripping(Suffix, config.trip.clone()));
    }
    if let Some(ttl) = config.time_to_live(number) {
        builder = builder.time_to_live(ttl);
    }
    if config.drops(number) {
        let trip = config.trip.clone();
        builder = builder.compaction_filter(move |key, value| {
            trip.call();
            if is_dropped(key, value) { Keep::Drop } else { Keep::Keep }
        });
    }
    match keeps_order(config, number) {
        true => Ok(Handle::Ordered(builder.open_ordered()?.with(config.reading))),
        false => Ok(Handle::Hashed(builder.open()?.with(config.reading))),
    }
}

/// The name of a table.
pub fn name_of(number: usize) -> String {
    format!("table-{number}")
}

/// Whether a table keeps its keys in order.
pub(crate) fn keeps_order(config: &Config, number: usize) -> bool {
    number == ASIDE || config.ordered == (number == 0)
}

fn layout_of(config: &Config, number: usize) -> Layout {
    match &config.aside {
        Some(aside) if number == ASIDE => aside.layout,
        _ if keeps_order(config, number) => config.ordered_layout,
        _ => Layout::wb_tree(),
    }
}
