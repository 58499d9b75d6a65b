//! What a backup has, as a file of text: see `docs/format/backups.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use forebay_base::{Error, Result, checksum};
use forebay_store::names;

/// The first line, with the format's version.
const HEAD: &str = "forebay backup 1";
/// What every database has.
const ROOTS: [&str; 3] = [names::CURRENT, names::SUPERBLOCK, names::SUPERBLOCK_SPARE];
/// The kind of a catalogue's file.
pub(super) const KIND: &str = "backup";

/// A piece of a file, in a file of its own that never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sum: u32,
}

/// A file of the database, whose pieces follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) pieces: Vec<Piece>,
}

impl Entry {
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.bytes))
    }
}

/// A backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalog {
    pub(super) number: u64,
    pub(super) database: u64,
    pub(super) taken_at_milliseconds: u64,
    pub(super) last_sequence: u64,
    pub(super) entries: Vec<Entry>,
}

/// The name of a backup's catalogue.
pub(super) fn name_of(number: u64) -> String {
    format!("{number:08}.{KIND}")
}

/// The number of the backup whose catalogue has this name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(KIND)?.strip_suffix('.')?.parse().ok()?;
    (name_of(number) == name).then_some(number)
}

impl Catalog {
    pub(super) fn encode(&self) -> String {
        let Self { number, database, taken_at_milliseconds, last_sequence, entries } = self;
        let mut text = format!("{HEAD}\nnumber {number}\ndatabase {database:016x}\n");
        let _ = write!(text, "taken {taken_at_milliseconds}\nsequence {last_sequence}\n");
        for Entry { name, pieces } in entries {
            let _ = writeln!(text, "file {name}");
            for Piece { name, bytes, sum } in pieces {
                let _ = writeln!(text, "piece {bytes} {sum:08x} {name}");
            }
        }
        let sum = checksum::plain(text.as_bytes());
        let _ = writeln!(text, "end {sum:08x}");
        text
    }

    /// The backup of this catalogue; errors name the line.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let damaged = |line: &str, reason: &str| {
            let at = line.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
            Error::corruption(path, at as u64, reason)
        };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::corruption(path, error.valid_up_to() as u64, "a backup's catalogue is text")
        })?;
        let Some((body, end)) = text.rfind("end ").map(|at| text.split_at(at)) else {
            return Err(damaged(text, "the catalogue has no end"));
        };
        if end != format!("end {:08x}\n", checksum::plain(body.as_bytes())) {
            return Err(damaged(end, "the catalogue's checksum does not match"));
        }
        let mut lines = body.lines();
        match lines.next() {
            Some(HEAD) => {}
            Some(head) if head.starts_with("forebay backup ") => {
                return Err(Error::invalid(format!(
                    "{} is of a newer format (`{head}`); use a newer build",
                    path.display()
                )));
            }
            head => return Err(damaged(head.unwrap_or(text), "this is no backup's catalogue")),
        }
        let mut catalog = Self::default();
        for line in lines {
            catalog.take(line).ok_or_else(|| damaged(line, "a line of the catalogue is malformed"))?;
        }
        let names: BTreeSet<&str> = catalog.entries.iter().map(|entry| &*entry.name).collect();
        if names.len() < catalog.entries.len() || !ROOTS.iter().all(|root| names.contains(root)) {
            return Err(damaged(
                text,
                "the catalogue has a file twice, or lacks one that every database has",
            ));
        }
        if path.file_name().is_some_and(|name| name != &*name_of(catalog.number)) {
            return Err(damaged(text, "the catalogue is of another number than its name says"));
        }
        Ok(catalog)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "number" => self.number = rest.parse().ok()?,
            "database" => self.database = u64::from_str_radix(rest, 16).ok()?,
            "taken" => self.taken_at_milliseconds = rest.parse().ok()?,
            "sequence" => self.last_sequence = rest.parse().ok()?,
            "file" => self.entries.push(Entry { name: plain_name(rest)?, pieces: Vec::new() }),
            "piece" => {
                let (bytes, rest) = rest.split_once(' ')?;
                let (sum, name) = rest.split_once(' ')?;
                let piece = Piece {
                    name: plain_name(name)?,
                    bytes: bytes.parse().ok()?,
                    sum: u32::from_str_radix(sum, 16).ok()?,
                };
                self.entries.last_mut()?.pieces.push(piece);
            }
            _ => return None,
        }
        Some(())
    }
}

/// A name that leads nowhere else.
fn plain_name(name: &str) -> Option<String> {
    let is_plain = !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    is_plain.then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let piece = |name: &str, bytes| Piece { name: name.into(), bytes, sum: 0xdead_0001 };
        Catalog {
            number: 7,
            database: 0xfeed,
            taken_at_milliseconds: 1_700_000_000_000,
            last_sequence: 99,
            entries: vec![
                Entry { name: "CURRENT".into(), pieces: vec![piece("CURRENT-00000007", 60)] },
                Entry { name: "FOREBAY".into(), pieces: vec![piece("FOREBAY-00000007", 60)] },
                Entry { name: "FOREBAY.spare".into(), pieces: vec![piece("FOREBAY.spare-00000007", 60)] },
                Entry { name: "00000003.tree".into(), pieces: vec![piece("a", 1), piece("b", 2)] },
            ],
        }
    }

    #[test]
    fn it_comes_back_and_no_damage_passes() {
        let (bytes, path) = (catalog().encode().into_bytes(), Path::new("/b/00000007.backup"));
        assert_eq!(Catalog::decode(&bytes, path).unwrap(), catalog());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let error = Catalog::decode(&damaged, path).expect_err("damage");
            assert!(error.to_string().contains("00000007.backup"), "{error}");
            assert!(Catalog::decode(&bytes[..at], path).is_err());
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["", "..", ".x", "a/b", "a\\b", "a b"] {
            assert_eq!(plain_name(name), None, "{name}");
        }
        assert_eq!(number_of(&name_of(12)), Some(12));
        assert_eq!(number_of("x.backup"), None);
        assert_eq!(number_of("000000000012.backup"), None);
    }
}
