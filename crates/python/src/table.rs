//! [`Table`]: a mapping of bytes.

use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Bytes;
use crate::columns::{Column, chunks, is_arrow, joined};
use crate::database::{Open, plain};
use crate::failure::{Failure, Outcome};
use crate::handle::Handle;
use crate::home::Home;
use crate::options::duration;
use crate::ordered::OrderedTable;
use crate::progress::Progress;
use crate::scan::{Part, Scan, ScanIterator, Shown};
use crate::writes::{Parts, delete_many, looked_up, put_arrow, put_many, put_pairs};

/// A table and its database.
pub(crate) struct Held {
    pub(crate) handle: Handle,
    pub(crate) open: Arc<Open>,
}

/// A mapping of bytes to bytes. Keys have up to 64 KiB, values up to 256 MiB: ``key_bytes_max``, ``value_bytes_max``.
///
/// Keys and values are anything that is bytes; text raises TypeError. It may be used by any number of threads. Loops
/// see the table as it was when they began. There is no ``len``, as it would have to walk the table: see ``count``.
#[pyclass(frozen, subclass, weakref, module = "forebay")]
pub(crate) struct Table {
    home: Home<Held>,
}

/// What is told of a table that is not there any more.
fn gone(name: &str) -> forebay::Error {
    forebay::Error::NotFound(format!("table `{name}` was dropped"))
}

impl Table {
    /// In the class of its order.
    pub(crate) fn bound<'py>(py: Python<'py>, handle: Handle, open: &Arc<Open>) -> Outcome<Bound<'py, Self>> {
        let is_ordered = matches!(handle, Handle::Ordered(_));
        let table = Self { home: Home::new(Held { handle, open: Arc::clone(open) }) };
        match is_ordered {
            true => {
                let class = PyClassInitializer::from(table).add_subclass(OrderedTable);
                Ok(Bound::new(py, class)?.into_super())
            }
            false => Ok(Bound::new(py, table)?),
        }
    }

    pub(crate) fn held(&self) -> Outcome<&Held> {
        self.home.get()
    }

    #[inline]
    fn table(&self) -> Outcome<&forebay::Table> {
        Ok(self.home.get()?.handle.as_ref())
    }

    fn find(&self, py: Python<'_>, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let table = self.table()?;
        Ok(py.detach(|| table.get(key))?)
    }

    /// Removes a key, and gives what it had.
    fn take(&self, py: Python<'_>, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let (table, mut old) = (self.table()?, None);
        py.detach(|| {
            table.update(key, |value| {
                old = value.map(<[u8]>::to_vec);
                None
            })
        })?;
        Ok(old)
    }

    /// For writes in parts.
    fn in_parts(&self, durability: Option<&str>) -> Outcome<(&Held, Parts<'_>)> {
        let held = self.home.get()?;
        Ok((held, Parts::new(&held.open, durability)?))
    }

    pub(crate) fn scan(&self, py: Python<'_>, part: Part, shown: Shown, reverse: bool) -> Outcome<Scan> {
        // Of the table and not of its database, which may be closed.
        let (handle, table) = (&self.home.get()?.handle, self.table()?);
        Scan::new(py.detach(|| table.snapshot()), handle.clone(), part, shown, reverse)
    }
}

#[pymethods]
impl Table {
    /// The table's name.
    #[getter]
    fn name(&self) -> Outcome<&str> {
        Ok(self.table()?.name())
    }

    /// How its records are laid out.
    #[getter]
    fn layout(&self, py: Python<'_>) -> Outcome<String> {
        let table = self.table()?;
        Ok(py.detach(|| table.layout())?.to_string())
    }

    /// The longest key, in bytes.
    #[getter]
    fn key_bytes_max(&self) -> Outcome<usize> {
        Ok(self.table()?.key_bytes_max())
    }

    /// The longest value, in bytes.
    #[getter]
    fn value_bytes_max(&self) -> Outcome<usize> {
        Ok(self.table()?.value_bytes_max())
    }

