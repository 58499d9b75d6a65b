//! Aggregators: functions by name over rows of texts, as the command has them, and answers as JSON.

use std::ffi::c_char;

use forebay::aggregate::{Composite, Value};
use forebay::{Durability, Error, Layout, Result};

use crate::batch::Batch;
use crate::database::{Db, Snapshot};
use crate::error::ErrorOut;
use crate::kernel::{Items, Out, Slice, bytes_of, fallible, given, plain, put};
use crate::scan::{Direction, Scan};
use crate::table::bounds;

/// `forebay_aggregator`.
pub(crate) struct Aggregator {
    pub(crate) aggregator: forebay::Aggregator<Composite>,
    columns: usize,
}

impl Aggregator {
    /// A row as the functions take it.
    pub(crate) fn row<'a>(&self, row: &Items<'a, Slice>) -> Result<Vec<Value<'a>>> {
        if row.0.len() != self.columns {
            return Err(Error::invalid(format!(
                "a row of {} values, where aggregator `{}` was opened with {} columns",
                row.0.len(),
                self.aggregator.name(),
                self.columns
            )));
        }
        let texts = bytes_of(row, "a value")?.into_iter().zip(row.0);
        Ok(texts
            .map(|(text, slice)| if slice.is_none() { Value::Null } else { Value::bytes(text) })
            .collect())
    }
}

/// Answers as JSON, written as the command does it.
fn list<'a, T: 'a>(
    items: impl IntoIterator<Item = &'a T>,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn json(value: &Value<'_>, out: &mut Vec<u8>) {
    let mut text = |value: &Value<'_>| {
        let mut text = Vec::new();
        value.write_text(&mut text);
        out.extend_from_slice(serde_json::Value::from(String::from_utf8_lossy(&text)).to_string().as_bytes());
    };
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Cut => out.extend_from_slice(b"{\"cut\":true}"),
        // JSON has no numbers that are not finite.
        Value::F64(number) if !number.is_finite() => text(value),
        Value::F32(number) if !number.is_finite() => text(value),
        Value::Bytes(_) => text(value),
        Value::List(values) => list(values, out, json),
        Value::Pairs(pairs) => list(pairs, out, |(one, other), out| list([one, other], out, json)),
        number => number.write_text(out),
    }
}

fn shown(answers: &[Value<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    list(answers, &mut out, json);
    out
}

fallible! { ErrorOut<'_>;
    fn forebay_aggregator_open(
        db: &Db,
        name: &str,
        functions: &str,
        columns: &str,
        layout: Option<&str>,
    ) -> Option<Box<Aggregator>> {
        let columns: Vec<&str> = columns.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let asked = db.0.aggregator(name, Composite::parse(functions, &columns)?);
        let aggregator = match layout {
            Some(layout) => asked.layout(layout.parse::<Layout>()?),
            None => asked,
        }.open()?;
        Ok(Some(Box::new(Aggregator { aggregator, columns: columns.len() })))
    }

    fn forebay_aggregator_commit(
        aggregator: &Aggregator,
        batch: &mut Batch,
        durability: Durability,
        metadata: &[u8] [metadata_bytes],
        sequence: Out<'_, u64>,
    ) -> bool {
        put(sequence, aggregator.aggregator.commit(batch.take()?, durability, metadata)?);
        Ok(true)
    }

    fn forebay_aggregator_metadata(aggregator: &Aggregator, metadata_bytes: Out<'_, usize>) -> *mut c_char {
        let found = aggregator.aggregator.metadata()?;
        put(metadata_bytes, found.as_ref().map_or(0, Vec::len));
        Ok(found.map_or(std::ptr::null_mut(), |metadata| given(&metadata)))
    }

    fn forebay_aggregator_get(
        aggregator: &Aggregator,
        snapshot: Option<&Snapshot>,
        key: &[u8] [key_bytes],
    ) -> *mut c_char {
        let found = match snapshot {
            Some(snapshot) => aggregator.aggregator.at(&snapshot.0).get(key),
            None => aggregator.aggregator.get(key),
        }?;
        Ok(found.map_or(std::ptr::null_mut(), |answers| given(&shown(&answers))))
    }

    fn forebay_aggregator_scan(
        aggregator: &Aggregator,
        snapshot: Option<&Snapshot>,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
        direction: Direction,
    ) -> Option<Box<Scan>> {
        let of = &aggregator.aggregator;
        let scan = match (snapshot, from.or(to)) {
            (None, None) => of.iter(),
            (None, Some(_)) => of.range(bounds(from, to)),
            (Some(snapshot), None) => of.at(&snapshot.0).iter(),
            (Some(snapshot), Some(_)) => of.at(&snapshot.0).range(bounds(from, to)),
        }?;
        let groups = scan.map(|group| group.map(|(key, answers)| (key, shown(&answers))));
        Ok(Scan::new(groups, direction))
    }
}

plain! {
    fn forebay_aggregator_free(aggregator: Option<Box<Aggregator>>) {
        drop(aggregator);
    }
}
