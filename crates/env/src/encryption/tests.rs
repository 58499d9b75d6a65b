//! Files of blocks beside files as they are, and what a damaged or a strange one answers. Seeds are fixed and part of
//! each failure's message.

use std::collections::HashSet;
use std::path::Path;

use forebay_base::Result;
use forebay_base::limits::BLOCK_BYTES;

use super::blocks::{COPY_BYTES, HEADER_BYTES, STORED_BYTES, shown_bytes, stored_bytes};
use super::cipher::Cipher;
use super::{Damage, DataKeys, EncryptedFs, Key, KeyProvider, OneKey, WrappedKeys};
use crate::fs::{Access, FileSystem, MemoryFs, ReadRequest};
use crate::sync::Arc;
use crate::{Env, Rng};

const PATH: &str = "/7.list";

fn made(seed: u64, damage: Damage) -> (Arc<MemoryFs>, Arc<EncryptedFs>, Arc<DataKeys>) {
    let memory = MemoryFs::new();
    let keys = DataKeys::new(&Env::memory(seed)).unwrap();
    let fs = EncryptedFs::new(memory.clone(), Arc::clone(&keys), damage);
    (memory, fs, keys)
}

fn read(fs: &dyn FileSystem, path: &str) -> Result<Vec<u8>> {
    let file = fs.open_read(Path::new(path), Access::Random)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn replace(fs: &MemoryFs, path: &str, bytes: &[u8]) {
    fs.create(Path::new(path), Access::Buffered).unwrap().write_at(0, bytes).unwrap();
}

fn random(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(bytes).collect()
}

/// A file of blocks is what any file is: whatever is written where, cut and grown, and whoever reads it how.
#[test]
fn a_file_of_blocks_is_a_file() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let (memory, fs, keys) = made(seed, Damage::IsAnError);
        let file = fs.create(Path::new(PATH), Access::Direct).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for step in 0..40 {
            let place = rng.index(model.len() + 1000);
            match rng.below(5) {
                0 | 1 => {
                    let at = if rng.chance(60) { model.len() } else { place };
                    let length = [10, 4096, 5000, 400_000][rng.index(4)];
                    let bytes = random(&mut rng, length);
                    file.write_at(at as u64, &bytes).unwrap();
                    model.resize(model.len().max(at + length), 0);
                    model[at..at + length].copy_from_slice(&bytes);
                }
                2 => {
                    let length = if rng.chance(50) { place / BLOCK_BYTES * BLOCK_BYTES } else { place };
                    file.set_len(length as u64).unwrap();
                    model.resize(length, 0);
                }
                _ => {
                    let mut into = vec![7; [1, 4096, 300_000][rng.index(3)]];
                    let reader = fs.open_read(Path::new(PATH), Access::Random).unwrap();
                    let got = reader.read_at(place as u64, &mut into).unwrap();
                    let there = model.get(place..).unwrap_or_default();
                    assert_eq!(got, into.len().min(there.len()), "seed {seed}, step {step}");
                    assert_eq!(into[..got], there[..got], "seed {seed}, step {step}");
                }
            }
            assert_eq!(file.len().unwrap(), model.len() as u64, "seed {seed}, step {step}");
        }
        let stored = memory.open_read(Path::new(PATH), Access::Buffered).unwrap().len().unwrap();
        assert_eq!((stored_bytes(model.len() as u64), shown_bytes(stored)), (stored, model.len() as u64));
        let again = EncryptedFs::new(memory, keys, Damage::IsAnError);
        assert_eq!(read(&*again, PATH).unwrap(), model, "seed {seed}");
    }
}

