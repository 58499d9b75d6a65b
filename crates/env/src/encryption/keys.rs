//! Keys of the user's, and who has them.

use std::fmt;

use forebay_base::{Error, Result};
use zeroize::Zeroizing;

use super::KEY_BYTES;
use super::cipher::Randomness;
use crate::Env;

/// A key. Its memory is overwritten when it is dropped, and it is never shown.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl Key {
    /// Of these bytes, which nobody can guess: drawn by a generator for keys, or derived from a passphrase by a function
    /// that is made for that.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// One that was just drawn, for what is gone with the process.
    pub fn draw(env: &Env) -> Result<Self> {
        Ok(Self::new(*Randomness::of(env).bytes()?))
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Who has the user's keys: a service, a file, a variable. It is asked when a database is made or opened, and when keys
/// are changed; never by reads or writes.
pub trait KeyProvider: Send + Sync {
    /// The name of the key by which data keys are encrypted from now on. It stands in the database's files as it is, and
    /// has at most 255 bytes.
    fn current(&self) -> Result<String>;
    /// The key of a name that was current at some time. An error says what to do to have it.
    fn key(&self, name: &str) -> Result<Key>;
}

/// A provider of one key.
#[derive(Clone, Debug)]
pub struct OneKey {
    name: String,
    key: Key,
}

impl OneKey {
    /// Under this name.
    pub fn new(name: impl Into<String>, key: Key) -> Self {
        Self { name: name.into(), key }
    }
}

impl KeyProvider for OneKey {
    fn current(&self) -> Result<String> {
        Ok(self.name.clone())
    }

    fn key(&self, name: &str) -> Result<Key> {
        match name == self.name {
            true => Ok(self.key.clone()),
            false => Err(Error::invalid(format!(
                "its data keys are encrypted by key `{name}`, and the one that was given is `{}`; give that one",
                self.name
            ))),
        }
    }
}
