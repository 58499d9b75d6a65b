//! Many records in one call: sequences of bytes, or columns of Arrow's, into a batch that is whole or goes in parts.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use forebay::{Batch, Durability};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bytes::Bytes;
use crate::columns::{batches, chunks, column, for_each, is_arrow};
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::handle::Handle;
use crate::options::durability;
use crate::progress::Progress;

/// Parts of about so many bytes are committed each by itself: larger ones cost memory, and hardly less work.
const PART_BYTES: usize = 1 << 20;
/// So many rows of columns are put at a time.
const SLICE_ROWS: usize = 256;

/// Where records go.
pub(crate) trait Target: Send {
    /// The batch that takes them.
    fn batch(&mut self) -> &mut Batch;
    /// Whether it is to be written now.
    fn is_full(&mut self) -> bool;
    /// Writes it, by a thread that is detached.
    fn write(&mut self) -> Outcome<()>;
}

/// A batch that is committed by whoever has it.
impl Target for &mut Batch {
    fn batch(&mut self) -> &mut Batch {
        self
    }

    fn is_full(&mut self) -> bool {
        false
    }

    fn write(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// Parts that are committed as they come.
pub(crate) struct Parts<'o> {
    open: &'o Open,
    durability: Durability,
    batch: Batch,
}

impl<'o> Parts<'o> {
    pub(crate) fn new(open: &'o Open, asked: Option<&str>) -> Outcome<Self> {
        Ok(Self { open, durability: durability(asked, open.usual)?, batch: Batch::new() })
    }
}

impl Target for Parts<'_> {
    fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    fn is_full(&mut self) -> bool {
        self.batch.encoded_bytes() >= PART_BYTES
    }

    fn write(&mut self) -> Outcome<()> {
        let Self { open, durability, batch } = self;
        open.with_detached(|db| db.write(batch, *durability)).map(drop)
    }
}

/// Puts each key with its value; of columns it deletes the keys whose values are null. Returns how many there are.
pub(crate) fn put_many(
    py: Python<'_>,
    table: &Handle,
    keys: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    target: &mut impl Target,
) -> Outcome<u64> {
    if is_arrow(keys)? && is_arrow(values)? {
        let keys = chunks(keys)?;
        check_keys(&keys, &mut 0)?;
        let pairs = aligned(keys, chunks(values)?)?;
        let all = pairs.iter().map(|(keys, _)| keys.len() as u64).sum();
        let (mut count, progress) = (0, Progress::begin(py, "put", "record", Some(all)));
        for (keys, values) in pairs {
            py.check_signals()?;
            count += keys.len() as u64;
            let (target, progress) = (&mut *target, Some(&progress));
            py.detach(move || put_columns(table, &keys, &values, target, progress))?;
        }
        py.detach(|| target.write())?;
        return Ok(count);
    }
    let progress = Progress::begin(py, "put", "record", len_of(keys));
    let (mut keys, mut values, mut count) = (keys.try_iter()?, values.try_iter()?, 0);
    loop {
        match (keys.next().transpose()?, values.next().transpose()?) {
            (Some(key), Some(value)) => put_pair(py, table, &key, &value, target)?,
            (None, None) => break,
            (key, _) => {
                let more = if key.is_some() { "keys than values" } else { "values than keys" };
                return Err(
                    PyValueError::new_err(format!("there are more {more}; {count} of each came")).into()
                );
            }
        }
        count += 1;
        progress.tick(count);
    }
    py.detach(|| target.write())?;
    Ok(count)
}

/// How many there are, if that can be told.
fn len_of(given: &Bound<'_, PyAny>) -> Option<u64> {
    given.len().ok().map(|len| len as u64)
}

/// Puts pairs that come as such.
pub(crate) fn put_pairs(
    py: Python<'_>,
    table: &Handle,
    pairs: &Bound<'_, PyAny>,
    target: &mut impl Target,
) -> Outcome<u64> {
    let (mut count, progress) = (0, Progress::begin(py, "put", "record", len_of(pairs)));
    for pair in pairs.try_iter()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
        put_pair(py, table, &key, &value, target)?;
        count += 1;
        progress.tick(count);
    }
    py.detach(|| target.write())?;
    Ok(count)
}

#[inline]
fn put_pair(
    py: Python<'_>,
    table: &Handle,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    target: &mut impl Target,
) -> Outcome<()> {
    let (key, value): (Bytes<'_>, Bytes<'_>) = (key.extract()?, value.extract()?);
    target.batch().put(table, key, value);
    write_full(py, target)
}

/// Writes what is full, which is a moment to be interrupted.
#[inline]
fn write_full(py: Python<'_>, target: &mut impl Target) -> Outcome<()> {
    if target.is_full() {
        py.detach(|| target.write())?;
        py.check_signals()?;
    }
    Ok(())
}

