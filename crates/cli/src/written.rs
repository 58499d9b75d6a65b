//! A file of results. It is written aside, in the same directory, and takes the place of what was there once all of it
//! is on the disk: so a result may have the name of an input, and what fails leaves what was there before.
//!
//! What is no file, such as a pipe or `/dev/full`, is written as it is.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rapidhash::v3::rapidhash_v3;
use tempfile::{Builder, NamedTempFile};

use crate::failure::Failure;
use crate::temporary::Temporary;

/// What the name of a result ends in while it is written.
const PART: &str = ".part";
/// This many links are followed.
const LINKS_MAX: usize = 40;

/// See the module.
pub(crate) struct Written(Place);

enum Place {
    Aside { file: NamedTempFile, known: Temporary, target: PathBuf },
    Itself(File),
}

impl Written {
    /// Begins a result of this name.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Self::begin(path)
            .map(Self)
            .map_err(|error| Failure::work(format!("cannot write {}: {error}", path.display())))
    }

    #[expect(clippy::disallowed_methods, reason = "the output is the user's file, not the database's")]
    fn begin(path: &Path) -> io::Result<Place> {
        let target = followed(path)?;
        let before = match fs::metadata(&target) {
            Ok(before) => Some(before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(before) = &before {
            // Fails where it may not be written, and for directories.
            let file = OpenOptions::new().write(true).open(&target)?;
            if !before.is_file() {
                return Ok(Place::Itself(file));
            }
        }
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let name = target.file_name().unwrap_or_default().as_encoded_bytes();
        let prefix = format!(".forebay-{:016x}-", rapidhash_v3(name));
        clear(directory, &prefix);
        let mut builder = Builder::new();
        // What the user masks is taken off these.
        builder.prefix(&prefix).suffix(PART).permissions(fs::Permissions::from_mode(0o666));
        let make = || loop {
            let file = builder.tempfile_in(directory).map_err(|error| without_path(&error))?;
            // Where files cannot be locked none is cleared away either. Between its making and this it may have been.
            let _ = file.as_file().lock();
            if file.as_file().metadata()?.nlink() > 0 {
                return Ok(file);
            }
        };
        let (file, known) = Temporary::make(make, |file| file.path())?;
        if let Some(before) = before {
            // Another owner's may only be given by the superuser; it stays the user's own then.
            let _ = std::os::unix::fs::fchown(file.as_file(), Some(before.uid()), Some(before.gid()));
            file.as_file().set_permissions(before.permissions())?;
        }
        Ok(Place::Aside { file, known, target })
    }

    /// What is written to.
    pub(crate) fn file(&self) -> io::Result<File> {
        match &self.0 {
            Place::Aside { file, .. } => file.as_file().try_clone(),
            Place::Itself(file) => file.try_clone(),
        }
    }

    /// Ends the result, all of which was written: from now on it is there.
    #[expect(clippy::disallowed_methods, reason = "the output is the user's file, not the database's")]
    pub(crate) fn finish(self) -> io::Result<()> {
        let Place::Aside { file, known, target } = self.0 else { return Ok(()) };
        file.as_file().sync_all()?;
        known.keep(|| file.persist(&target).map_err(|error| error.error))?;
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Some file systems sync no directories.
        let _ = File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

/// Removes what commands left of results of the same name that were killed. Who still writes one has it locked.
#[expect(clippy::disallowed_methods, reason = "the output is the user's file, not the database's")]
fn clear(directory: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let is_part = |name: &str| name.starts_with(prefix) && name.ends_with(PART);
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_part)) {
        let Ok(file) = File::open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The system's word, without the name of a file that the user knows nothing of.
fn without_path(error: &io::Error) -> io::Error {
    let reason = error.to_string();
    let reason = reason.split(" at path ").next().unwrap_or_default();
    io::Error::new(error.kind(), reason)
}

/// What a path leads to, also where nothing is there yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}
