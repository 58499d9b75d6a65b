//! Opens the user's files, and standard input, to be read from their start to their end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::failure::Failure;

/// An input that is open.
pub(crate) struct Opened {
    /// What to call it in messages.
    pub(crate) name: String,
    pub(crate) from: Box<dyn Read + Send>,
    /// How long it is, where that is known.
    pub(crate) bytes: Option<u64>,
}

/// Opens `path`, of which `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Opened, Failure> {
    open_at(path, 0)
}

/// Opens `path` from an offset on, which a file alone can have.
#[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
pub(crate) fn open_at(path: &Path, offset: u64) -> Result<Opened, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Opened { name: "standard input".into(), from: Box::new(io::stdin()), bytes: None });
    }
    let name = path.display().to_string();
    let mut file = File::open(path).map_err(|error| Failure::work(format!("cannot open {name}: {error}")))?;
    let about = file.metadata().map_err(|error| Failure::work(format!("cannot read {name}: {error}")))?;
    if about.is_dir() {
        return Err(Failure::work(format!("cannot read {name}: it is a directory")));
    }
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))
            .map_err(|error| Failure::work(format!("cannot read {name}: {error}")))?;
    }
    let bytes = about.is_file().then_some(about.len());
    Ok(Opened { name, from: Box::new(file), bytes })
}
