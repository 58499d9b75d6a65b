//! How many keys a version has, where its lists tell: each key in one list, once, and each list whole.

use std::collections::BTreeMap;

use forebay_base::{Bound, Range};

use super::TableVersion;
use crate::files::DataFile;

/// The number of keys, exactly; `None` where lists would have to be merged for that. Reads the footers of lists that are
/// not open yet.
///
/// It is known where all lists are at the bottom, which have neither tombstones nor operands, no two lie over one another,
/// and of each file all parts are there: how many records a part of a file has is an estimate, how many the file has is not.
pub fn known_keys(version: &dyn TableVersion) -> Option<u64> {
    let (mut parts, mut is_known): (Vec<(Range, DataFile)>, bool) = (Vec::new(), true);
    version.each_list(&mut |part| {
        is_known = is_known && part.is_bottom && part.file.list().is_some();
        parts.push((part.range.clone(), part.file));
    });
    if !is_known {
        return None;
    }
    parts.sort_by(|(one, _), (next, _)| one.low.cmp(&next.low));
    let is_above = |low: &Bound, high: &Option<Bound>| high.as_ref().is_some_and(|high| high <= low);
    if !parts.is_sorted_by(|(one, _), (next, _)| is_above(&next.low, &one.high)) {
        return None;
    }
    let mut files: BTreeMap<u64, (DataFile, Range)> = BTreeMap::new();
    for (range, file) in parts {
        match files.get_mut(&file.id()) {
            // What lies between two parts of a file may have been somebody else's.
            Some((_, whole)) if whole.high.as_ref() != Some(&range.low) => return None,
            Some((_, whole)) => whole.high = range.high,
            None => drop(files.insert(file.id(), (file, range))),
        }
    }
    files.values().map(|(file, range)| keys_of(file, range)).sum()
}

/// How many keys a file has, if all of them lie in a range.
fn keys_of(file: &DataFile, Range { low, high }: &Range) -> Option<u64> {
    let (first, last) = file.list()?.prefixes()?;
    let begins_before = low.prefix < first || low.prefix == first && low.key.is_empty();
    let ends_behind = high.as_ref().is_none_or(|high| high.prefix > last);
    (begins_before && ends_behind).then(|| file.records())
}
