//! How a table's lists are organised.
//!
//! **Invariant:** a layout is a value and functions of it. It plans purely, runs jobs through the lists it
//! is given, takes no lock and opens no file behind the engine's back.

mod catalog;
pub mod inventory;
pub mod options;
mod rule;
pub mod write_buffer;

pub use catalog::{Applied, Catalog, Job, NodeKey, Plan, Planned, Stretch};
pub use forebay_buffer_tree::{Portion, Terms};
pub use options::{FILTER_BITS_MAX, Layout, TableOptions};
pub use rule::{Rule, RuleName, TableRule};

/// What a finished job hands to [`Catalog::settle`].
pub type Outcome = forebay_buffer_tree::Outcome<write_buffer::Fragment>;
