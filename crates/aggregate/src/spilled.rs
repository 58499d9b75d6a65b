//! [`SpilledGroups`]: the groups of an aggregator for which memory has no room, wherever those go. They are not made
//! here: this crate knows how to gather groups, and others how to keep them in files.
//!
//! **Order.** Groups come and go in the order of their keys' [hashes](HASH_SEED), and of keys of equal hashes in that of
//! the keys' bytes. A cursor's prefix is the hash.

use forebay_base::merge::Cursor;
use forebay_base::{Combine, Result};
use forebay_env::Jobs;
use forebay_env::sync::Arc;

/// Of the hashes of keys, by which groups are ordered.
pub const HASH_SEED: u64 = 0;

/// A place where groups can go.
pub trait SpillTarget: Send + Sync {
    /// Makes an empty one there. Asked for once memory is full for the first time.
    fn open(&self, terms: SpillTerms) -> Result<Box<dyn SpilledGroups>>;
}

/// What is told to a place where groups go.
pub struct SpillTerms {
    /// How states of one key merge.
    pub rule: Arc<dyn Combine>,
    /// The name of their type.
    pub state_type: String,
    /// The memory that it may take.
    pub memory_bytes: usize,
    /// About how many bytes come at a time.
    pub spill_bytes: usize,
    /// Who does its work, beside that of the aggregator, and on how many threads.
    pub jobs: Jobs,
    /// See `jobs`.
    pub threads: usize,
}

/// See the module. It goes with all its groups when it is dropped.
pub trait SpilledGroups: Send + Sync {
    /// Writes groups that come in order, each key once, and of which there are about so many. Nobody sees them before
    /// they are published; they are given up if they never are.
    fn write<'s>(
        &'s self,
        groups: Box<dyn Cursor + Send>,
        expected: ExpectedGroups,
    ) -> Result<Box<dyn Unpublished + 's>>;

    /// What is published now, to be read whatever is published later.
    fn view(&self) -> Result<Arc<dyn GroupsView>>;

    /// The memory that it takes now.
    fn memory_bytes(&self) -> usize;

    /// Reads from the device that lookups and cursors have cost, where they are counted.
    fn device_reads(&self) -> u64;
}

/// Spilled groups as they were at a moment.
pub trait GroupsView: Send + Sync {
    /// What the states of a key merge to.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The groups behind this key, or all: each key once.
    fn cursor(&self, behind: Option<&[u8]>) -> Result<Box<dyn Cursor + Send>>;
}

/// How much is about to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedGroups {
    /// No more groups than this.
    pub groups: u64,
    /// About how many bytes their keys and states have.
    pub bytes: u64,
    /// The lengths of every key and of every state, where they are known to be the same.
    pub lengths: Option<(u32, u32)>,
}

/// Groups that are written, and not seen yet.
pub trait Unpublished {
    /// Lets them be seen from now on, all at once. On error none is.
    fn publish(self: Box<Self>) -> Result<()>;

    /// What is read while that goes on. Nothing where it takes no time: who reads may wait then.
    fn before(&self) -> Option<Arc<dyn GroupsView>> {
        None
    }
}
