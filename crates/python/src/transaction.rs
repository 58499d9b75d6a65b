//! [`Transaction`]: reads of one moment, and writes on top that are committed if nobody has changed what was read.

use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::{Slot, Writes};
use crate::bytes::{Bytes, edges};
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::options::durability;
use crate::scan::ScanIterator;
use crate::table::Table;
use crate::writes::looked_up;

/// Reads of one moment with its own writes on top. A ``with`` commits it, unless that ends by an exception.
#[pyclass(frozen, extends = Writes, module = "forebay")]
pub(crate) struct Transaction;

/// Lets `act` read and write, and commits that; where it conflicts, anew.
pub(crate) fn run<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    act: &Bound<'py, PyAny>,
    asked: Option<&str>,
    attempts: u32,
) -> Outcome<Bound<'py, PyAny>> {
    let mut attempt = 1;
    loop {
        let transaction = Transaction::begin(py, open, asked)?;
        let acted = act.call1((&transaction,));
        let ended = match acted {
            Ok(value) => Transaction::commit(&transaction).map(|_| value),
            Err(error) => {
                transaction.as_super().get().held()?.end();
                return Err(error.into());
            }
        };
        match ended {
            Err(failure) if failure.is_conflict() && attempt < attempts => {
                py.check_signals()?;
                attempt += 1;
            }
            ended => return ended,
        }
    }
}

impl Transaction {
    pub(crate) fn begin<'py>(
        py: Python<'py>,
        open: &Arc<Open>,
        asked: Option<&str>,
    ) -> Outcome<Bound<'py, Self>> {
        let durability = asked.map(|asked| durability(Some(asked), open.usual)).transpose()?;
        let mut begun = open.with(py, |db| Ok(db.begin()))?;
        if let Some(durability) = durability {
            begun.set_durability(durability);
        }
        let writes = Writes::new(Arc::clone(open), durability, Slot::Transaction(Box::new(begun)));
        Ok(Bound::new(py, PyClassInitializer::from(writes).add_subclass(Self))?)
    }

    /// Reads by it.
    fn read<T: Send>(
        slf: &Bound<'_, Self>,
        read: impl FnOnce(&mut forebay::Transaction) -> forebay::Result<T> + Send,
    ) -> Outcome<T> {
        slf.as_super().get().held()?.lend(|slot| match slot {
            Slot::Transaction(transaction) => Ok(slf.py().detach(|| read(transaction))?),
            _ => Err(Failure::Closed("transaction")),
        })?
    }
}

#[pymethods]
impl Transaction {
    /// The value of a key, or ``default``.
    #[pyo3(signature = (table, key, default=None))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        table: &Bound<'py, Table>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Outcome<Option<Bound<'py, PyAny>>> {
        let table = &table.get().held()?.handle;
        let found = Self::read(slf, |transaction| transaction.get(table, key))?;
        Ok(found.map(|value| PyBytes::new(slf.py(), &value).into_any()).or(default))
    }

    /// The values of keys, in their order.
    fn get_many<'py>(
        slf: &Bound<'py, Self>,
        table: &Bound<'py, Table>,
        keys: &Bound<'py, PyAny>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let table = &table.get().held()?.handle;
        let seen = Self::read(slf, forebay::Transaction::snapshot)?;
        looked_up(slf.py(), keys, |keys, bytes, places| seen.multi_get_into(table, keys, bytes, places))
    }

    /// All entries of a table.
    #[pyo3(signature = (table, *, reverse=false))]
    fn items(slf: &Bound<'_, Self>, table: &Bound<'_, Table>, reverse: bool) -> Outcome<ScanIterator> {
        let table = &table.get().held()?.handle;
        let scan = Self::read(slf, |transaction| transaction.iter(table))?;
        Ok(ScanIterator::one_by_one(scan, reverse))
    }

    /// The entries of a range of keys.
    #[pyo3(signature = (table, start=None, end=None, *, reverse=false))]
    fn range(
        slf: &Bound<'_, Self>,
        table: &Bound<'_, Table>,
        start: Option<Bytes<'_>>,
        end: Option<Bytes<'_>>,
        reverse: bool,
    ) -> Outcome<ScanIterator> {
        let (table, edges) = (table.get().held()?.handle.ordered()?, edges(start, end));
        let scan = Self::read(slf, |transaction| transaction.range(table, edges))?;
        Ok(ScanIterator::one_by_one(scan, reverse))
    }

    /// The entries whose keys begin so.
    #[pyo3(signature = (table, prefix, *, reverse=false))]
    fn prefix(
        slf: &Bound<'_, Self>,
        table: &Bound<'_, Table>,
        prefix: Bytes<'_>,
        reverse: bool,
    ) -> Outcome<ScanIterator> {
        let table = table.get().held()?.handle.ordered()?;
        let scan = Self::read(slf, |transaction| transaction.prefix(table, prefix))?;
        Ok(ScanIterator::one_by_one(scan, reverse))
    }

    /// Writes all of it. Raises Conflict, and writes nothing, where somebody else has changed what was read.
    pub(crate) fn commit(slf: &Bound<'_, Self>) -> Outcome<u64> {
        let held = slf.as_super().get().held()?;
        match held.replace(Slot::Over)? {
            Slot::Transaction(transaction) => Ok(slf.py().detach(|| transaction.commit())?),
            _ => Err(Failure::Closed("transaction")),
        }
    }

    /// Gives it up.
    fn rollback(slf: &Bound<'_, Self>) -> Outcome<()> {
        slf.as_super().get().held()?.end();
        Ok(())
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
        // Who has committed it by then, or given it up, has said what becomes of it.
        let held = slf.as_super().get().held()?;
        if kind.is_none() && !held.is_over() {
            Self::commit(slf)?;
        }
        held.end();
        Ok(())
    }
}
