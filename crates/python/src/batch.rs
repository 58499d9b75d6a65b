//! [`Writes`]: what batches and transactions take; and [`Batch`].

use forebay::Durability;
use forebay_env::sync::{Arc, Mutex};
use pyo3::prelude::*;

use crate::bytes::{Bytes, edges};
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::options::{durability, duration};
use crate::table::Table;
use crate::writes::{delete_many, put_arrow, put_many};

/// Writes to any tables of a database that are committed together. They belong to one thread at a time.
#[pyclass(frozen, subclass, module = "forebay")]
pub(crate) struct Writes {
    home: Home<Held>,
}

/// What is written, and where it goes.
pub(crate) struct Held {
    pub(crate) open: Arc<Open>,
    pub(crate) durability: Option<Durability>,
    slot: Mutex<Slot>,
}

pub(crate) enum Slot {
    Batch(Box<forebay::Batch>),
    Transaction(Box<forebay::Transaction>),
    /// A call has it.
    Lent,
    /// It was committed, or given up.
    Over,
}

impl Slot {
    fn batch(&mut self) -> Option<&mut forebay::Batch> {
        match self {
            Self::Batch(batch) => Some(batch),
            Self::Transaction(transaction) => Some(transaction),
            Self::Lent | Self::Over => None,
        }
    }
}

impl Held {
    /// Takes what is there, and leaves something else.
    pub(crate) fn replace(&self, left: Slot) -> Outcome<Slot> {
        let mut slot = self.slot.lock();
        match &*slot {
            Slot::Lent => {
                Err(Failure::invalid("another thread is using this; a batch or transaction belongs to one"))
            }
            Slot::Over => Err(Failure::Closed("transaction")),
            Slot::Batch(_) | Slot::Transaction(_) => Ok(std::mem::replace(&mut slot, left)),
        }
    }

    /// Lends what is there to a call; others find it lent meanwhile. What was given up by then does not come back.
    pub(crate) fn lend<T>(&self, act: impl FnOnce(&mut Slot) -> T) -> Outcome<T> {
        let mut lent = self.replace(Slot::Lent)?;
        let outcome = act(&mut lent);
        let mut slot = self.slot.lock();
        if let Slot::Lent = *slot {
            *slot = lent;
        }
        Ok(outcome)
    }

    /// The same of the batch.
    fn with<T>(&self, act: impl FnOnce(&mut forebay::Batch) -> Outcome<T>) -> Outcome<T> {
        self.lend(|slot| match slot.batch() {
            Some(batch) => act(batch),
            None => Err(Failure::Closed("transaction")),
        })?
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        *self.slot.lock() = Slot::Over;
    }

    /// Whether it was committed or given up.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Over)
    }
}

impl Writes {
    pub(crate) fn new(open: Arc<Open>, durability: Option<Durability>, slot: Slot) -> Self {
        Self { home: Home::new(Held { open, durability, slot: Mutex::new(slot) }) }
    }

    pub(crate) fn held(&self) -> Outcome<&Held> {
        self.home.get()
    }

    fn with(&self, act: impl FnOnce(&mut forebay::Batch)) -> Outcome<()> {
        self.home.get()?.with(|batch| {
            act(batch);
            Ok(())
        })
    }
}

#[pymethods]
impl Writes {
    /// Sets a key.
    #[pyo3(signature = (table, key, value, *, ttl=None))]
    fn put(
        &self,
        table: &Bound<'_, Table>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (table, ttl) = (&table.get().held()?.handle, ttl.map(duration).transpose()?);
        self.with(|batch| match ttl {
            Some(ttl) => batch.put_with_ttl(table, key, value, ttl),
            None => batch.put(table, key, value),
        })
    }

    /// Removes a key, present or not.
    fn delete(&self, table: &Bound<'_, Table>, key: Bytes<'_>) -> Outcome<()> {
        let table = &table.get().held()?.handle;
        self.with(|batch| batch.delete(table, key))
    }

    /// Merges an operand into a key.
    fn merge(&self, table: &Bound<'_, Table>, key: Bytes<'_>, operand: Bytes<'_>) -> Outcome<()> {
        let table = &table.get().held()?.handle;
        self.with(|batch| batch.merge(table, key, operand))
    }

    /// Removes all keys from ``start`` up to ``end``.
    #[pyo3(signature = (table, start=None, end=None))]
    fn delete_range(
        &self,
        table: &Bound<'_, Table>,
        start: Option<Bytes<'_>>,
        end: Option<Bytes<'_>>,
    ) -> Outcome<()> {
        let (table, edges) = (table.get().held()?.handle.ordered()?, edges(start, end));
        self.with(|batch| batch.delete_range(table, edges))
    }

