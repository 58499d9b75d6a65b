//! Looking at a directory that somebody else may write meanwhile.

use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::{Env, LockMode};
use forebay_store::names;

use crate::open::{Found, Looking, look};

/// How often it is looked at anew.
const TRIES_MAX: usize = 100;
/// Who finds the same so often in a row believes it: what is half written now is whole, or otherwise, a moment later.
const SAME_MAX: usize = 3;

/// Looks, under a lease. What was found to be damaged, or not found, may have been half written, or removed meanwhile. So
/// it is looked at again: where somebody writes in another way, in which the log ends where no sound frame stands; where
/// nobody does, in the strict one. The lock is not held while it is looked: whoever is to write is not kept out.
pub(crate) fn look_beside(looking: &Looking<'_>) -> Result<Found> {
    let (mut is_live, mut last, mut same) = (false, None, 0);
    for _ in 0..TRIES_MAX {
        let error = match look(looking, is_live) {
            Err(error) => error,
            found => return found,
        };
        let told = Some((error.to_string(), is_live));
        same = if told == last { same + 1 } else { 1 };
        if same >= SAME_MAX {
            return Err(error);
        }
        let Ok(is_written) = is_written(looking.env, looking.dir) else { return Err(error) };
        (last, is_live) = (told, is_written);
    }
    let reason = "it changes while it is read, each time; try again".into();
    let kind = std::io::ErrorKind::WouldBlock;
    Err(Error::Io { operation: "read", path: looking.dir.to_path_buf(), kind, reason })
}

/// Whether somebody writes. The lock is let go of at once; a writer that comes just then tries again.
pub(crate) fn is_written(env: &Env, dir: &Path) -> Result<bool> {
    match env.fs.lock(&dir.join(names::LOCK), LockMode::Shared) {
        Err(Error::Locked { .. }) => Ok(true),
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(false),
    }
}
