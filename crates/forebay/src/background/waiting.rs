//! Waiting for background work: until records are in files, until there is nothing more to do; or for the reason why that
//! will not come.

use std::collections::BTreeSet;

use forebay_base::{Error, Result, planted};
use forebay_env::sync::atomic::Ordering;

use crate::background::Background;
use crate::context::COMPACT;
use crate::versions::{TableState, Versions};

/// As long as it is there, tables take nothing into memory to keep it there.
pub(crate) struct Draining<'a>(&'a Versions);

impl<'a> Draining<'a> {
    pub(crate) fn new(versions: &'a Versions) -> Self {
        versions.lists.resident.drains.fetch_add(1, Ordering::Relaxed);
        Self(versions)
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        let drains = self.0.lists.resident.drains.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(drains > 0, "what ends has begun");
    }
}

impl Background {
    /// Lets the nodes of a table be worked on that were set aside. Returns the reason where there are none: what was
    /// passed over is told once.
    pub(crate) fn take_up(&self, table: u32) -> Option<Error> {
        if planted::is("compact-does-not-retry") {
            return None;
        }
        let mut version_set = self.versions.lock();
        let reason = version_set.take_up(table)?;
        // Nor does what machines have failed at because of it: they say so again.
        self.context.health.forget_lasting();
        self.versions.weigh();
        reason
    }

    /// Waits until the tables that are asked for keep nothing in memory that no file has, or for the reason why
    /// something stays there. The caller sees to it that nothing more is kept.
    pub(crate) fn wait_for_files(&self, is_asked: impl Fn(&TableState) -> bool) -> Result<()> {
        // What compactors found before does not count.
        self.context.health.forget_idle();
        self.context.env.jobs.wake();
        let keeps = |table: &TableState| is_asked(table) && table.version.resident().is_some();
        let stays = || {
            let state = self.versions.state();
            let mut keeping = state.tables.values().filter(|table| keeps(table));
            keeping.find_map(|table| self.versions.why_aside(table.id).or_else(|| self.space.refuses(table)))
        };
        let rests = || self.context.health.compactors_are_idle();
        let trouble = || self.space.passing_trouble(COMPACT).or_else(|| if rests() { stays() } else { None });
        self.context.wait_for(trouble, || !self.versions.state().tables.values().any(|table| keeps(table)))
    }

    /// Waits until every record accepted so far is in files: tables keep none in memory alone.
    pub(crate) fn flush_to_files(&self) -> Result<Draining<'_>> {
        self.context.log()?;
        let draining = Draining::new(&self.versions);
        self.writer.flush()?;
        self.wait_for_files(|_| true)?;
        Ok(draining)
    }

    /// Returns once background work has nothing more to do, as if nobody had written for long.
    pub(crate) fn wait_until_idle(&self) -> Result<()> {
        self.writer.flush()?;
        self.memory.begin_idle();
        self.context.env.jobs.wake();
        self.context.wait_for(|| self.space.trouble(), || self.has_nothing_to_do())
    }

    fn has_nothing_to_do(&self) -> bool {
        let state = self.versions.state();
        if !state.sealed.is_empty() || !self.context.health.compactors_are_idle() {
            return false;
        }
        let version_set = self.versions.lock();
        let nobody = BTreeSet::new();
        state.tables.values().filter(|table| table.rule().is_ok()).all(|table| {
            let busy = version_set.busy.get(&table.id).unwrap_or(&nobody);
            let is_done = || {
                let more = table.version.next_work(busy).is_some()
                    || self.plan_read_compaction(table, busy).is_some();
                !more && !self.space.wants_space(table)
            };
            self.space.is_stuck(table) || is_done()
        })
    }
}
