//! The laws of every function, and every aggregator against a plain map.

mod adders;
mod aggregators;
mod answers;
mod buffer_tree;
mod columns;
mod composites;
mod compressed;
mod laws;
mod readable;
mod too_long;
mod values;
