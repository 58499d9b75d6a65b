//! AES-256-GCM by a key, of which no nonce may come twice: as assembly where the processor has what that needs, or else
//! portable. Both make the same bytes.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce, Tag};
use forebay_base::{Error, Result};
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
use graviola::{aead::AesGcm, util::is_cpu_supported};

use super::keys::Key;
use super::{NONCE_BYTES, TAG_BYTES};

/// A key that is ready for use.
pub(super) enum Gcm {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    Assembly(Box<AesGcm>),
    Portable(Box<Aes256Gcm>),
}

impl Gcm {
    pub(super) fn new(key: &Key) -> Self {
        #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
        if is_cpu_supported() {
            return Self::Assembly(Box::new(AesGcm::new(key.bytes())));
        }
        Self::portable(key)
    }

    pub(super) fn portable(key: &Key) -> Self {
        Self::Portable(Box::new(Aes256Gcm::new(key.bytes().into())))
    }

    /// Encrypts a text where it is. Returns its tag, which vouches for `place`, too.
    pub(super) fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES]> {
        match self {
            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            Self::Assembly(cipher) => {
                let mut tag = [0; TAG_BYTES];
                cipher.encrypt(&nonce, place, text, &mut tag);
                Ok(tag)
            }
            Self::Portable(cipher) => {
                let tag = cipher.encrypt_inout_detached(&Nonce::from(nonce), place, text.into());
                tag.map(Into::into).map_err(|_| Error::bug("a text is too long to be encrypted"))
            }
        }
    }

    /// Decrypts a ciphertext where it is. `false`, and what is there is of no use, where it is not what was written at
    /// this place.
    pub(super) fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        match self {
            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            Self::Assembly(cipher) => cipher.decrypt(&nonce, place, text, &tag).is_ok(),
            Self::Portable(cipher) => {
                let (nonce, tag) = (Nonce::from(nonce), Tag::from(tag));
                cipher.decrypt_inout_detached(&nonce, place, text.into(), &tag).is_ok()
            }
        }
    }
}
