//! Ciphers by a key, and where nonces and new keys come from. By AES-256-GCM-SIV a nonce that comes twice tells no more
//! than whether two texts are the same; here none does. Blocks have AES-256-GCM, which is cheaper.

use aes_gcm::Aes256Gcm;
use aes_gcm_siv::aead::AeadInOut;
use aes_gcm_siv::{Aes256GcmSiv, KeyInit};
use forebay_base::{Error, Result};
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
use graviola::{aead::AesGcm, util::is_cpu_supported};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::keys::Key;
use super::{KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::Env;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A key that is ready for use.
pub(super) enum Cipher {
    Siv(Box<Aes256GcmSiv>),
    /// No nonce may come twice: as assembly where the processor has what that needs, or else portable. Both make the same
    /// bytes.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    AssemblyGcm(Box<AesGcm>),
    PortableGcm(Box<Aes256Gcm>),
}

impl Cipher {
    /// AES-256-GCM-SIV.
    pub(super) fn siv(key: &Key) -> Self {
        Self::Siv(Box::new(Aes256GcmSiv::new(key.bytes().into())))
    }

    /// AES-256-GCM.
    pub(super) fn gcm(key: &Key) -> Self {
        #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
        if is_cpu_supported() {
            return Self::AssemblyGcm(Box::new(AesGcm::new(key.bytes())));
        }
        Self::portable_gcm(key)
    }

    pub(super) fn portable_gcm(key: &Key) -> Self {
        Self::PortableGcm(Box::new(Aes256Gcm::new(key.bytes().into())))
    }

    /// Encrypts a text where it is. Returns its tag, which vouches for `place`, too.
    pub(super) fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES]> {
        let tag = match self {
            Self::Siv(cipher) => cipher.encrypt_inout_detached(&nonce.into(), place, text.into()),
            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            Self::AssemblyGcm(cipher) => {
                let mut tag = [0; TAG_BYTES];
                cipher.encrypt(&nonce, place, text, &mut tag);
                return Ok(tag);
            }
            Self::PortableGcm(cipher) => cipher.encrypt_inout_detached(&nonce.into(), place, text.into()),
        };
        tag.map(Into::into).map_err(|_| Error::bug("a text is too long to be encrypted"))
    }

    /// Decrypts a ciphertext where it is. `false` where it is not what was written at this place: by AES-256-GCM-SIV it
    /// stays one, else what is there is of no use.
    pub(super) fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        match self {
            Self::Siv(cipher) => {
                cipher.decrypt_inout_detached(&nonce.into(), place, text.into(), &tag.into()).is_ok()
            }
            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            Self::AssemblyGcm(cipher) => cipher.decrypt(&nonce, place, text, &tag).is_ok(),
            Self::PortableGcm(cipher) => {
                cipher.decrypt_inout_detached(&nonce.into(), place, text.into(), &tag.into()).is_ok()
            }
        }
    }
}

/// A key that is derived of another one, for a purpose and a salt.
pub(super) fn derived(key: &Key, salt: &[u8], purpose: &[u8]) -> Result<Key> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    let derived = Hkdf::<Sha256>::new(Some(salt), key.bytes()).expand(purpose, &mut *bytes);
    derived.map_err(|_| Error::bug("a derived key is too long"))?;
    Ok(Key::new(*bytes))
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
