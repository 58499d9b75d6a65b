//! Groups that a program keeps in a database: what stands beside their table tells what their keys are.
//!
//! Aggregators of record batches, which Python, Java and the server have, keep names and functions in `NAME.schema`. A
//! cube of Rust keeps in `NAME@cube` how many columns it has, and no names for them.

use std::sync::Arc;

use forebay::{Error, Snapshot};
use forebay_aggregate::arrow::OwnFunctions;
use forebay_aggregate::{Aggregate, COLUMNS_MAX, Composite};
use forebay_groups::kept::{self, Shape};

use super::labels::Labels;
use crate::failure::Failure;

/// See the module.
pub(super) struct Program {
    pub(super) labels: Labels,
    /// The functions, and each answer's name with the place of its function, where they are told.
    pub(super) answers: Option<(Arc<Composite>, Vec<(String, usize)>)>,
}

impl Program {
    /// What is told of a table that keeps states of this type.
    pub(super) fn of(snapshot: &Snapshot, table: &str, state_type: &str) -> Result<Option<Self>, Failure> {
        // A cube's table of fewer columns is `NAME@1`, a window's `NAME@0@1700000000000`.
        let base = table.split_once('@').map_or(table, |(base, _)| base);
        for name in [table, base] {
            let Ok(schema) = snapshot.table(&format!("{name}{}", kept::ENDING)) else { continue };
            let get = |key: &[u8]| snapshot.get(&schema, key);
            let told = match kept::read(name, &OwnFunctions::default(), get) {
                // It is a table of the user's own that is called so.
                Err(Error::Invalid(_)) => None,
                told => told?,
            };
            let Some((partial, asked)) = told else { continue };
            if partial.function().state_type().as_str() != state_type {
                continue;
            }
            let labels = match kept::read_shape(get)? {
                // The first is the window, which has a table of its own.
                Some(Shape::Windows(_)) => Labels::Columns(asked.keys.into_iter().skip(1).collect()),
                Some(Shape::Cube(_)) if table != name => Labels::Cube(asked.keys),
                _ => Labels::Columns(asked.keys),
            };
            return Ok(Some(Self { labels, answers: Some((Arc::clone(partial.function()), asked.names)) }));
        }
        let Ok(declared) = snapshot.table(&format!("{base}@cube")) else { return Ok(None) };
        let declaration = snapshot.get(&declared, b"declaration")?;
        let Some(columns) = declaration.and_then(|text| cube_columns(&text)) else { return Ok(None) };
        let columns = (1..=columns).map(|number| number.to_string()).collect();
        let labels = if table == base { Labels::Columns(columns) } else { Labels::Cube(columns) };
        Ok(Some(Self { labels, answers: None }))
    }
}

/// How many columns a cube has that is declared so.
fn cube_columns(declaration: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(declaration).ok()?.strip_prefix("cube/1(columns=")?;
    text.split_once(',')?.0.parse().ok().filter(|columns| *columns <= COLUMNS_MAX)
}
