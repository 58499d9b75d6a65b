//! [`Input`]: the columns of record batches that are looked at, as rows.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::answers::is_unicode;
use super::column::{Column, Form, empty, lanes, plain_type};
use super::dictionaries::Dictionaries;
use super::schema::{PartialSchema, blamed, field};
use crate::aggregate::Aggregate;
use crate::columns::{Lane, Rows};
use crate::composite::Composite;

/// See the module.
pub(super) struct Input {
    keys: Vec<FieldRef>,
    columns: Vec<FieldRef>,
}

/// Columns by their names, with their types, which must be such as are read.
fn asked<S: AsRef<str>>(schema: &Schema, names: &[S]) -> Result<Vec<FieldRef>> {
    let asked = |name: &S| {
        let field = field(schema, name.as_ref())?;
        let column = empty(field.data_type())
            .and_then(|none| Column::of(&none, Form::Shown, &Dictionaries::default()));
        column.map_err(|error| blamed(field, &error))?;
        Ok(Arc::clone(field))
    };
    names.iter().map(asked).collect()
}

/// The column of a batch that has a field's name, and values like its.
pub(super) fn found<'b>(batch: &'b RecordBatch, asked: &Field) -> Result<&'b ArrayRef> {
    let (schema, kind) = (batch.schema(), asked.data_type());
    let told = field(&schema, asked.name())?.data_type();
    let array = batch.column_by_name(asked.name()).filter(|_| is_like(told, kind));
    array.ok_or_else(|| {
        blamed(asked, &Error::invalid(format!("its values are {told}, where {kind} is expected")))
    })
}

impl Input {
    /// What groups by some columns take of batches of this schema.
    pub(super) fn of<S: AsRef<str>>(schema: &Schema, by: &[S], partial: &PartialSchema) -> Result<Self> {
        Ok(Self { keys: asked(schema, by)?, columns: asked(schema, partial.columns())? })
    }

    /// The rows of a batch.
    pub(super) fn with_rows<T>(
        &self,
        batch: &RecordBatch,
        dictionaries: &Dictionaries,
        with: impl FnOnce(&Rows<'_>) -> Result<T>,
    ) -> Result<T> {
        let columns = |asked: &[FieldRef], form| {
            let column = |field: &FieldRef| {
                let array = found(batch, field)?;
                Column::of(array, form, dictionaries).map_err(|error| blamed(field, &error))
            };
            asked.iter().map(column).collect::<Result<Vec<_>>>()
        };
        let (keys, columns) = (columns(&self.keys, Form::Exact)?, columns(&self.columns, Form::Shown)?);
        let (keys, mut columns) = (lanes(&keys)?, lanes(&columns)?);
        // Rows without columns are rows, too.
        columns.push(Lane::nulls(batch.num_rows()));
        with(&Rows::with_keys(keys, columns)?)
    }
}

/// Whether values of two types are the same values: of texts each type has the same, however they are laid out, and with
/// a dictionary or without.
pub(super) fn is_like(kind: &DataType, other: &DataType) -> bool {
    let (kind, other) = (plain_type(kind), plain_type(other));
    let is_bytes =
        |kind: &DataType| matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    kind == other || is_unicode(kind) && is_unicode(other) || is_bytes(kind) && is_bytes(other)
}

/// Why a row was refused, of a batch of which so many rows stand before these.
pub(super) fn refusal(function: &Composite, rows: &Rows<'_>, at: usize, before: usize) -> Error {
    let (mut row, mut key) = (Vec::new(), Vec::new());
    rows.row(at, &mut row);
    rows.write_key(at, &mut key);
    let reason = match function.lift(&row, &mut Vec::new()) {
        Err(error) => error.to_string(),
        Ok(()) => format!("a key of {} bytes; {KEY_BYTES_MAX} at most", key.len()),
    };
    Error::invalid(format!("row {}: {reason}", before + at + 1))
}
