//! The call by which a file system loses its power, which no crate wraps.
//!
//! **Invariant:** nothing unsafe of this crate stands elsewhere.

use std::fs::File;
use std::io;

use rustix::ioctl::{Setter, ioctl, opcode};

/// `FS_IOC_SHUTDOWN` of ext4 and XFS.
const SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);

/// What of the journal survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// It is written first: names and lengths survive that were changed by then, data that were not synced do not.
    Flushed = 1,
    /// Only what was synced survives.
    Lost = 2,
}

/// Cuts the file system that `root` is on off from its device: what is not on the device by now never gets there.
pub(crate) fn shut_down(root: &File, journal: Journal) -> io::Result<()> {
    // SAFETY: the call reads the u32 it is given a pointer to, and writes nothing to this process's memory.
    let outcome = unsafe { ioctl(root, Setter::<SHUTDOWN, u32>::new(journal as u32)) };
    outcome.map_err(io::Error::from)
}
