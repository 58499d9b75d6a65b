//! The parts, in the order of the page.

mod applications;
mod bursts;
mod columns;
mod contributions;
mod engines;
mod groups;
mod groups_adders;
mod groups_factors;
mod groups_thesis;
mod growth;
mod heat;
mod incremental;
mod jungle;
mod jungle_beyond;
mod layouts;
mod layouts_bars;
mod log_append;
mod memory;
mod rangemerge;
mod ratio;
mod reads;
mod steady;

use super::part::Part;
use super::simulated::Forecast;

/// The parts that run no engine.
pub(super) const LOG: &str = "log";
pub(super) const MEMORY: &str = "memory";
/// The parts of another program's runs.
pub(super) const GROUPS: &str = "groups";
pub(super) const GROUPS_FACTORS: &str = "groups-factors";
pub(super) const GROUPS_ADDERS: &str = "groups-adders";
pub(super) const GROUPS_THESIS: &str = "groups-thesis";
pub(super) const APPLICATIONS: &str = "applications";
pub(super) const COLUMNS: &str = "columns";

/// What `ONLY=` calls all parts of the steady state, and how their names begin.
pub(super) const STEADY: &str = "steady";
pub(super) const STEADY_PREFIX: &str = "steady-";
pub(super) const ALL: &[&Part] = &[
    &steady::load::PART,
    &steady::mix::PART,
    &steady::pace::PART,
    &steady::levels::PART,
    &steady::workers::PART,
    &engines::PART,
    &reads::PART,
    &bursts::PART,
    &growth::PART,
    &contributions::PART,
    &heat::PART,
    &ratio::PART,
    &layouts::PART,
    &rangemerge::PART,
    &layouts_bars::PART,
    &jungle::PART,
    &groups::PART,
    &groups_factors::PART,
    &groups_adders::PART,
    &groups_thesis::PART,
    &columns::PART,
    &incremental::PART,
    &log_append::PART,
    &memory::PART,
    &applications::PART,
];

/// What a part shows besides what all do.
pub(super) fn shown(part: &str) -> &'static [&'static str] {
    match part {
        part if part == bursts::PART.name => &["operations_per_100_ms"],
        part if part == steady::workers::PART.name => &["curve", "cpu_seconds_by_thread"],
        part if part.starts_with(STEADY_PREFIX) => &["curve"],
        _ => &[],
    }
}

/// Whether a part shows what the device does.
pub(super) fn shows_device(part: &str) -> bool {
    part == steady::load::PART.name || part == steady::workers::PART.name
}

/// What of a part is held against the planner without data.
pub(super) fn forecasts(part: &str) -> Vec<Forecast> {
    match part {
        part if part == rangemerge::PART.name => rangemerge::forecasts(),
        part if part == jungle::PART.name => jungle::forecasts(),
        part if part == steady::workers::PART.name => steady::workers::forecasts(),
        _ => Vec::new(),
    }
}
