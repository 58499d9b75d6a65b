//! How a table's lists are organised.
//!
//! **Invariant:** a layout is a value and functions of it. It plans without side effects and runs jobs over the lists
//! it is given. It takes no lock, and opens files only through the stores it is given.

mod convert;
mod data_file;
mod files;
pub mod inventory;
pub mod options;
mod reorder_target;
mod restore;
mod rule;
pub mod run_set;
mod simulated;
mod source;
mod space;
mod table_version;
pub mod wb_tree;

pub use data_file::{DataFile, FileReport, Store, Trees, WeakFile};
pub use forebay_buffer_tree::{Place, Portion, ReadTerms};
pub use options::{FILTER_BITS_MAX, Layout, TableOptions, milliseconds_of};
pub use reorder_target::ReorderTarget;
pub use restore::{empty, restore};
pub use rule::{Filter, Keep, Rule, RuleName, TableRule, answered};
pub use simulated::{Paths, Simulated, simulated};
pub use source::Source;
pub use space::{FilePart, Usage};
pub use table_version::{
    Applied, Check, Job, JobWorker, NodeKey, Outcome, Plan, Planned, Rebased, Resident, Stretch, TableVersion,
};
