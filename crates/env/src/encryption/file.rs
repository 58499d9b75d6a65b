//! Files of an encrypted database: [`BlockFile`], of records, whose blocks are encrypted on their way; and
//! [`FrameFile`], of frames, which whoever writes them encrypts.

use std::sync::OnceLock;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result};

use super::blocks::{self, COPY_BYTES, EXTRA_BYTES, Header, STORED_BYTES};
use super::cipher::Cipher;
use super::data_keys::DataKeys;
use super::fs::Damage;
use crate::fs::File;
use crate::fs::forward::forward_file;
use crate::sync::Arc;

const BLOCK: u64 = BLOCK_BYTES as u64;
/// This many blocks are encrypted, or decrypted, at a time.
const BLOCKS_AT_ONCE: u64 = 64;

/// See the module.
pub(super) struct BlockFile {
    pub(super) inner: Arc<dyn File>,
    pub(super) shared: Arc<Shared>,
}

/// What all handles of an opening have.
pub(super) struct Shared {
    pub(super) keys: Arc<DataKeys>,
    pub(super) damage: Damage,
    /// Read from the header when it is needed first.
    pub(super) cipher: OnceLock<Cipher>,
}

impl BlockFile {
    /// The file's header. Its spare is for whoever saves what is left: what is damaged is told of to anybody else.
    pub(super) fn header(inner: &dyn File, damage: Damage) -> Result<Header> {
        let read = |place: u64| -> Result<Header> {
            let mut bytes = vec![0; COPY_BYTES];
            let got = inner.read_at(place, &mut bytes)?;
            Header::decode(&bytes[..got]).map_err(|reason| Error::corruption(inner.path(), place, reason))
        };
        let first = read(0);
        // By a read of its own: a disk gives an error where it cannot read the first.
        if first.is_err() && damage == Damage::Zeros { read(COPY_BYTES as u64).or(first) } else { first }
    }

    fn cipher(&self) -> Result<&Cipher> {
        if let Some(cipher) = self.shared.cipher.get() {
            return Ok(cipher);
        }
        let header = Self::header(&*self.inner, self.shared.damage)?;
        let cipher = self.shared.keys.of_file(&header)?.ok_or_else(|| {
            let reason =
                format!("it is encrypted by data key {}, which the database does not have", header.key);
            Error::corruption(self.path(), 0, reason)
        })?;
        Ok(self.shared.cipher.get_or_init(|| cipher))
    }

    /// Shows blocks that were read, from one on, of which the first bytes are passed. Returns how much was there.
    fn decrypt(&self, block: u64, passed: usize, stored: &mut [u8], into: &mut [u8]) -> Result<usize> {
        debug_assert!(passed < BLOCK_BYTES, "it begins in the first block");
        let (cipher, mut done) = (self.cipher()?, 0);
        for (number, stored) in (block..).zip(stored.chunks_mut(STORED_BYTES)) {
            let length = stored.len().saturating_sub(EXTRA_BYTES);
            let text = match (blocks::decrypt(cipher, number, stored), self.shared.damage) {
                (Some(text), _) => text,
                (None, Damage::Zeros) => {
                    stored.fill(0);
                    &mut stored[..length]
                }
                (None, Damage::IsAnError) => {
                    let reason =
                        "the block is not what was written here: it was changed, or the key is not its own";
                    return Err(Error::corruption(self.path(), blocks::place_of(number), reason));
                }
            };
            let from = if number == block { passed.min(text.len()) } else { 0 };
            let taken = (text.len() - from).min(into.len() - done);
            into[done..done + taken].copy_from_slice(&text[from..from + taken]);
            done += taken;
        }
        Ok(done)
    }

    /// Writes whole blocks, or up to the end of the file.
    fn write_blocks(&self, block: u64, bytes: &[u8]) -> Result<()> {
        let (cipher, nonces) = (self.cipher()?, self.shared.keys.nonces_of_blocks()?);
        let mut stored = Vec::new();
        for (index, piece) in bytes.chunks(BLOCK_BYTES * BLOCKS_AT_ONCE as usize).enumerate() {
            let first = block + index as u64 * BLOCKS_AT_ONCE;
            stored.clear();
            for (number, text) in (first..).zip(piece.chunks(BLOCK_BYTES)) {
                blocks::encrypt(cipher, nonces.next(), number, text, &mut stored)?;
            }
            self.inner.write_at(blocks::place_of(first), &stored)?;
        }
        Ok(())
    }

    /// What the file shows from an offset on, up to another.
    fn read_range(&self, from: u64, to: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (to - from) as usize];
        let got = self.read_at(from, &mut bytes)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Appends zeros up to a length.
    fn grow(&self, from: u64, to: u64) -> Result<()> {
        let mut at = from;
        while at < to {
            let next = ((at / BLOCK + BLOCKS_AT_ONCE) * BLOCK).min(to);
            self.write_within(at, &vec![0; (next - at) as usize], at)?;
            at = next;
        }
        Ok(())
    }

