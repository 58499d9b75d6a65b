//! The algebra of aggregation: functions whose partial results are bytes that merge in any order, several
//! of them in one state, and aggregators that keep a state for every key.
//!
//! **Invariant:** the same values, in any order and however divided, give the same state bytes. A function for which
//! this holds only within an error says so.
//!
//! **Invariant:** no bytes make a call panic.

mod adapt;
mod aggregate;
mod aggregator;
mod answer_kind;
#[cfg(feature = "arrow")]
pub mod arrow;
mod broken;
mod buffer_tree;
mod built_in;
mod catalog;
pub mod columns;
mod composite;
mod compressed;
mod digits;
mod fixed;
mod function;
pub mod functions;
mod grouping;
mod hash;
mod lists;
pub mod names;
mod number;
mod optional;
pub mod ordered;
mod row_count;
mod sort;
mod spilled;
mod stages;
mod state_type;
mod value;

pub use aggregate::{Aggregate, Merging};
pub use aggregator::{Aggregator, Visit};
pub use answer_kind::AnswerKind;
pub use buffer_tree::{BufferTreeAggregator, Packing, TreeShape};
pub use built_in::BuiltIn;
pub use catalog::{FUNCTIONS, parse_function};
pub use composite::Composite;
pub use compressed::{AggregatorOptions, CompressedAggregator, TakenGroups};
pub use fixed::{FixedAggregate, Plain};
pub use forebay_base::Order;
pub use function::{Column, Function, over};
pub use grouping::{COLUMNS_MAX, Children, Grouping, Groupings, group_key};
pub use hash::HashAggregator;
pub use names::columns_of;
pub use optional::{Lifted, Optional};
pub use sort::{RunFiles, SortAggregator};
pub use spilled::{
    ExpectedGroups, GroupsView, HASH_SEED, SpillTarget, SpillTerms, SpilledGroups, Unpublished,
};
pub use stages::{Stage, Stages};
pub use state_type::StateType;
pub use value::Value;

/// The program of the guide: `cargo test --doc` runs it.
#[cfg(all(doctest, feature = "arrow"))]
#[doc = include_str!("../../../docs/guide/aggregates.md")]
struct Guide;
