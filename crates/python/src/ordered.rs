//! [`OrderedTable`]: a table that keeps its keys in order, and so has ranges, prefixes, ends and neighbours.

use forebay::Nearest;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{Bytes, edges};
use crate::cursor::Cursor;
use crate::failure::{Failure, Outcome};
use crate::scan::{Entry, Part, Scan, Shown, pair};
use crate::table::Table;

/// A table that keeps its keys in the order of their bytes.
#[pyclass(frozen, extends = Table, module = "forebay")]
pub(crate) struct OrderedTable;

/// The engine's table.
fn ordered<'t>(table: &'t Bound<'_, OrderedTable>) -> Outcome<&'t forebay::OrderedTable> {
    Ok(table.as_super().get().held()?.handle.ordered()?)
}

fn entry<'py>(
    table: &Bound<'py, OrderedTable>,
    find: impl FnOnce(&forebay::OrderedTable) -> forebay::Result<Option<Entry>> + Send,
) -> Outcome<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
    let (py, held) = (table.py(), ordered(table)?);
    Ok(py.detach(|| find(held))?.map(|entry| pair(py, &entry)))
}

type Pair<'py> = Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>;

#[pymethods]
impl OrderedTable {
    /// The entries from ``start`` up to ``end``, which is not among them; also as a stream of Arrow's.
    #[pyo3(signature = (start=None, end=None, *, reverse=false))]
    fn range(
        slf: &Bound<'_, Self>,
        start: Option<Bytes<'_>>,
        end: Option<Bytes<'_>>,
        reverse: bool,
    ) -> Outcome<Scan> {
        let part = Part::Range(edges(start, end));
        slf.as_super().get().scan(slf.py(), part, Shown::Items, reverse)
    }

    /// The entries whose keys begin so; also as a stream of Arrow's.
    #[pyo3(signature = (prefix, *, reverse=false))]
    fn prefix(slf: &Bound<'_, Self>, prefix: Bytes<'_>, reverse: bool) -> Outcome<Scan> {
        let part = Part::Prefix(prefix.as_ref().to_vec());
        slf.as_super().get().scan(slf.py(), part, Shown::Items, reverse)
    }

    /// The entry with the lowest key.
    fn first<'py>(slf: &Bound<'py, Self>) -> Outcome<Pair<'py>> {
        entry(slf, |table| table.first())
    }

    /// The entry with the highest key.
    fn last<'py>(slf: &Bound<'py, Self>) -> Outcome<Pair<'py>> {
        entry(slf, |table| table.last())
    }

    /// The entry nearest to a key, on one side of it.
    fn nearest<'py>(slf: &Bound<'py, Self>, key: Bytes<'_>, side: &str) -> Outcome<Pair<'py>> {
        let nearest = match side {
            "below" => Nearest::Below,
            "at_or_below" => Nearest::AtOrBelow,
            "at_or_above" => Nearest::AtOrAbove,
            "above" => Nearest::Above,
            _ => {
                return Err(Failure::invalid(format!(
                    "side is `{side}`; give below, at_or_below, at_or_above or above"
                )));
            }
        };
        entry(slf, |table| table.nearest(key, nearest))
    }

    /// A cursor over the table as it is now, before its first entry.
    fn cursor(slf: &Bound<'_, Self>) -> Outcome<Cursor> {
        let table = ordered(slf)?;
        Ok(Cursor::new(slf.py().detach(|| table.cursor())?))
    }

    /// Removes all keys from ``start`` up to ``end``. Costs one record, however many they are.
    #[pyo3(signature = (start=None, end=None))]
    fn delete_range(slf: &Bound<'_, Self>, start: Option<Bytes<'_>>, end: Option<Bytes<'_>>) -> Outcome<()> {
        let (table, edges) = (ordered(slf)?, edges(start, end));
        Ok(slf.py().detach(|| table.delete_range(edges))?)
    }

    /// Removes all keys that begin so. Costs one record.
    fn delete_prefix(slf: &Bound<'_, Self>, prefix: Bytes<'_>) -> Outcome<()> {
        let table = ordered(slf)?;
        Ok(slf.py().detach(|| table.delete_prefix(prefix))?)
    }

    /// Merges what there is of a range.
    #[pyo3(signature = (start=None, end=None))]
    fn compact_range(slf: &Bound<'_, Self>, start: Option<Bytes<'_>>, end: Option<Bytes<'_>>) -> Outcome<()> {
        let (table, edges) = (ordered(slf)?, edges(start, end));
        Ok(slf.py().detach(|| table.compact_range(edges))?)
    }

    /// About how many records a range has, and bytes, without reading.
    #[pyo3(signature = (start=None, end=None))]
    fn approximate(
        slf: &Bound<'_, Self>,
        start: Option<Bytes<'_>>,
        end: Option<Bytes<'_>>,
    ) -> Outcome<(u64, u64)> {
        let (table, edges) = (ordered(slf)?, edges(start, end));
        let held = slf.py().detach(|| table.approximate(edges))?;
        Ok((held.records, held.bytes))
    }
}
