//! The superblock: what makes a directory a database. Written once, last of all, when it is created.

use std::path::Path;

use forebay_base::wire::{Reader, u32_at};
use forebay_base::{Error, Result, checksum, hash};
use forebay_env::FileSystem;

use super::AppendError;
use super::current::{read_small, replace};
use crate::log::frame::Secret;
use crate::names;

const MAGIC: &[u8; 8] = b"FOREBAY\n";
/// The newest format version of a database: it is encrypted.
const VERSION: u32 = 3;
/// The version of those that are not, and whose log has a secret.
const VERSION_WITHOUT_ENCRYPTION: u32 = 2;
/// The version of those that have none.
const VERSION_WITHOUT_SECRET: u32 = 1;

/// How it is encrypted, as a number: see `docs/internals/encryption.md`.
const ENCRYPTION: u32 = 1;

const _: () =
    assert!(VERSION_WITHOUT_SECRET < VERSION_WITHOUT_ENCRYPTION && VERSION_WITHOUT_ENCRYPTION < VERSION);

/// The contents of `FOREBAY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identifies the database and its copies.
    pub database_id: u64,
    /// Seeds the order of hash-ordered tables.
    pub hash_seed: u64,
    /// Seeds the checksums of the log's frames. 0 in databases of format version 1.
    pub log_secret: Secret,
    /// Whether its files are encrypted. Then there is a [key file](super::KeyFile).
    pub is_encrypted: bool,
}

impl Superblock {
    /// Reads it.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        Self::read_from(fs, dir, names::SUPERBLOCK)
    }

    /// Reads its spare.
    pub fn read_spare(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        Self::read_from(fs, dir, names::SUPERBLOCK_SPARE)
    }

    /// Sees to it that there is a sound spare, of the data keys, too: databases of older builds have none.
    pub fn keep_spare(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        match Self::read_spare(fs, dir) {
            Ok(spare) if spare == *self => Ok(()),
            _ => self.write_to(fs, dir, names::SUPERBLOCK_SPARE),
        }?;
        if self.is_encrypted { super::KeyFile::keep_spare(fs, dir) } else { Ok(()) }
    }

    fn read_from(fs: &dyn FileSystem, dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let bytes = read_small(fs, &path)?;
        if bytes.len() < 12 || bytes[4..12] != *MAGIC || checksum::plain(&bytes[4..]) != u32_at(&bytes, 0) {
            return Err(Error::corruption(&path, 0, "the superblock's checksum does not match"));
        }
        let mut from = Reader::new(&bytes[12..]);
        let mut parse = || {
            let version = from.u32()?;
            let hash_version = from.u32()?;
            let (database_id, hash_seed) = (from.u64()?, from.u64()?);
            let log_secret = match version {
                VERSION_WITHOUT_SECRET => Secret::default(),
                _ => Secret(from.u64()?),
            };
            let encryption = if version == VERSION { from.u32()? } else { 0 };
            let is_encrypted = encryption > 0;
            let superblock = Self { database_id, hash_seed, log_secret, is_encrypted };
            Some((version, hash_version, encryption, superblock))
        };
        match parse() {
            Some((version, ..)) if version > VERSION => {
                Err(Error::NewerFormat { file: path, version, known: VERSION })
            }
            Some((_, hash_version, ..)) if hash_version > hash::VERSION as u32 => {
                Err(Error::NewerFormat { file: path, version: hash_version, known: hash::VERSION as u32 })
            }
            Some((_, _, encryption, _)) if encryption > ENCRYPTION => {
                Err(Error::NewerFormat { file: path, version: encryption, known: ENCRYPTION })
            }
            Some((_, hash_version, _, superblock)) if hash_version == hash::VERSION as u32 => Ok(superblock),
            _ => Err(Error::corruption(&path, 0, "the superblock is malformed")),
        }
    }

    /// Writes it, durably.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        self.write_to(fs, dir, names::SUPERBLOCK_SPARE)?;
        self.write_to(fs, dir, names::SUPERBLOCK)
    }

    fn write_to(&self, fs: &dyn FileSystem, dir: &Path, name: &str) -> Result<()> {
        replace(fs, dir, name, &self.encode()).map_err(AppendError::into_cause)
    }

    /// What it is in a file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(MAGIC);
        let has_secret = self.log_secret != Secret::default();
        debug_assert!(
            has_secret || !self.is_encrypted,
            "what is encrypted was made by a build that draws a secret"
        );
        let version = match (self.is_encrypted, has_secret) {
            (true, _) => VERSION,
            (false, true) => VERSION_WITHOUT_ENCRYPTION,
            (false, false) => VERSION_WITHOUT_SECRET,
        };
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&(hash::VERSION as u32).to_le_bytes());
        bytes.extend_from_slice(&self.database_id.to_le_bytes());
        bytes.extend_from_slice(&self.hash_seed.to_le_bytes());
        if has_secret {
            bytes.extend_from_slice(&self.log_secret.0.to_le_bytes());
        }
        if self.is_encrypted {
            bytes.extend_from_slice(&ENCRYPTION.to_le_bytes());
        }
        let sum = checksum::plain(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}