/// No byte of a file can be changed, and no block can be put elsewhere, without reading it being an error.
#[test]
fn what_was_changed_is_not_read() {
    let mut rng = Rng::new(3);
    let (memory, fs, _) = made(3, Damage::IsAnError);
    let text = random(&mut rng, 2 * BLOCK_BYTES + 77);
    fs.create(Path::new(PATH), Access::Buffered).unwrap().write_at(0, &text).unwrap();
    let intact = read(&*memory, PATH).unwrap();
    assert!(!intact.windows(16).any(|window| window == &text[..16]), "it is no text");
    let near =
        |at: &usize| (*at < 60 || *at >= HEADER_BYTES) && at % STORED_BYTES < 40 || at.is_multiple_of(97);
    for at in (0..intact.len()).filter(near).filter(|at| !(COPY_BYTES..HEADER_BYTES).contains(at)) {
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << rng.index(8);
        replace(&memory, PATH, &damaged);
        let error = read(&*fs, PATH).unwrap_err().to_string();
        assert!(error.contains(PATH), "byte {at}: {error}");
    }
    let block =
        |number: usize| HEADER_BYTES + number * STORED_BYTES..HEADER_BYTES + (number + 1) * STORED_BYTES;
    let mut swapped = intact.clone();
    swapped[block(0)].copy_from_slice(&intact[block(1)]);
    swapped[block(1)].copy_from_slice(&intact[block(0)]);
    // Of another file, by the same data key, at its place.
    let mut other = intact.clone();
    fs.create(Path::new("/8.list"), Access::Buffered).unwrap().write_at(0, &text).unwrap();
    other[block(1)].copy_from_slice(&read(&*memory, "/8.list").unwrap()[block(1)]);
    // What is not encrypted in the place of what is.
    let cut = &intact[..intact.len() - 1];
    for damaged in [&swapped[..], &other, cut, &text] {
        replace(&memory, PATH, damaged);
        assert!(read(&*fs, PATH).unwrap_err().is_corruption());
    }
    // How it is encrypted the spare tells as well.
    let known = fs.encrypted_as(Path::new("/8.list")).unwrap();
    let mut damaged = read(&*memory, "/8.list").unwrap();
    damaged[30] ^= 1;
    replace(&memory, "/8.list", &damaged);
    assert!(known.is_some() && fs.encrypted_as(Path::new("/8.list")).unwrap() == known);
    replace(&memory, PATH, &intact);
    assert_eq!(read(&*fs, PATH).unwrap(), text);
}

/// To whoever saves what is left of a file, a damaged block shows as zeros, and all others as what they are.
#[test]
fn what_is_left_of_a_file_is_read() {
    let (memory, fs, _) = made(4, Damage::Zeros);
    let text = random(&mut Rng::new(4), 3 * BLOCK_BYTES);
    fs.create(Path::new(PATH), Access::Buffered).unwrap().write_at(0, &text).unwrap();
    let intact = read(&*memory, PATH).unwrap();
    let mut wanted = text;
    wanted[BLOCK_BYTES..2 * BLOCK_BYTES].fill(0);
    // The header, too: it has a spare.
    for header in [0..0, 0..COPY_BYTES, 30..31, COPY_BYTES..HEADER_BYTES] {
        let mut damaged = intact.clone();
        damaged[HEADER_BYTES + STORED_BYTES + 100] ^= 1;
        damaged[header].iter_mut().for_each(|byte| *byte ^= 0x55);
        replace(&memory, PATH, &damaged);
        assert_eq!(read(&*fs, PATH).unwrap(), wanted);
    }
    let mut damaged = intact;
    damaged[..HEADER_BYTES].fill(0);
    replace(&memory, PATH, &damaged);
    assert!(read(&*fs, PATH).unwrap_err().is_corruption(), "without its salt it has no key");
    assert!(fs.encrypted_as(Path::new(PATH)).is_err(), "nor is it told by which it is");
}

