//! Reading groups: by their keys, the greatest, all, and all states.

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_schema::{Field, Schema, SchemaRef};
use forebay::Result;
use forebay_aggregate::arrow::{PartialBatches, PartialSchema};
use forebay_aggregate::{Aggregate, AnswerKind};
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::asked::Asked;
use super::own::value_at;
use super::scalars::{Between, text_of};
use super::top::Top;
use super::values::value_to_python;
use crate::columns::{batches, for_each};
use crate::failure::{Failure, Outcome};
use crate::kernel::attached;
use crate::rows::{BATCH_ROWS, Batches, Rows};

pub(super) use forebay_groups::{Made, Wanted};

/// Finds the states of groups by their keys.
pub(super) type Find<'g> = dyn Fn(&[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> + Send + Sync + 'g;

/// Groups that can be read.
pub(super) trait Grouped: Send + Sync {
    fn schema(&self) -> &PartialSchema;
    /// What becomes of a time that lies between two of a column of the key.
    fn between(&self, _column: usize) -> Between {
        Between::Refused
    }
    /// What finds states: of groups that a database keeps, those of this moment.
    fn finder(&self) -> Result<Box<Find<'_>>>;
    /// All groups, as of now.
    fn batches(&self, wanted: Wanted) -> Result<Batches>;
}

/// Groups, and how they are asked for.
#[derive(Clone)]
pub(super) struct View {
    pub(super) asked: Arc<Asked>,
    pub(super) groups: Arc<dyn Grouped>,
}

impl View {
    /// The key of values that are given in order, or by their names.
    pub(super) fn key(
        &self,
        given: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Vec<u8>> {
        let (schema, keys) = (self.groups.schema(), &self.asked.keys);
        let count = given.len() + named.map_or(0, |named| named.len());
        let mut texts = Vec::with_capacity(keys.len());
        for (at, field) in schema.keys().iter().enumerate() {
            let value = match named.map(|named| named.get_item(field.name())).transpose()?.flatten() {
                Some(value) => value,
                None => given.get_item(at).map_err(|_| self.wrong_key())?,
            };
            texts.push(text_of(&value, field, self.groups.between(at))?);
        }
        if count != keys.len() {
            return Err(self.wrong_key());
        }
        let texts: Vec<Option<&[u8]>> = texts.iter().map(|text| text.as_deref()).collect();
        Ok(schema.key_of(&texts)?)
    }

    fn wrong_key(&self) -> Failure {
        Failure::type_error(format!(
            "give a value for each column of the key: {}",
            self.asked.keys.join(", ")
        ))
    }

    /// What the functions answer for a group, by name.
    pub(super) fn get<'py>(
        &self,
        py: Python<'py>,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        let (key, schema) = (self.key(given, named)?, self.groups.schema());
        let found = py.detach(|| {
            let find = self.groups.finder()?;
            let state = find(std::slice::from_ref(&key))?.pop().flatten();
            state.map(|state| schema.function().finish(&state)).transpose()
        })?;
        let Some(answers) = found else { return Ok(None) };
        let row = PyDict::new(py);
        for (name, place) in &self.asked.names {
            let kind = schema.answers().field(self.asked.keys.len() + place).data_type();
            let value = match self.asked.own_at(*place) {
                None => value_to_python(py, &answers[*place], kind)?,
                Some(own) => {
                    let list: ArrayRef = Arc::new(BinaryArray::from(vec![&answers[*place].to_text()[..]]));
                    value_at(py, &py.detach(|| own.answered(&list))?, 0)?
                }
            };
            row.set_item(name, value)?;
        }
        Ok(Some(row))
    }

