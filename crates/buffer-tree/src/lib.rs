//! The buffer tree of the WB paper (sections 3 and 6) as a value.
//!
//! A *fragment* is what was written at one go, a file or a block of memory, sorted by `(prefix, key)`, each
//! key once. A *list* is a node's part of a fragment: the node's range restricts it, so a split copies
//! nothing and several nodes share one fragment. A full inner node *spills* to its children, a full leaf
//! *splits*: fast, by dividing its lists where they are, or slowly, by merging them first.
//!
//! Work has four stages:
//!
//! 1. [`Tree::next_work`] plans, purely: a free [`Edit`] or a [`JobPlan`].
//! 2. A [`Job`] merges, collapses and writes one fragment, in steps, beside all else.
//! 3. [`Tree::rebase`] fits its [`Outcome`] to the tree as it is by then, and makes an [`Edit`] of it.
//! 4. [`Tree::apply`] applies the edit: the same in live work and in recovery.
//!
//! **Invariant:** this crate knows no files, no threads and no clock.

mod apply;
mod check;
mod count;
mod divide;
mod edit;
mod fragment;
mod job;
mod node;
mod options;
mod plan;
mod read_compaction;
mod rebase;
mod reclaim;
mod tree;
pub mod wire;

pub use check::Counts;
pub use count::Counted;
pub use edit::{Division, Edit, Split};
pub use fragment::{Expected, Fragment, FragmentStore, FragmentWriter};
pub use job::{Job, JobStep, Outcome, shape_of_merged};
pub use node::{List, Node, NodeId, NodeRef, Portion};
pub use options::TreeOptions;
pub use plan::{JobKind, JobPlan, Work};
pub use read_compaction::ReadTerms;
pub use reclaim::Place;
pub use tree::Tree;