/// Deletes keys, present or not. Returns how many.
pub(crate) fn delete_many(
    py: Python<'_>,
    table: &Handle,
    keys: &Bound<'_, PyAny>,
    target: &mut impl Target,
) -> Outcome<u64> {
    let mut count = 0;
    if is_arrow(keys)? {
        let keys = chunks(keys)?;
        check_keys(&keys, &mut 0)?;
        for keys in keys {
            count += keys.len() as u64;
            let target = &mut *target;
            py.detach(move || {
                slices(&keys).try_for_each(|rows| {
                    target.batch().delete_columns(table, &keys.slice(rows.start, rows.len()));
                    if target.is_full() { target.write() } else { Ok(()) }
                })
            })?;
        }
    } else {
        for key in keys.try_iter()? {
            let key = key?;
            target.batch().delete(table, key.extract::<Bytes<'_>>()?);
            count += 1;
            write_full(py, target)?;
        }
    }
    py.detach(|| target.write())?;
    Ok(count)
}

/// Puts two columns of record batches. Returns how many rows.
pub(crate) fn put_arrow(
    py: Python<'_>,
    table: &Handle,
    data: &Bound<'_, PyAny>,
    (key, value): (&str, &str),
    target: &mut impl Target,
) -> Outcome<u64> {
    let mut before = 0;
    let rows = for_each(py, batches(data)?, |batch| {
        let (keys, values) = (column(batch, key)?, column(batch, value)?);
        check_keys(std::slice::from_ref(keys), &mut before).inspect_err(|_| {
            // The batch fails, too: it may have the rows before.
            target.batch().put_columns(table, keys, values);
        })?;
        put_columns(table, keys, values, target, None)
    })?;
    py.detach(|| target.write())?;
    Ok(rows)
}

/// Where a progress is given it counts the rows.
fn put_columns(
    table: &Handle,
    keys: &ArrayRef,
    values: &ArrayRef,
    target: &mut impl Target,
    progress: Option<&Progress>,
) -> Outcome<()> {
    debug_assert_eq!(keys.len(), values.len(), "a value for each key");
    slices(keys).try_for_each(|rows| {
        let [keys, values] = [keys, values].map(|column| column.slice(rows.start, rows.len()));
        target.batch().put_columns(table, &keys, &values);
        if let Some(progress) = progress {
            progress.add(rows.len() as u64);
        }
        if target.is_full() { target.write() } else { Ok(()) }
    })
}

/// An error where one is null, by its row behind those before: whoever takes some rows at a time would count from the
/// first of those.
fn check_keys(chunks: &[ArrayRef], before: &mut usize) -> Outcome<()> {
    for keys in chunks {
        if keys.null_count() > 0
            && let Some(row) = (0..keys.len()).find(|&row| keys.is_null(row))
        {
            let told = format!("the key of row {} is null; a null value deletes its key", *before + row);
            return Err(Failure::invalid(told));
        }
        *before += keys.len();
    }
    Ok(())
}

/// Some rows at a time.
fn slices(column: &ArrayRef) -> impl Iterator<Item = Range<usize>> + use<> {
    let len = column.len();
    (0..len).step_by(SLICE_ROWS).map(move |start| start..len.min(start + SLICE_ROWS))
}

/// Chunks of two columns that begin and end together.
fn aligned(keys: Vec<ArrayRef>, values: Vec<ArrayRef>) -> Outcome<Vec<(ArrayRef, ArrayRef)>> {
    let [all, others] = [&keys, &values].map(|chunks| chunks.iter().map(Array::len).sum::<usize>());
    if all != others {
        return Err(Failure::invalid(format!("there are {all} keys and {others} values")));
    }
    let mut pairs = Vec::new();
    let mut values = values.into_iter().filter(|chunk| !chunk.is_empty()).collect::<VecDeque<_>>();
    for mut keys in keys {
        while !keys.is_empty() {
            let Some(front) = values.pop_front() else { break };
            let len = keys.len().min(front.len());
            pairs.push((keys.slice(0, len), front.slice(0, len)));
            keys = keys.slice(len, keys.len() - len);
            if len < front.len() {
                values.push_front(front.slice(len, front.len() - len));
            }
        }
    }
    debug_assert_eq!(pairs.iter().map(|(keys, _)| keys.len()).sum::<usize>(), all, "all rows are in pairs");
    Ok(pairs)
}

/// The values of keys of a sequence, as a list with `None` for those that are not there.
pub(crate) fn looked_up<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    find: impl FnOnce(&[&[u8]], &mut Vec<u8>, &mut Vec<Option<Range<usize>>>) -> forebay::Result<()> + Send,
) -> Outcome<Bound<'py, PyAny>> {
    let objects: Vec<Bound<'py, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
    let keys: Vec<Bytes<'_>> = objects.iter().map(|key| key.extract()).collect::<PyResult<_>>()?;
    let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    py.detach(|| find(&keys, &mut bytes, &mut places))?;
    let values = places.into_iter().map(|place| place.map(|place| PyBytes::new(py, &bytes[place])));
    Ok(PyList::new(py, values.collect::<Vec<_>>())?.into_any())
}
