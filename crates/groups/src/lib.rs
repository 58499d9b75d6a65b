//! Groups of record batches, as programs in Java and Python ask for them: by a key and functions under names ([`Asked`]), in
//! memory and in files ([`Groups`]), and in a database, which keeps what they are beside them ([`kept`]).
//!
//! Functions that the program brings itself are the engine's [`OwnFunctions`](forebay_aggregate::arrow::OwnFunctions); what
//! they read and answer is the program's affair.
//!
//! **Invariant:** groups that were made once are opened with the same key, functions and names, or not at all.

#![warn(missing_docs)]

mod asked;
pub mod kept;
mod made;
mod memory;
mod opened;
mod pending;
mod readers;
mod windows;

pub use asked::Asked;
pub use kept::Shape;
pub use made::{Made, Wanted};
pub use memory::{Groups, THREADS_MAX};
pub use opened::Opened;
pub use pending::{COMMIT_BYTES_MAX, PENDING_BYTES, put_states};
pub use readers::{BATCH_ROWS, Batches, Caught, Rows, record_batch, record_batches};
pub use windows::{
    Late, Length, WINDOW, WindowShape, WindowStates, Windowed, WindowsWalk, split_window, windowed_schema,
};
