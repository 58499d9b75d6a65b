//! Rows with the states that functions in Python make of them: what the engine groups then is each group's first row, with
//! the states of all its rows here. Built-in functions beside are given every row, and those that are not the first of
//! their group have no states.

use std::collections::VecDeque;

use arrow_array::builder::{ArrayBuilder, BinaryBuilder};
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchReader, UInt32Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use forebay_aggregate::arrow::PartialSchema;
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use hashbrown::HashTable;
use rapidhash::v3::rapidhash_v3;

use super::Own;
use crate::failure::{Failure, Outcome, Raised};
use crate::groups::asked::Asked;
use crate::kernel::called;

/// So many rows are given to one call of `update`, or those that take about so many bytes.
const CALL_ROWS: usize = 1 << 20;
const CALL_BYTES: usize = 128 << 20;
/// Laws are checked over so many of the first rows, where there are no samples.
const SAMPLE_ROWS: usize = 64;

/// The groups of rows: the number of each row's, in the order in which groups first come, and the first row of each.
struct Numbered {
    groups: UInt32Array,
    firsts: UInt32Array,
}

impl Numbered {
    fn of(schema: &PartialSchema, rows: &RecordBatch) -> forebay::Result<Self> {
        let (mut keys, mut ends) = (Vec::<u8>::new(), vec![0]);
        let (mut groups, mut firsts) = (Vec::with_capacity(rows.num_rows()), Vec::new());
        let mut table = HashTable::<u32>::new();
        let key_of = |keys: &[u8], ends: &[usize], group: u32| -> std::ops::Range<usize> {
            debug_assert!(ends[group as usize + 1] <= keys.len());
            ends[group as usize]..ends[group as usize + 1]
        };
        schema.keys_of(rows, &mut |key| {
            let is_it = |group: &u32| keys[key_of(&keys, &ends, *group)] == *key;
            let hash = rapidhash_v3(key);
            let group = match table.find(hash, is_it) {
                Some(group) => *group,
                None => {
                    let group = firsts.len() as u32;
                    firsts.push(groups.len() as u32);
                    keys.extend_from_slice(key);
                    ends.push(keys.len());
                    table.insert_unique(hash, group, |group| {
                        rapidhash_v3(&keys[key_of(&keys, &ends, *group)])
                    });
                    group
                }
            };
            groups.push(group);
            Ok(())
        })?;
        debug_assert_eq!(groups.len(), rows.num_rows(), "each row has a group");
        Ok(Self { groups: groups.into(), firsts: firsts.into() })
    }
}

/// See the module.
struct WithStates {
    input: Box<dyn RecordBatchReader + Send>,
    asked: Arc<Asked>,
    partial: PartialSchema,
    schema: SchemaRef,
    /// The columns of the input that are looked at.
    columns: Vec<usize>,
    waiting: VecDeque<RecordBatch>,
    rows: Arc<AtomicU64>,
}

/// Rows of `input` for groups of this schema, and how many of `input` were read so far.
pub(in crate::groups) fn with_states(
    input: Box<dyn RecordBatchReader + Send>,
    asked: &Arc<Asked>,
    partial: &PartialSchema,
) -> (Box<dyn RecordBatchReader + Send>, Arc<AtomicU64>) {
    let (schema, rows) = (input.schema(), Arc::new(AtomicU64::new(0)));
    let is_read = |name: &String| {
        let mut read = partial.keys().iter().map(|key| key.name()).chain(partial.columns());
        read.any(|read| read == name) || asked.own().iter().any(|own| own.columns.contains(name))
    };
    let columns = (0..schema.fields().len()).filter(|at| is_read(schema.field(*at).name())).collect();
    let made = WithStates {
        schema: asked.with_own_columns(&schema),
        asked: Arc::clone(asked),
        partial: partial.clone(),
        columns,
        waiting: VecDeque::new(),
        rows: Arc::clone(&rows),
        input,
    };
    (Box::new(made), rows)
}

impl WithStates {
    /// The rows that the next calls are given.
    fn gathered(&mut self) -> Outcome<Option<RecordBatch>> {
        let (mut parts, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < CALL_ROWS && bytes < CALL_BYTES {
            let next = match self.waiting.pop_front() {
                Some(next) => next,
                None => match self.input.next().transpose()? {
                    Some(next) => next.project(&self.columns)?,
                    None => break,
                },
            };
            let taken = next.num_rows().min(CALL_ROWS - rows);
            if taken < next.num_rows() {
                self.waiting.push_front(next.slice(taken, next.num_rows() - taken));
            }
            rows += taken;
            // That of a slice is that of the whole.
            bytes += next.get_array_memory_size() / next.num_rows().max(1) * taken;
            if taken > 0 {
                parts.push(next.slice(0, taken));
            }
        }
        Ok(match &parts[..] {
            [] => None,
            [one] => Some(one.clone()),
            [first, ..] => Some(arrow_select::concat::concat_batches(&first.schema(), &parts)?),
        })
    }

    fn made(&mut self) -> Outcome<Option<RecordBatch>> {
        let Some(rows) = self.gathered()? else { return Ok(None) };
        let numbered = Numbered::of(&self.partial, &rows)?;
        let mut states = Vec::new();
        for own in self.asked.own() {
            let values = own.values(&rows)?;
            let made = called(|py| {
                own.check_once(py, &values.slice(0, SAMPLE_ROWS.min(values.num_rows())))?;
                own.update(py, values, &numbered.groups, numbered.firsts.len())
            });
            states.push((own, made?));
        }
        self.rows.fetch_add(rows.num_rows() as u64, Ordering::Relaxed);
        self.joined(&rows, &numbered, states).map(Some)
    }

    /// Rows with states beside them.
    fn joined(
        &self,
        rows: &RecordBatch,
        numbered: &Numbered,
        states: Vec<(&Arc<Own>, BinaryArray)>,
    ) -> Outcome<RecordBatch> {
        let is_all = self.asked.has_built_in();
        let mut fields = Vec::new();
        let mut columns = Vec::<ArrayRef>::new();
        for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
            let is_key = self.partial.keys().iter().any(|key| key.name() == field.name());
            if is_all || is_key {
                fields.push(Arc::clone(field));
                columns.push(match is_all {
                    true => ArrayRef::clone(column),
                    false => arrow_select::take::take(column, &numbered.firsts, None)?,
                });
            }
        }
        for (own, states) in states {
            fields.push(Arc::new(own.column()));
            columns.push(match is_all {
                true => Arc::new(spread(&states, &numbered.firsts, rows.num_rows())),
                false => Arc::new(states),
            });
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Each state in the first row of its group, and nothing in the others.
fn spread(states: &BinaryArray, firsts: &UInt32Array, rows: usize) -> BinaryArray {
    let mut all = BinaryBuilder::with_capacity(rows, states.value_data().len());
    for (state, first) in states.iter().zip(firsts.values()) {
        (all.len()..*first as usize).for_each(|_| all.append_null());
        all.append_option(state);
    }
    (all.len()..rows).for_each(|_| all.append_null());
    all.finish()
}

impl Iterator for WithStates {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let made = self.made().map_err(|failure: Failure| Raised::carry(failure));
        made.transpose()
    }
}

impl RecordBatchReader for WithStates {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
