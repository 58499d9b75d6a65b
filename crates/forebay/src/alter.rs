//! Another layout for a table that is in use: one edit, which moves no record. What there is stays where it is, and the
//! new layout's rules work on it from then on. Reads and writes go on; work that was under way for a layout of another
//! kind is thrown away and, where it is still wanted, done anew. A layout of another order takes more: see `rewrite`.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_layouts::{Layout, TableOptions};
use forebay_store::manifest::Edit;

use crate::engine::Engine;
use crate::rewrite::Tell;

impl Engine {
    /// Gives a table another layout.
    pub(crate) fn set_layout(self: &Arc<Self>, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        let is_ordered = self.view().table(id)?.options.layout.is_ordered();
        if is_ordered != layout.is_ordered() {
            return self.rewrite(id, layout, tell);
        }
        self.convert(id, layout)
    }

    /// Gives a table another layout of the same order.
    fn convert(&self, id: u32, layout: Layout) -> Result<()> {
        let mut ledger = self.ledger.lock();
        let state = self.state();
        let Some(table) = state.tables.get(&id) else {
            return Err(Error::NotFound("the table was dropped".into()));
        };
        let before = table.options.layout;
        if before == layout {
            return Ok(());
        }
        if before.is_ordered() != layout.is_ordered() {
            return Err(Error::invalid("the table has got another order meanwhile; try again"));
        }
        let options = TableOptions { layout, ..table.options };
        options.validate()?;
        let altered = table.altered(options, table.catalog.convert(&options));
        self.append(&mut ledger, &Edit::AlterTable(altered.entry()))?;
        let (fresh, stale) = (altered.catalog.files(), table.catalog.files());
        self.update_state(|state| drop(state.tables.insert(id, Arc::clone(&altered))));
        ledger.busy.remove(&id);
        // More before fewer, so that no file is taken for unneeded in between.
        let more = fresh.into_iter().map(|file| (file, 1));
        ledger.refer(more.chain(stale.into_iter().map(|file| (file, -1))).collect());
        drop(ledger);
        self.env.jobs.wake();
        Ok(())
    }
}
