//! Views: what a read sees.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_store::WriteBuffer;

use crate::context::refuse_guests;
use crate::options::ReadOptions;
use crate::versions::{Pin, Reads, State, TableState, Versions};

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
    /// Where it is a transaction's.
    pub(crate) own: Option<Arc<Own>>,
    pub(crate) reading: ReadOptions,
}

/// What a transaction's view has besides.
pub(crate) struct Own {
    /// Whoever reads the view notes what, before it looks.
    pub(crate) reads: Arc<Reads>,
    /// What the transaction has written, newest first, each with how much of it is seen.
    pub(crate) written: Vec<(Arc<WriteBuffer>, usize)>,
}

impl View {
    pub(crate) fn new(state: Arc<State>, active_bytes: usize) -> Self {
        Self { state, active_bytes, pin: None, moment: None, own: None, reading: ReadOptions::default() }
    }

    /// The same, read so.
    pub(crate) fn reading(self, reading: ReadOptions) -> Self {
        Self { reading, ..self }
    }

    /// The write buffers that hold something, newest first, each with how much of it is seen.
    pub(crate) fn buffers(&self) -> impl DoubleEndedIterator<Item = (&Arc<WriteBuffer>, usize)> {
        let written = self.own.as_ref().map_or(&[][..], |own| &own.written);
        written
            .iter()
            .map(|(buffer, bytes)| (buffer, *bytes))
            .chain(self.log_buffers())
            .filter(|(_, bytes)| *bytes > 0)
    }

    /// Those of the log, empty ones among them.
    pub(crate) fn log_buffers(&self) -> impl DoubleEndedIterator<Item = (&Arc<WriteBuffer>, usize)> {
        let sealed = self.state.sealed.iter().map(|buffer| (buffer, buffer.len()));
        std::iter::once((&self.state.active, self.active_bytes)).chain(sealed)
    }

    /// The view, if a table keeps its keys in order in it.
    pub(crate) fn in_order(self, id: u32) -> Result<Self> {
        let table = self.table(id)?;
        if !table.order.is_lexical() {
            return Err(Error::invalid(format!(
                "table `{}` has layout {} here, which keeps no order; open it as a Table instead",
                table.name, table.options.layout
            )));
        }
        Ok(self)
    }

    pub(crate) fn table(&self, id: u32) -> Result<&Arc<TableState>> {
        refuse_guests()?;
        let table = self.state.tables.get(&id).ok_or_else(|| self.gone(id))?;
        debug_assert_eq!(table.id, id, "a table stands at its number");
        Ok(table)
    }
}

impl View {
    #[cold]
    fn gone(&self, id: u32) -> Error {
        let table = self.state.tables.named_dropped(id);
        Error::NotFound(match self.pin {
            Some(_) => format!("{table} was dropped before this snapshot, or made after it"),
            None => format!("{table} was dropped"),
        })
    }
}

impl Versions {
    /// The database as it is now. What is seen of the active buffer was written under the version that is seen: no batch
    /// is seen in part because a table of it was made between two looks.
    pub(crate) fn view(&self) -> View {
        let mut state = self.state();
        loop {
            let active_bytes = state.active.len();
            let newest = self.state();
            if Arc::ptr_eq(&state, &newest) {
                return View::new(state, active_bytes);
            }
            state = newest;
        }
    }

    /// The database as it will be when it is looked at: for a single lookup, whose newest record decides.
    pub(crate) fn latest(&self) -> View {
        View::new(self.state(), usize::MAX)
    }
}
