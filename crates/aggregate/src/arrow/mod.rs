//! Groups over Arrow: record batches in, and record batches of answers or of partial states out.
//!
//! 1. [`RecordBatchAggregator`] takes record batches, column by column: arrays become [lanes](crate::columns::Lane)
//!    where they lie ([column]), dictionaries with their codes ([dictionaries]).
//! 2. Groups come back as record batches, some thousand at a time ([batches]): their keys as what they were
//!    ([restore]), with what the functions answer ([answers]) or with their states.
//! 3. Batches of states are merged in another aggregator, wherever that is ([read]): what they hold stands in their
//!    schema ([schema]). [`RecordBatchStates`] gives those of rows to who keeps groups elsewhere; the keys of groups that
//!    are asked for are made as those of rows are ([mod@keys]).
//! 4. States go to files of Arrow's IPC format, with a checksum ([file]).
//!
//! **Invariant:** batches that were divided in any way give the states that one aggregator of all gives, as far as the
//! functions' states do.

mod aggregator;
mod answers;
mod batches;
pub mod calendar;
mod column;
mod dictionaries;
mod file;
mod input;
mod keys;
mod own;
mod read;
mod restore;
mod schema;
mod states;

pub use aggregator::RecordBatchAggregator;
pub use answers::units;
pub use batches::{PartialBatches, RecordBatches};
pub use column::Form;
pub use file::{PartialReader, PartialWriter};
pub use own::{OwnFunctions, Shorten, StateList, StateRows, put_list, split_list};
pub use schema::PartialSchema;
pub use states::RecordBatchStates;