    /// Gives the table another layout while it is in use. Rewrites it where the order changes.
    fn set_layout(&self, py: Python<'_>, layout: &str) -> Outcome<()> {
        let (table, layout) = (self.table()?, layout.parse()?);
        Ok(py.detach(|| table.set_layout(layout))?)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> Outcome<Bound<'py, PyBytes>> {
        match self.find(py, key.as_ref())? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(Failure::no_key(py, key.as_ref())),
        }
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> Outcome<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<()> {
        match self.take(py, key.as_ref())? {
            Some(_) => Ok(()),
            None => Err(Failure::no_key(py, key.as_ref())),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<bool> {
        let table = self.table()?;
        Ok(py.detach(|| table.contains_key(key))?)
    }

    fn __bool__(&self, py: Python<'_>) -> Outcome<bool> {
        let table = self.table()?;
        Ok(!py.detach(|| table.is_empty())?)
    }

    fn __iter__(&self, py: Python<'_>) -> Outcome<ScanIterator> {
        self.scan(py, Part::All, Shown::Keys, false)?.begin(py)
    }

    /// The keys, in the table's own order.
    #[pyo3(signature = (*, reverse=false))]
    fn keys(&self, py: Python<'_>, reverse: bool) -> Outcome<Scan> {
        self.scan(py, Part::All, Shown::Keys, reverse)
    }

    /// The values, in the order of the keys.
    #[pyo3(signature = (*, reverse=false))]
    fn values(&self, py: Python<'_>, reverse: bool) -> Outcome<Scan> {
        self.scan(py, Part::All, Shown::Values, reverse)
    }

    /// Keys and values, in the table's own order; also as a stream of Arrow's, of two binary columns.
    #[pyo3(signature = (*, reverse=false))]
    fn items(&self, py: Python<'_>, reverse: bool) -> Outcome<Scan> {
        self.scan(py, Part::All, Shown::Items, reverse)
    }

    /// The value of a key, or ``default``.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Outcome<Option<Bound<'py, PyAny>>> {
        let found = self.find(py, key.as_ref())?;
        Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// The values of keys, as of one moment, in their order.
    ///
    /// Of a sequence of bytes a list, with None for a key that is not there. Of a column of Arrow's (binary, text or
    /// whole numbers; not null) a binary column, with nulls.
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        let table = self.table()?;
        if is_arrow(keys)? {
            let keys = joined(&chunks(keys)?)?;
            let values = py.detach(|| table.get_columns(&keys))?;
            return Ok(Bound::new(py, Column(Arc::new(values)))?.into_any());
        }
        looked_up(py, keys, |keys, bytes, places| table.multi_get_into(keys, bytes, places))
    }

    /// Sets a key; for a time (a timedelta, seconds, or a text such as ``"1h"``), in a table with ``ttl``.
    #[pyo3(signature = (key, value, *, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (table, ttl) = (self.table()?, ttl.map(duration).transpose()?);
        Ok(py.detach(|| match ttl {
            Some(ttl) => table.put_with_ttl(key, value, ttl),
            None => table.put(key, value),
        })?)
    }

