//! The tables of a follower. A round tells those that there are by its end. The follower makes one before the first
//! record that is its own, or of a table that was made later, and else at the end of the round; there it drops those that
//! are gone. So each is there when it was at the source, as far as its records tell.
//!
//! **Invariant:** of tables below `known_below` that are not here, the source had none by then, or no more.

use std::io::Read;

use forebay_aggregate::BuiltIn;
use forebay_base::{Error, Result};
use forebay_layouts::{Layout, RuleName, StoredRule, TableOptions};
use forebay_store::log::batch::Payload;
use forebay_store::manifest::TableEntry;

use super::Follower;
use crate::api::Table;
use crate::api::builder::{NAME_BYTES_MAX, make_table};
use crate::api::database::drop_followed;
use crate::changes::Messages;
use crate::versions::TableState;

/// What tables a stream has told of.
pub(super) struct Told {
    /// In the order of their numbers.
    tables: Vec<TableEntry>,
    next_table: u32,
    /// Whether it was seen that the follower can have them.
    is_checked: bool,
    /// Whether all are here, and no others.
    is_taken: bool,
}

impl Told {
    pub(super) fn new(tables: Vec<TableEntry>, next_table: u32) -> Self {
        debug_assert!(
            tables.is_sorted_by_key(|table| table.id),
            "tables stand in the order of their numbers"
        );
        Self { tables, next_table, is_checked: false, is_taken: false }
    }

    /// The next round has the same tables.
    pub(super) fn go_on(&mut self, next_table: u32) {
        self.is_taken &= next_table == self.next_table;
        self.next_table = next_table;
    }

    /// Whether nothing is left to do for them.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken
    }

    fn has(&self, id: u32) -> bool {
        self.tables.binary_search_by_key(&id, |table| table.id).is_ok()
    }
}

impl Follower {
    /// Sees whether the follower can go on with these tables, before a record comes that it does not have.
    ///
    /// All that it knows of tables it knows of rounds that end with its last record at the latest, and the source looked
    /// for those before it looked for this one. So if it was the same source, none of these tables can have been dropped
    /// then, and no number given that is not given now.
    pub(super) fn check<R: Read>(&self, told: &mut Told, messages: &Messages<R>) -> Result<()> {
        if told.is_checked {
            return Ok(());
        }
        if self.known_below > told.next_table {
            return Err(Error::invalid(format!(
                "the follower has heard of table {}, which the source never had: it was made at another source, and lost \
                 with that; make the follower anew",
                self.known_below - 1
            )));
        }
        let state = self.db.engine().versions.state();
        for entry in &told.tables {
            let (options, rule) = read_entry(entry, messages)?;
            match state.tables.get(&entry.id) {
                Some(table) => agree(table, entry, &options, &rule)?,
                None if entry.id < self.known_below => {
                    return Err(Error::invalid(format!(
                        "the follower has heard that table `{}`, number {}, was dropped, and the source has it: it was \
                         dropped at another source, and that was lost; make the follower anew",
                        entry.name, entry.id
                    )));
                }
                None => self.can_make(entry, &rule)?,
            }
        }
        told.is_checked = true;
        Ok(())
    }

    /// Whether the follower has heard of tables, or of the end of some, of which a source has not that has told these and
    /// was not looked at yet. Where the source follows another one, it may only be amid a round.
    pub(super) fn has_heard_more(&self, told: &Told) -> bool {
        let state = self.db.engine().versions.state();
        let is_gone =
            |entry: &TableEntry| entry.id < self.known_below && !state.tables.contains_key(&entry.id);
        !told.is_checked && (self.known_below > told.next_table || told.tables.iter().any(is_gone))
    }

    /// A record of this table comes: it is here from now on, and so is all that was made before it.
    pub(super) fn make_up_to<R: Read>(
        &mut self,
        newest: u32,
        told: &Told,
        messages: &Messages<R>,
    ) -> Result<()> {
        debug_assert!(newest >= self.known_below, "what is known is made");
        if newest >= told.next_table {
            let told = told.next_table;
            return Err(
                messages.damaged(format!("a record is of table {newest}, and there are none from {told} on"))
            );
        }
        self.make_missing(newest, told, messages)?;
        self.db.engine().versions.use_up_tables(newest + 1)?;
        self.known_below = newest + 1;
        Ok(())
    }

    /// All of a round is here: so are its tables, and those go that the source had dropped by then.
    pub(super) fn end_round<R: Read>(&mut self, told: &mut Told, messages: &Messages<R>) -> Result<()> {
        // An earlier round with the same last record brings back nothing.
        self.make_missing(u32::MAX, told, messages)?;
        let engine = self.db.engine();
        engine.versions.use_up_tables(told.next_table)?;
        self.known_below = self.known_below.max(told.next_table);
        self.drop_untold(told)?;
        told.is_taken = true;
        for entry in &told.tables {
            if let Some(table) = engine.versions.state().tables.get(&entry.id) {
                told.is_taken &= self.keep_up(table, entry, messages)?;
            }
        }
        Ok(())
    }

    /// Drops what the source had dropped by the end of the round, and tells whether there was any. Amid it that is due
    /// where a commit has records of tables that are not here, as they were made and dropped since: tables that are here
    /// without those, such as a count without what it counts, would tell of half a commit, and a promotion would keep it.
    pub(super) fn drop_untold(&self, told: &Told) -> Result<bool> {
        let state = self.db.engine().versions.state();
        let is_gone = |table: &&TableState| table.id < told.next_table && !told.has(table.id);
        let gone = state.tables.values().map(|table| &**table).filter(is_gone);
        let gone: Vec<u32> = gone.map(|table| table.id).collect();
        drop(state);
        self.drop_gone(&gone)?;
        Ok(!gone.is_empty())
    }

