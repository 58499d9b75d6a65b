//! A database's own keys. All stay that were ever used; what is written anew is encrypted by the newest.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use forebay_base::wire::u32_at;
use forebay_base::{Error, Result};
use zeroize::Zeroizing;

use super::blocks::{Header, Version};
use super::cipher::{Cipher, Nonces, Randomness, derived};
use super::keys::{Key, KeyProvider};
use super::{
    KEY_BYTES, NAME_BYTES_MAX, NONCE_BYTES, TAG_BYTES, TRAILER_BYTES, WRAPPED_BYTES, WrappedKey, WrappedKeys,
};
use crate::Env;
use crate::sync::{Arc, RwLock};

/// What keys are derived for.
const FRAMES: &[u8] = b"forebay frames 1";
const SIV_BLOCKS: &[u8] = b"forebay blocks 1";
const GCM_BLOCKS: &[u8] = b"forebay blocks 2";

struct DataKey {
    key: Key,
    frames: Cipher,
}

impl DataKey {
    fn new(key: Key) -> Result<Arc<Self>> {
        let frames = Cipher::siv(&derived(&key, &[], FRAMES)?);
        Ok(Arc::new(Self { key, frames }))
    }

    fn of_file(&self, header: &Header) -> Result<Cipher> {
        let key = |purpose| derived(&self.key, &header.salt, purpose);
        Ok(match header.version {
            Version::Siv => Cipher::siv(&key(SIV_BLOCKS)?),
            Version::Gcm => Cipher::gcm(&key(GCM_BLOCKS)?),
        })
    }

    fn encrypt(
        &self,
        number: u32,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TRAILER_BYTES]> {
        let tag = self.frames.encrypt(nonce, place, text)?;
        let mut trailer = [0; TRAILER_BYTES];
        trailer[..4].copy_from_slice(&number.to_le_bytes());
        trailer[4..4 + NONCE_BYTES].copy_from_slice(&nonce);
        trailer[4 + NONCE_BYTES..].copy_from_slice(&tag);
        Ok(trailer)
    }
}

/// The number of a data key, a nonce and a tag: what a trailer has.
fn parts(trailer: &[u8]) -> Option<(u32, [u8; NONCE_BYTES], [u8; TAG_BYTES])> {
    let trailer = <&[u8; TRAILER_BYTES]>::try_from(trailer).ok()?;
    let (mut nonce, mut tag) = ([0; NONCE_BYTES], [0; TAG_BYTES]);
    nonce.copy_from_slice(&trailer[4..4 + NONCE_BYTES]);
    tag.copy_from_slice(&trailer[4 + NONCE_BYTES..]);
    Some((u32_at(trailer, 0), nonce, tag))
}

/// Reads the keys as they stand in the file by now.
pub type Reload = Box<dyn Fn() -> Result<WrappedKeys> + Send + Sync>;

/// See the module.
pub struct DataKeys {
    ring: RwLock<Ring>,
    nonces: Nonces,
    randomness: Randomness,
    /// For whoever reads beside somebody who draws new ones.
    beside: Option<(Reload, Arc<dyn KeyProvider>)>,
}

#[derive(Default)]
struct Ring {
    keys: BTreeMap<u32, Arc<DataKey>>,
    newest: u32,
    /// The last number that was given: those of forgotten keys, too.
    drawn: u32,
}

impl DataKeys {
    /// One that was just drawn.
    pub fn new(env: &Env) -> Result<Arc<Self>> {
        let keys = Self::of(env, Ring::default())?;
        let first = keys.draw()?;
        keys.begin(first);
        Ok(Arc::new(keys))
    }

    fn of(env: &Env, ring: Ring) -> Result<Self> {
        let randomness = Randomness::of(env);
        let (ring, nonces) = (RwLock::new(ring), Nonces::new(&randomness)?);
        Ok(Self { ring, nonces, randomness, beside: None })
    }

    /// Those that stand in a file, by the provider's keys. Who reads beside somebody who may draw new ones gives how the
    /// file is read again, once there is something by a key that is not known.
    pub fn unwrap(
        env: &Env,
        wrapped: &WrappedKeys,
        provider: &Arc<dyn KeyProvider>,
        reload: Option<Reload>,
    ) -> Result<Arc<Self>> {
        let (mut ring, mut providers) = (Ring::default(), BTreeMap::new());
        for one in &wrapped.keys {
            let by = cipher_of(&mut providers, &**provider, &one.name)?;
            ring.keys.insert(one.number, unwrap(one, &wrapped.vouched, by)?);
            ring.newest = ring.newest.max(one.number);
            ring.drawn = ring.newest;
        }
        if ring.keys.is_empty() {
            return Err(Error::invalid("there is no data key"));
        }
        let beside = reload.map(|reload| (reload, Arc::clone(provider)));
        Ok(Arc::new(Self { beside, ..Self::of(env, ring)? }))
    }

