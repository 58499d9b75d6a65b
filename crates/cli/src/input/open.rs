//! Opens the user's files, and standard input, to be read from their start to their end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// An input that is open.
pub(crate) struct Opened {
    /// What to call it in messages.
    pub(crate) name: String,
    pub(crate) from: Box<dyn Read + Send>,
    /// The same where it is a file, which can be read from anywhere. They share one place.
    pub(crate) file: Option<File>,
    /// How long it is, where that is known.
    pub(crate) bytes: Option<u64>,
}

/// Opens `path`, of which `-` is standard input. A pipe is opened once only: what is in it would go to whoever closes
/// it again.
#[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
pub(crate) fn open(path: &Path) -> Result<Opened, Failure> {
    let name = name_of(path);
    if is_standard(path) {
        return Ok(Opened { name, from: Box::new(io::stdin()), file: None, bytes: None });
    }
    let file = File::open(path).map_err(|error| Failure::work(format!("cannot open {name}: {error}")))?;
    Opened::of(name, file)
}

/// How long `path` is, where that is known; a failure where it cannot be read.
pub(crate) fn bytes_of(path: &Path) -> Result<Option<u64>, Failure> {
    if is_standard(path) {
        return Ok(None);
    }
    let failed = |error| Failure::work(format!("cannot open {}: {error}", path.display()));
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.is_file() || about.is_dir() { open(path).map(|opened| opened.bytes) } else { Ok(None) }
}

/// What to call `path` in messages.
pub(crate) fn name_of(path: &Path) -> String {
    if is_standard(path) { "standard input".into() } else { path.display().to_string() }
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Opened {
    /// A file, from where it stands.
    pub(crate) fn of(name: String, file: File) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::work(format!("cannot read {name}: {error}"));
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(Failure::work(format!("cannot read {name}: it is a directory")));
        }
        let same = about.is_file().then(|| file.try_clone()).transpose().map_err(failed)?;
        let bytes = about.is_file().then_some(about.len());
        Ok(Self { name, from: Box::new(file), file: same, bytes })
    }
}
