//! Files on the machine's file system where others may put some, too.
//!
//! **Invariant:** what is opened is a file, and the one that has the name: no link is followed, and nobody is waited for at
//! the other end of a pipe.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use rustix::fs::OFlags;

/// What is shared everybody may read.
const SHARED_MODE: u32 = 0o644;

const _: () = assert!(SHARED_MODE & 0o022 == 0, "and nobody else may write");

/// Opens it as `options` say.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<fs::File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = options.custom_flags(flags).open(path)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "this is no file")),
    }
}

/// Lets everybody read it.
pub(super) fn share(file: &fs::File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(SHARED_MODE))
}

/// A directory with the rights and the owner of the one that it is in.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    // What was made, and not what somebody may have put in its place.
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let made = OpenOptions::new().read(true).custom_flags(flags).open(dir)?;
    let within = fs::metadata(dir.parent().unwrap_or(dir))?;
    // Only who may do all may give it away.
    let _ = fchown(&made, Some(within.uid()), Some(within.gid()));
    made.set_permissions(within.permissions())
}

/// The names of the files in a directory.
pub(super) fn list(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            // Some file systems are asked for it file by file, and this one is gone by now; the directory is there.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            kind => kind?,
        };
        if !kind.is_dir() {
            // The engine names its files in ASCII: a name that is not text is none of its own.
            names.extend(entry.file_name().into_string().ok());
        }
    }
    Ok(names)
}
