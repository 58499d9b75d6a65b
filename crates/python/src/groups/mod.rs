//! Group-by: [`Aggregator`] in memory, which goes on in files where that is full, and [`StoredAggregator`] in a database,
//! there also by time ([`Windows`]) and by fewer columns ([`Cube`]). All are read the same way ([`read`]).
//!
//! Rows come by columns, as they lie in Arrow's arrays, and go the way of the command's: `forebay_aggregate::arrow`.

mod asked;
mod cube;
mod given;
mod grouping;
mod held;
mod kept;
mod memory;
mod own;
mod pinned;
mod read;
mod scalars;
mod stored;
mod top;
mod values;
mod windows;

use pyo3::prelude::*;

pub(crate) use cube::{Cube, CubeSnapshot};
pub(crate) use memory::Aggregator;
pub(crate) use own::Merges;
pub(crate) use pinned::AggregatorSnapshot;
pub(crate) use stored::StoredAggregator;
pub(crate) use windows::{Windows, Wish};

/// The word that stands for a column's name in a function's text.
#[pyfunction]
pub(crate) fn quoted(name: &str) -> String {
    forebay_aggregate::names::quoted(name).into_owned()
}
