//! The algebra of aggregation: functions whose partial results are bytes that merge in any order, several
//! of them in one state, and aggregators that keep a state for every key.
//!
//! **Invariant:** the same values, in any order and however divided, give the same state bytes, except
//! where a function says up to what it does not.
//!
//! **Invariant:** no bytes make a call panic.

mod aggregate;
mod aggregator;
mod fixed;
pub mod functions;
mod hash;
pub mod ordered;
mod sort;
mod state_type;

pub use aggregate::{Aggregate, Combining};
pub use aggregator::Aggregator;
pub use fixed::{FixedAggregate, Plain};
pub use hash::HashAggregator;
pub use sort::SortAggregator;
pub use state_type::StateType;