    /// All of them, encrypted by the key that is the provider's current one; their tags vouch for more, too.
    pub fn wrap(&self, provider: &dyn KeyProvider, vouched: &[u8]) -> Result<WrappedKeys> {
        let name = provider.current()?;
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the name of the provider's key has {} bytes; it may have {NAME_BYTES_MAX}",
                name.len()
            )));
        }
        let by = Cipher::siv(&provider.key(&name)?);
        let ring = self.ring.read();
        let wrap = |(&number, key): (&u32, &Arc<DataKey>)| self.wrap_one(number, key, &name, &by, vouched);
        let keys = ring.keys.iter().map(wrap).collect::<Result<_>>()?;
        Ok(WrappedKeys { keys, vouched: vouched.to_vec() })
    }

    /// Those of a file once more, each encrypted by the provider's key that it has there; their tags vouch for more, too.
    /// So whoever can open by the file can do so by the other one.
    pub fn wrap_again(
        &self,
        file: &WrappedKeys,
        provider: &dyn KeyProvider,
        vouched: &[u8],
    ) -> Result<WrappedKeys> {
        let (mut providers, mut keys) = (BTreeMap::new(), Vec::new());
        for WrappedKey { number, name, .. } in &file.keys {
            let by = cipher_of(&mut providers, provider, name)?;
            let key = self.ring.read().keys.get(number).cloned();
            let key = key.ok_or_else(|| Error::bug("a data key of the file is not known"))?;
            keys.push(self.wrap_one(*number, &key, name, by, vouched)?);
        }
        debug_assert!(!keys.is_empty() && !vouched.is_empty(), "a file has keys, which are to vouch");
        Ok(WrappedKeys { keys, vouched: vouched.to_vec() })
    }

    /// A data key, encrypted by the provider's key of this name.
    fn wrap_one(
        &self,
        number: u32,
        key: &DataKey,
        name: &str,
        by: &Cipher,
        vouched: &[u8],
    ) -> Result<WrappedKey> {
        let (nonce, mut bytes) = (self.nonces.next(), [0; WRAPPED_BYTES]);
        bytes[..KEY_BYTES].copy_from_slice(key.key.bytes());
        let tag = by.encrypt(nonce, &place_of(number, vouched), &mut bytes[..KEY_BYTES])?;
        bytes[KEY_BYTES..].copy_from_slice(&tag);
        Ok(WrappedKey { number, name: name.to_owned(), nonce, bytes })
    }

    /// Draws a key, by which nothing is encrypted before it [begins](Self::begin): it must be in a file, durably.
    pub fn draw(&self) -> Result<u32> {
        let key = DataKey::new(Key::new(*self.randomness.bytes()?))?;
        let mut ring = self.ring.write();
        let number =
            ring.drawn.checked_add(1).ok_or_else(|| Error::invalid("there are too many data keys"))?;
        debug_assert!(number > ring.newest, "numbers grow");
        ring.drawn = number;
        ring.keys.insert(number, key);
        Ok(number)
    }

    /// One that was drawn could not be kept: it is never used, nor is its number.
    pub fn forget(&self, number: u32) {
        let mut ring = self.ring.write();
        debug_assert!(number > ring.newest, "nothing is encrypted by it");
        ring.keys.remove(&number);
    }

    /// From here on what is written is encrypted by this one.
    pub fn begin(&self, number: u32) {
        let mut ring = self.ring.write();
        debug_assert!(ring.keys.contains_key(&number) && number > ring.newest, "it was drawn just now");
        ring.newest = number;
    }

    /// The number of the newest.
    pub fn newest(&self) -> u32 {
        self.ring.read().newest
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ring.read().keys.len()
    }

    /// `None` where there is none of this number.
    fn get(&self, number: u32) -> Result<Option<Arc<DataKey>>> {
        let known = self.ring.read().keys.get(&number).cloned();
        let (None, Some((reload, provider))) = (&known, &self.beside) else { return Ok(known) };
        let file = reload()?;
        let Some(wrapped) = file.keys.iter().find(|one| one.number == number) else { return Ok(None) };
        let key = unwrap(wrapped, &file.vouched, &Cipher::siv(&provider.key(&wrapped.name)?))?;
        self.ring.write().keys.insert(number, Arc::clone(&key));
        Ok(Some(key))
    }

    fn newest_key(&self) -> Result<(u32, Arc<DataKey>)> {
        let ring = self.ring.read();
        let key = ring.keys.get(&ring.newest).cloned();
        key.map(|key| (ring.newest, key)).ok_or_else(|| Error::bug("there is no newest data key"))
    }

    /// Encrypts what a frame has, where it is. What it gives stands behind that, and vouches for the place, too.
    pub fn encrypt_frame(&self, place: &[u8], text: &mut [u8]) -> Result<[u8; TRAILER_BYTES]> {
        let (number, key) = self.newest_key()?;
        key.encrypt(number, self.nonces.next(), place, text)
    }

    /// The same once more of what was decrypted by this trailer at this place: the same ciphertext, and the same trailer.
    pub fn encrypt_again(
        &self,
        place: &[u8],
        text: &mut [u8],
        trailer: &[u8],
    ) -> Result<[u8; TRAILER_BYTES]> {
        let known = parts(trailer).map(|(number, nonce, _)| (number, nonce, self.get(number)));
        let Some((number, nonce, Ok(Some(key)))) = known else {
            return Err(Error::bug("what was decrypted before has no key"));
        };
        let again = key.encrypt(number, nonce, place, text)?;
        if again != trailer {
            return Err(Error::bug("what was decrypted before is another text by now"));
        }
        Ok(again)
    }

    /// Decrypts it. `false`, and it stays as it is, where it is not what was written at this place by one of the keys. An
    /// error is the provider's, who was asked for a key that is new.
    pub fn decrypt_frame(&self, place: &[u8], text: &mut [u8], trailer: &[u8]) -> Result<bool> {
        let Some((number, nonce, tag)) = parts(trailer) else { return Ok(false) };
        let key = self.get(number)?;
        Ok(key.is_some_and(|key| key.frames.decrypt(nonce, place, text, tag)))
    }

    /// Encrypts what stands from here on, at the end of which it appends what vouches for the place.
    pub fn encrypt_behind(&self, from: usize, place: &[u8], record: &mut Vec<u8>) -> Result<()> {
        let trailer = self.encrypt_frame(place, &mut record[from..])?;
        record.extend_from_slice(&trailer);
        Ok(())
    }

    /// The text again of what stands with that behind it; `None` where it was not written at this place.
    pub fn decrypt_whole(&self, place: &[u8], stored: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some((text, trailer)) = stored.split_last_chunk::<TRAILER_BYTES>() else { return Ok(None) };
        let mut text = text.to_vec();
        Ok(self.decrypt_frame(place, &mut text, trailer)?.then_some(text))
    }

    /// A header for a file that is to be made, and what its blocks are encrypted by.
    pub(super) fn for_file(&self) -> Result<(Header, Cipher)> {
        let (number, key) = self.newest_key()?;
        let header = Header { version: Version::Gcm, key: number, salt: *self.randomness.bytes()? };
        let cipher = key.of_file(&header)?;
        Ok((header, cipher))
    }

    /// What blocks are encrypted by in a file with this header; `None` where there is no such key.
    pub(super) fn of_file(&self, header: &Header) -> Result<Option<Cipher>> {
        let key = self.get(header.key)?;
        key.map(|key| key.of_file(header)).transpose()
    }

    /// Nonces for some blocks of a file, from a first one that is drawn for them: a machine that was saved amid a file
    /// and goes on twice encrypts other texts by other nonces, once what was begun is written.
    pub(super) fn nonces_of_blocks(&self) -> Result<Nonces> {
        Nonces::new(&self.randomness)
    }
}

