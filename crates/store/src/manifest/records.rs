//! The records of a manifest: a checksum, a length, and an edit each.

use std::path::Path;
use std::sync::Arc;

use forebay_base::checksum::checksum;
use forebay_base::wire::u32_at;
use forebay_base::{Error, Result};
use forebay_env::encryption::DataKeys;

use super::encrypted::{edit_of, why_malformed};
use super::{Edit, HEADER_BYTES};

pub(super) fn record_bytes(bytes: &[u8], at: usize) -> usize {
    HEADER_BYTES + u32_at(bytes, at + 4) as usize
}

/// The sound record at `at`.
pub(super) fn record(bytes: &[u8], id: u64, at: usize) -> Option<&[u8]> {
    record_behind(bytes, id, 0, at)
}

/// The same of bytes that stand at `base` of the file.
pub(super) fn record_behind(bytes: &[u8], id: u64, base: u64, at: usize) -> Option<&[u8]> {
    bytes.get(at..at + HEADER_BYTES)?;
    let record = bytes.get(at..at.checked_add(record_bytes(bytes, at))?)?;
    (checksum(id, base + at as u64, &record[4..]) == u32_at(record, 0)).then_some(record)
}

/// All sound records from the front, and where they end.
pub(super) fn read_records(
    bytes: &[u8],
    id: u64,
    path: &Path,
    keys: Option<&Arc<DataKeys>>,
) -> Result<(usize, Vec<Edit>)> {
    let (end, edits) = salvage_records(bytes, id, keys)?;
    match record(bytes, id, end) {
        Some(_) => Err(Error::corruption(path, end as u64, why_malformed(keys))),
        None => Ok((end, edits)),
    }
}

/// The same for whoever saves what is left: up to the first one, too, that cannot be decrypted or is malformed.
pub(super) fn salvage_records(
    bytes: &[u8],
    id: u64,
    keys: Option<&Arc<DataKeys>>,
) -> Result<(usize, Vec<Edit>)> {
    let (mut at, mut edits) = (0, Vec::new());
    while let Some(record) = record(bytes, id, at) {
        let Some(edit) = edit_of(record, id, at as u64, keys)? else { break };
        edits.push(edit);
        at += record.len();
    }
    Ok((at, edits))
}

/// Whether a sound record stands anywhere behind a damaged one.
pub(super) fn resumes_behind(bytes: &[u8], id: u64, end: usize) -> bool {
    (end + 1..bytes.len()).any(|at| record(bytes, id, at).is_some())
}
