//! The first row of delimited text, where it names the columns, or looks so.

use forebay_aggregate::names::similar;

use super::format::Column;
use super::{Trouble, TroubleKind};

/// What is told of a first row that looks like a header and is loaded, or counted, as a record.
pub(crate) fn untold_header(name: &str, row: &str, done: &str) -> String {
    format!("{name}: the first row, {row}, is {done} as a record; if it names the columns, give --header")
}

/// The place of a column among those that have these names.
pub(super) fn place_of(column: &Column, names: Option<&[String]>) -> Result<usize, Trouble> {
    match (column, names) {
        (Column::Place(place), _) => Ok(*place),
        (Column::Name(_), None) => Ok(0),
        (Column::Name(name), Some(names)) => place_of_name(name, names),
    }
}

fn place_of_name(name: &str, names: &[String]) -> Result<usize, Trouble> {
    let mut places = names.iter().enumerate().filter(|(_, found)| *found == name).map(|(place, _)| place);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(place), Some(other)) => Err(TroubleKind::bad(format!(
            "columns {} and {} are both called {name:?}; name the one you mean by its number",
            place + 1,
            other + 1
        ))),
        (None, _) => Err(TroubleKind::bad(match similar(name, names.iter().map(String::as_str)) {
            Some(other) => format!("no column is called {name:?}; did you mean {other:?}?"),
            None => format!("no column is called {name:?}; the first row has {}", names.join(", ")),
        })),
    }
}