/// Reads that are done together give what each does by itself, of files of all kinds, within and behind their ends.
#[test]
fn reads_done_together_are_reads() {
    let mut rng = Rng::new(12);
    let (memory, fs, _) = made(12, Damage::IsAnError);
    for path in [PATH, "/8.tree", "/9.log"] {
        fs.create(Path::new(path), Access::Buffered).unwrap().write_at(0, &random(&mut rng, 50_000)).unwrap();
    }
    let open = |path: &str| fs.open_read(Path::new(path), Access::Random).unwrap();
    let files = [open(PATH), open("/8.tree"), open("/9.log")];
    for is_damaged in [false, true] {
        if is_damaged {
            let mut bytes = read(&*memory, PATH).unwrap();
            bytes[HEADER_BYTES + 3 * STORED_BYTES + 50] ^= 4;
            replace(&memory, PATH, &bytes);
        }
        let mut refused = 0;
        for _ in 0..50 {
            let places: Vec<(usize, u64, usize)> = (0..rng.index(9))
                .map(|_| (rng.index(3), rng.below(60_000), [0, 1, 4096, 9000][rng.index(4)]))
                .collect();
            let mut into: Vec<Vec<u8>> = places.iter().map(|place| vec![7; place.2]).collect();
            let mut requests: Vec<ReadRequest<'_>> = places
                .iter()
                .zip(&mut into)
                .map(|(&(file, offset, _), into)| ReadRequest::new(&*files[file], offset, into))
                .collect();
            fs.read_many(&mut requests);
            let outcomes: Vec<Result<usize>> = requests.into_iter().map(|request| request.outcome).collect();
            for (((file, offset, bytes), into), outcome) in places.into_iter().zip(into).zip(outcomes) {
                let mut alone = vec![7; bytes];
                match files[file].read_at(offset, &mut alone) {
                    Ok(got) => assert_eq!((outcome.unwrap(), &into[..got]), (got, &alone[..got])),
                    Err(error) => {
                        assert_eq!(outcome.unwrap_err().to_string(), error.to_string());
                        refused += 1;
                    }
                }
            }
        }
        assert_eq!(refused > 0, is_damaged);
    }
}

/// Whatever the processor has, the bytes are the same, and each reads what the other has written.
#[test]
fn both_ways_of_a_cipher_make_the_same_bytes() {
    let mut rng = Rng::new(16);
    for round in 0..300 {
        let key = Key::new(random(&mut rng, 32).try_into().unwrap());
        let (fast, portable) = (Cipher::gcm(&key), Cipher::portable_gcm(&key));
        let length = 1 + if round % 3 == 0 { 4095 } else { rng.index(BLOCK_BYTES) };
        let text = random(&mut rng, length);
        let (nonce, place) = ([round as u8; 12], rng.next_u64().to_le_bytes());
        let (mut one, mut other) = (text.clone(), text.clone());
        let tags = [fast.encrypt(nonce, &place, &mut one), portable.encrypt(nonce, &place, &mut other)];
        let [tag, same] = tags.map(Result::unwrap);
        assert!(one == other && tag == same && one != text, "round {round}");
        assert!(portable.decrypt(nonce, &place, &mut one, tag) && one == text, "round {round}");
        let at = rng.index(length);
        for cipher in [&fast, &portable] {
            let mut changed = other.clone();
            changed[at] ^= 1;
            assert!(!cipher.decrypt(nonce, &place, &mut changed, tag), "round {round}");
            assert!(!cipher.decrypt(nonce, b"elsewhere", &mut other.clone(), tag), "round {round}");
        }
        assert!(fast.decrypt(nonce, &place, &mut other, tag) && other == text, "round {round}");
    }
}

