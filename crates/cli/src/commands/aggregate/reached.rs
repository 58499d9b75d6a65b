//! How far a file was read into a store, and what a file of that name is now.
//!
//! A file is known by its path, with links resolved, and by its number in the file system, by which it is found again
//! where it was renamed. File systems give numbers out again: of both, what tells of more bytes is taken. It is the
//! same as before if it is no shorter than what was read of it, and the first and last bytes of that are the same.
//! Where neither knows it, its [content](super::content) may.
//!
//! **Invariant:** what stands before [`Reached`] is counted, each record once, and nothing behind it is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rapidhash::v3::rapidhash_v3;
use serde::{Deserialize, Serialize};

use super::content;
use super::kmers::Roller;
use super::sequences::Records;
use crate::failure::Failure;
use crate::input::Position;
use crate::input::delimited::Head;
use crate::input::open::Opened;
use crate::input::unpack::Packer;

/// How many bytes of both ends of what was read tell a file from another.
pub(super) const PRINT_BYTES: u64 = 4 << 10;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reached {
    /// Where to go on; in the unpacked input.
    at: Position,
    /// The file's bytes that are known: those that were read, and of a packed file all.
    pub(super) bytes: u64,
    pub(super) packing: Packing,
    extent: Extent,
    pub(super) print: u64,
    /// The file's number in the file system.
    pub(super) file: Number,
    /// Its path, as text; empty in what older programs kept.
    #[serde(default)]
    pub(super) path: String,
    state: State,
}

/// A file's number: that of the device, and that on it.
type Number = (u64, u64);

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

