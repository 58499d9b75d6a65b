//! Rows by the batch, column beside column: what reading columns of a file gives, at the price of columns.
//!
//! 1. A batch is some [`Rows`] of [`Lane`]s, borrowed in Arrow's layout; some make the key of a group
//!    ([`group_key`](crate::group_key)), and functions are given these and others.
//! 2. Values of key columns become words that are equal where their texts are ([words]); rows with equal words are one
//!    group ([known]) of a table in front of the aggregator ([front]), and the text of its key is made once.
//! 3. Each function goes over the batch by itself and adds to the groups' numbers, which become states when they leave
//!    the table ([accumulate]). Functions that know nothing of columns are given rows ([by_rows]).
//! 4. Where keys hardly ever come again the table is passed by: every row is a group by itself then.
//!
//! **Invariant:** groups and states are those that the same rows give one by one, but that sums of floating-point
//! numbers are added up in another order.

mod accumulate;
mod by_rows;
mod distinct;
mod extremes;
mod front;
mod hashed;
mod keys;
mod known;
mod lane;
mod order;
mod paired;
mod parts;
mod read;
mod runs;
mod tops;
mod words;

use forebay_base::{Error, Result};

pub use accumulate::Accumulator;
pub(crate) use accumulate::{
    Counts, Extreme, Floats, Folded, Folding, PresentCounts, Wanted, present, resize,
};
pub(crate) use distinct::DistinctTexts;
pub(crate) use extremes::ExtremeTexts;
pub(crate) use front::{Front, OnRefused, SOME_SHARE};
pub use hashed::HashedRows;
pub use lane::{Bits, Items, Kind, Lane, Texts, new_dictionary};
pub(crate) use paired::Paired;
pub(crate) use read::ShortOrOdd;
pub(crate) use runs::{OfRun, Runs};
pub(crate) use tops::Tops;

use crate::aggregate::Aggregate;
use crate::composite::Composite;
use crate::function::Function;
use crate::functions::Count;
use crate::grouping::group_key;
use crate::value::Value;

/// Some rows, as lanes of one length.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    keys: Vec<Lane<'a>>,
    lanes: Vec<Lane<'a>>,
    len: usize,
}

impl<'a> Rows<'a> {
    /// Rows of these lanes, of which the first `keys` make the key; functions are given all. An error where lanes
    /// differ in length, or there are fewer of them.
    pub fn new(lanes: Vec<Lane<'a>>, keys: usize) -> Result<Self> {
        let keys = lanes.get(..keys).map(<[_]>::to_vec);
        let keys = keys.ok_or_else(|| Error::invalid("a key of more lanes than there are"))?;
        Self::with_keys(keys, lanes)
    }

    /// Rows of lanes that make the key, and others that functions are given. An error where they differ in length.
    pub fn with_keys(keys: Vec<Lane<'a>>, lanes: Vec<Lane<'a>>) -> Result<Self> {
        let mut all = keys.iter().chain(&lanes).map(Lane::len);
        let len = all.next().unwrap_or(0);
        if !all.all(|other| other == len) {
            return Err(Error::invalid("the lanes of some rows differ in length"));
        }
        if u32::try_from(len).is_err() {
            return Err(Error::invalid(format!("{len} rows at once; {} at most", u32::MAX)));
        }
        Ok(Self { keys, lanes, len })
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lanes that functions are given.
    pub fn lanes(&self) -> &[Lane<'a>] {
        &self.lanes
    }

    /// The lanes of the key.
    pub fn keys(&self) -> &[Lane<'a>] {
        &self.keys
    }

    /// A lane; nulls where there is none.
    pub fn lane(&self, at: usize) -> Lane<'a> {
        self.lanes.get(at).copied().unwrap_or(Lane::nulls(self.len))
    }

    /// Puts a row's values in place of what `row` holds.
    pub fn row(&self, at: usize, row: &mut Vec<Value<'a>>) {
        row.clear();
        row.extend(self.lanes.iter().map(|lane| lane.value(at)));
    }

    /// Appends the key of a row.
    pub fn write_key(&self, at: usize, key: &mut Vec<u8>) {
        self.keys().iter().for_each(|lane| group_key::push_written(key, |text| lane.write_text(at, text)));
    }

    /// So many rows from one on, or all that are left.
    pub fn slice(&self, from: usize, len: usize) -> Self {
        let from = from.min(self.len);
        let len = len.min(self.len - from);
        let slices = |lanes: &[Lane<'a>]| lanes.iter().map(|lane| lane.slice(from, len)).collect();
        Self { keys: slices(&self.keys), lanes: slices(&self.lanes), len }
    }
}

/// An aggregate whose state is the states of functions over rows, one behind the other.
pub trait OverRows: Aggregate {
    /// The functions.
    fn functions(&self) -> Vec<&dyn Function>;
}

impl OverRows for Composite {
    fn functions(&self) -> Vec<&dyn Function> {
        Composite::functions(self).collect()
    }
}

impl OverRows for Count {
    fn functions(&self) -> Vec<&dyn Function> {
        vec![&crate::row_count::RowCount]
    }
}

impl<A: OverRows + ?Sized> OverRows for std::sync::Arc<A> {
    fn functions(&self) -> Vec<&dyn Function> {
        (**self).functions()
    }
}
