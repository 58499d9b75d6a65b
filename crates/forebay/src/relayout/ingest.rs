//! Bulk ingest: sorted entries become lists without going through the log and a write buffer.

use std::sync::Arc;

use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::merge::Cursor;
use forebay_base::{Error, Order, Record, Result, planted};
use forebay_buffer_tree::Expected;
use forebay_env::yield_point;
use forebay_store::WriteBuffer;

use crate::read::{Entry, Merging, usual_expiry};
use crate::relayout::Relayout;
use crate::versions::{Commit, Finished};

type Entries = Box<dyn Iterator<Item = Result<Entry>> + Send>;

impl Relayout {
    /// Brings in entries whose keys ascend: all of them or, on error or in a crash, none. Returns how many.
    pub(crate) fn ingest(&self, id: u32, entries: Entries) -> Result<u64> {
        self.context.refuse_followers()?;
        self.space.wait_for_space(id)?;
        let table = Arc::clone(self.versions.view().table(id)?);
        table.rule()?;
        let entries: Entries = match table.options.time_to_live {
            None => entries,
            Some(ttl) => {
                // All of them begin to live together.
                let expiry = usual_expiry(&self.context, ttl, Merging::by(table.rule.name()));
                Box::new(entries.map(move |entry| {
                    entry.map(|(key, mut value)| {
                        value.extend_from_slice(&expiry.to_le_bytes());
                        (key, value)
                    })
                }))
            }
        };
        let input = Ascending::new(entries, table.order)?;
        let Some(mut job) = table.version.ingest(Box::new(input), None)? else {
            return Err(Error::invalid(format!(
                "table `{}` has layout {}, which takes in nothing but batches; give it a layout of runs, or write \
                 batches",
                table.name, table.options.layout
            )));
        };
        let outcome = job.finish(&|| self.context.check_open())?;
        let (records, finished) =
            (outcome.records(), Finished { table: id, generation: table.generation, outcome });
        // What was accepted before is older than what comes in now, so it must be in lists before. Most of it, while
        // writers go on.
        if !planted::is("ingest-under-buffers") {
            self.writer.flush().inspect_err(|_| finished.discard())?;
        }
        let committed = self.bring_in(&table.name, finished);
        self.memory.tend_filters();
        if !committed? {
            return Err(Error::invalid(format!(
                "table `{}` got another layout or other options meanwhile, so nothing was ingested; try again",
                table.name
            )));
        }
        self.context.env.jobs.wake();
        Ok(records)
    }

    /// Lets what came in be seen, newer than all that was accepted before. `false` where it no longer fits its table.
    ///
    /// Writers to the table wait meanwhile. What they wrote would be above it, though it was written before, and by
    /// somebody who has not seen it: then there would be no order in which they and this have come.
    fn bring_in(&self, name: &str, finished: Finished) -> Result<bool> {
        let id = finished.table;
        let _one_at_a_time = self.versions.bringing_in.lock();
        if self.versions.is_reordering(id) {
            finished.discard();
            return Err(Error::invalid(format!(
                "table `{name}` is being sorted into another order, so nothing was ingested; try again when that is done"
            )));
        }
        let _frozen = Frozen::new(self, id).inspect_err(|_| finished.discard())?;
        if !planted::is("ingest-under-buffers") {
            self.writer.flush().inspect_err(|_| finished.discard())?;
            // It would hide what comes in, and then no more: lists may have lost the range already.
            let deletes_a_range = |buffer: &Arc<WriteBuffer>| {
                buffer.range_deletes(usize::MAX).iter().any(|delete| delete.table == id)
            };
            debug_assert!(
                !self.versions.state().sealed.iter().any(deletes_a_range),
                "no deletion of a range is still to be flushed"
            );
        }
        yield_point("ingest is written");
        self.versions.commit(Commit::Ingested(finished))
    }
}

/// A table whose writers wait until this is dropped.
struct Frozen<'a> {
    relayout: &'a Relayout,
    table: u32,
}

impl<'a> Frozen<'a> {
    fn new(relayout: &'a Relayout, table: u32) -> Result<Self> {
        relayout.freeze(table, true)?;
        Ok(Self { relayout, table })
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = self.relayout.freeze(self.table, false);
        self.relayout.context.env.jobs.wake();
    }
}

impl Relayout {
    /// Writes states of a table's keys, which come in its order, each key once. Nobody sees them before they are
    /// [published](Self::publish). Of a table to which nothing is written otherwise.
    pub(crate) fn write_states(
        &self,
        id: u32,
        states: Box<dyn Cursor + Send>,
        expected: Expected,
    ) -> Result<Finished> {
        debug_assert!(states.prefix().is_none() || expected.records > 0, "it is known how much comes");
        // As long as background work is behind by as much, more would only wait for it.
        let is_behind = || self.versions.debt(&self.versions.state()) > expected.bytes;
        let rests = || self.context.health.compactors_are_idle();
        self.context.env.jobs.wake();
        self.context.wait_for(|| self.space.trouble(), || !is_behind() || rests())?;
        let table = Arc::clone(self.versions.view().table(id)?);
        table.rule()?;
        let job = table.version.ingest(states, Some(expected))?;
        let mut job = job.ok_or_else(|| Error::bug("a layout that takes in no states"))?;
        let outcome = job.finish(&|| self.context.check_open())?;
        Ok(Finished { table: id, generation: table.generation, outcome })
    }

    /// Lets what was written be seen, all of it or on error nothing.
    pub(crate) fn publish(&self, written: Finished) -> Result<()> {
        yield_point("states are written");
        let _one_at_a_time = self.versions.bringing_in.lock();
        if !self.versions.commit(Commit::Ingested(written))? {
            return Err(Error::bug("a table that got another layout meanwhile"));
        }
        self.memory.tend_filters();
        self.context.env.jobs.wake();
        Ok(())
    }
}

/// Entries as a cursor, which sees to it that they ascend.
struct Ascending {
    entries: Entries,
    order: Order,
    /// The entry here, its prefix, and how many were before it.
    here: Option<(u64, Entry)>,
    number: u64,
}

impl Ascending {
    fn new(entries: Entries, order: Order) -> Result<Self> {
        let mut cursor = Self { entries, order, here: None, number: 0 };
        cursor.here = cursor.take()?;
        Ok(cursor)
    }

    fn take(&mut self) -> Result<Option<(u64, Entry)>> {
        let Some((key, value)) = self.entries.next().transpose()? else { return Ok(None) };
        let number = self.number;
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "entry {number} has a key of {} bytes and a value of {}; at most {KEY_BYTES_MAX} and {VALUE_BYTES_MAX}",
                key.len(),
                value.len()
            )));
        }
        if self.here.as_ref().is_some_and(|(_, (before, _))| *before >= key) {
            return Err(Error::invalid(format!(
                "the key of entry {number} is not above that of the one before; entries must come sorted, each key once"
            )));
        }
        self.number += 1;
        Ok(Some((self.order.prefix(&key), (key, value))))
    }
}

impl Cursor for Ascending {
    fn prefix(&self) -> Option<u64> {
        self.here.as_ref().map(|(prefix, _)| *prefix)
    }

    fn record(&self) -> Record<'_> {
        debug_assert!(self.here.is_some(), "no record stands at the end");
        self.here.as_ref().map_or(Record::put(b"", b""), |(_, (key, value))| Record::put(key, value))
    }

    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.here.is_some(), "nothing stands behind the end");
        self.here = self.take()?;
        Ok(())
    }
}
