//! Which groupings a cube keeps: as Python says it, and as it is kept.

use forebay::Error;
use forebay::aggregate::{Grouping, Groupings};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Outcome};
use crate::groups::kept::Shape;

/// The groupings of a cube by this key: `"cube"`, `"rollup"`, or lists of columns. The one by all columns is among them.
pub(super) fn asked_sets(given: Option<&Bound<'_, PyAny>>, key: &[String]) -> Outcome<Groupings> {
    let not_sets = || {
        Failure::type_error(
            "groupings is \"cube\", \"rollup\", or a list of lists of columns, as in [[\"country\"], []]",
        )
    };
    let Some(given) = given else { return Ok(Groupings::cube(key.len())?) };
    if let Ok(text) = given.cast::<PyString>() {
        return match text.to_cow()?.as_ref() {
            "cube" => Ok(Groupings::cube(key.len())?),
            "rollup" => Ok(Groupings::rollup(key.len())?),
            _ => Err(not_sets()),
        };
    }
    let sets = given.extract::<Vec<Vec<String>>>().map_err(|_| not_sets())?;
    let places = sets.iter().map(|set| places_of(set, key)).collect::<Result<Vec<_>, _>>()?;
    Ok(Groupings::sets(key.len(), places)?)
}

/// The places of columns in the key.
pub(super) fn places_of(columns: &[String], key: &[String]) -> Result<Vec<usize>, Error> {
    let place = |(at, column): (usize, &String)| {
        let place = key.iter().position(|known| known == column).filter(|_| !columns[..at].contains(column));
        place.ok_or_else(|| {
            Error::invalid(format!(
                "the cube is by {key:?}; name some of these columns, each once, and not `{column}`"
            ))
        })
    };
    columns.iter().enumerate().map(place).collect()
}

/// The columns that a grouping has.
pub(super) fn columns_of(grouping: Grouping, key: &[String]) -> Vec<String> {
    let has = |at: usize| grouping.bits() >> (key.len() - 1 - at) & 1 == 0;
    key.iter().enumerate().filter(|(at, _)| has(*at)).map(|(_, column)| column.clone()).collect()
}

/// The same as they are kept: how many columns there are, and of each grouping the bits of those that it leaves out.
pub(super) fn shape_of(groupings: &Groupings) -> Shape {
    let bits: Vec<u16> = groupings.iter().map(Grouping::bits).collect();
    Shape::Cube(serde_json::json!([groupings.columns(), bits]).to_string().into_bytes())
}

/// The groupings that are kept under a name; an error where that is something else.
pub(super) fn kept_sets(name: &str, kept: &Shape) -> Outcome<Groupings> {
    let Shape::Cube(bytes) = kept else { return Err(kept.refused(name).into()) };
    let failed = |reason: &dyn std::fmt::Display| {
        Failure::invalid(format!("table `{name}.schema` does not tell what cube `{name}` is: {reason}"))
    };
    let (columns, bits): (usize, Vec<u16>) = serde_json::from_slice(bytes).map_err(|error| failed(&error))?;
    let has = |bits: u16, at: usize| bits >> (columns - 1 - at) & 1 == 0;
    let sets = bits.iter().map(|bits| (0..columns).filter(|at| has(*bits, *at)).collect::<Vec<_>>());
    // Too many columns are refused before any bit is looked at.
    Groupings::cube(columns).map_err(|error| failed(&error))?;
    Groupings::sets(columns, sets).map_err(|error| failed(&error))
}
