//! How far a file was read into a store.
//!
//! **Invariant:** what stands before [`Reached`] is counted, each record once, and nothing behind it is.

use serde::{Deserialize, Serialize};

use super::kmers::Roller;
use super::sequences::Records;
use crate::input::Position;
use crate::input::delimited::Head;

/// How many bytes of both ends of what was read tell a file from another.
pub(super) const PRINT_BYTES: u64 = 4 << 10;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reached {
    /// Where to go on; in the unpacked input.
    pub(super) at: Position,
    /// The file's bytes that are known: those that were read, and of a packed file all.
    pub(super) bytes: u64,
    pub(super) packing: Packing,
    pub(super) extent: Extent,
    pub(super) print: u64,
    /// The file's number in the file system.
    pub(super) file: Number,
    /// Its path, as text; empty in what older programs kept.
    #[serde(default)]
    pub(super) path: String,
    pub(super) state: State,
}

/// A file's number: that of the device, and that on it.
pub(super) type Number = (u64, u64);

/// Whether what is read are the bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Packing {
    /// They are, so that more can be appended.
    Plain,
    /// They are made of them.
    Packed,
}

/// How much of a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Extent {
    Part,
    Whole,
}

/// What reading on needs besides the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// Nothing.
    Stateless,
    /// Of delimited rows: where their columns are.
    Rows(Head),
    /// Of sequences: the line, and the last bases.
    Sequence(Records, Roller<u128>),
}

/// What ends a record: of a file that has grown its last record must have had an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Newline,
    Space,
    /// Records may go on.
    None,
    /// Nothing can be appended: the file is a whole.
    File,
}

impl Separator {
    /// Whether a byte ends a record.
    pub(super) fn ends(self, byte: u8) -> bool {
        match self {
            Self::Space => super::words::is_space(byte),
            Self::Newline | Self::None | Self::File => matches!(byte, b'\n' | b'\r'),
        }
    }
}

/// How far reading is.
#[derive(Debug)]
pub(super) struct Place {
    /// Where to go on.
    pub(super) at: Position,
    /// Where what is counted ends.
    pub(super) end: u64,
    pub(super) extent: Extent,
    pub(super) state: State,
}

/// What is to be done with a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was never read.
    New,
    /// It was read to its end, and has not changed.
    Known,
    /// It is to be read on.
    On(Position, State),
}
