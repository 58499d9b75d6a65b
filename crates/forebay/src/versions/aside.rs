//! What background work set aside: nodes that hold damage, records that merge to too much, or keys at which users'
//! code panics. They stay busy, or the same work would fail in the same way again and again; and why they do is told
//! to whoever waits for them. A compaction that somebody asks for tries them again, for a key may be deleted by then,
//! code mended, a file brought back.
//!
//! **Invariant:** nodes are busy without anybody at work on them only where the reason is known.

use std::collections::BTreeSet;

use forebay_base::Error;
use forebay_layouts::NodeKey;

use crate::versions::{VersionSetGuard, Versions};

/// What is set aside of a table.
pub(crate) struct Aside {
    /// None, where damage was passed over.
    nodes: BTreeSet<NodeKey>,
    /// Why the first of them were.
    reason: Error,
}

impl VersionSetGuard<'_> {
    /// Leaves busy nodes of a table as they are from now on, for this reason.
    pub(crate) fn set_aside(&mut self, table: u32, generation: u64, nodes: &[NodeKey], error: &Error) {
        let state = self.versions.state();
        // Another layout has other nodes.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.generation == generation) else {
            return;
        };
        debug_assert!(self.are_busy(table, nodes), "what is set aside was worked on");
        let reason = match error {
            Error::TooLong(reason) => Error::TooLong(format!("table `{}`: {reason}", entry.name)),
            error => error.clone(),
        };
        let mut aside = self.versions.aside.lock();
        let known = aside.entry(table).or_insert_with(|| Aside { nodes: BTreeSet::new(), reason });
        known.nodes.extend(nodes);
        drop(aside);
        self.versions.weigh();
    }

    /// Lets the nodes of a table be worked on that were set aside, if any were. Returns the reason where there are
    /// none: what was passed over is told once.
    pub(crate) fn take_up(&mut self, table: u32) -> Option<Option<Error>> {
        let Aside { nodes, reason } = self.versions.aside.lock().remove(&table)?;
        debug_assert!(self.are_busy(table, &nodes), "what is set aside stays busy");
        if let Some(busy) = self.busy.get_mut(&table) {
            busy.retain(|node| !nodes.contains(node));
        }
        self.versions.weigh();
        Some(nodes.is_empty().then_some(reason))
    }

    /// Forgets who works on what of a table, which has other nodes by now, or is gone.
    pub(crate) fn forget_nodes(&mut self, table: u32) {
        self.busy.remove(&table);
        self.versions.aside.lock().remove(&table);
    }

    fn are_busy<'n>(&self, table: u32, nodes: impl IntoIterator<Item = &'n NodeKey>) -> bool {
        let busy = self.busy.get(&table);
        nodes.into_iter().all(|node| busy.is_some_and(|busy| busy.contains(node)))
    }

    /// Takes nodes off the busy ones.
    pub(crate) fn release(&mut self, table: u32, generation: u64, nodes: &[NodeKey]) {
        // Another layout has other nodes.
        let state = self.versions.state();
        let same = state.tables.get(&table).is_some_and(|entry| entry.generation == generation);
        debug_assert!(!same || self.are_busy(table, nodes), "what is released was worked on");
        if let Some(busy) = self.busy.get_mut(&table).filter(|_| same) {
            busy.retain(|node| !nodes.contains(node));
        }
    }
}

impl Versions {
    /// Why something of a table is set aside, if anything is.
    pub(crate) fn why_aside(&self, table: u32) -> Option<Error> {
        self.aside.lock().get(&table).map(|aside| aside.reason.clone())
    }

    /// Whether this many nodes are worked on, and not only set aside.
    pub(crate) fn is_worked_on(&self, table: u32, busy: &BTreeSet<NodeKey>) -> bool {
        let aside = self.aside.lock();
        let nodes = aside.get(&table).map(|aside| &aside.nodes);
        busy.iter().any(|node| !nodes.is_some_and(|nodes| nodes.contains(node)))
    }
}
