//! A reader beside the database: opened for reading only on the same files, as another process would, and held against
//! what the files must tell at that moment: what would be there if the process that writes were lost just then.

use forebay::{Database, Durability, Result, Snapshot};

use crate::check::View;
use crate::groups::GroupsView;
use crate::harness::Harness;
use crate::seen::{Kept, Shown, Time};
use crate::{Query, ReadBeside, Tables};

/// So many snapshots of it are held at most.
const SNAPSHOTS_MAX: usize = 3;
/// A table is read in so many parts at most.
const PARTS_MAX: usize = 4;

/// The reader, and its snapshots with what they must show.
pub(crate) struct Reader {
    // Dropped in this order.
    snapshots: Vec<(Snapshot, Tables, Vec<Kept>)>,
    db: Database,
    /// The number of the last record that it has seen.
    seen: u64,
}

impl Harness {
    pub(crate) fn read_beside(&mut self, act: ReadBeside) -> Result<()> {
        let db = match (act, self.reader.take()) {
            (ReadBeside::Close, _) => return Ok(()),
            (_, Some(reader)) => {
                self.reader = Some(reader);
                None
            }
            (_, None) => match Database::open(&self.dir, self.config.options(&self.env).read_only(true)) {
                Err(_) if self.may_fail => return Ok(()),
                opened => Some(opened?),
            },
        };
        if let Some(db) = db {
            self.reader = Some(Reader { snapshots: Vec::new(), seen: 0, db });
        }
        match self.check_beside(act) {
            // What a disk that fails has made of files nobody can tell who only reads them.
            Err(_) if self.may_fail => {
                self.reader = None;
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn check_beside(&mut self, act: ReadBeside) -> Result<()> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let sequence = reader.db.refresh()?;
        assert_eq!(sequence, reader.db.last_sequence(), "what a refresh tells is what is seen");
        let before = std::mem::replace(&mut reader.seen, sequence);
        for (snapshot, tables, seen) in &reader.snapshots {
            let view = View { tables, config: &self.config, snapshot: Some(snapshot) };
            seen.iter().enumerate().try_for_each(|(table, seen)| view.check_all(table, &seen.shown()))?;
        }
        // Of what has failed nobody knows whether it is there.
        if self.may_fail || self.other.is_some() {
            return Ok(());
        }
        assert!(before <= sequence, "a reader that has seen {before} sees only {sequence}");
        let (kept, last) = (self.model.kept_by(Durability::Os), self.model.last_sequence());
        assert!(
            (kept..=last).contains(&sequence),
            "a reader sees {sequence}; {kept} to {last} was acknowledged"
        );
        let mut model = self.model.clone();
        model.roll_back(sequence, Durability::Os);
        let reader = self.reader.as_ref().expect("it was there");
        let tables = Tables::open(&reader.db, &self.config)?;
        let view = View { tables: &tables, config: &self.config, snapshot: None };
        // It knows as much of the time as the manifest told, and as its own clock.
        let now = reader.db.unix_milliseconds();
        let time = Time { now: now - self.slack_milliseconds, highest: self.highest.max(now) };
        let shown = |table| Shown::of(&self.config, model.now(), table, time);
        for table in 0..self.config.tables() {
            view.check_all(table, &shown(table))?;
            let parts = 1 + sequence as usize % PARTS_MAX;
            let queries = [Query::Pieces(parts), Query::Parts(parts), Query::Count];
            view.check(table, &shown(table), &queries[sequence as usize % queries.len()])?;
        }
        if let Some(handles) = tables.groups() {
            GroupsView { handles, snapshot: None }.check_all(model.now().groups())?;
        }
        if let ReadBeside::Keep = act {
            let seen = (0..self.config.tables()).map(|table| shown(table).kept()).collect();
            let reader = self.reader.as_mut().expect("it was there");
            reader.snapshots.push((reader.db.snapshot(), tables, seen));
            let surplus = reader.snapshots.len().saturating_sub(SNAPSHOTS_MAX);
            reader.snapshots.drain(..surplus);
        }
        Ok(())
    }
}
