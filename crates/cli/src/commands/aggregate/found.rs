//! What is to be done with a file that a store may have read before.
//!
//! A file is known by its path, with links resolved, and by its number in the file system, by which it is found again
//! where it was renamed. File systems give numbers out again: of both, what tells of more bytes is taken. It is the
//! same as before if it is no shorter than what was read of it, and the first and last bytes of that are the same.
//! Where neither knows it, its [content](super::content) may.

use std::os::unix::fs::MetadataExt;

use super::content;
use super::reached::{Extent, Found, PRINT_BYTES, Packing, Reached, Separator};
use super::tracked::Tracked;
use crate::failure::Failure;

impl Tracked {
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
                (Some((found, around)), _) => self.read_on(found, &around, separator),
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
    fn read_on(&self, reached: Reached, around: &[u8], separator: Separator) -> Result<Found, Failure> {
        let can_go_on = matches!(separator, Separator::None | Separator::File);
        let is_ended = can_go_on || around.iter().any(|byte| separator.ends(*byte));
        match reached.extent == Extent::Whole && reached.bytes > 0 && around.len() > 1 && !is_ended {
            true => {
                Err(self.refuse("its last record was counted before it was complete, and has grown since"))
            }
            false => Ok(Found::On(reached.at, reached.state)),
        }
    }

    fn refuse(&self, reason: &str) -> Failure {
        Failure::work(format!(
            "{}: {reason}. What the store has of it stays; to count it as it is now, give it another name, or make \
             another --table",
            self.name
        ))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "inputs are files of the user's")]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::path::Path;

    use super::super::reached::{Place, State};
    use super::*;
    use crate::input::Position;
    use crate::input::unpack::Packer;

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
