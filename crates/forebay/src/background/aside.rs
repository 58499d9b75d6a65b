//! What background work set aside: nodes that hold damage, records that merge to too much, or keys at which users'
//! code panics. They stay busy, or the same work would fail in the same way again and again; and why they do is told
//! to whoever waits for them. A compaction that somebody asks for tries them again, for a key may be deleted by then,
//! code mended, a file brought back.
//!
//! **Invariant:** nodes are busy without anybody at work on them only where the reason is known.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use forebay_base::{Error, Result, planted};
use forebay_layouts::NodeKey;

use crate::background::COMPACT;
use crate::engine::Engine;
use crate::versions::{TableState, VersionSet};

/// What is set aside of a table.
pub(crate) struct Aside {
    /// None, where damage was passed over.
    nodes: BTreeSet<NodeKey>,
    /// Why the first of them were.
    reason: Error,
}

impl Engine {
    /// Leaves busy nodes of a table as they are from now on, for this reason.
    pub(crate) fn set_aside(&self, table: u32, generation: u64, nodes: &[NodeKey], error: &Error) {
        let _version_set = self.version_set.lock();
        let state = self.state();
        // Another layout has other nodes.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.generation == generation) else {
            return;
        };
        let reason = match error {
            Error::TooLong(reason) => Error::TooLong(format!("table `{}`: {reason}", entry.name)),
            error => error.clone(),
        };
        let mut aside = self.aside.lock();
        let known = aside.entry(table).or_insert_with(|| Aside { nodes: BTreeSet::new(), reason });
        known.nodes.extend(nodes);
        drop(aside);
        self.weigh();
    }

    /// Lets the nodes of a table be worked on that were set aside. Returns the reason where there are none: what was
    /// passed over is told once.
    pub(crate) fn take_up(&self, table: u32) -> Option<Error> {
        if planted::is("compact-does-not-retry") {
            return None;
        }
        let mut version_set = self.version_set.lock();
        let Aside { nodes, reason } = self.aside.lock().remove(&table)?;
        // Nor does what machines have failed at because of it: they say so again.
        self.troubles.lock().retain(|_, trouble| !trouble.is_lasting());
        if let Some(busy) = version_set.busy.get_mut(&table) {
            busy.retain(|node| !nodes.contains(node));
        }
        self.weigh();
        nodes.is_empty().then_some(reason)
    }

    /// Forgets who works on what of a table, which has other nodes by now, or is gone.
    pub(crate) fn forget_nodes(&self, version_set: &mut VersionSet, table: u32) {
        version_set.busy.remove(&table);
        self.aside.lock().remove(&table);
    }

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

    /// Waits until the tables that are asked for keep nothing in memory that no file has, or for the reason why
    /// something stays there. The caller sees to it that nothing more is kept.
    pub(crate) fn wait_for_files(&self, is_asked: impl Fn(&TableState) -> bool) -> Result<()> {
        // What the compactor found before does not count.
        self.compactor_is_idle.store(false, Ordering::Relaxed);
        self.env.jobs.wake();
        let keeps = |table: &TableState| is_asked(table) && table.version.resident().is_some();
        let stays = || {
            let state = self.state();
            let mut keeping = state.tables.values().filter(|table| keeps(table));
            keeping.find_map(|table| self.why_aside(table.id).or_else(|| self.refuses(table)))
        };
        let rests = || self.compactor_is_idle.load(Ordering::Relaxed);
        let trouble = || self.passing_trouble(COMPACT).or_else(|| if rests() { stays() } else { None });
        self.wait_for(trouble, || !self.state().tables.values().any(|table| keeps(table)))
    }
}