    /// Writes to a file of this length, at its end at the latest. Blocks of which only a part is written are read for
    /// the rest: files of records have none.
    fn write_within(&self, offset: u64, bytes: &[u8], length: u64) -> Result<()> {
        debug_assert!(offset <= length, "what lies between is written first");
        let (start, end) = (offset / BLOCK * BLOCK, offset + bytes.len() as u64);
        let behind = end.next_multiple_of(BLOCK).min(length);
        if start == offset && behind <= end {
            return self.write_blocks(start / BLOCK, bytes);
        }
        let mut whole = self.read_range(start, offset)?;
        whole.extend_from_slice(bytes);
        if behind > end {
            whole.extend(self.read_range(end, behind)?);
        }
        debug_assert_eq!(
            start + whole.len() as u64,
            end.max(behind),
            "blocks are whole, up to the end of the file"
        );
        self.write_blocks(start / BLOCK, &whole)
    }
}

impl File for BlockFile {
    forward_file! { path reserve_tail identity sync }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let (mut done, mut stored) = (0, Vec::new());
        while done < into.len() {
            let at = offset + done as u64;
            let (block, passed) = (at / BLOCK, (at % BLOCK) as usize);
            let most = (BLOCKS_AT_ONCE * BLOCK) as usize - passed;
            let end = into.len().min(done + most);
            // A block is decrypted whole.
            stored.resize((passed + end - done).div_ceil(BLOCK_BYTES) * STORED_BYTES, 0);
            let got = self.inner.read_at(blocks::place_of(block), &mut stored)?;
            done += self.decrypt(block, passed, &mut stored[..got], &mut into[done..end])?;
            if done < end {
                break;
            }
        }
        Ok(done)
    }

    fn stored_part(&self, offset: u64, bytes: usize) -> Option<(&dyn File, u64, usize)> {
        let blocks = ((offset % BLOCK) as usize + bytes).div_ceil(BLOCK_BYTES);
        Some((&*self.inner, blocks::place_of(offset / BLOCK), blocks * STORED_BYTES))
    }

    fn show(&self, offset: u64, stored: &mut [u8], into: &mut [u8]) -> Result<usize> {
        self.decrypt(offset / BLOCK, (offset % BLOCK) as usize, stored, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = self.len()?;
        self.grow(length, offset)?;
        self.write_within(offset, bytes, length.max(offset))
    }

    fn len(&self) -> Result<u64> {
        Ok(blocks::shown_bytes(self.inner.len()?))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        let length = self.len()?;
        if bytes > length {
            return self.grow(length, bytes);
        }
        let start = bytes / BLOCK * BLOCK;
        let rest = self.read_range(start, bytes)?;
        self.inner.set_len(blocks::stored_bytes(start))?;
        if rest.is_empty() { Ok(()) } else { self.write_blocks(start / BLOCK, &rest) }
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.inner.reserve_tail(blocks::stored_bytes(bytes).saturating_sub(self.inner.len()?));
        self.grow(self.len()?, bytes)
    }

    fn will_need(&self, offset: u64, bytes: usize) {
        let (from, to) = (offset / BLOCK, (offset + bytes as u64).div_ceil(BLOCK));
        self.inner.will_need(blocks::place_of(from), (to - from) as usize * STORED_BYTES);
    }

    fn wont_need(&self, offset: u64, bytes: usize) {
        let (from, to) = (offset / BLOCK, (offset + bytes as u64) / BLOCK);
        self.inner.wont_need(blocks::place_of(from), (to.saturating_sub(from)) as usize * STORED_BYTES);
    }

    fn held_open(&self) -> Result<Option<Arc<dyn File>>> {
        let held = self.inner.held_open()?;
        Ok(held.map(|inner| Arc::new(Self { inner, shared: Arc::clone(&self.shared) }) as Arc<dyn File>))
    }
}

/// See the module. Its bytes are those that are stored.
pub(super) struct FrameFile {
    pub(super) inner: Arc<dyn File>,
    pub(super) keys: Arc<DataKeys>,
}

impl File for FrameFile {
    forward_file! { path read_at write_at store_at len set_len reserve reserve_tail will_need wont_need written_from identity sync }

    fn held_open(&self) -> Result<Option<Arc<dyn File>>> {
        let held = self.inner.held_open()?;
        Ok(held.map(|inner| Arc::new(Self { inner, keys: Arc::clone(&self.keys) }) as Arc<dyn File>))
    }

    fn data_keys(&self) -> Option<&Arc<DataKeys>> {
        Some(&self.keys)
    }
}
