//! Emptying the page cache, so that what is read next comes from the device.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::disk;

/// How the page cache is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CacheDrop {
    /// All of the machine's, by the kernel's switch.
    Machine,
    /// The pages of the files in the directory, by advice.
    Files,
}

/// Writes back what is dirty and empties the page cache of the directory's files. Says how: where the
/// kernel's switch was asked for and is out of reach, it is advice.
#[expect(clippy::disallowed_methods, reason = "a switch of the kernel")]
pub(crate) fn empty(dir: &Path, asked: CacheDrop) -> CacheDrop {
    if asked == CacheDrop::Machine {
        rustix::fs::sync();
        if std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
            return CacheDrop::Machine;
        }
    }
    disk::files(dir).iter().for_each(|path| advise(path));
    CacheDrop::Files
}

/// Nothing is wrong where the advice is not taken, or the file is gone.
#[expect(clippy::disallowed_methods, reason = "a file that no engine has open")]
fn advise(path: &Path) {
    if let Ok(file) = File::open(path) {
        // The pages of what was not written back yet stay.
        let _ = file.sync_data();
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}
