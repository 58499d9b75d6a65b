//! A manifest that somebody else writes, read as far as it goes, and further later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::File;

use super::encrypted::{edit_of, mark, why_malformed};
use super::records::{record, record_behind};
use super::{Edit, Manifest};
use crate::leases::Place;

/// See the module.
pub struct Followed {
    id: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    /// Where what was read ends.
    end: u64,
    /// Where the last edit of it begins, and that edit. Where it is another by now, what was read never counted: its
    /// writer could not make it durable.
    last: (u64, Vec<u8>),
}

impl Manifest {
    /// Where its last edit begins, and that edit: by which it is known again.
    fn last_record(&self) -> Result<(u64, Vec<u8>)> {
        let mut bytes = vec![0; self.end as usize];
        let got = self.file.read_at(0, &mut bytes)?;
        bytes.truncate(got);
        let (mut last, mut at) = (0, 0);
        while let Some(record) = record(&bytes, self.id, at) {
            (last, at) = (at, at + record.len());
        }
        Ok((last as u64, bytes.get(last..at).unwrap_or_default().to_vec()))
    }
}

impl Followed {
    /// Goes on where opening has ended.
    pub fn of(manifest: Manifest) -> Result<Self> {
        let last = manifest.last_record()?;
        let Manifest { id, path, file, end, .. } = manifest;
        Ok(Self { id, path, file, end, last })
    }

    /// How far it was read.
    pub fn place(&self) -> Place {
        Place { manifest: self.id, bytes: self.end }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The edits that have come since; `None` where it is not what it was. What is torn at its end is its end for now.
    pub fn read_on(&mut self) -> Result<Option<Vec<Edit>>> {
        let base = self.last.0;
        let mut bytes = vec![0; self.file.len()?.saturating_sub(base) as usize];
        let got = self.file.read_at(base, &mut bytes)?;
        bytes.truncate(got);
        if !bytes.starts_with(&self.last.1) {
            return Ok(None);
        }
        let (mut edits, mut places, mut at) = (Vec::new(), Vec::new(), self.last.1.len());
        while let Some(record) = record_behind(&bytes, self.id, base, at) {
            let (keys, place) = (self.file.data_keys(), base + at as u64);
            let malformed = || Error::corruption(&self.path, place, why_malformed(keys));
            edits.push(edit_of(record, self.id, place, keys)?.ok_or_else(malformed)?);
            places.push(at..at + record.len());
            at += record.len();
        }
        // What seals the last edit gives way to the next one.
        if edits.last() == Some(&mark()) {
            edits.pop();
            places.pop();
        }
        if let Some(last) = places.pop() {
            self.end = base + last.end as u64;
            self.last = (base + last.start as u64, bytes[last].to_vec());
            debug_assert_eq!(
                self.last.0 + self.last.1.len() as u64,
                self.end,
                "what was read ends where its last edit does"
            );
        }
        Ok(Some(edits))
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::FileSystem;
    use forebay_env::fs::MemoryFs;

    use super::super::{AppendError, Change, Current, LogMark, Snapshot};
    use super::*;

    const DIR: &str = "/db";

    fn made(fs: &dyn FileSystem) -> Manifest {
        fs.create_dir_all(Path::new(DIR)).unwrap();
        let first = Edit::Snapshot(Snapshot { next_id: 2, next_table: 1, ..Snapshot::default() });
        Manifest::create(fs, Path::new(DIR), 1, &first, Arc::default())
            .map_err(AppendError::into_cause)
            .unwrap()
    }

    fn followed(fs: &dyn FileSystem) -> Followed {
        let current = Current { manifest: 1, version: 1, closed: None };
        let (manifest, _) = Manifest::open(fs, Path::new(DIR), &current, false, Arc::default()).unwrap();
        Followed::of(manifest).unwrap()
    }

    fn flushed(segment: u64) -> Edit {
        let log = LogMark { flushed: (segment, 10 * segment), ..LogMark::default() };
        Edit::Change(Change { log: Some(log), ..Change::default() })
    }

    #[test]
    fn edits_are_read_as_they_come_and_each_once() {
        let fs = MemoryFs::new();
        let mut manifest = made(&*fs);
        let mut reader = followed(&*fs);
        assert_eq!(reader.place(), manifest.place());
        assert_eq!(reader.read_on().unwrap(), Some(Vec::new()));
        for round in 1..20 {
            let edits: Vec<Edit> = (0..round % 4).map(|number| flushed(10 * round + number)).collect();
            edits.iter().for_each(|edit| manifest.append(edit).unwrap());
            assert_eq!(reader.read_on().unwrap(), Some(edits), "round {round}");
            assert_eq!(reader.place(), manifest.place(), "round {round}");
        }
        assert_eq!(followed(&*fs).place(), manifest.place());
        // Closing makes an edit of what sealed the last one; the next opening goes on behind it.
        let before = manifest.place();
        manifest.finish().unwrap();
        assert!(before < manifest.place());
        assert_eq!(reader.read_on().unwrap(), Some(Vec::new()));
        manifest.append(&flushed(900)).unwrap();
        assert_eq!(reader.read_on().unwrap(), Some(vec![Edit::Change(Change::default()), flushed(900)]));
        assert_eq!(reader.place(), manifest.place());
    }

    #[test]
    fn what_is_torn_is_the_end_and_what_gave_way_to_another_edit_is_noticed() {
        let fs = MemoryFs::new();
        let mut manifest = made(&*fs);
        let (mut early, mut late) = (followed(&*fs), followed(&*fs));
        manifest.append(&flushed(3)).unwrap();
        let (path, place) = (manifest.path().to_path_buf(), manifest.place());
        let whole = fs.snapshot_files()[&path].clone();
        for cut in 0..whole.len() - manifest.place().bytes as usize {
            fs.replace_file(&path, whole[..whole.len() - cut].to_vec());
            assert!(followed(&*fs).place() <= place);
        }
        fs.replace_file(&path, whole[..place.bytes as usize - 1].to_vec());
        assert_eq!(early.read_on().unwrap(), Some(Vec::new()), "half of an edit");
        fs.replace_file(&path, whole);
        assert_eq!(late.read_on().unwrap(), Some(vec![flushed(3)]));
        // The edit was not made durable, and another one took its place.
        let other = made(&*MemoryFs::new());
        drop(other);
        let fresh = MemoryFs::new();
        let mut other = made(&*fresh);
        other.append(&flushed(4)).unwrap();
        fs.replace_file(&path, fresh.snapshot_files()[&path].clone());
        assert_eq!(late.read_on().unwrap(), None);
        assert_eq!(early.read_on().unwrap(), Some(vec![flushed(4)]));
    }
}
