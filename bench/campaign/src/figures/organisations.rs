//! The organisations of tables in key order that parts measure, as `layout` calls them: in this one place.

use super::part::RANGE_MERGE;

/// All, from the cheapest writes to the cheapest reads.
pub(super) const ALL: [&str; 13] = [
    "no-merge",
    "wb-tree:ordered",
    "tiering:t=10",
    "tiering:t=4",
    "geometric:r=3",
    "geometric:r=2",
    "jungle:c=3",
    "jungle:c=2",
    "leveling:t=4",
    "leveling:t=10",
    "geometric:p=2",
    RANGE_MERGE,
    "immediate",
];

/// Those that the Rangemerge paper compares.
pub(super) const OF_THE_PAPER: [&str; 6] =
    ["no-merge", "geometric:r=2", "geometric:r=3", "geometric:p=2", RANGE_MERGE, "immediate"];

/// Those that are meant to be scanned.
pub(super) const TO_SCAN: [&str; 2] = ["leveling:t=10", RANGE_MERGE];
