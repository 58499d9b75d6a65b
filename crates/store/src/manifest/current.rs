//! `CURRENT`: which manifest counts, and whether the database was closed in order. It is replaced whole, by
//! rename: at every open, at every close, and when a new manifest takes over.

use std::path::Path;

use forebay_base::wire::{Reader, u32_at};
use forebay_base::{Error, Result, checksum};
use forebay_env::{Access, FileSystem};

use super::AppendError;
use super::version::VERSION;
use crate::names;

const MAGIC: &[u8; 8] = b"FBCURR\r\n";

/// The longest small file.
const SMALL_BYTES_MAX: usize = 4096;

/// What is known of a database that was closed in order: damage shows even at a file's very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The manifest's length.
    pub manifest_bytes: u64,
    /// The manifest's checksum.
    pub manifest_sum: u32,
    /// The log's last record.
    pub last_sequence: u64,
}

/// The contents of `CURRENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The manifest's id.
    pub manifest: u64,
    /// What a reader of it must know: see [`Edit::version`](super::Edit::version).
    pub version: u32,
    /// `None` while open, and after a crash.
    pub closed: Option<Closed>,
}

impl Current {
    /// Reads it.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let path = dir.join(names::CURRENT);
        let bytes = read_small(fs, &path)?;
        if bytes.len() < 12 || checksum::plain(&bytes[4..]) != u32_at(&bytes, 0) || bytes[4..12] != *MAGIC {
            return Err(Error::corruption(&path, 0, "the checksum does not match"));
        }
        let mut from = Reader::new(&bytes[12..]);
        let mut parse = || {
            let version = from.u32()?;
            let manifest = from.u64()?;
            let closed = match from.u8()? {
                0 => None,
                _ => Some(Closed {
                    manifest_bytes: from.u64()?,
                    manifest_sum: from.u32()?,
                    last_sequence: from.u64()?,
                }),
            };
            Some(Self { manifest, version, closed })
        };
        match parse() {
            Some(Self { version, .. }) if version > VERSION => {
                Err(Error::NewerFormat { file: path, version, known: VERSION })
            }
            Some(current) => Ok(current),
            None => Err(Error::corruption(&path, 0, "the file is malformed")),
        }
    }

    /// Replaces it, durably. Refused, the old one stands as it did.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.manifest.to_le_bytes());
        bytes.push(self.closed.is_some() as u8);
        if let Some(closed) = &self.closed {
            bytes.extend_from_slice(&closed.manifest_bytes.to_le_bytes());
            bytes.extend_from_slice(&closed.manifest_sum.to_le_bytes());
            bytes.extend_from_slice(&closed.last_sequence.to_le_bytes());
        }
        let sum = checksum::plain(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        replace(fs, dir, names::CURRENT, &bytes)
    }
}

/// All of a small file.
pub(super) fn read_small(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    read_front(fs, path, SMALL_BYTES_MAX)
}

/// The first bytes of a file, as many as there are.
pub(super) fn read_front(fs: &dyn FileSystem, path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let file = fs.open_read(path, Access::Buffered)?;
    let mut bytes = vec![0; file.len()?.min(bytes_max as u64) as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Replaces a file by rename, so that a crash leaves the old one or the new one.
pub(super) fn replace(fs: &dyn FileSystem, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), AppendError> {
    let temporary = dir.join(format!("{name}.tmp"));
    let write = || {
        // A crash may have left a rename's both names: what is written to this one would be written to that file.
        if fs.exists(&temporary)? {
            fs.remove(&temporary)?;
        }
        let file = fs.create(&temporary, Access::Buffered)?;
        file.write_at(0, bytes)?;
        file.sync()
    };
    write().map_err(|error| {
        let _ = fs.remove(&temporary);
        AppendError::Refused(error)
    })?;
    let replaced = fs.rename(&temporary, &dir.join(name)).and_then(|()| fs.sync_dir(dir));
    replaced.map_err(AppendError::Unknown)
}
