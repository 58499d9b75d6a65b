//! What could not be read and was passed over, where a database is opened to save what is left of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_base::{Error, Range};
use forebay_env::sync::Mutex;

/// A place that cannot be read.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
    /// The keys that may be concerned, where that is known.
    pub keys: Option<Range>,
}

/// All that were met, each once.
#[derive(Debug, Default)]
pub struct Gaps(Mutex<BTreeMap<(PathBuf, u64), Gap>>);

impl Gaps {
    /// Notes what an attempt to read a file has met. `false` for what is no fault of the file: that is not passed over.
    pub fn pass_over(&self, path: &Path, error: &Error, keys: Option<Range>) -> bool {
        let (offset, reason) = match error {
            Error::Corruption { offset, reason, .. } => (*offset, reason.clone()),
            _ if error.is_not_found() => (0, "the file is missing".into()),
            Error::Io { .. } => (0, error.to_string()),
            _ => return false,
        };
        self.note(Gap { file: path.to_path_buf(), offset, reason, keys });
        true
    }

    /// Notes a place.
    pub fn note(&self, gap: Gap) {
        self.0.lock().entry((gap.file.clone(), gap.offset)).or_insert(gap);
    }

    /// All that were met so far, by file and offset.
    pub fn all(&self) -> Vec<Gap> {
        self.0.lock().values().cloned().collect()
    }
}