    /// The same of keys that are rows of Arrow's, all as of one moment: a row for each, in their order, with nulls for
    /// groups that are not there.
    pub(super) fn get_many(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Outcome<Rows> {
        let input = batches(data)?;
        let answers = self.asked.answers(self.groups.schema());
        let mut fields = Vec::new();
        for key in &self.asked.keys {
            let schema = input.schema();
            let (_, field) = schema.column_with_name(key).ok_or_else(|| {
                let names: Vec<&str> = schema.fields().iter().map(|field| &field.name()[..]).collect();
                Failure::invalid(format!("there is no column `{key}`; there are: {}", names.join(", ")))
            })?;
            fields.push(Arc::new(Field::new(key, field.data_type().clone(), true)));
        }
        fields.extend(answers.fields().iter().skip(self.asked.keys.len()).cloned());
        let schema = Arc::new(Schema::new(fields));
        let mut found = Vec::new();
        let find = py.detach(|| self.groups.finder())?;
        let outcome = for_each(py, input, |batch| {
            (0..batch.num_rows()).step_by(BATCH_ROWS).try_for_each(|from| {
                let rows = BATCH_ROWS.min(batch.num_rows() - from);
                self.look_up(&*find, &schema, &batch.slice(from, rows), &mut found)
            })
        });
        // It may be the last that holds a snapshot.
        py.detach(|| drop(find));
        outcome?;
        let begin = move || -> Result<Batches> { Ok(Box::new(found.clone().into_iter().map(Ok))) };
        Ok(Rows::new(schema, Box::new(begin)))
    }

    /// Looks up the keys of a batch. What is found goes on in another batch where answers are long.
    fn look_up(
        &self,
        find: &Find<'_>,
        schema: &SchemaRef,
        batch: &RecordBatch,
        found: &mut Vec<RecordBatch>,
    ) -> Outcome<()> {
        let groups = &self.groups;
        let mut keys = Vec::with_capacity(batch.num_rows());
        groups.schema().keys_of(batch, &mut |key| {
            keys.push(key.to_vec());
            Ok(())
        })?;
        debug_assert_eq!(keys.len(), batch.num_rows(), "a key for each row");
        let mut present = PartialBatches::of_answers(groups.schema()).rows_max(BATCH_ROWS);
        let (mut places, mut count, mut from) = (Vec::new(), 0_u64, 0);
        for (key, state) in keys.iter().zip(find(&keys)?) {
            places.push(state.is_some().then_some(count));
            let Some(state) = state else { continue };
            count += 1;
            if let Some(full) = present.push(key, &state)? {
                let rows = batch.slice(from, places.len());
                from += places.len();
                found.push(self.answered(schema, &rows, std::mem::take(&mut places), Some(&full))?);
                count = 0;
            }
        }
        if !places.is_empty() {
            let rows = batch.slice(from, places.len());
            found.push(self.answered(schema, &rows, places, present.finish()?.as_ref())?);
        }
        Ok(())
    }

    /// The rows of keys with the answers of those that are there, each by its place among them.
    fn answered(
        &self,
        schema: &SchemaRef,
        rows: &RecordBatch,
        places: Vec<Option<u64>>,
        present: Option<&RecordBatch>,
    ) -> Outcome<RecordBatch> {
        debug_assert_eq!(places.len(), rows.num_rows(), "a place for each key");
        let places = UInt64Array::from(places);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for key in &self.asked.keys {
            let column = rows.column_by_name(key);
            columns.push(Arc::clone(column.ok_or_else(|| Failure::invalid(format!("no column `{key}`")))?));
        }
        let answers = schema.fields().iter().skip(self.asked.keys.len());
        for ((_, place), field) in self.asked.names.iter().zip(answers) {
            columns.push(match present {
                Some(present) => {
                    arrow_select::take::take(&self.asked.answered(*place, present)?, &places, None)?
                }
                None => new_null_array(field.data_type(), rows.num_rows()),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    /// The groups with the greatest answers under a name, the greatest first.
    pub(super) fn top(&self, py: Python<'_>, name: &str, count: usize) -> Outcome<Rows> {
        let answers = self.asked.answers(self.groups.schema());
        let at = self.asked.names.iter().position(|(known, _)| known == name).ok_or_else(|| {
            let names: Vec<&str> = self.asked.names.iter().map(|(name, _)| &name[..]).collect();
            Failure::invalid(format!("there is no `{name}` in aggs; there are: {}", names.join(", ")))
        })?;
        let field = answers.field(self.asked.keys.len() + at);
        if !Top::is_ordered(field.data_type()) {
            return Err(Failure::invalid(format!(
                "answers of type {} have no order here",
                field.data_type()
            )));
        }
        let kind = AnswerKind::of(&self.asked.functions[self.asked.names[at].1]);
        let mut top = Top::new(self.asked.keys.len() + at, kind, count);
        let mut batches = py.detach(|| self.groups.batches(Wanted::Answers))?;
        while let Some(batch) = py.detach(|| batches.next()).transpose()? {
            py.detach(|| Ok::<_, Failure>(top.add(&self.asked.named_batch(&answers, &batch)?)?))?;
            py.check_signals()?;
        }
        Ok(Rows::of(top.finish(&answers)?))
    }

    /// All groups with what the functions answer.
    pub(super) fn result(&self) -> Rows {
        let (asked, groups) = (Arc::clone(&self.asked), Arc::clone(&self.groups));
        let schema = asked.answers(groups.schema());
        let begin = {
            let schema = Arc::clone(&schema);
            move || -> Result<Batches> {
                let (named, schema) = (Arc::clone(&asked), Arc::clone(&schema));
                let batches = groups.batches(Wanted::Answers)?;
                let batches = batches.map(move |batch: Result<RecordBatch>| -> Result<RecordBatch> {
                    Ok(named.named_batch(&schema, &batch?)?)
                });
                Ok(detached(&asked, Box::new(batches)))
            }
        };
        Rows::new(schema, Box::new(begin))
    }

    /// All groups with their states.
    pub(super) fn states(&self) -> Rows {
        let (asked, groups) = (Arc::clone(&self.asked), Arc::clone(&self.groups));
        let schema = Arc::clone(groups.schema().schema());
        let begin = move || -> Result<Batches> { Ok(detached(&asked, groups.batches(Wanted::States)?)) };
        Rows::new(schema, Box::new(begin))
    }
}

/// Batches for whoever may hold the interpreter's lock: with functions in Python, those that are waited for may need it.
fn detached(asked: &Asked, mut batches: Batches) -> Batches {
    if asked.own().is_empty() {
        return batches;
    }
    Box::new(std::iter::from_fn(move || attached(|py| py.detach(|| batches.next())).flatten()))
}
