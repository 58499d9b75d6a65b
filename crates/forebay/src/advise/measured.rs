//! What work costs a processor: nanoseconds of one core, fitted to what
//! `python3 bench/advise/check.py --seed 999 --parts` prints, whose workloads are others than those that advice is held
//! against. What merges cost a record is [`Rates::measured`](crate::simulate::Rates::measured).

/// A put, beside its record's way to the log: its share of a call and of a note.
pub(super) const PUT: f64 = 600.0;
/// A byte that is written to files or read from them by background work, beside the merge itself.
pub(super) const BYTE_MOVED: f64 = 1.3;
/// Merges into trees take so many times as long as merges of lists.
pub(super) const TREE_PASS: f64 = 1.25;
/// A flush or a merge: files made, synced and named.
pub(super) const JOB: f64 = 1.0e6;

/// A get: its view of all versions, and the write buffer.
pub(super) const GET: f64 = 1500.0;
/// A list on the way of a get: its filter.
pub(super) const PROBE: f64 = 60.0;
/// A page that is read from the device, into the cache, and the call for it.
pub(super) const PAGE_READ: f64 = 5000.0;
/// A page that the cache has.
pub(super) const PAGE_CACHED: f64 = 500.0;
/// A value that stands apart, or a node.
pub(super) const VALUE_READ: f64 = 4000.0;
/// Nodes of a tree that a get reads above what it finds, where the cache does not have them.
pub(super) const TREE_READS: f64 = 0.9;

/// A range: its view and its first entry.
pub(super) const RANGE: f64 = 3000.0;
/// A list that a range begins in.
pub(super) const SEEK: f64 = 1000.0;
/// An entry of a range, and a byte of it.
pub(super) const ENTRY: f64 = 100.0;
pub(super) const ENTRY_BYTE: f64 = 0.1;
