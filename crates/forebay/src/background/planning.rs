//! Planning: what is to be done for a table, by what it is done for.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::Planned;

use crate::background::Background;
use crate::versions::{Pending, TableState};

/// What to plan for, once all nodes are within their limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Nothing more.
    Limits,
    /// A table of one list a leaf.
    FullCompaction,
    /// Room, where the table's space is bounded.
    Space,
    /// Lookups that ask fewer lists.
    ReadCompaction,
}

impl Background {
    /// Plans and, where the plan is an edit, commits it at once. `None` when there is nothing to do. Also returns what
    /// it was planned on.
    pub(crate) fn plan(&self, table: u32, goal: Goal) -> Result<Option<(Planned, Arc<TableState>)>> {
        let mut version_set = self.versions.lock();
        let state = self.versions.state();
        // A table whose rule is not known yet is left as it is.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.rule().is_ok()) else {
            return Ok(None);
        };
        let busy = version_set.busy.entry(table).or_default();
        let mut planned = match goal {
            Goal::Space => self.space.plan_space(entry, busy),
            Goal::FullCompaction => self.plan_full_compaction(entry, busy),
            _ => entry.version.next_work(busy),
        };
        if planned.is_none() {
            let more = match goal {
                Goal::Limits | Goal::Space => None,
                Goal::FullCompaction => entry.version.next_full_compaction(busy),
                Goal::ReadCompaction => self.plan_read_compaction(entry, busy).map(|(plan, cost)| {
                    let wasted = entry.wasted_nanoseconds.fetch_sub(cost, Ordering::Relaxed);
                    debug_assert!(wasted >= cost, "lookups have paid for it: {cost} of {wasted}");
                    plan
                }),
            };
            planned = more.map(Planned::Job);
        }
        let mut planned = planned.filter(|planned| self.space.has_room_for(entry, planned));
        if planned.is_none() && goal == Goal::Space {
            // What gets most back may be more than there is room for; what is needed may be less.
            planned = entry.version.next_work(busy).filter(|planned| self.space.has_room_for(entry, planned));
        }
        match &planned {
            Some(Planned::Job(plan)) => {
                let is_free = plan.nodes.iter().all(|node| !busy.contains(node));
                debug_assert!(is_free, "nobody is at work on what is planned");
                busy.extend(&plan.nodes);
            }
            Some(Planned::Edit(edit)) => {
                self.context.metrics.free_edits.add(1);
                version_set.record(&state, &mut Pending::edits(vec![(table, edit.clone())]))?;
            }
            None => {}
        }
        Ok(planned.map(|planned| (planned, Arc::clone(entry))))
    }
}
