//! The public error: few cases, each of which tells the caller what to do.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. The text names the file, offset, key or option and says what to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation. Retry once the cause is gone.
    Io {
        /// What was tried: `write`, `sync`, ….
        operation: &'static str,
        /// The file or directory it was tried on.
        path: PathBuf,
        /// The system's reason.
        kind: io::ErrorKind,
        /// The system's text.
        reason: String,
    },
    /// The process, or the system, may open no more files. Close some, raise its limit (`ulimit -n`), or let databases
    /// keep fewer open (`Options::open_files_max`).
    TooManyFiles {
        /// What was tried: `open`, `lock`, ….
        operation: &'static str,
        /// The file or directory it was tried on.
        path: PathBuf,
        /// The system's text, and the limits that are known.
        reason: String,
    },
    /// Stored bytes are not what was written. Other data stay readable.
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What was found.
        reason: String,
    },
    /// Records of a key merge to a value that is longer than any may be. They stay as they are, and so does what is
    /// kept with them; all else goes on. Delete the key, in key order by `delete_range`, and compact the table.
    TooLong(String),
    /// The call or an option is wrong. Correct the call.
    Invalid(String),
    /// The database is open elsewhere, or here.
    Locked {
        /// The lock's file.
        path: PathBuf,
        /// The process that has it open to write, if it tells.
        process: Option<u32>,
    },
    /// There is no database, or no table, of this name.
    NotFound(String),
    /// The database was made by a newer format version.
    NewerFormat {
        /// The file that says so.
        file: PathBuf,
        /// The version it asks for.
        version: u32,
        /// The newest this build knows.
        known: u32,
    },
    /// What a transaction has read was changed since by somebody else, so nothing of it was written. Begin it anew, as
    /// `Database::transaction` does by itself.
    Conflict(String),
    /// A table may take no more of the disk, and what it has is held for readers. Let go of that, and try again.
    NoSpace(String),
    /// The log does not go back that far any more, or what was told was taken back since. Copy the database anew, and
    /// follow its changes from there.
    ChangesGone {
        /// The number that changes were asked for after.
        since: u64,
        /// The number of the oldest record that the log still has.
        oldest: u64,
        /// The number of the last rollback to a savepoint, where that came after `since`: what it took back may have
        /// been told.
        rolled_back: Option<u64>,
    },
    /// Code of yours panicked that a table asks: its merge rule, its aggregation function, its compaction filter. What
    /// needs its answer is not done; all else goes on, but for a write buffer in which several records of one key wait
    /// for that answer: it is not flushed, and once all buffers are full no table takes writes. Mend it, and open the
    /// database again, or compact the table.
    Panicked(String),
    /// Forebay contradicts itself: no call and no file is to blame. The work that met it is not done, and the nodes that
    /// it was to change are set aside. Report it, with this text.
    Bug(String),
    /// An earlier failure left the log's tail unknown; nothing more is written. Reopen the database.
    Poisoned(String),
}

/// ENFILE and EMFILE, which are the same numbers on every Unix; std has no kinds for them.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

