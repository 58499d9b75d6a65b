//! Other options for a table that is in use: one edit, which moves no record. What there is stays as it is, and what is
//! written from then on goes by the new options. Work that was under way is thrown away and, where it is still wanted,
//! done anew.

use forebay_base::{Error, Result};
use forebay_layouts::{RuleName, TableOptions, alter};

use crate::context::of_table;
use crate::relayout::Relayout;
use crate::versions::{TableState, is_being_sorted, store_for};

impl Relayout {
    /// Gives a table the options that `wanted` makes of its own.
    pub(crate) fn alter(
        &self,
        name: &str,
        wanted: impl FnOnce(&TableState) -> Result<TableOptions>,
    ) -> Result<()> {
        let version_set = self.versions.lock();
        let state = self.versions.state();
        let table = state.table_named(name).ok_or_else(|| self.context.no_table(name))?;
        let options = wanted(table)?;
        if options == table.options {
            return Ok(());
        }
        let fit = options.validate().and_then(|()| can_be_altered(table, &options));
        fit.map_err(|error| of_table(name, error))?;
        if self.versions.is_reordering(table.id) {
            return Err(is_being_sorted(table));
        }
        let seed = self.context.superblock.hash_seed;
        let store = store_for(&self.versions.lists, &self.versions.trees, &options, seed, &table.space);
        let altered = table.with_options(options, alter(&*table.version, &options, store)?);
        self.succeed_in_place(version_set, table, &altered)
    }
}

/// Whether what the table has can be read under these options, too.
fn can_be_altered(table: &TableState, options: &TableOptions) -> Result<()> {
    let before = &table.options;
    if options.layout != before.layout {
        return Err(Error::invalid(format!(
            "it has layout {}; another one is given by set_layout (in a shell `forebay layout`)",
            before.layout
        )));
    }
    if options.time_to_live.is_some() != before.time_to_live.is_some() {
        return Err(Error::invalid(
            "its values were made with time_to_live, or without it, and stay so; make another table",
        ));
    }
    let merges_operands = || matches!(table.rule.name(), RuleName::Operands(_));
    if options.time_to_live != before.time_to_live && merges_operands() {
        return Err(Error::invalid(
            "its operands are merged with those that end with them, so another time_to_live would begin each entry \
             anew; leave that option out, or make another table",
        ));
    }
    if options.apart_bytes_min.is_some() != before.apart_bytes_min.is_some() {
        return Err(Error::invalid(
            "it was made with values_apart, or without it, and stays so; make another table, or give another number \
             of bytes",
        ));
    }
    // A tree that is appended to has one filter for all that it has.
    let has_trees =
        || options.layout.grows_trees() || table.version.files().iter().any(|file| file.list().is_none());
    if options.filter_bits_per_key != before.filter_bits_per_key && has_trees() {
        return Err(Error::invalid(format!(
            "it has trees, whose filters go on with {} filter_bits_per_key; leave that option out",
            before.filter_bits_per_key
        )));
    }
    Ok(())
}
