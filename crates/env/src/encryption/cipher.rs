//! AES-256-GCM-SIV by a key, and where nonces and new keys come from. Of this AEAD a nonce that comes twice tells no
//! more than whether two texts are the same; here none does. Blocks have a cheaper one.

use aes_gcm_siv::aead::AeadInOut;
use aes_gcm_siv::{Aes256GcmSiv, KeyInit, Nonce, Tag};
use forebay_base::{Error, Result};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::gcm::Gcm;
use super::keys::Key;
use super::{KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::Env;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A key that is ready for use.
pub(super) struct Cipher(Aes256GcmSiv);

impl Cipher {
    /// By a key as it is.
    pub(super) fn new(key: &Key) -> Self {
        Self(Aes256GcmSiv::new(key.bytes().into()))
    }

    /// Encrypts a text where it is. Returns its tag, which vouches for `place`, too.
    pub(super) fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES]> {
        let tag = self.0.encrypt_inout_detached(&Nonce::from(nonce), place, text.into());
        tag.map(Into::into).map_err(|_| Error::bug("a text is too long to be encrypted"))
    }

    /// Decrypts a ciphertext where it is. `false`, and it stays one, where it is not what was written at this place.
    pub(super) fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        self.0.decrypt_inout_detached(&Nonce::from(nonce), place, text.into(), &Tag::from(tag)).is_ok()
    }
}

/// A key that is derived of another one, for a purpose and a salt.
pub(super) fn derived(key: &Key, salt: &[u8], purpose: &[u8]) -> Result<Key> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    let derived = Hkdf::<Sha256>::new(Some(salt), key.bytes()).expand(purpose, &mut *bytes);
    derived.map_err(|_| Error::bug("a derived key is too long"))?;
    Ok(Key::new(*bytes))
}

/// What the blocks of a file are encrypted by.
pub(super) enum BlockCipher {
    Siv(Box<Cipher>),
    Gcm(Gcm),
}

impl BlockCipher {
    /// See [`Cipher::encrypt`].
    pub(super) fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES]> {
        match self {
            Self::Siv(cipher) => cipher.encrypt(nonce, place, text),
            Self::Gcm(cipher) => cipher.encrypt(nonce, place, text),
        }
    }

    /// See [`Gcm::decrypt`].
    pub(super) fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        match self {
            Self::Siv(cipher) => cipher.decrypt(nonce, place, text, tag),
            Self::Gcm(cipher) => cipher.decrypt(nonce, place, text, tag),
        }
    }
}

/// Where what nobody can guess comes from: the system, or, where all follows from a seed, that.
#[derive(Clone)]
pub(super) enum Randomness {
    System,
    Drawn(Arc<dyn Fn() -> u64 + Send + Sync>),
}

impl Randomness {
    pub(super) fn of(env: &Env) -> Self {
        if env.jobs.is_stepper() { Self::Drawn(Arc::clone(&env.entropy)) } else { Self::System }
    }

    pub(super) fn bytes<const N: usize>(&self) -> Result<Zeroizing<[u8; N]>> {
        let mut bytes = Zeroizing::new([0; N]);
        match self {
            Self::System => getrandom::fill(&mut *bytes).map_err(|error| {
                Error::invalid(format!("the system gives no random numbers for keys: {error}"))
            })?,
            Self::Drawn(draw) => bytes.chunks_mut(8).for_each(|chunk| {
                let length = chunk.len();
                chunk.copy_from_slice(&draw().to_le_bytes()[..length]);
            }),
        }
        Ok(bytes)
    }
}

/// Numbers of 96 bits that count from one that was drawn: for the frames of an opening, or for blocks that are written
/// together. So no two of one beginning are the same; and those of two, of one database or of copies with the same keys,
/// are so only if their beginnings lie as near to each other as they have encrypted texts.
pub(super) struct Nonces {
    first: u128,
    used: AtomicU64,
}

impl Nonces {
    pub(super) fn new(randomness: &Randomness) -> Result<Self> {
        Ok(Self { first: u128::from_le_bytes(*randomness.bytes()?), used: AtomicU64::new(0) })
    }

    pub(super) fn next(&self) -> [u8; NONCE_BYTES] {
        let number = self.first.wrapping_add(u128::from(self.used.fetch_add(1, Ordering::Relaxed)));
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&number.to_le_bytes()[..NONCE_BYTES]);
        nonce
    }
}
