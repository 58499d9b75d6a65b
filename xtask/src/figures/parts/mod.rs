//! The parts, in the order of the page.

mod applications;
mod bursts;
mod contributions;
mod engines;
mod growth;
mod heat;
mod log_append;
mod ratio;
mod reads;

use super::part::Part;

/// The parts that run no engine.
pub(super) const LOG: &str = "log";
pub(super) const APPLICATIONS: &str = "applications";

pub(super) const ALL: &[&Part] = &[
    &engines::PART,
    &reads::PART,
    &bursts::PART,
    &growth::PART,
    &contributions::PART,
    &heat::PART,
    &ratio::PART,
    &log_append::PART,
    &applications::PART,
];
