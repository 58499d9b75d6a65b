//! What all was grouped into, wherever that is.

use std::sync::Arc;

use forebay::Error;
use forebay_aggregate::{
    Aggregate, Aggregator as _, CompressedAggregator, Grouping, HashAggregator, TakenGroups, Visit, group_key,
};

use super::means::{Means, Scratch};

/// Every group and its state.
pub(super) struct Groups<A: Aggregate> {
    pub(super) function: Arc<A>,
    pub(super) means: Means,
    pub(super) held: Held<A>,
    /// The most memory that gathering them took.
    pub(super) memory_bytes_peak: usize,
}

/// How often all groups are walked over once they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walks {
    /// Once or twice.
    Few,
    /// As often as it takes to sort them, or more.
    Many,
}

/// Where groups are once all are there.
pub(super) enum Held<A: Aggregate> {
    /// In memory, or in files, by their keys' hashes.
    Gathered(Box<Gathered<A>>),
    /// In memory as they were added, by their keys' hashes.
    Taken(TakenGroups<Arc<A>>),
    /// In a database, by their keys' bytes.
    Stored(forebay::Aggregator<Arc<A>>),
    /// In memory, as they are.
    Loose(HashAggregator<Arc<A>>),
    /// The finest groups of a cube, without their grouping, and all others.
    Cube(Box<Self>, Vec<Self>),
}

impl<A: Aggregate> Held<A> {
    /// Shows every key and its state.
    pub(super) fn for_each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        match self {
            Self::Gathered(groups) => groups.table.for_each(visit),
            Self::Taken(groups) => groups.show(0..groups.leaves(), visit).and_then(|()| groups.told()),
            Self::Stored(groups) => groups.for_each(visit),
            Self::Loose(groups) => groups.for_each(visit),
            Self::Cube(finest, others) => {
                let mut whole = Vec::new();
                finest.for_each(&mut |key, state| {
                    whole.clear();
                    group_key::push_grouping(Grouping::FINEST, key, &mut whole);
                    visit(&whole, state)
                })?;
                others.iter().try_for_each(|groups| groups.for_each(visit))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Gathered(groups) => groups.table.memory_bytes(),
            Self::Taken(groups) => groups.memory_bytes(),
            Self::Stored(groups) => groups.memory_bytes(),
            Self::Loose(groups) => groups.memory_bytes(),
            Self::Cube(finest, others) => {
                finest.memory_bytes() + others.iter().map(Self::memory_bytes).sum::<usize>()
            }
        }
    }

    /// Whether some are in temporary files.
    pub(super) fn is_spilled(&self) -> bool {
        match self {
            Self::Gathered(groups) => groups.table.is_spilled(),
            Self::Cube(finest, others) => finest.is_spilled() || others.iter().any(Self::is_spilled),
            Self::Taken(_) | Self::Stored(_) | Self::Loose(_) => false,
        }
    }

    /// Whether a database has them, but for what follows from them.
    pub(super) fn is_stored(&self) -> bool {
        match self {
            Self::Stored(_) => true,
            Self::Cube(finest, _) => finest.is_stored(),
            Self::Gathered(_) | Self::Taken(_) | Self::Loose(_) => false,
        }
    }

    /// Whether groups are shown in the order of their keys' bytes.
    pub(super) fn is_sorted(&self) -> bool {
        match self {
            // They may have got another layout since.
            Self::Stored(groups) => groups.layout().is_ok_and(|layout| layout.is_ordered()),
            Self::Gathered(_) | Self::Taken(_) | Self::Cube(..) | Self::Loose(_) => false,
        }
    }
}

/// The groups, and the directory of their files, which goes with them.
pub(super) struct Gathered<A: Aggregate> {
    pub(super) table: CompressedAggregator<Arc<A>>,
    pub(super) _directory: Scratch,
}
