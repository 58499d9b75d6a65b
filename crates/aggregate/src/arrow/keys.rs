//! Keys of groups that are asked for: of rows of a record batch, or of values as texts. They are made as those of rows that
//! are added, so that values of one type and another text find their group.

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use forebay_base::{Error, Result};

use super::column::{Column, Form, lanes};
use super::dictionaries::Dictionaries;
use super::input::found;
use super::restore::restored;
use super::schema::{PartialSchema, blamed};
use crate::columns::Rows;

impl PartialSchema {
    /// Shows the [group key](crate::group_key) of each row of a batch that has the columns of the key; others do not
    /// count.
    pub fn keys_of(&self, batch: &RecordBatch, see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let arrays = self.keys().iter().map(|key| found(batch, key).cloned()).collect::<Result<Vec<_>>>()?;
        self.show_keys(&arrays, batch.num_rows(), see)
    }

    /// The group key of values that are given by their texts, one for each column of the key; `None` for a null. What is
    /// the text of a value [`Form::Exact`] tells: of a day it is its number.
    pub fn key_of(&self, texts: &[Option<&[u8]>]) -> Result<Vec<u8>> {
        if texts.len() != self.keys().len() {
            return Err(Error::invalid(format!(
                "{} values of a key are given, and groups are by {} columns",
                texts.len(),
                self.keys().len()
            )));
        }
        let mut arrays = Vec::with_capacity(texts.len());
        for (text, key) in texts.iter().zip(self.keys()) {
            let array = restored(BinaryArray::from_opt_vec(vec![*text]), key.data_type());
            arrays.push(array.map_err(|error| blamed(key, &error))?);
        }
        let mut made = Vec::new();
        self.show_keys(&arrays, 1, &mut |key| {
            made.extend_from_slice(key);
            Ok(())
        })?;
        Ok(made)
    }

    fn show_keys(
        &self,
        arrays: &[ArrayRef],
        count: usize,
        see: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let dictionaries = Dictionaries::default();
        let columns: Vec<Column> = arrays
            .iter()
            .zip(self.keys())
            .map(|(array, key)| {
                Column::of(array, Form::Exact, &dictionaries).map_err(|error| blamed(key, &error))
            })
            .collect::<Result<_>>()?;
        let rows = Rows::with_keys(lanes(&columns)?, Vec::new())?;
        debug_assert!(arrays.is_empty() || rows.len() == count, "a key for each row");
        let mut key = Vec::new();
        (0..count).try_for_each(|at| {
            key.clear();
            rows.write_key(at, &mut key);
            see(&key)
        })
    }
}
