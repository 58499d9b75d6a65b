//! `FOREBAY.keys`: the data keys of an encrypted database, each encrypted by a key of the user's. It is replaced whole, by
//! rename, after a spare: without it all is lost.

use std::path::Path;

use forebay_base::wire::{Reader, put_bytes, put_varint, u32_at};
use forebay_base::{Error, Result, checksum};
use forebay_env::FileSystem;
use forebay_env::encryption::WrappedKey;

use super::AppendError;
use super::current::{read_front, replace};
use crate::names;

const MAGIC: &[u8; 8] = b"FBKEYS\r\n";
const VERSION: u32 = 1;
/// Room for thousands of keys.
const BYTES_MAX: usize = 1 << 20;

/// The contents of `FOREBAY.keys`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFile {
    /// The oldest first.
    pub keys: Vec<WrappedKey>,
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
        let keys = Self::decode(&bytes[16..]).filter(|keys| !keys.is_empty());
        keys.map(|keys| Self { keys }).ok_or_else(|| Error::corruption(&path, 16, "the file is malformed"))
    }

    fn decode(bytes: &[u8]) -> Option<Vec<WrappedKey>> {
        let (mut from, mut keys) = (Reader::new(bytes), Vec::new());
        for _ in 0..from.varint()? {
            let (number, name) = (from.u32()?, std::str::from_utf8(from.bytes()?).ok()?.to_string());
            let key = WrappedKey { number, name, nonce: from.array()?, bytes: from.array()? };
            if keys.last().is_some_and(|last: &WrappedKey| last.number >= number) {
                return None;
            }
            keys.push(key);
        }
        (from.remaining() == 0).then_some(keys)
    }

    /// Replaces it, durably. Refused, the old one stands as it did.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        put_varint(&mut bytes, self.keys.len() as u64);
        for key in &self.keys {
            bytes.extend_from_slice(&key.number.to_le_bytes());
            put_bytes(&mut bytes, key.name.as_bytes());
            bytes.extend_from_slice(&key.nonce);
            bytes.extend_from_slice(&key.bytes);
        }
        debug_assert_eq!(Self::decode(&bytes[16..]).as_ref(), Some(&self.keys), "what is written is read");
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