/// A nonce comes once: in a file that is cut and written anew, in its copy that goes its own way, and in frames.
#[test]
fn no_nonce_comes_twice() {
    let env = Env::memory(5);
    let provider: Arc<dyn KeyProvider> = Arc::new(OneKey::new("one", Key::new([1; 32])));
    let memory = MemoryFs::new();
    let keys = DataKeys::new(&env).unwrap();
    let wrapped = keys.wrap(&*provider, b"").unwrap();
    let mut seen = HashSet::new();
    let nonces = |path: &str, from: usize| -> Vec<Vec<u8>> {
        let blocks = read(&*memory, path).unwrap();
        blocks[HEADER_BYTES..].chunks(STORED_BYTES).skip(from).map(|block| block[4..16].to_vec()).collect()
    };
    let text = vec![9; 10 * BLOCK_BYTES];
    for (opening, path) in [PATH, "/8.list", "/9.list"].into_iter().enumerate() {
        let keys = DataKeys::unwrap(&env, &wrapped, &provider, None).unwrap();
        let fs = EncryptedFs::new(memory.clone(), Arc::clone(&keys), Damage::IsAnError);
        if opening == 0 {
            fs.create(Path::new(path), Access::Direct).unwrap().write_at(0, &text).unwrap();
        } else {
            let copied = read(&*memory, PATH).unwrap();
            replace(&memory, path, &copied);
        }
        let mut here = nonces(path, if opening == 0 { 0 } else { 20 });
        let file = fs.open(Path::new(path), Access::Direct).unwrap();
        file.set_len(BLOCK_BYTES as u64).unwrap();
        file.write_at(BLOCK_BYTES as u64, &text).unwrap();
        here.extend(nonces(path, 1));
        here.extend((0..100).map(|_| keys.encrypt_frame(b"place", &mut [1, 2, 3]).unwrap()[4..16].to_vec()));
        assert!(here.len() > 100 && here.into_iter().all(|nonce| seen.insert(nonce)), "{path}");
    }
}

/// Each write draws where its nonces begin: a machine that was saved amid a file and went on twice had the same count, and
/// so the same nonces for different texts of one file.
#[test]
fn each_write_of_blocks_begins_elsewhere() {
    let (memory, fs, _) = made(17, Damage::IsAnError);
    let file = fs.create(Path::new(PATH), Access::Direct).unwrap();
    for at in 0..3 {
        file.write_at(at * 2 * BLOCK_BYTES as u64, &[7; 2 * BLOCK_BYTES]).unwrap();
    }
    let stored = read(&*memory, PATH).unwrap();
    let number = |block: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&block[4..16]);
        u128::from_le_bytes(bytes)
    };
    let numbers: Vec<u128> = stored[HEADER_BYTES..].chunks(STORED_BYTES).map(number).collect();
    let follows: Vec<bool> =
        numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) % (1 << 96) == 1).collect();
    assert_eq!(follows, [true, false, true, false, true]);
}

/// A key file is written once more by the keys that it has, whichever is the provider's current one by now.
#[test]
fn data_keys_are_wrapped_again_by_the_keys_that_they_have() {
    struct Both;
    impl KeyProvider for Both {
        fn current(&self) -> Result<String> {
            Err(forebay_base::Error::invalid("it may only decrypt"))
        }
        fn key(&self, name: &str) -> Result<Key> {
            Ok(Key::new([if name == "one" { 1 } else { 2 }; 32]))
        }
    }
    let env = Env::memory(18);
    let one: Arc<dyn KeyProvider> = Arc::new(OneKey::new("one", Key::new([1; 32])));
    let keys = DataKeys::new(&env).unwrap();
    let older = keys.wrap(&*one, b"").unwrap();
    let mut frame = *b"a frame of the log";
    let trailer = keys.encrypt_frame(b"here", &mut frame).unwrap();
    assert!(keys.wrap(&Both, b"of it").is_err());
    let newer = keys.wrap_again(&older, &Both, b"of it").unwrap();
    assert_eq!((&*newer.keys[0].name, &*newer.vouched), ("one", &b"of it"[..]));
    let again = DataKeys::unwrap(&env, &newer, &one, None).unwrap();
    assert!(again.decrypt_frame(b"here", &mut frame, &trailer).unwrap());
    assert!(DataKeys::unwrap(&env, &WrappedKeys { vouched: Vec::new(), ..newer }, &one, None).is_err());
    keys.begin(keys.draw().unwrap());
    let two: Arc<dyn KeyProvider> = Arc::new(OneKey::new("two", Key::new([2; 32])));
    let mut mixed = keys.wrap(&*two, b"").unwrap();
    mixed.keys[0] = older.keys[0].clone();
    let names: Vec<String> =
        keys.wrap_again(&mixed, &Both, b"of it").unwrap().keys.into_iter().map(|key| key.name).collect();
    assert_eq!(names, ["one", "two"]);
}

