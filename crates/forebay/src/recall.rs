//! What resident runs had before the database was closed or crashed: read back from log segments that were absorbed, but
//! not into files. Done while opening, for memory is all that it writes to.

use std::sync::Arc;

use forebay_base::Result;
use forebay_base::limits::STEP_BYTES;
use forebay_layouts::Outcome;
use forebay_store::WriteBuffer;
use forebay_store::buffer::{SortedTable, Sorting};

use crate::engine::TableState;
use crate::replay::Replay;

impl Replay {
    /// Takes a buffer's records into the memory of the tables whose files lack them.
    pub(crate) fn recall(&mut self, buffer: &Arc<WriteBuffer>) -> Result<()> {
        let orders = |table| self.tables.get(&table).map(|table| table.order);
        for notes in buffer.take_notes(orders) {
            let Some(table) = self.tables.get(&notes.table).cloned() else { continue };
            if table.catalog.plan_recall(buffer.segment(), &notes.contents).is_none() {
                continue;
            }
            let (id, mut sorting) = (notes.table, Sorting::new(buffer, notes, table.order));
            let run = loop {
                if let Some(run) = sorting.step() {
                    break run;
                }
            };
            let (_, contents) = sorting.of();
            let recalled = recall(&table, buffer, SortedTable { table: id, contents, run })?;
            self.tables.insert(id, recalled);
        }
        Ok(())
    }
}

/// The table with what the buffer has of it in memory.
fn recall(
    table: &Arc<TableState>,
    buffer: &Arc<WriteBuffer>,
    sorted: SortedTable,
) -> Result<Arc<TableState>> {
    let catalog = &table.catalog;
    let Some(plan) = catalog.plan_recall(buffer.segment(), &sorted.contents) else {
        return Ok(Arc::clone(table));
    };
    let mut job = catalog.absorb(&plan, buffer, sorted.run, &sorted.contents)?;
    let outcome: Outcome = loop {
        if let Some(outcome) = job.step(STEP_BYTES)? {
            break outcome;
        }
    };
    let files = outcome.files();
    let settled = catalog.settle(outcome)?;
    let find = |id: u64| files.iter().find(|file| file.meta().id == id).cloned();
    Ok(table.with_catalog(catalog.apply(&settled.edit, &find)?.catalog))
}