/// A file that a store keeps track of.
pub(super) struct Tracked {
    pub(super) name: String,
    /// Its path, and what its number is kept under.
    pub(super) path: PathBuf,
    number_key: Vec<u8>,
    number: Number,
    pub(super) packing: Packing,
    /// What packs it; nothing where it is a whole that is read as it is.
    pub(super) packer: Option<Packer>,
    file: File,
    pub(super) bytes: u64,
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

impl Tracked {
    /// The file at `path`, which must be one that can be read again; `packer_of` is given its first bytes.
    #[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
    pub(super) fn open(
        path: &Path,
        packer_of: impl FnOnce(&[u8]) -> Result<Option<Packer>, Failure>,
    ) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failed = |error: io::Error| Failure::work(format!("cannot read {name}: {error}"));
        let resolved = path.canonicalize().map_err(failed)?;
        let file = File::open(&resolved).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(Failure::work(format!(
                "{name} is no file that could be read again; --store takes none else"
            )));
        }
        let mut head = Vec::new();
        (&file).take(8).read_to_end(&mut head).map_err(failed)?;
        let packer = packer_of(&head)?;
        let packing = if packer == Some(Packer::Nothing) { Packing::Plain } else { Packing::Packed };
        let number = (about.dev(), about.ino());
        let number_key = format!("file:{}:{}", number.0, number.1).into_bytes();
        Ok(Self { name, path: resolved, number_key, number, packing, packer, file, bytes: about.len() })
    }

    /// The file itself, to be read from an offset on: its name may lead to another one by now.
    pub(super) fn open_at(&self, offset: u64) -> Result<Opened, Failure> {
        let mut file = self.file.try_clone().map_err(|error| self.failed(&error))?;
        file.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(&error))?;
        Opened::of(self.name.clone(), file)
    }

    /// What it is known by besides its content.
    fn names(&self) -> [&[u8]; 2] {
        [self.path.as_os_str().as_encoded_bytes(), &self.number_key]
    }

    /// All that it is kept under, if this much is read.
    pub(super) fn keys(&self, reached: &Reached) -> Result<Vec<Vec<u8>>, Failure> {
        let mut keys: Vec<_> = self.names().map(<[u8]>::to_vec).into();
        if self.packing == Packing::Plain && reached.bytes > 0 {
            keys.push(content::key(&self.read(0, PRINT_BYTES.min(reached.bytes))?));
        }
        Ok(keys)
    }

    /// What is to be done with the file; `reached` tells how far the file of a name was read.
    pub(super) fn find(
        &self,
        reached: impl Fn(&[u8]) -> Result<Option<Reached>, Failure>,
        separator: Separator,
    ) -> Result<Found, Failure> {
        let [path, number] = self.names();
        let by_path = reached(path)?;
        // A file of the same number is the same where it begins as that one did: renamed, or by another link. As every
        // file begins as an empty one, and many with the same header, the path's word counts for more.
        let by_number = match reached(number)?.filter(|reached| reached.bytes > 0) {
            Some(reached) if self.continues(&reached)? => Some(reached),
            _ => None,
        };
        match (by_path, by_number) {
            (Some(path), number) if self.continues(&path)? => {
                let longer = number.filter(|number| number.bytes > path.bytes);
                self.go_on(longer.unwrap_or(path), separator)
            }
            (_, Some(number)) => self.go_on(number, separator),
            (by_path, None) => match (self.find_content(reached, separator)?, by_path) {
                (Some(found), _) => Ok(found),
                (None, Some(path)) if !self.has_moved(&path) => self.go_on(path, separator),
                _ => Ok(Found::New),
            },
        }
    }

    /// Whether the file begins as one of which this much was read.
    fn continues(&self, reached: &Reached) -> Result<bool, Failure> {
        Ok(self.packing == reached.packing
            && self.bytes >= reached.bytes
            && self.print(reached.bytes)? == reached.print)
    }

    /// Whether another file stood where this one does, and has another name in the same directory now, as log files
    /// have once they are rotated: itself, or what it held.
    #[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
    fn has_moved(&self, reached: &Reached) -> bool {
        let Some(Ok(mut entries)) = self.path.parent().map(std::fs::read_dir) else { return false };
        let is_it = |about: std::fs::Metadata| (about.dev(), about.ino()) == reached.file;
        reached.file != self.number
            && entries.any(|entry| entry.and_then(|entry| entry.metadata()).is_ok_and(is_it))
            || self.has_rotated(reached)
    }

    /// What is to be done with the file, of which this much was read.
    fn go_on(&self, reached: Reached, separator: Separator) -> Result<Found, Failure> {
        let is_packed = reached.packing == Packing::Packed;
        if self.bytes < reached.bytes || is_packed && self.bytes != reached.bytes {
            return Err(self.refuse(&format!(
                "it has {} bytes now, and had {} when it was read{}",
                self.bytes,
                reached.bytes,
                if is_packed { "; packed files are not read on" } else { "" }
            )));
        }
        if self.packing != reached.packing || self.print(reached.bytes)? != reached.print {
            return Err(self.refuse("the part that was read before has changed"));
        }
        if reached.extent == Extent::Whole {
            if self.bytes == reached.bytes {
                return Ok(Found::Known);
            }
            let around = self.read(reached.bytes.saturating_sub(1), 2.min(reached.bytes + 1))?;
            return self.read_on(reached, &around, separator);
        }
        Ok(Found::On(reached.at, reached.state))
    }

    /// To read on behind what was read; `around` are the bytes just before and behind that, if there are such.
    pub(super) fn read_on(
        &self,
        reached: Reached,
        around: &[u8],
        separator: Separator,
    ) -> Result<Found, Failure> {
        let can_go_on = matches!(separator, Separator::None | Separator::File);
        let is_ended = can_go_on || around.iter().any(|byte| separator.ends(*byte));
        match reached.extent == Extent::Whole && reached.bytes > 0 && around.len() > 1 && !is_ended {
            true => {
                Err(self.refuse("its last record was counted before it was complete, and has grown since"))
            }
            false => Ok(Found::On(reached.at, reached.state)),
        }
    }

    /// What to keep of how far it was read.
    pub(super) fn reached(&self, place: Place) -> Result<Reached, Failure> {
        let Place { at, end, extent, state } = place;
        let bytes = if self.packing == Packing::Packed { self.bytes } else { end };
        let (packing, file, path) = (self.packing, self.number, self.path.to_string_lossy().into_owned());
        Ok(Reached { at, bytes, packing, extent, print: self.print(bytes)?, file, path, state })
    }

    pub(super) fn failed(&self, error: &io::Error) -> Failure {
        Failure::work(format!("cannot read {}: {error}", self.name))
    }

    fn refuse(&self, reason: &str) -> Failure {
        Failure::work(format!(
            "{}: {reason}. What the store has of it stays; to count it as it is now, give it another name, or make \
             another --table",
            self.name
        ))
    }

    /// A digest of both ends of the first `bytes` bytes.
    fn print(&self, bytes: u64) -> Result<u64, Failure> {
        let mut ends = self.read(0, PRINT_BYTES.min(bytes))?;
        ends.extend(self.read(bytes.saturating_sub(PRINT_BYTES), PRINT_BYTES.min(bytes))?);
        Ok(rapidhash_v3(&ends))
    }

    fn read(&self, from: u64, bytes: u64) -> Result<Vec<u8>, Failure> {
        let mut read = vec![0; bytes as usize];
        self.file.read_exact_at(&mut read, from).map_err(|error| self.failed(&error))?;
        Ok(read)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "inputs are files of the user's")]
