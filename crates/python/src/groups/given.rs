//! [`Given`]: what is said of groups when they are opened. What is kept may be left out, and is not said otherwise.

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::asked::{Asked, keys_of};
use crate::columns;
use crate::failure::{Failure, Outcome};

/// See the module.
pub(super) struct Given {
    /// The key where functions are left out.
    key: Option<Vec<String>>,
    pub(super) asked: Option<Asked>,
    /// The columns of rows.
    pub(super) rows: Option<SchemaRef>,
}

impl Given {
    /// What Python gives.
    pub(super) fn of(
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        let asked = aggs.map(|aggs| Asked::of(key, aggs)).transpose()?;
        let key = key.filter(|_| asked.is_none()).map(keys_of).transpose()?;
        Ok(Self { key, asked, rows: schema.map(columns::schema).transpose()? })
    }

    /// The same of groups by one more column, before the others, whose rows have these columns.
    pub(super) fn behind(self, column: &str, rows: Option<SchemaRef>) -> Outcome<Self> {
        let asked = self.asked.map(|asked| asked.behind(column)).transpose()?;
        let key = self.key.map(|key| std::iter::once(column.to_string()).chain(key).collect());
        Ok(Self { key, asked, rows })
    }

    /// An error where the key alone was said, and another is kept.
    pub(super) fn check_key(&self, noun: &str, name: &str, kept: &forebay_groups::Asked) -> Outcome<()> {
        match &self.key {
            Some(key) if *key != kept.keys => Err(Failure::invalid(format!(
                "{noun} `{name}` was made with key {:?}, and not {key:?}; leave key out, or name another one",
                kept.keys
            ))),
            _ => Ok(()),
        }
    }
}
