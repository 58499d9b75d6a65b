//! One record that is written: what `put` and `merge` have in common.

use std::ffi::OsString;

use forebay::Database;
use serde_json::json;

use crate::args::{Common, TableArgs};
use crate::database::made::Made;
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// Writes a record, of a key and what belongs to it, by `write`, which gives its number. The database is made where it is
/// missing, and made for nothing it goes again.
pub(super) fn write_one(
    target: &TableArgs,
    record: [&OsString; 2],
    hex: bool,
    common: &Common,
    write: impl FnOnce(&Database, &[u8], &[u8]) -> Result<u64, Failure>,
) -> Result<(), Failure> {
    let notation = Notation::from_flag(hex);
    let parsed = |at: usize| notation.parse(record[at].as_encoded_bytes()).map_err(Failure::Usage);
    let (key, value) = (parsed(0)?, parsed(1)?);
    let (db, made) = Made::open(&target.db, common)?;
    let sequence = match write(&db, &key, &value) {
        Ok(sequence) => sequence,
        Err(failure) => {
            made.undo(db);
            return Err(failure);
        }
    };
    db.close()?;
    Output::only_json(common.form(), &json!({ "records": 1, "sequence": sequence }))
}
