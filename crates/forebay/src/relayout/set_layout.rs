//! Another layout for a table that is in use: one edit, which moves no record. What there is stays where it is, and the
//! new layout's rules work on it from then on. Reads and writes go on; work that was under way for a layout of another
//! kind is thrown away and, where it is still wanted, done anew. A layout of another order takes more: see `reorder`.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_layouts::{Layout, TableOptions, convert};

use crate::background::Draining;
use crate::relayout::Relayout;
use crate::relayout::reorder::Tell;
use crate::versions::{TableState, has_other_files, is_being_sorted};

impl Relayout {
    /// Gives a table another layout.
    pub(crate) fn set_layout(&self, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        self.change(id, layout, tell)?;
        self.memory.note_layout(layout);
        Ok(())
    }

    fn change(&self, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        let table = Arc::clone(self.versions.view().table(id)?);
        if table.options.layout.is_ordered() != layout.is_ordered() || !can_take(&table, layout) {
            return self.reorder(id, layout, tell);
        }
        drop(table);
        if self.try_layout(id, layout)? {
            return Ok(());
        }
        // It has no place for what is kept in memory. What is there goes to files first, and nothing new stays.
        let _draining = Draining::new(&self.versions);
        loop {
            self.background.wait_for_files(|table| table.id == id)?;
            if self.try_layout(id, layout)? {
                return Ok(());
            }
        }
    }

    /// `false`, and nothing is done, where the table keeps records in memory for which the layout has no place.
    fn try_layout(&self, id: u32, layout: Layout) -> Result<bool> {
        let version_set = self.versions.lock();
        let state = self.versions.state();
        let Some(table) = state.tables.get(&id) else {
            return Err(Error::NotFound(format!("{} was dropped", state.tables.named_dropped(id))));
        };
        let before = table.options.layout;
        if before == layout {
            return Ok(true);
        }
        if before.is_ordered() != layout.is_ordered() {
            return Err(Error::invalid("the table's order has changed meanwhile; try again"));
        }
        if self.versions.is_reordering(id) {
            return Err(is_being_sorted(table));
        }
        if !layout.takes_residents() && table.version.resident().is_some() {
            return Ok(false);
        }
        let options = TableOptions { layout, ..table.options };
        options.validate()?;
        let version = convert(&*table.version, &options, version_set.log.flushed.0);
        let altered = table.with_options(options, version.ok_or_else(has_other_files)?);
        debug_assert!(
            layout.takes_residents() || altered.version.resident().is_none(),
            "what is in memory has a place"
        );
        self.succeed_in_place(version_set, table, &altered)?;
        Ok(true)
    }
}

/// Whether a layout can do with the files that the table has.
fn can_take(table: &TableState, layout: Layout) -> bool {
    layout.takes_trees() || table.version.files().iter().all(|file| file.list().is_some())
}