mod tests {
    use std::fs;

    use super::*;

    fn tracked(path: &Path) -> Tracked {
        Tracked::open(path, |_| Ok(Some(Packer::Nothing))).unwrap()
    }

    /// How far the file was read, of which this many bytes were.
    fn reached(file: &Tracked, bytes: u64) -> Reached {
        let at = Position { number: 1, offset: bytes };
        file.reached(Place { at, end: bytes, extent: Extent::Whole, state: State::Stateless }).unwrap()
    }

    /// Where to go on, of what is known by the path and by the number.
    fn found(file: &Tracked, by_path: Option<u64>, by_number: Option<u64>) -> Option<u64> {
        let [path, number] = file.names();
        let kept = |name: &[u8]| {
            let bytes = if name == path { by_path } else { by_number.filter(|_| name == number) };
            Ok(bytes.map(|bytes| reached(file, bytes)))
        };
        match file.find(kept, Separator::Newline).unwrap() {
            Found::On(at, _) => Some(at.offset),
            Found::New => None,
            Found::Known => Some(file.bytes),
        }
    }

    /// An empty file, or one with the same header, was removed, and its number went to a file that had been read
    /// further by its path: its rows were counted again.
    #[test]
    fn a_number_that_was_given_out_again_does_not_count_rows_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        fs::write(&path, "k,v\na,1\na,2\na,3\n").unwrap();
        let file = tracked(&path);
        assert_eq!(found(&file, Some(12), Some(0)), Some(12));
        assert_eq!(found(&file, Some(12), Some(4)), Some(12));
        assert_eq!(found(&file, None, Some(0)), None);
        // Renamed: the number knows more than a name that another file had.
        assert_eq!(found(&file, Some(4), Some(12)), Some(12));
        assert_eq!(found(&file, None, Some(12)), Some(12));
        assert_eq!(found(&file, None, None), None);
    }

    /// A log was rotated between two looks: lines of the new one were noted under the old one's number.
    #[test]
    fn a_file_that_is_renamed_while_it_is_opened_is_read_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        fs::write(&path, "old 1\nold 2\n").unwrap();
        let file = tracked(&path);
        fs::rename(&path, folder.path().join("app.log.1")).unwrap();
        fs::write(&path, "new 1\nnew 2\n").unwrap();
        let mut text = String::new();
        file.open_at(6).unwrap().from.read_to_string(&mut text).unwrap();
        assert_eq!(text, "old 2\n");
    }
}
