//! Where damage lies, as users know the place: by the table, and in key order by the keys.

use forebay_base::{Bound, Error, Range};
use forebay_store::names;

use super::TableState;

impl TableState {
    /// The error of a read of this version. Of damaged bytes it tells the table, and in key order the keys that stand
    /// there: who reads knows neither by a file and an offset.
    #[cold]
    pub(crate) fn blamed(&self, error: Error) -> Error {
        let Error::Corruption { file, offset, reason } = error else { return error };
        let id = file.file_name().and_then(|name| names::parse(name.to_str()?)).map(|(id, _)| id);
        let files = self.version.files();
        let list = files.iter().find(|file| Some(file.id()) == id).and_then(|file| file.list());
        // In the order of hashes, what lies between two keys says nothing.
        let keys = list.filter(|_| self.order.is_lexical()).and_then(|list| list.keys_at(offset));
        let keys = keys.map_or_else(String::new, |keys| {
            let (low, high) = ends(&keys);
            told_keys(low.as_deref(), high.as_deref())
        });
        let reason = format!("table `{}`{keys}: {reason}", self.name.escape_debug());
        Error::Corruption { file, offset, reason }
    }
}

/// The first key that a range in key order may have, and the key that it ends before, where the table goes on there.
pub(crate) fn ends(keys: &Range) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    (key_at(&keys.low), keys.high.as_ref().and_then(key_at))
}

/// The key at a bound of a table in key order; `None` at the very front.
fn key_at(bound: &Bound) -> Option<Vec<u8>> {
    if !bound.key.is_empty() {
        return Some(bound.key.to_vec());
    }
    let prefix = bound.prefix.to_be_bytes();
    let length = prefix.iter().rposition(|&byte| byte != 0)? + 1;
    Some(prefix[..length].to_vec())
}

/// The keys between such ends behind a comma, or nothing where they are not known.
pub(crate) fn told_keys(low: Option<&[u8]>, high: Option<&[u8]>) -> String {
    match (low.map(<[u8]>::escape_ascii), high.map(<[u8]>::escape_ascii)) {
        (Some(low), Some(high)) => format!(", keys from {low} to {high}"),
        (Some(low), None) => format!(", keys from {low} on"),
        (None, Some(high)) => format!(", keys before {high}"),
        (None, None) => String::new(),
    }
}