/// The provider's key of a name, which is asked for once.
fn cipher_of<'m, 'n>(
    known: &'m mut BTreeMap<&'n str, Cipher>,
    provider: &dyn KeyProvider,
    name: &'n str,
) -> Result<&'m Cipher> {
    let cipher = match known.entry(name) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(Cipher::siv(&provider.key(name)?)),
    };
    Ok(cipher)
}

/// What the tag of a data key vouches for.
fn place_of(number: u32, vouched: &[u8]) -> Vec<u8> {
    [&number.to_le_bytes(), vouched].concat()
}

fn unwrap(wrapped: &WrappedKey, vouched: &[u8], by: &Cipher) -> Result<Arc<DataKey>> {
    let WrappedKey { number, name, nonce, bytes: wrapped } = wrapped;
    let (mut bytes, mut tag) = (Zeroizing::new([0; KEY_BYTES]), [0; TAG_BYTES]);
    bytes.copy_from_slice(&wrapped[..KEY_BYTES]);
    tag.copy_from_slice(&wrapped[KEY_BYTES..]);
    if !by.decrypt(*nonce, &place_of(*number, vouched), &mut *bytes, tag) {
        return Err(Error::invalid(format!(
            "the provider's key `{name}` is not the one by which data key {number} was encrypted; give that one, or, \
             if it is, put back FOREBAY.keys from a copy: it was changed"
        )));
    }
    DataKey::new(Key::new(*bytes))
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKeys").field("newest", &self.newest()).finish_non_exhaustive()
    }
}
