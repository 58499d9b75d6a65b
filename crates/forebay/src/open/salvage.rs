//! The manifest of a database that is salvaged: as far as it is sound, and without a word of what is not.

use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::FileSystem;
use forebay_store::manifest::{Current, Manifest};
use forebay_store::names;
use forebay_store::salvage::{Gap, Gaps};

use crate::versions::Replay;

/// Replays the manifest that counts, or the newest of `ids` that has a sound front, up to its first damage. Gives the
/// last record where the database was closed in order.
pub(crate) fn salvage(
    fs: &dyn FileSystem,
    dir: &Path,
    mut ids: Vec<u64>,
    replay: &mut Replay,
    gaps: &Gaps,
) -> Result<Option<u64>> {
    let current = match Current::read(fs, dir) {
        // What it has that is new would pass for damage.
        Err(error @ Error::NewerFormat { .. }) => return Err(error),
        Err(error) => {
            gaps.pass_over(&dir.join(names::CURRENT), &error, None);
            None
        }
        Ok(current) => Some(current),
    };
    ids.sort_unstable_by_key(|&id| (current.is_some_and(|current| current.manifest == id), id));
    for id in ids.into_iter().rev() {
        let path = names::manifest(dir, id);
        let (edits, end) = match Manifest::salvage(fs, dir, id) {
            Err(error) if gaps.pass_over(&path, &error, None) => continue,
            read => read?,
        };
        let damage =
            |offset, reason: String| gaps.note(Gap { file: path.clone(), offset, reason, keys: None });
        if let Some(offset) = end {
            damage(offset, "edits from here on cannot be read; what files they name is unknown".into());
        }
        for edit in edits {
            if let Err(error) = replay.apply(edit) {
                let reason = match error {
                    Error::Bug(reason) => reason,
                    error => error.to_string(),
                };
                damage(0, format!("an edit does not fit those before it: {reason}"));
                break;
            }
        }
        replay.finish().map_err(|error| error.read_from(&path))?;
        let counts = current.filter(|current| current.manifest == id && end.is_none());
        return Ok(counts.and_then(|current| current.closed).map(|closed| closed.last_sequence));
    }
    let wanted = current.map_or_else(|| dir.to_path_buf(), |current| names::manifest(dir, current.manifest));
    let reason = "no manifest can be read from its start, and only a manifest says which tables there are";
    Err(Error::corruption(&wanted, 0, reason))
}
