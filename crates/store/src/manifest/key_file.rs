//! `FOREBAY.keys`: the data keys of an encrypted database, each encrypted by a key of the user's. It is replaced whole, by
//! rename, after a spare: without it all is lost. The superblock is in it, too, and each key's tag vouches for that: so who
//! has no key of the user's cannot change it.

use std::path::Path;

use forebay_base::wire::{Reader, put_bytes, put_varint, u32_at};
use forebay_base::{Error, Result, checksum};
use forebay_env::FileSystem;
use forebay_env::encryption::{WrappedKey, WrappedKeys};

use super::current::{read_front, replace};
use super::{AppendError, Superblock};
use crate::names;

const MAGIC: &[u8; 8] = b"FBKEYS\r\n";
const VERSION: u32 = 2;
/// The version of those of older builds, which do not have the superblock.
const VERSION_WITHOUT_SUPERBLOCK: u32 = 1;
/// Room for thousands of keys.
const BYTES_MAX: usize = 1 << 20;

/// The contents of `FOREBAY.keys`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFile {
    /// The keys, and the bytes of the superblock for which they vouch.
    pub wrapped: WrappedKeys,
}

impl KeyFile {
    /// Reads it; where it is damaged, or the disk cannot read it, its spare.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let read = Self::read_from(fs, dir, names::KEYS);
        match &read {
            Ok(_) | Err(Error::NewerFormat { .. }) => read,
            Err(_) => Self::read_from(fs, dir, names::KEYS_SPARE).or(read),
        }
    }

    /// Holds it against the superblock that was read. Those of older builds know nothing of that.
    pub fn vouch(&self, dir: &Path, superblock: &Superblock) -> Result<()> {
        let vouched = &self.wrapped.vouched;
        if vouched.is_empty() || *vouched == superblock.encode() {
            return Ok(());
        }
        let reason = "it is not the superblock for which FOREBAY.keys vouches: it was changed, or one of the two is of another \
                      database; put back both from one copy: FOREBAY.spare may be what FOREBAY was, and any checkpoint or \
                      backup of the database has both";
        Err(Error::corruption(&dir.join(names::SUPERBLOCK), 0, reason))
    }

    /// Writes both anew where one is damaged, or they differ: by the one that is read.
    pub fn keep_spare(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        let [own, spare] = [names::KEYS, names::KEYS_SPARE].map(|name| Self::read_from(fs, dir, name).ok());
        if own.is_some() && own == spare {
            return Ok(());
        }
        Self::read(fs, dir)?.write(fs, dir).map_err(AppendError::into_cause)
    }

    /// Reads both, to see that they are sound.
    pub fn check(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        [names::KEYS, names::KEYS_SPARE]
            .into_iter()
            .try_for_each(|name| Self::read_from(fs, dir, name).map(drop))
    }

    fn read_from(fs: &dyn FileSystem, dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let bytes = read_front(fs, &path, BYTES_MAX).map_err(Error::or_missing)?;
        if bytes.len() < 16 || bytes[4..12] != *MAGIC || checksum::plain(&bytes[4..]) != u32_at(&bytes, 0) {
            let reason = "the checksum of the data keys does not match; any checkpoint or backup of the database has a copy \
                          of this file";
            return Err(Error::corruption(&path, 0, reason));
        }
        let version = u32_at(&bytes, 12);
        if version > VERSION {
            return Err(Error::NewerFormat { file: path, version, known: VERSION });
        }
        let wrapped = Self::decode(version, &bytes[16..]).filter(|wrapped| !wrapped.keys.is_empty());
        wrapped
            .map(|wrapped| Self { wrapped })
            .ok_or_else(|| Error::corruption(&path, 16, "the file is malformed"))
    }

    fn decode(version: u32, bytes: &[u8]) -> Option<WrappedKeys> {
        let (mut from, mut keys) = (Reader::new(bytes), Vec::new());
        let vouched = match version {
            VERSION_WITHOUT_SUPERBLOCK => Vec::new(),
            _ => Some(from.bytes()?).filter(|bytes| !bytes.is_empty())?.to_vec(),
        };
        for _ in 0..from.varint()? {
            let (number, name) = (from.u32()?, std::str::from_utf8(from.bytes()?).ok()?.to_string());
            let key = WrappedKey { number, name, nonce: from.array()?, bytes: from.array()? };
            if keys.last().is_some_and(|last: &WrappedKey| last.number >= number) {
                return None;
            }
            keys.push(key);
        }
        (from.remaining() == 0).then_some(WrappedKeys { keys, vouched })
    }

    /// Replaces it, durably. Refused, the old one stands as it did.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(MAGIC);
        let WrappedKeys { keys, vouched } = &self.wrapped;
        let version = if vouched.is_empty() { VERSION_WITHOUT_SUPERBLOCK } else { VERSION };
        bytes.extend_from_slice(&version.to_le_bytes());
        if !vouched.is_empty() {
            put_bytes(&mut bytes, vouched);
        }
        put_varint(&mut bytes, keys.len() as u64);
        for key in keys {
            bytes.extend_from_slice(&key.number.to_le_bytes());
            put_bytes(&mut bytes, key.name.as_bytes());
            bytes.extend_from_slice(&key.nonce);
            bytes.extend_from_slice(&key.bytes);
        }
        debug_assert_eq!(
            Self::decode(version, &bytes[16..]).as_ref(),
            Some(&self.wrapped),
            "what is written is read"
        );
        if bytes.len() > BYTES_MAX {
            let reason = "there are too many data keys; copy what the database has to a new one";
            return Err(AppendError::Refused(Error::invalid(reason)));
        }
        let sum = checksum::plain(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        replace(fs, dir, names::KEYS_SPARE, &bytes)?;
        replace(fs, dir, names::KEYS, &bytes)
    }
}