    /// Makes what was told up to this number and is not known.
    fn make_missing<R: Read>(&mut self, newest: u32, told: &Told, messages: &Messages<R>) -> Result<()> {
        let known_below = self.known_below;
        for entry in told.tables.iter().filter(|entry| (known_below..=newest).contains(&entry.id)) {
            self.make(entry, messages)?;
            self.known_below = entry.id + 1;
        }
        Ok(())
    }

    fn make<R: Read>(&self, entry: &TableEntry, messages: &Messages<R>) -> Result<()> {
        let engine = self.db.engine();
        let (options, rule) = read_entry(entry, messages)?;
        self.can_make(entry, &rule)?;
        if let Some(older) = engine.versions.state().table_named(&entry.name) {
            // It was dropped there before this one was made.
            debug_assert!(older.id < entry.id, "tables of one name follow each other");
            self.drop_gone(&[older.id])?;
        }
        // What is encrypted keeps values with their keys: that concerns its own files alone.
        let apart_bytes_min = options.apart_bytes_min.filter(|_| !engine.context.superblock.is_encrypted);
        let options = TableOptions { apart_bytes_min, ..options };
        let (options, version) = (options.encode(&rule), forebay_layouts::empty(&options)?);
        let entry = TableEntry { options, version, ..entry.clone() };
        let table = make_table(engine, &mut engine.versions.lock(), entry)?;
        debug_assert!(table.version.records() == 0, "it begins empty");
        engine.memory.note_layout(table.options.layout);
        self.provide(&table);
        Ok(())
    }

    /// Drops these, once all is durable that the source had before: a power loss that took that back would not bring back
    /// the tables.
    fn drop_gone(&self, gone: &[u32]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        self.db.sync()?;
        gone.iter().try_for_each(|&id| drop_followed(self.db.engine(), id).map(drop))
    }

    fn can_make(&self, entry: &TableEntry, rule: &RuleName) -> Result<()> {
        if entry.name.len() > NAME_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the source has a table whose name is longer than {NAME_BYTES_MAX} bytes"
            )));
        }
        let is_built_in = |of: &str| BuiltIn::of(of).is_some();
        let is_stored = matches!(rule, RuleName::Operands(name) if StoredRule::of(name).is_some());
        let is_known = *rule == RuleName::None
            || is_stored
            || self.rules.contains_key(rule)
            || rule.state_type().is_some_and(is_built_in);
        if is_known { Ok(()) } else { Err(unknown_rule(&entry.name, rule)) }
    }

    /// A table has the order that the source's has got, and its time to live; all other options concern its files alone,
    /// and are its own affair. `false` where that has to wait.
    fn keep_up<R: Read>(
        &self,
        table: &TableState,
        entry: &TableEntry,
        messages: &Messages<R>,
    ) -> Result<bool> {
        let engine = self.db.engine();
        let (options, rule) = read_entry(entry, messages)?;
        agree(table, entry, &options, &rule)?;
        if engine.versions.is_reordering(table.id) {
            return Ok(false);
        }
        if options.layout.is_ordered() && !table.order.is_lexical() {
            Table::new(engine, table).set_layout(options.layout)?;
        }
        if options.time_to_live != table.options.time_to_live {
            let time_to_live = options.time_to_live;
            engine.relayout.alter(&table.name, |table| Ok(TableOptions { time_to_live, ..table.options }))?;
        }
        Ok(true)
    }

    /// Ranges can be deleted of tables in key order alone: where the source deletes one, it had that order by then.
    pub(super) fn order_for<R: Read>(
        &self,
        payload: &Payload,
        told: &Told,
        messages: &Messages<R>,
    ) -> Result<()> {
        let engine = self.db.engine();
        for delete in payload.notes().range_deletes() {
            let state = engine.versions.state();
            let Some(table) = state.tables.get(&delete.table).filter(|table| !table.order.is_lexical())
            else {
                continue;
            };
            let entry = told.tables.iter().find(|entry| entry.id == table.id);
            let options = entry.map(|entry| read_entry(entry, messages)).transpose()?;
            let layout = options.map(|(options, _)| options.layout).filter(|layout| layout.is_ordered());
            Table::new(engine, table).set_layout(layout.unwrap_or_else(Layout::wb_tree_ordered))?;
        }
        Ok(())
    }
}

fn read_entry<R: Read>(entry: &TableEntry, messages: &Messages<R>) -> Result<(TableOptions, RuleName)> {
    let read = forebay_layouts::read_options(&entry.version, &entry.options);
    read.map_err(|error| error.read_from(messages.name()))
}

/// Whether a table that is here is the source's, and takes all that the source's does.
fn agree(table: &TableState, entry: &TableEntry, options: &TableOptions, rule: &RuleName) -> Result<()> {
    if table.name != entry.name || table.rule.name() != rule {
        return Err(Error::invalid(format!(
            "table {} is `{}` with {} at the source, and `{}` with {} here; make the follower anew",
            table.id,
            entry.name,
            rule.describe(),
            table.name,
            table.rule.name().describe()
        )));
    }
    if table.options.time_to_live.is_some() != options.time_to_live.is_some() {
        return Err(Error::invalid(format!(
            "entries of table `{}` expire at the source or here, and not at both; make the follower anew",
            table.name
        )));
    }
    if table.rule.known().is_none() {
        return Err(unknown_rule(&entry.name, rule));
    }
    Ok(())
}

fn unknown_rule(table: &str, name: &RuleName) -> Error {
    let call = if name.state_type().is_some() { "Follower::aggregator" } else { "Follower::merge_rule" };
    Error::invalid(format!(
        "table `{table}` has {}, whose code is the user's own and is not here; bring it by {call} before it follows",
        name.describe()
    ))
}