    /// Removes all keys that begin so.
    fn delete_prefix(&self, table: &Bound<'_, Table>, prefix: Bytes<'_>) -> Outcome<()> {
        let table = table.get().held()?.handle.ordered()?;
        self.with(|batch| batch.delete_prefix(table, prefix))
    }

    /// Sets many keys: see ``Table.put_many``. Returns how many.
    fn put_many(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> Outcome<u64> {
        let table = &table.get().held()?.handle;
        self.home.get()?.with(|mut batch| put_many(py, table, keys, values, &mut batch))
    }

    /// Removes many keys. Returns how many.
    fn delete_many(&self, py: Python<'_>, table: &Bound<'_, Table>, keys: &Bound<'_, PyAny>) -> Outcome<u64> {
        let table = &table.get().held()?.handle;
        self.home.get()?.with(|mut batch| delete_many(py, table, keys, &mut batch))
    }

    /// Sets the keys of one column to the values of another. Returns how many rows.
    fn put_arrow(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        data: &Bound<'_, PyAny>,
        key: &str,
        value: &str,
    ) -> Outcome<u64> {
        let table = &table.get().held()?.handle;
        self.home.get()?.with(|mut batch| put_arrow(py, table, data, (key, value), &mut batch))
    }

    /// Forgets what was written so far.
    fn clear(&self) -> Outcome<()> {
        self.with(forebay::Batch::clear)
    }

    /// How many bytes the writes take in the log.
    #[getter]
    fn encoded_bytes(&self) -> Outcome<usize> {
        self.home.get()?.with(|batch| Ok(batch.encoded_bytes()))
    }

    fn __len__(&self) -> Outcome<usize> {
        self.home.get()?.with(|batch| Ok(batch.len()))
    }
}

/// Writes that are committed at the end of a ``with``, unless that ends by an exception; or by ``commit``.
///
/// What is wrong with a write, such as a key that is too long, is raised by the commit, and nothing is written.
#[pyclass(frozen, extends = Writes, module = "forebay")]
pub(crate) struct Batch;

impl Batch {
    pub(crate) fn begin<'py>(
        py: Python<'py>,
        open: &Arc<Open>,
        asked: Option<&str>,
    ) -> Outcome<Bound<'py, Self>> {
        let durability = asked.map(|asked| durability(Some(asked), open.usual)).transpose()?;
        let writes = Writes::new(Arc::clone(open), durability, Slot::Batch(Box::default()));
        Ok(Bound::new(py, PyClassInitializer::from(writes).add_subclass(Self))?)
    }

    /// Commits what it holds together with something else, or that alone: as durably as either was asked to be. What
    /// could not be committed is still the caller's.
    pub(crate) fn committed(
        py: Python<'_>,
        batch: Option<&Bound<'_, Self>>,
        durability: Durability,
        commit: impl FnOnce(forebay::Batch, Durability) -> Outcome<u64> + Send,
    ) -> Outcome<u64> {
        let Some(batch) = batch else { return py.detach(|| commit(forebay::Batch::new(), durability)) };
        let held = batch.as_super().get().held()?;
        let durability = held.durability.map_or(durability, |own| own.max(durability));
        held.with(|own| {
            let sequence = py.detach(|| commit(own.clone(), durability))?;
            own.clear();
            Ok(sequence)
        })
    }

    /// What it holds, which it has no more.
    fn take(batch: &Bound<'_, Self>) -> Outcome<forebay::Batch> {
        match batch.as_super().get().held()?.replace(Slot::Batch(Box::default()))? {
            Slot::Batch(batch) => Ok(*batch),
            _ => Err(Failure::Closed("batch")),
        }
    }
}

#[pymethods]
impl Batch {
    /// Writes all of it, or on an error nothing, and begins anew. Returns the number of its last record.
    fn commit(slf: &Bound<'_, Self>) -> Outcome<u64> {
        let held = slf.as_super().get().held()?;
        let durability = held.durability.unwrap_or(held.open.usual);
        held.lend(|slot| match slot.batch() {
            Some(batch) => held.open.with(slf.py(), |db| db.write(batch, durability)),
            None => Err(Failure::Closed("batch")),
        })?
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        if kind.is_none() {
            return Self::commit(slf).map(drop);
        }
        Self::take(slf).map(drop)
    }
}
