//! Encryption at rest: what of a database is in files only as ciphertext, by AES-256-GCM in blocks of records, and by
//! AES-256-GCM-SIV else. See `docs/internals/encryption.md`.
//!
//! - A [`KeyProvider`] has keys of the user's. By them nothing is encrypted but data keys.
//! - [`DataKeys`] are a database's own. By them frames of log and manifest are encrypted, and so are files of records,
//!   each by a key that is derived for it.
//! - [`EncryptedFs`] stands before a file system. Files of records are blocks of ciphertext there; of a log or a
//!   manifest it says by which keys frames are encrypted.
//!
//! Without the feature `encryption` there are no data keys, and so nothing of this is ever run.
//!
//! **Invariant:** no two texts are encrypted by one key and one nonce, whatever was copied, cut or written anew. Only a
//! machine that is saved with its memory, and goes on twice, breaks it, for what was under way and for frames.

#[cfg(not(feature = "encryption"))]
mod absent;
#[cfg(feature = "encryption")]
mod blocks;
#[cfg(feature = "encryption")]
mod cipher;
#[cfg(feature = "encryption")]
mod data_keys;
#[cfg(feature = "encryption")]
mod file;
#[cfg(feature = "encryption")]
mod fs;
#[cfg(feature = "encryption")]
mod key_in_file;
#[cfg(feature = "encryption")]
mod keys;
#[cfg(feature = "encryption")]
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

#[cfg(not(feature = "encryption"))]
pub use absent::DataKeys;
#[cfg(feature = "encryption")]
pub use data_keys::{DataKeys, Reload};
#[cfg(feature = "encryption")]
pub use fs::{Damage, EncryptedFs};
#[cfg(feature = "encryption")]
pub use key_in_file::KeyInFile;
#[cfg(feature = "encryption")]
pub use keys::{Key, KeyProvider, OneKey};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes of what tells whether a ciphertext is what was written.
pub const TAG_BYTES: usize = 16;
/// Bytes behind the ciphertext of a frame: the number of its data key, nonce and tag.
pub const TRAILER_BYTES: usize = 4 + NONCE_BYTES + TAG_BYTES;

/// Bytes of a data key that is encrypted.
pub const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// The longest name of a key of the user's.
pub const NAME_BYTES_MAX: usize = 255;

/// A data key as it stands in a file: encrypted by a key of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// Its number. The newest has the highest.
    pub number: u32,
    /// The name of the user's key.
    pub name: String,
    /// By which nonce it was encrypted.
    pub nonce: [u8; NONCE_BYTES],
    /// The data key, and its tag.
    pub bytes: [u8; WRAPPED_BYTES],
}

/// Data keys as they stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKeys {
    /// The oldest first.
    pub keys: Vec<WrappedKey>,
    /// What the tag of each vouches for besides its number. In files of older builds nothing.
    pub vouched: Vec<u8>,
}

const _: () = assert!(TRAILER_BYTES.is_multiple_of(8), "frames begin at multiples of eight");
