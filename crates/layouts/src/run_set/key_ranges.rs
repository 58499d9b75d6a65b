//! Key ranges: where the parts of the oldest run lie. A policy may merge one of them at a time, and all that runs have of
//! it; then jobs hold key ranges, and not runs.
//!
//! **Invariant:** no key range is known by the id of a run.

use forebay_base::hash::key_hash;
use forebay_base::{Bound, Range};
use forebay_buffer_tree::NodeId;

use super::set::RunSet;

/// By what a range is known while it is merged.
pub(super) fn node_of(range: &Range) -> NodeId {
    NodeId(key_hash(&range.low.key, range.low.prefix) | KEY_RANGE_IDS)
}

/// By what a tree is known that a key range is appended to: others may have what is left of it, if it was cut.
pub(super) fn node_of_tree(id: u64) -> NodeId {
    NodeId(key_hash(b"tree", id) | KEY_RANGE_IDS)
}

/// Whether a node is a key range, or its tree, and not a run.
pub(super) fn is_key_range(NodeId(id): NodeId) -> bool {
    id & KEY_RANGE_IDS != 0
}

/// Key ranges are known by this and more, runs by less.
pub(super) const KEY_RANGE_IDS: u64 = 1 << 63;

/// The bounds between key ranges: where the parts of the oldest run begin.
pub(super) fn bounds<F>(set: &RunSet<F>) -> Vec<Bound> {
    let parts = set.last_on_disk().map_or(&[][..], |run| run.parts());
    let bounds: Vec<Bound> = parts.iter().skip(1).map(|part| part.range.low.clone()).collect();
    debug_assert!(bounds.is_sorted_by(|one, next| one < next), "key ranges lie in order");
    bounds
}