impl Error {
    /// An I/O error with its operation and path.
    pub fn io(operation: &'static str, path: &Path, error: &io::Error) -> Self {
        let (path, reason) = (path.to_path_buf(), error.to_string());
        if error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) {
            return Self::TooManyFiles { operation, path, reason };
        }
        Self::Io { operation, path, kind: error.kind(), reason }
    }

    /// Damage found at `offset` of `file`.
    pub fn corruption(file: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Corruption { file: file.to_path_buf(), offset, reason: reason.into() }
    }

    /// The same of a file that must be there: where it is not found, that is damage.
    #[must_use]
    pub fn or_missing(self) -> Self {
        match self {
            Self::Io { kind: io::ErrorKind::NotFound, path, .. } => {
                Self::corruption(&path, 0, "the file is missing")
            }
            error => error,
        }
    }

    /// A wrong call or option.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    /// What a call is told that comes once its database is closed.
    pub const CLOSED: &str = "the database is closed";

    /// A call that comes too late.
    pub fn closed() -> Self {
        Self::invalid(Self::CLOSED)
    }

    /// Whether the call came too late.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Invalid(reason) if reason == Self::CLOSED)
    }

    /// A contradiction in what this process has made.
    pub fn bug(reason: impl Into<String>) -> Self {
        Self::Bug(reason.into())
    }

    /// The same error of bytes that were read from `file`: what contradicts itself there is damaged.
    #[must_use]
    pub fn read_from(self, file: &Path) -> Self {
        match self {
            Self::Bug(reason) | Self::Invalid(reason) => Self::corruption(file, 0, reason),
            Self::NewerFormat { version, known, .. } => {
                Self::NewerFormat { file: file.into(), version, known }
            }
            error => error,
        }
    }

    /// Whether stored data are damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corruption { .. })
    }

    /// Whether this is a fault of Forebay itself.
    pub fn is_bug(&self) -> bool {
        matches!(self, Self::Bug(_))
    }

    /// Whether a transaction came too late, and would succeed if it were begun anew.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// Whether no more files can be opened.
    pub fn is_too_many_files(&self) -> bool {
        matches!(self, Self::TooManyFiles { .. })
    }

    /// The error of a key whose records merge to this many bytes, more than the most.
    pub fn too_long(key: &[u8], bytes: usize, bytes_max: usize) -> Self {
        let (start, rest) = key.split_at(key.len().min(64));
        let more = if rest.is_empty() { "" } else { "…" };
        Self::TooLong(format!(
            "the records of key `{}{more}` merge to {bytes} bytes, more than the {bytes_max} that a value may have; they \
             stay unmerged, and so do the records in the same lists; delete the key (in key order by delete_range) and \
             compact the table",
            start.escape_ascii()
        ))
    }

    /// Whether the same work would fail in the same way again.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Corruption { .. } | Self::TooLong(_) | Self::Panicked(_) | Self::Bug(_))
    }

    /// Whether there is no such file, database, table or savepoint.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Io { kind: io::ErrorKind::NotFound, .. })
    }

    /// Whether the disk is full, or what a table may take of it.
    pub fn is_no_space(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::NoSpace(_) | Self::Io { kind: StorageFull | QuotaExceeded, .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, kind, reason } => {
                write!(f, "cannot {operation} {}: {reason}", path.display())?;
                match kind {
                    io::ErrorKind::StorageFull => write!(f, "; free some space and try again"),
                    _ => Ok(()),
                }
            }
            Self::TooManyFiles { operation, path, reason } => write!(
                f,
                "cannot {operation} {}: {reason}; raise the limit (`ulimit -n`) or lower open_files_max",
                path.display()
            ),
            Self::Corruption { file, offset, reason } => {
                write!(
                    f,
                    "corruption in {} at offset {offset}: {reason}; restore the database from a checkpoint, or save what \
                     is intact with `forebay rescue`",
                    file.display()
                )
            }
            Self::Invalid(reason)
            | Self::NotFound(reason)
            | Self::NoSpace(reason)
            | Self::Conflict(reason)
            | Self::TooLong(reason) => f.write_str(reason),
            Self::Locked { path, process: Some(process) } if *process == std::process::id() => write!(
                f,
                "{} is held by process {process}, which is this one (or one of another container): it has the database \
                 open already; use that, or close it first",
                path.display()
            ),
            Self::Locked { path, process: Some(process) } => write!(
                f,
                "{} is held by process {process}, which has the database open; close it there first, or ask that process, if \
                 it is a server",
                path.display()
            ),
            Self::Locked { path, process: None } => write!(
                f,
                "{} is held: the database is open in another process, or twice in this one; close it there first",
                path.display()
            ),
            Self::NewerFormat { file, version, known } => write!(
                f,
                "{} has format version {version}, this build reads up to {known}; use a newer forebay",
                file.display()
            ),
            Self::ChangesGone { since, rolled_back: Some(number), .. } => write!(
                f,
                "changes after {since} were asked for, and number {number} is a rollback to a savepoint, which \
                 takes back what the feed told; copy the database anew and follow it from there"
            ),
            Self::ChangesGone { since, oldest, rolled_back: None } => write!(
                f,
                "changes after {since} were asked for, and those before number {oldest} are not kept any more; copy the \
                 database anew and follow it from there; a higher keep_changes keeps more"
            ),
            Self::Panicked(what) => {
                write!(f, "{what}; mend that code, and open the database again or compact the table")
            }
            Self::Bug(reason) => write!(f, "{reason}; this is a fault of Forebay: please report it"),
            Self::Poisoned(cause) => {
                write!(f, "writes stopped after a failure ({cause}); reopen the database")
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contradiction_is_a_bug_where_it_was_made_and_damage_where_it_was_read() {
        let made = Error::bug("node 7 is gone");
        assert!(made.is_bug() && made.is_lasting() && !made.is_corruption());
        assert!(made.to_string().ends_with("gone; this is a fault of Forebay: please report it"), "{made}");
        let read = made.read_from(Path::new("/db/3.manifest"));
        assert!(read.is_corruption() && !read.is_bug());
        assert!(!read.to_string().contains("report"), "{read}");
        let refused = Error::NoSpace("full".into()).read_from(Path::new("/db/3.manifest"));
        assert!(refused.is_no_space(), "what the file is not to blame for stays");
    }
}
