//! The parts, in the order of the page.

mod bursts;
mod contributions;
mod engines;
mod growth;
mod heat;
mod incremental;
mod log_append;
mod ratio;
mod reads;

use super::part::Part;

/// The part that runs no engine.
pub(super) const LOG: &str = "log";

pub(super) const ALL: &[&Part] = &[
    &engines::PART,
    &reads::PART,
    &bursts::PART,
    &growth::PART,
    &contributions::PART,
    &heat::PART,
    &ratio::PART,
    &incremental::PART,
    &log_append::PART,
];
