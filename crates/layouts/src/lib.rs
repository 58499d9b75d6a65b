//! How a table's lists are organised.
//!
//! **Invariant:** a layout is a value and functions of it. It plans purely, runs jobs through the lists it
//! is given, takes no lock and opens no file behind the engine's back.

mod catalog;
mod convert;
mod data_file;
mod files;
pub mod inventory;
pub mod options;
mod restore;
mod rule;
pub mod run_set;
mod simulated;
mod source;
mod space;
mod successor;
pub mod write_buffer;

pub use catalog::{
    Applied, Catalog, Check, Help, Job, NodeKey, Outcome, Plan, Planned, Resident, Settled, Stretch,
};
pub use data_file::{DataFile, FileReport, Store, Trees, WeakFile};
pub use forebay_buffer_tree::{Place, Portion, Terms};
pub use options::{FILTER_BITS_MAX, Layout, TableOptions, milliseconds_of};
pub use restore::{empty, restore};
pub use rule::{Filter, Keep, Rule, RuleName, TableRule, answered};
pub use simulated::{Paths, Simulated, simulated};
pub use source::Source;
pub use space::{Held, Usage};
pub use successor::Successor;
