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

/// Functions, and each answer's name with the place of its function.
type Named = (Arc<Composite>, Vec<(String, usize)>);

/// See the module.
pub(super) struct Program {
    pub(super) labels: Labels,
    /// Where they are told.
    pub(super) answers: Option<Named>,
}

impl Program {
    /// What is told of a table that keeps states of this type.
    pub(super) fn of(snapshot: &Snapshot, table: &str, state_type: &str) -> Result<Option<Self>, Failure> {
        let (base, part) = Part::of(table);
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
            let labels = match (kept::read_shape(get)?, &part) {
                _ if table == name => Labels::Columns(asked.keys),
                // The first is the window, which has a table of its own.
                (Some(Shape::Windows(_)), Part::Window) => {
                    Labels::Columns(asked.keys.into_iter().skip(1).collect())
                }
                (Some(Shape::Cube(_)), Part::Cube) => Labels::Cube(asked.keys),
                _ => continue,
            };
            return Ok(Some(Self { labels, answers: Some((Arc::clone(partial.function()), asked.names)) }));
        }
        if part == Part::Window {
            return Ok(None);
        }
        let Ok(declared) = snapshot.table(&format!("{base}@cube")) else { return Ok(None) };
        let declaration = snapshot.get(&declared, b"declaration")?;
        let Some(columns) = declaration.and_then(|text| cube_columns(&text)) else { return Ok(None) };
        let columns = (1..=columns).map(|number| number.to_string()).collect();
        let labels = if table == base { Labels::Columns(columns) } else { Labels::Cube(columns) };
        Ok(Some(Self { labels, answers: None }))
    }
}

/// What a table is of the one that it is named by.
#[derive(PartialEq)]
enum Part {
    Whole,
    /// Groups by fewer columns: `NAME@1`.
    Cube,
    /// Those of a time: `NAME@0@1700000000000`.
    Window,
}

impl Part {
    /// The table by which this one is named, and what it is of that.
    fn of(table: &str) -> (&str, Self) {
        let Some((base, rest)) = table.split_once('@') else { return (table, Self::Whole) };
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        match rest.split_once('@') {
            None if is_number(rest) => (base, Self::Cube),
            Some((level, begin)) if is_number(level) && is_number(begin) => (base, Self::Window),
            _ => (table, Self::Whole),
        }
    }
}

/// How many columns a cube has that is declared so.
fn cube_columns(declaration: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(declaration).ok()?.strip_prefix("cube/1(columns=")?;
    text.split_once(',')?.0.parse().ok().filter(|columns| *columns <= COLUMNS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_part_of_another_where_numbers_stand_behind_its_name() {
        assert!(Part::of("sales") == ("sales", Part::Whole));
        assert!(Part::of("sales@1") == ("sales", Part::Cube));
        assert!(Part::of("sales@0@-1700000000000") == ("sales", Part::Window));
        assert!(
            Part::of("hits@eu") == ("hits@eu", Part::Whole) && Part::of("a@1@b") == ("a@1@b", Part::Whole)
        );
    }
}
