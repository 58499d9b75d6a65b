//! The laws of every function, and every aggregator against a plain map.

mod adders;
mod aggregators;
mod answers;
#[cfg(feature = "arrow")]
#[expect(clippy::unwrap_used, reason = "a test fails where it stands")]
mod arrow;
mod buffer_tree;
mod columns;
mod composites;
mod compressed;
mod laws;
mod place;
mod readable;
mod run_files;
mod taken;
mod too_long;
mod values;
