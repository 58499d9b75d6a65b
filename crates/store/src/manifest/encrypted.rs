//! What edits are in the manifest of an encrypted database: ciphertext, and a trailer behind it.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::encryption::{DataKeys, TRAILER_BYTES};

use super::HEADER_BYTES;
use super::edit::{Change, Edit};

/// What the tag of an edit vouches for besides it.
fn place_of(id: u64, at: u64) -> [u8; 16] {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&id.to_le_bytes());
    place[8..].copy_from_slice(&at.to_le_bytes());
    place
}

/// Encrypts the edit of a record that is to stand at this place of manifest `id`, where it is to be.
pub(super) fn encrypt(keys: Option<&Arc<DataKeys>>, id: u64, at: u64, record: &mut Vec<u8>) -> Result<()> {
    keys.map_or(Ok(()), |keys| keys.encrypt_behind(HEADER_BYTES, &place_of(id, at), record))
}

/// The edit of a sound record; `None` where it is malformed, or cannot be decrypted. An error is the provider's, who was
/// asked for a key that is new.
pub(super) fn edit_of(record: &[u8], id: u64, at: u64, keys: Option<&Arc<DataKeys>>) -> Result<Option<Edit>> {
    let edit = &record[HEADER_BYTES..];
    let Some(keys) = keys else { return Ok(Edit::decode(edit)) };
    Ok(keys.decrypt_whole(&place_of(id, at), edit)?.and_then(|text| Edit::decode(&text)))
}

/// Why there is none.
pub(super) fn why_malformed(keys: Option<&Arc<DataKeys>>) -> &'static str {
    match keys {
        None => "an edit is malformed",
        Some(_) => {
            "an edit is not what was written here: it was changed, or FOREBAY.keys is older, or of another database"
        }
    }
}

/// An edit that changes nothing.
pub(super) fn mark() -> Edit {
    Edit::Change(Change::default())
}

/// How long its record is.
pub(super) fn mark_bytes(keys: Option<&Arc<DataKeys>>) -> u64 {
    let mut record = vec![0; HEADER_BYTES + keys.map_or(0, |_| TRAILER_BYTES)];
    mark().encode(&mut record);
    debug_assert!(record.len() > HEADER_BYTES, "every edit has a kind");
    record.len() as u64
}
