//! A database whose files were damaged while it was closed.

use forebay::{Durability, Error, Result};

use crate::check::View;
use crate::seen::Shown;
use crate::{Harness, Op, Query};

impl Harness {
    /// Opens it and asks for everything: each answer is that of some moment up to which all is there, the same for
    /// all, or an error that names the damage. Where an answer fails, `verify` finds the cause. `loses_the_end` if
    /// records that were promised may be missing, as the end of a log cannot be told from what a crash leaves.
    pub fn ask_damaged(&mut self, loses_the_end: bool) {
        match self.open().and_then(|()| self.ask_each(loses_the_end)) {
            Ok(()) => {}
            // What the end of the log had may be that there are groups.
            Err(Error::Invalid(_)) if loses_the_end && self.config.groupings.is_some() => {}
            Err(error) => assert_names_damage(&error),
        }
    }

    fn ask_each(&mut self, loses_the_end: bool) -> Result<()> {
        let sequence = self.opened().recovered;
        self.adopt_unknown(sequence);
        let is_known = self.model.may_end_at(sequence);
        assert!(is_known || loses_the_end, "damage took records: {sequence} is the last");
        if !is_known {
            return Ok(());
        }
        self.model.roll_back(sequence, Durability::Disk);
        self.adopt();
        self.assert_savepoints();
        let mut failed = Vec::new();
        for table in 0..self.config.tables() {
            let shown = self.shown(table);
            let queries = shown.contents.keys().cloned().map(Query::Get).chain([Query::All]);
            let queries: Vec<Query> = queries.collect();
            failed.extend(queries.iter().filter_map(|query| self.ask(table, &shown, query).err()));
        }
        failed.extend(self.check_groups(self.model.now().groups()).err());
        failed.iter().for_each(assert_names_damage);
        let problems = self.db().verify(&mut |_, _| ())?.problems;
        assert!(failed.is_empty() || !problems.is_empty(), "verify did not find: {}", failed[0]);
        // What can be done is done, and takes nothing for right that is not.
        for op in [Op::Flush, Op::Compact(0), Op::Compact(1), Op::Compact(2)] {
            if let Err(error) = self.apply(&op) {
                assert_names_damage(&error);
            }
        }
        Ok(())
    }

    fn ask(&self, table: usize, shown: &Shown<'_>, query: &Query) -> Result<()> {
        View { tables: self.tables(), config: &self.config, snapshot: None }.check(table, shown, query)
    }
}

fn assert_names_damage(error: &Error) {
    assert!(error.is_corruption(), "damage is told as something else: {error:?}");
}
