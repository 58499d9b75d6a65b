//! What resident runs had before the database was closed or crashed: read back from log segments that were flushed, but
//! not into files. Done while opening, for memory is all that it writes to.

use std::sync::Arc;

use forebay_base::Result;
use forebay_store::WriteBuffer;
use forebay_store::buffer::Sorting;

use crate::versions::Replay;

impl Replay {
    /// Takes a buffer's records into the memory of the tables whose files lack them.
    pub(crate) fn reload(&mut self, buffer: &Arc<WriteBuffer>) -> Result<()> {
        let orders = |table| self.tables.get(&table).map(|table| table.order);
        for notes in buffer.take_notes(orders) {
            let (id, contents) = (notes.table, notes.contents);
            let Some(table) = self.tables.get(&id).cloned() else { continue };
            let version = &table.version;
            let Some(plan) = version.plan_reload(buffer.segment(), &contents) else { continue };
            let mut sorting = Sorting::new(buffer, notes, table.order);
            let run = loop {
                if let Some(run) = sorting.step() {
                    break run;
                }
            };
            let outcome = version.flush(&plan, buffer, run, &contents)?.finish(&|| Ok(()))?;
            let files = outcome.files();
            let rebased = version.rebase(outcome)?;
            let find = |id: u64| files.iter().find(|file| file.id() == id).cloned();
            let reloaded = table.with_version(version.apply(&rebased.edit, &find)?.version);
            self.tables.insert(reloaded);
        }
        Ok(())
    }
}
