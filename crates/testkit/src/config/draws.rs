//! Draws of parts of a configuration.

use forebay::aggregate::Groupings;
use forebay::{Layout, Pool, PrefixFilter, ReadOptions};
use forebay_env::Rng;

use crate::TABLES;

/// A pool's memory: little more than a few databases need.
const POOL_BYTES: u64 = 4 << 20;

/// Every organisation that keeps keys in order, with parameters that make it busy.
pub fn ordered_layouts() -> Vec<Layout> {
    let names = [
        "wb-tree:ordered",
        "no-merge",
        "immediate",
        "geometric:r=2",
        "geometric:r=3",
        "geometric:p=2",
        "range-merge",
        "range-merge:c=1.5",
        "range-merge:c=4,inline=9",
        "leveling:t=3",
        "leveling",
        "tiering:t=2",
        "tiering:t=4",
        "stacks:t=2",
        "stacks:t=4",
        "lazy-leveling:t=3",
        "jungle:c=1.5,t=3",
        "jungle",
        "jungle:c=2,t=3,levels=live",
        "jungle:c=2,t=3,upper=4",
        "jungle:c=2,t=3,inline=4",
    ];
    names.iter().map(|name| name.parse().expect("names of layouts")).collect()
}

/// One of them.
pub(crate) fn draw_layout(rng: &mut Rng) -> Layout {
    let layouts = ordered_layouts();
    layouts[rng.index(layouts.len())]
}

/// One that keeps records in memory.
pub(crate) fn draw_resident_layout(rng: &mut Rng) -> Layout {
    let layouts: Vec<Layout> = ordered_layouts().into_iter().filter(Layout::keeps_in_memory).collect();
    layouts[rng.index(layouts.len())]
}

/// A cube's groupings of two columns.
pub(crate) fn draw_groupings(rng: &mut Rng) -> Groupings {
    let drawn = match rng.below(3) {
        0 => Groupings::cube(2),
        1 => Groupings::rollup(2),
        _ => Groupings::sets(2, [[1]]),
    };
    drawn.expect("two columns are few")
}

/// Of keys as they are drawn many have one of these.
pub(crate) fn draw_prefix_filter(rng: &mut Rng) -> Option<PrefixFilter> {
    let (bytes, until) = ([1, 2, 9][rng.index(3)], [0, b'a', 0xff][rng.index(3)]);
    [None, Some(PrefixFilter::Bytes(bytes)), Some(PrefixFilter::Until(until))][rng.index(3)]
}

/// As usual, or otherwise; what is read is the same.
pub(super) fn draw_reading(rng: &mut Rng) -> ReadOptions {
    let reading = ReadOptions::default().fill_cache(rng.chance(60));
    if rng.chance(30) { reading.read_ahead_bytes([1, 20 << 10, 1 << 20][rng.index(3)]) } else { reading }
}

pub(super) fn draw_prefix_filters(rng: &mut Rng) -> [Option<PrefixFilter>; TABLES] {
    std::array::from_fn(|_| draw_prefix_filter(rng))
}

/// Mostly none.
pub(crate) fn draw_rate(rng: &mut Rng) -> u64 {
    [0, 0, 0, 1 << 20, 256 << 10][rng.index(5)]
}

/// Mostly as usual; else room for few write buffers, or for many.
pub(super) fn draw_resident(rng: &mut Rng) -> Option<u32> {
    [None, None, Some(4), Some(20)][rng.index(4)]
}

/// A pool of its own.
pub(super) fn draw_pool(rng: &mut Rng) -> Pool {
    Pool::new(POOL_BYTES, [1, 2, 4][rng.index(3)]).expect("memory and threads are enough")
}
