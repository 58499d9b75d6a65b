//! The organisations of tables in key order that parts measure, as `layout` calls them: in this one place.

use super::part::RANGE_MERGE;

/// Whether the engine that is measured has Rangemerge. Without it, it is in no list.
const HAS_RANGE_MERGE: bool = false;

/// All, from the cheapest writes to the cheapest reads.
pub(super) fn all() -> Vec<&'static str> {
    known(&[
        "no-merge",
        "write-buffer:ordered",
        "tiering:t=10",
        "tiering:t=4",
        "geometric:r=3",
        "geometric:r=2",
        "leveling:t=4",
        "leveling:t=10",
        "geometric:p=2",
        RANGE_MERGE,
        "immediate",
    ])
}

/// Those that the Rangemerge paper compares.
pub(super) fn of_the_paper() -> Vec<&'static str> {
    known(&["no-merge", "geometric:r=2", "geometric:r=3", "geometric:p=2", RANGE_MERGE, "immediate"])
}

/// Those that are meant to be scanned.
pub(super) fn to_scan() -> Vec<&'static str> {
    known(&["leveling:t=10", RANGE_MERGE])
}

fn known(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| HAS_RANGE_MERGE || *name != RANGE_MERGE).collect()
}
