//! The way of a get: the active buffer, sealed buffers from new to old, then down one path of the tree, in
//! each node from the newest list to the oldest. The first record of the key decides, or the table's rule merges what
//! there is of it.

mod approximate;
mod cursor;
mod ttl;

use std::sync::Arc;

use forebay_base::combine::Fold;
use forebay_base::{Error, Record, Result};
use forebay_env::guest;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::answered;
use forebay_store::WriteBuffer;
use forebay_store::list::Lookup;

use crate::engine::{Engine, refuse_guests};
use crate::versions::{Pin, State, TableState};

pub use approximate::Approximation;
pub(crate) use approximate::approximate;
pub(crate) use cursor::Entry;
pub use cursor::{Cursor, Nearest};
pub(crate) use ttl::Ttl;

/// Every how many lookups one is timed: reading the clock twice would be a share of a cached get.
const TIMED_EVERY: u64 = 16;

/// A moment of the database: a version, and how long its active buffer was; `usize::MAX` for what it has grown to by
/// the time somebody looks.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) state: Arc<State>,
    pub(crate) active_bytes: usize,
    /// Where it is a snapshot's.
    pub(crate) pin: Option<Arc<Pin>>,
    /// A snapshot's wall time, in milliseconds since 1970: what was alive by then.
    pub(crate) moment: Option<u64>,
}

impl View {
    /// The write buffers that hold something, newest first, each with how much of it is seen.
    pub(crate) fn buffers(&self) -> impl DoubleEndedIterator<Item = (&Arc<WriteBuffer>, usize)> {
        std::iter::once((&self.state.active, self.active_bytes))
            .chain(self.state.sealed.iter().map(|buffer| (buffer, buffer.len())))
            .filter(|(_, bytes)| *bytes > 0)
    }

    /// The view, if a table keeps its keys in order in it.
    pub(crate) fn in_order(self, id: u32) -> Result<Self> {
        let table = self.table(id)?;
        if !table.order.is_lexical() {
            return Err(Error::invalid(format!(
                "table `{}` has layout {} here, which keeps no order; open it anew as a Table",
                table.name, table.options.layout
            )));
        }
        Ok(self)
    }

    pub(crate) fn table(&self, id: u32) -> Result<&Arc<TableState>> {
        refuse_guests()?;
        let gone = || Error::NotFound("the table was dropped, or made after this snapshot".into());
        self.state.tables.get(&id).ok_or_else(gone)
    }
}

impl Engine {
    /// The database as it is now.
    pub(crate) fn view(&self) -> View {
        let state = self.state();
        let active_bytes = state.active.len();
        View { state, active_bytes, pin: None, moment: None }
    }

    /// The database as it will be when it is looked at: for a single lookup.
    pub(crate) fn latest(&self) -> View {
        View { state: self.state(), active_bytes: usize::MAX, pin: None, moment: None }
    }

    /// Looks a key up.
    pub(crate) fn get(&self, view: &View, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let timed = self.metrics.gets.get().is_multiple_of(TIMED_EVERY);
        self.metrics.gets.add(1);
        let started = timed.then(|| self.env.clock.now());
        let found = self.find(view, view.table(table)?, key);
        if let Some(started) = started {
            self.metrics.get_latency.record(self.env.clock.now().saturating_sub(started));
        }
        found
    }

    fn find(&self, view: &View, table: &TableState, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let lookup = Lookup::new(table.order, key);
        let (rule, rows) = (table.rule()?, table.rows());
        guest::take_failure();
        let mut fold = Fold::default();
        let mut open = true;
        for (buffer, limit) in view.buffers() {
            if open {
                buffer.find(&rows, lookup.prefix, key, limit, |record| {
                    open = fold.add(rule, record);
                    open
                });
            }
        }
        if open {
            let wasted_nanoseconds =
                table.version.find(&[lookup], &mut |_, record| fold.add(rule, record))?;
            table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
        } else {
            self.metrics.gets_from_buffer.add(1);
        }
        answered(Ok(self.ttl(view, table).unless_expired(fold.into_value())))
    }

    /// Looks several keys up in one view, all at a time. Answers are in the order of the keys.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        view: &View,
        table: u32,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let table = view.table(table)?;
        let (rule, rows) = (table.rule()?, table.rows());
        guest::take_failure();
        self.metrics.gets.add(keys.len() as u64);
        let mut folds: Vec<Fold> = keys.iter().map(|_| Fold::default()).collect();
        let lookups = keys.iter().map(|key| Lookup::new(table.order, key.as_ref()));
        let mut waiting: Vec<(usize, Lookup<'_>)> = lookups.enumerate().collect();
        for (buffer, limit) in view.buffers() {
            waiting.retain(|(number, lookup)| {
                let mut more = true;
                buffer.find(&rows, lookup.prefix, lookup.key, limit, |record| {
                    more = folds[*number].add(rule, record);
                    more
                });
                more
            });
        }
        self.metrics.gets_from_buffer.add((keys.len() - waiting.len()) as u64);
        let (numbers, lookups): (Vec<usize>, Vec<Lookup<'_>>) = waiting.into_iter().unzip();
        let mut each = |at: usize, record: &Record<'_>| folds[numbers[at]].add(rule, record);
        let wasted_nanoseconds = table.version.find(&lookups, &mut each)?;
        table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
        let ttl = self.ttl(view, table);
        answered(Ok(folds.into_iter().map(|fold| ttl.unless_expired(fold.into_value())).collect()))
    }
}
