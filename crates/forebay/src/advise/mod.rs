//! Which layout for which table: what a user knows of it, priced by the planner without data under every layout.
//!
//! 1. The table's life is [simulated](crate::simulate) under each candidate: all keys, each rewritten as often as is
//!    said. Figures that rise and fall are averages over the second half of it.
//! 2. What a write, a get and a range cost of the processor and of the device follows, by the constants of `measured`.
//! 3. Candidates are ranked by the machine's time that the workload takes of each second. Those that break a limit come
//!    last, and say which.
//!
//! `docs/guide/layouts.md` says what is assumed, and how often the advice was right.

mod measured;
mod prices;
mod reads;
mod switch;
mod workload;

use forebay_base::{Error, Result};
use forebay_layouts::Layout;
use serde::{Serialize, Serializer};

use crate::Options;
use prices::Candidate;

pub use prices::Prices;
pub use switch::{Switch, switch};
pub use workload::{Limits, Machine, Popularity, Workload, Writes};

/// A layout with its options, and what it costs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// For [`TableBuilder::layout`](crate::TableBuilder::layout).
    #[serde(serialize_with = "as_text")]
    pub layout: Layout,
    /// For [`TableBuilder::values_apart`](crate::TableBuilder::values_apart), if that is worth it.
    pub values_apart: Option<u32>,
    /// What it costs.
    pub prices: Prices,
    /// The limits that it would break, each with its figure.
    pub breaks: Vec<String>,
}

fn as_text<S: Serializer>(layout: &Layout, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(layout)
}

/// What is tried, in key order but for the first. `range-merge` and `immediate` write many times as much, and are for
/// study; the first also takes the planner half a minute.
const LAYOUTS: [&str; 14] = [
    "wb-tree",
    "wb-tree:ordered",
    "no-merge",
    "tiering:t=10",
    "tiering:t=4",
    "geometric:r=3",
    "geometric:r=2",
    "jungle:c=5",
    "jungle:c=3",
    "jungle:c=2",
    "leveling:t=4",
    "leveling:t=10",
    "geometric:p=3",
    "geometric:p=2",
];
/// Layouts that are also tried with values apart, for values of so many bytes and more.
const APART: [&str; 4] = ["wb-tree", "wb-tree:ordered", "tiering:t=10", "leveling:t=10"];
const APART_BYTES_MIN: u64 = 128;

/// Every layout that the workload can have, the best first: those within the limits by the machine's time that they
/// take, and then the others. An error says which limit none of them keeps.
///
/// ```
/// use forebay::advise::{Limits, Workload, advise};
///
/// let workload = Workload {
///     key_bytes: 16,
///     value_bytes: 100,
///     keys: 2_000_000,
///     rewrites: 3.0,
///     writes_per_second: 20_000.0,
///     gets_per_second: 500.0,
///     ranges_per_second: 10.0,
///     ..Workload::default()
/// };
/// let limits = Limits { memory_bytes: 64 << 20, space_amplification_max: Some(2.0), ..Limits::default() };
/// let advice = advise(&workload, &limits)?;
/// assert!(advice[0].layout.is_ordered()); // there are ranges
/// assert!(advice[0].breaks.is_empty() && advice[0].prices.space_amplification_peak <= 2.0);
/// # Ok::<(), forebay::Error>(())
/// ```
pub fn advise(workload: &Workload, limits: &Limits) -> Result<Vec<Advice>> {
    workload.validate()?;
    limits.validate()?;
    let mut advice = Vec::new();
    for candidate in candidates(workload) {
        advice.push(price(candidate, workload, limits)?);
    }
    advice.sort_by(|a, b| {
        let cost = a.prices.busy_share.total_cmp(&b.prices.busy_share);
        a.breaks.len().cmp(&b.breaks.len()).then(cost)
    });
    debug_assert!(!advice.is_empty(), "layouts in key order suit everybody");
    match limits.unreachable(&advice) {
        Some(reason) => Err(Error::invalid(reason)),
        None => Ok(advice),
    }
}

/// One layout's prices, whatever else there may be.
pub fn price_of(
    layout: Layout,
    values_apart: Option<u32>,
    workload: &Workload,
    limits: &Limits,
) -> Result<Advice> {
    workload.validate()?;
    limits.validate()?;
    if workload.wants_order() && !layout.is_ordered() {
        return Err(Error::invalid(format!("{layout} has no ranges, which the workload asks for")));
    }
    price(Candidate { layout, values_apart }, workload, limits)
}

fn price(candidate: Candidate, workload: &Workload, limits: &Limits) -> Result<Advice> {
    let options = Options::default().memory_limit(limits.memory_bytes);
    let prices = Prices::of(&candidate, workload, &options, &limits.machine)?;
    let breaks = limits.broken(&prices);
    Ok(Advice { layout: candidate.layout, values_apart: candidate.values_apart, prices, breaks })
}

fn candidates(workload: &Workload) -> Vec<Candidate> {
    let suits = |layout: &Layout| layout.is_ordered() || !workload.wants_order();
    let named = |names: &[&str]| {
        names.iter().filter_map(|name| name.parse().ok()).filter(suits).collect::<Vec<Layout>>()
    };
    let with_keys = named(&LAYOUTS).into_iter().map(|layout| Candidate { layout, values_apart: None });
    let mut all: Vec<Candidate> = with_keys.collect();
    if workload.value_bytes >= APART_BYTES_MIN && workload.writes == Writes::Puts {
        let apart = |layout| Candidate { layout, values_apart: Some(APART_BYTES_MIN as u32) };
        all.extend(named(&APART).into_iter().map(apart));
    }
    all
}

#[cfg(test)]
mod tests;
