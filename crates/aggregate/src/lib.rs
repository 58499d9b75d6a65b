//! The algebra of aggregation: functions whose partial results are bytes that merge in any order, several
//! of them in one state, and aggregators that keep a state for every key.
//!
//! **Invariant:** the same values, in any order and however divided, give the same state bytes, except
//! where a function says up to what it does not.
//!
//! **Invariant:** no bytes make a call panic.

mod aggregate;
mod fixed;
pub mod functions;
pub mod ordered;
mod state_type;

pub use aggregate::{Aggregate, Combining};
pub use fixed::{FixedAggregate, Plain};
pub use state_type::StateType;