/// Data keys are had by the provider's key alone, and by no other of its name.
#[test]
fn data_keys_are_had_by_the_providers_key_alone() {
    let env = Env::memory(6);
    let provider =
        |name: &str, byte| -> Arc<dyn KeyProvider> { Arc::new(OneKey::new(name, Key::new([byte; 32]))) };
    let keys = DataKeys::new(&env).unwrap();
    let mut frame = *b"a frame of the log";
    let trailer = keys.encrypt_frame(b"here", &mut frame).unwrap();
    let second = keys.draw().unwrap();
    assert_eq!((keys.newest(), keys.count(), second), (1, 2, 2));
    let wrapped = keys.wrap(&*provider("one", 1), b"of it").unwrap();
    let unwrap = |wrapped: &WrappedKeys, provider| DataKeys::unwrap(&env, wrapped, &provider, None);
    let refused = |provider| unwrap(&wrapped, provider).unwrap_err().to_string();
    assert!(refused(provider("one", 2)).contains("`one` is not the one"));
    assert!(refused(provider("two", 1)).contains("give that one"));
    let of = |keys, vouched: &[u8]| WrappedKeys { keys, vouched: vouched.to_vec() };
    let mut renumbered = wrapped.keys.clone();
    renumbered[1].number = 3;
    for changed in [
        of(renumbered, b"of it"),
        of(Vec::new(), b"of it"),
        of(wrapped.keys.clone(), b""),
        of(wrapped.keys.clone(), b"of me"),
    ] {
        assert!(unwrap(&changed, provider("one", 1)).is_err());
    }
    let again = unwrap(&wrapped, provider("one", 1)).unwrap();
    assert_eq!(again.newest(), 2);
    for (place, trailer, is_it) in [
        (&b"there"[..], &trailer[..], false),
        (b"here", &trailer[..31], false),
        (b"here", &[&[2], &trailer[1..]].concat(), false),
        (b"here", &[&[9], &trailer[1..]].concat(), false),
        (b"here", &trailer[..], true),
    ] {
        assert_eq!(again.decrypt_frame(place, &mut frame, trailer).unwrap(), is_it);
    }
    assert_eq!(&frame, b"a frame of the log");
    // Once more it is what it was; what has changed meanwhile is not encrypted by a nonce that was used.
    let mut changed = *b"another of the log";
    assert!(again.encrypt_again(b"here", &mut changed, &trailer).is_err());
    assert_eq!(again.encrypt_again(b"here", &mut frame, &trailer).unwrap(), trailer);
    assert!(keys.decrypt_frame(b"here", &mut frame, &trailer).unwrap());
    assert!(keys.wrap(&*provider(&"n".repeat(256), 1), b"").is_err());
    assert_eq!(
        format!("{:?} {:?}", Key::new([7; 32]), OneKey::new("one", Key::new([1; 32]))),
        "Key OneKey { name: \"one\", key: Key }"
    );
}

/// Who reads beside a writer knows a key once something is encrypted by it, also one that was drawn meanwhile.
#[test]
fn a_reader_learns_of_new_keys() {
    let env = Env::memory(8);
    let provider: Arc<dyn KeyProvider> = Arc::new(OneKey::new("one", Key::new([1; 32])));
    let writer = DataKeys::new(&env).unwrap();
    let first = writer.wrap(&*provider, b"").unwrap();
    let (file, by) = (Arc::clone(&writer), Arc::clone(&provider));
    let reload = Box::new(move || file.wrap(&*by, b""));
    let reader = DataKeys::unwrap(&env, &first, &provider, Some(reload)).unwrap();
    let stranger = DataKeys::unwrap(&env, &first, &provider, None).unwrap();
    writer.begin(writer.draw().unwrap());
    let mut frame = *b"a frame of the log";
    let trailer = writer.encrypt_frame(b"here", &mut frame).unwrap();
    assert!(!stranger.decrypt_frame(b"here", &mut frame, &trailer).unwrap());
    assert!(reader.decrypt_frame(b"here", &mut frame, &trailer).unwrap() && reader.count() == 2);
    assert_eq!(&frame, b"a frame of the log");
}
