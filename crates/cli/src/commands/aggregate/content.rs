//! A file that is known by its content: one that was rotated and packed, or copied and cut, has another path and
//! another number than what was counted of it.
//!
//! What was read of a file that is not packed is also kept under a digest of its first [`PRINT_BYTES`]. A new file,
//! unpacked, is the same where it begins as that did and where that ended, and if
//! - its name is that one's with a number or a packer behind, as log files have that are rotated, or
//! - that one is not there any more as it was, and [`ANONYMOUS_BYTES_MIN`] of it were read: few bytes are alike in
//!   many files.
//!
//! Else it is a copy, and counted.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rapidhash::v3::rapidhash_v3;

use super::reached::{PRINT_BYTES, Packing, Reached, Separator};
use super::tracked::Tracked;
use crate::failure::Failure;
use crate::input::format::unrotated;
use crate::input::unpack::Packer;

/// As Filebeat has it.
const ANONYMOUS_BYTES_MIN: u64 = 1 << 10;

/// What content is kept under that begins so.
pub(super) fn key(head: &[u8]) -> Vec<u8> {
    format!("content:{:016x}", rapidhash_v3(head)).into_bytes()
}

impl Tracked {
    /// How far a file was read that is known neither by its path nor by its number; and the bytes just before and behind
    /// that.
    pub(super) fn find_content(
        &self,
        reached: impl Fn(&[u8]) -> Result<Option<Reached>, Failure>,
        separator: Separator,
    ) -> Result<Option<(Reached, Vec<u8>)>, Failure> {
        let Some(packer) = self.packer else { return Ok(None) };
        let mut head = Vec::new();
        let unpacked = packer.unpack(self.open_at(0)?.from, &self.name);
        if unpacked.and_then(|from| from.take(PRINT_BYTES).read_to_end(&mut head)).is_err() {
            // Who reads it tells that.
            return Ok(None);
        }
        // Little of it may have been read: up to the end of any of its records.
        let is_end = |&bytes: &usize| bytes == head.len() || separator.ends(head[bytes - 1]);
        for bytes in (1..=head.len()).rev().filter(is_end) {
            let Some(found) = reached(&key(&head[..bytes]))? else { continue };
            if self.succeeds(&found)
                && let Some(around) = self.around(&found, packer)?
            {
                return Ok(Some((found, around)));
            }
        }
        Ok(None)
    }

    /// Whether the file may be another one of which this much was read, if it begins like that.
    fn succeeds(&self, other: &Reached) -> bool {
        let is_there = || {
            std::fs::metadata(&other.path)
                .is_ok_and(|about| (about.dev(), about.ino()) == other.file && about.len() >= other.bytes)
        };
        let path = Path::new(&other.path);
        is_rotated(path, &self.path)
            || other.bytes >= ANONYMOUS_BYTES_MIN && *path != self.path && !is_there()
    }

    /// Whether a file beside this one is a rotated one of which this much was read.
    #[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
    pub(super) fn has_rotated(&self, reached: &Reached) -> bool {
        let Some(Ok(entries)) = self.path.parent().map(std::fs::read_dir) else { return false };
        reached.packing == Packing::Plain
            && reached.bytes > 0
            && entries.flatten().map(|entry| entry.path()).filter(|path| is_rotated(&self.path, path)).any(
                |path| {
                    let other = Self::open(&path, |head| Packer::of(head, &self.name).map(Some));
                    let around = other.and_then(|other| match other.packer {
                        Some(packer) => other.around(reached, packer),
                        None => Ok(None),
                    });
                    matches!(around, Ok(Some(_)))
                },
            )
    }

    /// The last byte of what was read of another file and the next, if this one begins like that.
    fn around(&self, other: &Reached, packer: Packer) -> Result<Option<Vec<u8>>, Failure> {
        let bytes = other.bytes;
        if other.packing == Packing::Packed || packer == Packer::Nothing && self.bytes < bytes {
            return Ok(None);
        }
        let width = PRINT_BYTES.min(bytes);
        let tail_at = bytes - width;
        let mut from =
            packer.unpack(self.open_at(0)?.from, &self.name).map_err(|error| self.failed(&error))?;
        let mut read = || {
            let mut head = Vec::new();
            (&mut from).take(width).read_to_end(&mut head)?;
            let mut tail = head.get(tail_at as usize..).unwrap_or_default().to_vec();
            io::copy(&mut (&mut from).take(tail_at.saturating_sub(width)), &mut io::sink())?;
            (&mut from).take(bytes - tail_at.max(width)).read_to_end(&mut tail)?;
            let mut around: Vec<u8> = tail.last().copied().into_iter().collect();
            head.append(&mut tail);
            (&mut from).take(1).read_to_end(&mut around)?;
            Ok::<_, io::Error>((rapidhash_v3(&head) == other.print).then_some(around))
        };
        read().map_err(|error| self.failed(&error))
    }
}

/// Whether a name in the same directory is that of a file with a number or a packer behind.
fn is_rotated(file: &Path, rotated: &Path) -> bool {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_string);
    let (Some(before), Some(after)) = (name(file), name(rotated)) else { return false };
    let mut rest = &after[..];
    while let Some(shorter) = unrotated(rest) {
        rest = shorter;
        if rest == before {
            return file.parent() == rotated.parent();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_names_have_numbers_and_packers_behind() {
        let is = |file: &str, rotated: &str| is_rotated(Path::new(file), Path::new(rotated));
        for rotated in
            ["x.csv.1", "x.csv.1.gz", "x.csv.gz", "x.csv.zst", "x.csv-20260131", "x.csv-2026-01-31.gz"]
        {
            assert!(is("/d/x.csv", &format!("/d/{rotated}")), "{rotated}");
            assert!(!is("/e/x.csv", &format!("/d/{rotated}")), "{rotated}");
        }
        assert!(is("/d/x.csv.1", "/d/x.csv.1.gz"));
        for other in ["x.csv", "x.csv~", "x.csv.bak", "xx.csv.1", "x.csv.1.csv"] {
            assert!(!is("/d/x.csv", &format!("/d/{other}")), "{other}");
        }
        assert!(!is("/d/part-00000", "/d/part-00001"));
    }
}
