//! How a table's lists are organised.
//!
//! **Invariant:** a layout is a value and functions of it. It plans without side effects and runs jobs over the lists
//! it is given. It takes no lock, and opens files only through the stores it is given.

mod convert;
#[cfg(test)]
mod dialogue;
mod files;
pub mod inventory;
mod layout;
pub mod options;
mod registry;
mod reorder_target;
mod rule;
pub mod run_set;
mod seam;
mod simulation;
mod stored_rule;
pub mod wb_tree;

pub use files::{DataFile, FileReport, ResidentBudget, Source, Store, Trees, WeakFile};
pub use forebay_base::PrefixFilter;
pub use forebay_buffer_tree::{Place, Portion, ReadTerms};
pub use layout::Layout;
pub use options::{FILTER_BITS_MAX, TableOptions, milliseconds_of};
pub use registry::{alter, convert, empty, read_options, restore, simulated};
pub use reorder_target::ReorderTarget;
pub use rule::{Filter, Keep, Life, Rule, RuleName, TableRule, answered};
pub use seam::{
    Applied, Check, Description, FilePart, Inspect, Job, JobWorker, LevelDescription, NodeDescription,
    NodeKey, Outcome, Plan, Planned, Reads, Rebased, Resident, Stretch, TableVersion, Upkeep, Usage,
    known_keys, stale_files, value_use,
};
pub use simulation::{Paths, Simulated};
pub use stored_rule::StoredRule;