    /// Removes a key, present or not. Reads nothing, unlike ``del``, which raises KeyError.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<()> {
        let table = self.table()?;
        Ok(py.detach(|| table.delete(key))?)
    }

    /// Merges an operand into a key, by the table's rule. Reads nothing.
    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> Outcome<()> {
        let table = self.table()?;
        Ok(py.detach(|| table.merge(key, operand))?)
    }

    /// Sets many keys. Returns how many.
    ///
    /// Keys and values are two columns of Arrow's, of equal length, or two iterables of bytes. Columns of values are
    /// binary or text, where null deletes the key; those of keys may be whole numbers, too, which are kept in 1 to 8
    /// bytes in their order. They are committed in parts of about 1 MiB, each whole or not at all: for all or nothing
    /// there is ``Batch.put_many``.
    #[pyo3(signature = (keys, values, *, durability=None))]
    fn put_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        durability: Option<&str>,
    ) -> Outcome<u64> {
        let (held, mut parts) = self.in_parts(durability)?;
        put_many(py, &held.handle, keys, values, &mut parts)
    }

    /// Removes many keys, present or not, in parts as ``put_many``. Returns how many were given.
    #[pyo3(signature = (keys, *, durability=None))]
    fn delete_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, durability: Option<&str>) -> Outcome<u64> {
        let (held, mut parts) = self.in_parts(durability)?;
        delete_many(py, &held.handle, keys, &mut parts)
    }

    /// Sets the keys of one column to the values of another, of record batches, in parts as ``put_many``. Returns how
    /// many rows.
    #[pyo3(signature = (data, key, value, *, durability=None))]
    fn put_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        key: &str,
        value: &str,
        durability: Option<&str>,
    ) -> Outcome<u64> {
        let (held, mut parts) = self.in_parts(durability)?;
        put_arrow(py, &held.handle, data, (key, value), &mut parts)
    }

    /// Sets the keys of a mapping, or of pairs, in parts as ``put_many``. Returns how many.
    #[pyo3(signature = (pairs, *, durability=None))]
    fn update(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>, durability: Option<&str>) -> Outcome<u64> {
        let pairs = if pairs.hasattr("keys")? { pairs.call_method0("items")? } else { pairs.clone() };
        let (held, mut parts) = self.in_parts(durability)?;
        put_pairs(py, &held.handle, &pairs, &mut parts)
    }

    /// Removes a key and returns its value, or ``default``; without one it raises KeyError.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: &Bound<'py, PyTuple>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let key = key.as_ref();
        match (self.take(py, key)?, default.get_item(0)) {
            (Some(value), _) => Ok(PyBytes::new(py, &value).into_any()),
            (None, Ok(default)) => Ok(default),
            (None, Err(_)) => Err(Failure::no_key(py, key)),
        }
    }

    /// Gives a key another value if it has the expected one; None is no value. Returns whether it had.
    #[pyo3(signature = (key, expected, new))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        expected: Option<Bytes<'_>>,
        new: Option<Bytes<'_>>,
    ) -> Outcome<bool> {
        let table = self.table()?;
        Ok(py.detach(|| {
            let [expected, new] = [&expected, &new].map(|bytes| bytes.as_ref().map(AsRef::as_ref));
            table.compare_and_swap(key, expected, new)
        })?)
    }

    /// The value of a key, and when it expires, in milliseconds since 1970; None where it never does.
    fn get_with_expiry<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
    ) -> Outcome<Option<(Bound<'py, PyBytes>, Option<u64>)>> {
        let table = self.table()?;
        let found = py.detach(|| table.get_with_expiry(key))?;
        Ok(found.map(|(value, expiry)| (PyBytes::new(py, &value), expiry)))
    }

    /// Lets a key expire at a time. Returns whether it is there.
    fn expire(&self, py: Python<'_>, key: Bytes<'_>, unix_milliseconds: u64) -> Outcome<bool> {
        let table = self.table()?;
        Ok(py.detach(|| table.expire(key, unix_milliseconds))?)
    }

    /// Lets a key never expire. Returns whether it is there.
    fn persist(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<bool> {
        let table = self.table()?;
        Ok(py.detach(|| table.persist(key))?)
    }

    /// How many keys there are. Walks the table, and remembers the number while the table does not change.
    fn count(&self, py: Python<'_>) -> Outcome<u64> {
        let table = self.table()?;
        Ok(py.detach(|| table.count())?)
    }

    /// What ``Database.stats`` tells of this table: its layout, its levels, and the space it takes, in bytes. Reads
    /// nothing.
    fn stats<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let held = self.home.get()?;
        let name = held.handle.as_ref().name();
        let stats = held.open.with(py, |db| {
            let tables = db.stats().tables;
            tables.into_iter().find(|table| table.name == name).ok_or_else(|| gone(name))
        })?;
        plain(py, &stats)
    }

    /// What ``Database.describe`` tells of this table: its options, levels and nodes. Reads nothing.
    fn describe<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let held = self.home.get()?;
        let name = held.handle.as_ref().name();
        let described = held.open.with(py, |db| {
            let tables = db.describe().tables;
            tables.into_iter().find(|table| table.name == name).ok_or_else(|| gone(name))
        })?;
        plain(py, &described)
    }

    /// Merges all there is: the least space, and the fewest reads. With `rewrite` also what is merged already is written
    /// anew, by the options and the data key of now.
    #[pyo3(signature = (*, rewrite=false))]
    fn compact(&self, py: Python<'_>, rewrite: bool) -> Outcome<()> {
        let held = self.home.get()?;
        let (table, open) = (held.handle.as_ref(), Arc::clone(&held.open));
        let (before, all) = held.open.with(py, |db| {
            let stats = db.stats();
            let levels = stats
                .tables
                .iter()
                .filter(|known| known.name == table.name())
                .flat_map(|known| &known.levels);
            Ok((stats.background_bytes, levels.map(|level| level.bytes).sum()))
        })?;
        let gone_through = move || {
            let bytes = open.with_detached(|db| Ok(db.stats().background_bytes));
            bytes.unwrap_or(before).saturating_sub(before)
        };
        let _progress = Progress::watched(py, "compact", "B", all, Box::new(gone_through));
        Ok(py.detach(|| if rewrite { table.rewrite(forebay::Rewrite::All) } else { table.compact() })?)
    }
}
