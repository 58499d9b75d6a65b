//! Reading record batches of partial states: each group's key and its state, once all of a batch is found to be sound.

use arrow_array::RecordBatch;
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::{Error, Result};

use super::column::{Column, Form, lanes, refusal};
use super::dictionaries::Dictionaries;
use super::schema::{PartialSchema, blamed, field};
use crate::aggregator::Visit;
use crate::columns::Rows;

/// What keys and states of a batch may take, each counted as often as it stands there.
const BYTES_MAX: usize = 2 << 30;

impl PartialSchema {
    /// Shows the group key and the state of each row. Nothing is shown of a batch whose columns do not fit, or in which
    /// any state is none of its function: the error names column and row, counted from 1.
    ///
    /// Keys of [`Form::Exact`] are those of an aggregator of this schema; their types are the same then. Where people
    /// read them they are of [`Form::Shown`], of whatever type.
    pub fn read(&self, batch: &RecordBatch, form: Form, visit: &mut Visit<'_>) -> Result<()> {
        let schema = batch.schema();
        match form {
            Form::Exact => self.check(&schema)?,
            Form::Shown => self.check_states(&schema)?,
        }
        let dictionaries = Dictionaries::default();
        let column = |name: &str, form| {
            let of = field(&schema, name)?;
            let array = batch.column_by_name(name).ok_or_else(|| Error::invalid("a column is missing"))?;
            Column::of(array, form, &dictionaries).map_err(|error| blamed(of, &error))
        };
        let keys = self.keys().iter().map(|key| column(key.name(), form)).collect::<Result<Vec<_>>>()?;
        let states = self
            .states()
            .iter()
            .map(|state| column(state.name(), Form::Exact))
            .collect::<Result<Vec<_>>>()?;
        self.show(&Rows::with_keys(lanes(&keys)?, lanes(&states)?)?, visit)
    }

    fn show(&self, rows: &Rows<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let (mut parts, mut key, mut bytes) = (Vec::with_capacity(rows.lanes().len()), Vec::new(), 0);
        for at in 0..rows.len() {
            parts.clear();
            parts.extend(rows.lanes().iter().map(|lane| lane.text(at)));
            self.function().check_parts(&parts).map_err(|(part, error)| {
                let reason = if rows.lane(part).is_present(at) { error } else { refusal("there is none") };
                let told = format!("the state in row {}: {reason}", at + 1);
                blamed(&self.states()[part], &Error::invalid(told))
            })?;
            key.clear();
            rows.write_key(at, &mut key);
            if key.len() > KEY_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "the key in row {} has more than {KEY_BYTES_MAX} bytes",
                    at + 1
                )));
            }
            bytes += key.len() + parts.iter().map(|part| part.len()).sum::<usize>();
            if bytes > BYTES_MAX {
                return Err(Error::invalid("2 GiB of keys and states in a batch; give smaller batches"));
            }
        }
        // They are not all kept: dictionaries and views may tell of far more than they take.
        let mut state = Vec::new();
        for at in 0..rows.len() {
            parts.clear();
            parts.extend(rows.lanes().iter().map(|lane| lane.text(at)));
            state.clear();
            self.function().join(&parts, &mut state);
            key.clear();
            rows.write_key(at, &mut key);
            visit(&key, &state)?;
        }
        Ok(())
    }
}
