//! Tables that get another shape: layouts and orders are changed in use, and records come in sorted.

mod alter;
mod ingest;
mod reorder;
mod set_layout;

use std::sync::Arc;

use forebay_base::Result;
use forebay_store::manifest::Edit;

use crate::background::Background;
use crate::context::Context;
use crate::memory::MemoryShares;
use crate::space::Space;
use crate::versions::{TableState, VersionSetGuard, Versions};
use crate::write::Writer;

/// Gives tables another shape.
pub(crate) struct Relayout {
    context: Arc<Context>,
    versions: Arc<Versions>,
    space: Arc<Space>,
    memory: Arc<MemoryShares>,
    writer: Arc<Writer>,
    background: Arc<Background>,
}

impl Relayout {
    pub(crate) fn new(
        versions: &Arc<Versions>,
        space: &Arc<Space>,
        memory: &Arc<MemoryShares>,
        writer: &Arc<Writer>,
        background: &Arc<Background>,
    ) -> Self {
        Self {
            context: Arc::clone(&versions.context),
            versions: Arc::clone(versions),
            space: Arc::clone(space),
            memory: Arc::clone(memory),
            writer: Arc::clone(writer),
            background: Arc::clone(background),
        }
    }

    /// Has a table go on as another version of itself, which has the same files: durably, and then for everybody.
    fn succeed_in_place(
        &self,
        mut version_set: VersionSetGuard<'_>,
        table: &TableState,
        altered: &Arc<TableState>,
    ) -> Result<()> {
        debug_assert!(
            altered.versions().keys().eq(table.versions().keys()),
            "what there is stays where it is"
        );
        version_set.append(&Edit::AlterTable(altered.entry()))?;
        self.versions.update_state(|state| state.tables.insert(Arc::clone(altered)));
        let promised =
            |table: &TableState| (table.options.max_space_amplification, table.options.reclaim_interval);
        if promised(table) != promised(altered) {
            // What stood in the way of the old bound may not stand in that of the new one.
            altered.space.reclaim.forget();
        }
        version_set.note_new_layout(table, altered);
        drop(version_set);
        self.memory.share_memory();
        self.context.env.jobs.wake();
        Ok(())
    }
}
