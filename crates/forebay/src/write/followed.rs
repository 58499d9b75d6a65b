//! Writing what another database has committed, byte for byte, so that its records have the numbers that they have there.
//!
//! **Invariant:** a batch is written whole, and only behind the record that is before it there.

use std::cell::Cell;

use forebay_base::expiry::EXPIRY_BYTES;
use forebay_base::{Error, Kind, Order, Result};
use forebay_env::yield_point;
use forebay_layouts::RuleName;
use forebay_store::log::batch::{Payload, Records};
use forebay_store::log::{Appended, Durability};

use crate::versions::State;
use crate::write::{Writer, is_as_ever};

impl Writer {
    /// A batch of the database that this one follows, of its bytes, the highest number of a table in it, and whether all
    /// its tables are here. `None` where they are no batch of so many records.
    pub(crate) fn read_followed(&self, bytes: Vec<u8>, records: u32) -> Option<(Payload, u32, bool)> {
        let (newest, is_known) = (Cell::new(0), Cell::new(true));
        let note = |table: u32| newest.set(newest.get().max(table));
        let payload = self.versions.look(|state| {
            Payload::read(bytes, |table| {
                note(table);
                order_in(state, table, &is_known)
            })
        })?;
        payload.notes().range_deletes().iter().for_each(|delete| note(delete.table));
        self.versions.look(|state| note_deletes(state, &payload, &is_known));
        let is_one = payload.records() == records && newest.get() > 0;
        is_one.then(|| (payload, newest.get(), is_known.get()))
    }

    /// The same batch for the tables that are here by now, and whether those are all of its tables.
    pub(crate) fn note_followed(&self, payload: &Payload) -> (Payload, bool) {
        let is_known = Cell::new(true);
        let noted = self.versions.look(|state| {
            note_deletes(state, payload, &is_known);
            payload.in_orders(|table| order_in(state, table, &is_known))
        });
        (noted, is_known.get())
    }

    /// Writes such a batch. Records of tables that are not there take their numbers, and are nothing else. Returns the
    /// number of the last record; `None` where a table cannot have a record.
    pub(crate) fn write_followed(&self, mut payload: Payload) -> Result<Option<u64>> {
        let log = self.context.log()?;
        debug_assert!(
            self.context.refuse_followers().is_err(),
            "only a follower writes what others have committed"
        );
        if !self.versions.look(|state| fits(state, &payload)) {
            return Ok(None);
        }
        let bounded = self.bounded_tables(payload.notes());
        bounded.iter().try_for_each(|id| self.space.wait_for_space(*id))?;
        let sum = payload.sum(self.context.superblock.log_secret);
        let sequence = loop {
            if self.context.is_closing() {
                return Err(Error::closed());
            }
            let epoch = log.epoch();
            if !self.versions.look(|state| is_as_ever(state, payload.notes())) {
                let state = self.unfrozen_state(payload.notes())?;
                self.refuse_unordered(&state, &payload)?;
                payload = payload.in_orders(|id| state.order_of(id));
            }
            yield_point("followed write is admitted");
            match log.commit(&payload, sum, epoch, None, Durability::Memory)? {
                Appended::Done(sequence) => break sequence,
                Appended::Stale => {}
                Appended::Conflict(_) => return Err(Error::bug("a batch without a basis has a conflict")),
                Appended::Full(segment) => self.rotate(segment, self.frame_bytes_of(&payload))?,
            }
        };
        debug_assert!(sequence >= u64::from(payload.records()), "each record has a number");
        self.note(&payload, &bounded);
        Ok(Some(sequence))
    }

    /// Ranges can be deleted of tables in key order alone.
    fn refuse_unordered(&self, state: &State, payload: &Payload) -> Result<()> {
        for delete in payload.notes().range_deletes() {
            let Some(table) = state.tables.get(&delete.table) else { continue };
            if !table.order.is_lexical() || self.versions.is_reordering(delete.table) {
                return Err(Error::invalid(format!(
                    "a range of table `{}` was deleted, and here the table is being sorted into another order; try again \
                     when that is done",
                    table.name
                )));
            }
        }
        Ok(())
    }
}

/// Whether all records are such as their tables take.
fn fits(state: &State, payload: &Payload) -> bool {
    Records::new(payload.bytes()).all(|(id, _, record)| {
        let Some(table) = state.tables.get(&id) else { return true };
        let is_long = table.options.time_to_live.is_none() || record.value.len() >= EXPIRY_BYTES;
        match (record.kind, table.rule.name()) {
            (Kind::Put, _) => is_long,
            (Kind::Delete, rule) => !matches!(rule, RuleName::States(_)),
            (Kind::Merge, rule) => is_long && matches!(rule, RuleName::Operands(_)),
            // Logs have none.
            (Kind::Pointer, _) => false,
        }
    })
}

/// Notes where a table is not here of which a range is deleted.
fn note_deletes(state: &State, payload: &Payload, is_known: &Cell<bool>) {
    let mut deletes = payload.notes().range_deletes().iter();
    is_known.set(is_known.get() && deletes.all(|delete| state.order_of(delete.table).is_some()));
}

/// The order of a table, and a note where it is not here.
fn order_in(state: &State, table: u32, is_known: &Cell<bool>) -> Option<Order> {
    let order = state.order_of(table);
    is_known.set(is_known.get() && order.is_some());
    order
}
