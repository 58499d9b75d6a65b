//! Where blocks of ciphertext stand in a file of records, and what stands beside each.
//!
//! A header takes the file's first 4096 bytes, and its spare the next. Then come blocks, each of up to 4096 bytes of ciphertext behind 32 bytes:
//! `u32 number of the block, its low half | 12 bytes of nonce | 16 bytes of tag`. All but the last are full.

use forebay_base::checksum::plain;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::wire::u32_at;

use super::cipher::Cipher;
use super::{NONCE_BYTES, TAG_BYTES};

/// Bytes of one copy of a header.
pub(super) const COPY_BYTES: usize = 4096;
/// Bytes of a header and its spare.
pub(super) const HEADER_BYTES: usize = 2 * COPY_BYTES;
/// Bytes before the ciphertext of a block.
pub(super) const EXTRA_BYTES: usize = 4 + NONCE_BYTES + TAG_BYTES;
/// What a full block takes.
pub(super) const STORED_BYTES: usize = EXTRA_BYTES + BLOCK_BYTES;

const MAGIC: &[u8; 8] = b"FBBLOCK\n";
const SALT_BYTES: usize = 32;

const _: () = assert!(EXTRA_BYTES == 32 && COPY_BYTES >= 4 + 8 + 4 + 4 + SALT_BYTES);

/// By what the blocks of a file are encrypted, which its header's version tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// AES-256-GCM-SIV: those of older builds, which trees go on with.
    Siv = 1,
    /// AES-256-GCM.
    Gcm = 2,
}

/// What a file begins with.
pub(super) struct Header {
    pub(super) version: Version,
    /// The number of the data key.
    pub(super) key: u32,
    /// What tells the file's own key from that of any other.
    pub(super) salt: [u8; SALT_BYTES],
}

impl Header {
    /// `u32 checksum | magic | u32 version | u32 key | 32 bytes of salt | zeros`, twice.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; COPY_BYTES];
        bytes[4..12].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&(self.version as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&self.key.to_le_bytes());
        bytes[20..20 + SALT_BYTES].copy_from_slice(&self.salt);
        let sum = plain(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes.repeat(2)
    }

    /// The checksum that it begins with: by its salt, that of no other file.
    pub(super) fn sum(&self) -> u32 {
        u32_at(&self.encode(), 0)
    }

    /// `Err` says what is wrong.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < COPY_BYTES
            || bytes[4..12] != *MAGIC
            || plain(&bytes[4..COPY_BYTES]) != u32_at(bytes, 0)
        {
            return Err("no header of an encrypted file stands here".into());
        }
        let version = match u32_at(bytes, 12) {
            1 => Version::Siv,
            2 => Version::Gcm,
            version => return Err(format!("a newer build has encrypted the file: version {version}")),
        };
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(&bytes[20..20 + SALT_BYTES]);
        Ok(Self { version, key: u32_at(bytes, 16), salt })
    }
}

/// Where a block stands.
pub(super) const fn place_of(block: u64) -> u64 {
    HEADER_BYTES as u64 + block * STORED_BYTES as u64
}

/// How long a file is that shows so many bytes.
pub(super) const fn stored_bytes(shown: u64) -> u64 {
    let rest = shown % BLOCK_BYTES as u64;
    place_of(shown / BLOCK_BYTES as u64) + if rest > 0 { rest + EXTRA_BYTES as u64 } else { 0 }
}

/// How many bytes a file shows that is so long.
pub(super) const fn shown_bytes(stored: u64) -> u64 {
    let blocks = stored.saturating_sub(HEADER_BYTES as u64);
    let rest = (blocks % STORED_BYTES as u64).saturating_sub(EXTRA_BYTES as u64);
    blocks / STORED_BYTES as u64 * BLOCK_BYTES as u64 + rest
}

/// Appends a block of these bytes.
pub(super) fn encrypt(
    cipher: &Cipher,
    nonce: [u8; NONCE_BYTES],
    block: u64,
    text: &[u8],
    out: &mut Vec<u8>,
) -> forebay_base::Result<()> {
    debug_assert!(!text.is_empty() && text.len() <= BLOCK_BYTES);
    out.extend_from_slice(&(block as u32).to_le_bytes());
    out.extend_from_slice(&nonce);
    let (tag_at, text_at) = (out.len(), out.len() + TAG_BYTES);
    out.extend_from_slice(&[0; TAG_BYTES]);
    out.extend_from_slice(text);
    let tag = cipher.encrypt(nonce, &block.to_le_bytes(), &mut out[text_at..])?;
    out[tag_at..text_at].copy_from_slice(&tag);
    Ok(())
}

/// The bytes of a block, which are decrypted where they are; `None` where it is not what was written here.
pub(super) fn decrypt<'b>(cipher: &Cipher, block: u64, stored: &'b mut [u8]) -> Option<&'b mut [u8]> {
    debug_assert!(stored.len() <= STORED_BYTES, "it is one block");
    let (extra, text) = stored.split_at_mut_checked(EXTRA_BYTES)?;
    let (mut nonce, mut tag) = ([0; NONCE_BYTES], [0; TAG_BYTES]);
    nonce.copy_from_slice(&extra[4..4 + NONCE_BYTES]);
    tag.copy_from_slice(&extra[4 + NONCE_BYTES..]);
    let is_it = u32_at(extra, 0) == block as u32 && cipher.decrypt(nonce, &block.to_le_bytes(), text, tag);
    is_it.then_some(text)
}
