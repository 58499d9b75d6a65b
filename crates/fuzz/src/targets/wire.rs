//! The small pieces that formats are made of, one by one: records, varints, digests, versions of trees, compression.
//! What is written is read; what is damaged is refused, or is something else.

use forebay_base::codec::Codec;
use forebay_base::digest::{Digest, Part, repeats};
use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Record, expiry};
use forebay_cow_tree::Version;
use forebay_env::Rng;

use crate::damage::damage;
use crate::draws;

pub(crate) fn fuzz(rng: &mut Rng) {
    for (written, read) in [records(rng), lengths(rng), digest(rng), version(rng), compressed(rng)] {
        assert!(read(&written), "what is written is read");
        for _ in 0..40 {
            let mut bytes = written.clone();
            damage(rng, &mut bytes);
            read(&bytes);
        }
    }
}

/// Bytes, and whether bytes are all that they should be. It panics at none.
type Piece = (Vec<u8>, Box<dyn Fn(&[u8]) -> bool>);

fn records(rng: &mut Rng) -> Piece {
    let mut bytes = Vec::new();
    for _ in 0..rng.below(20) {
        let (key, (kind, value)) = (draws::key(rng, 100), draws::change(rng));
        Record { kind, key: &key, value: &value }.encode(&mut bytes);
    }
    let read = |mut bytes: &[u8]| {
        while let Some((record, length)) = Record::decode(bytes) {
            expiry::split(record.value);
            bytes = &bytes[length..];
        }
        bytes.is_empty()
    };
    (bytes, Box::new(read))
}

fn lengths(rng: &mut Rng) -> Piece {
    let mut bytes = Vec::new();
    for _ in 0..rng.below(20) {
        put_varint(&mut bytes, rng.next_u64() >> rng.below(64));
        put_bytes(&mut bytes, &draws::key(rng, 100));
    }
    let read = |bytes: &[u8]| {
        let mut from = Reader::new(bytes);
        while from.remaining() > 0 {
            if from.varint().and_then(|_| from.bytes()).is_none() {
                return false;
            }
        }
        true
    };
    (bytes, Box::new(read))
}

fn digest(rng: &mut Rng) -> Piece {
    let mut digest = Digest::new(rng.below(1 << 16));
    let mut prefixes: Vec<u64> = (0..rng.below(500)).map(|_| rng.next_u64()).collect();
    prefixes.sort_unstable();
    prefixes.iter().for_each(|&prefix| digest.add(prefix, prefix));
    let mut bytes = Vec::new();
    digest.encode(&mut bytes);
    let read = move |bytes: &[u8]| {
        let read = Digest::decode(&mut Reader::new(bytes));
        if let Some(read) = &read {
            let part = |digest| Part { digest, low: 0, high: u64::MAX, records: 1 << 40 };
            assert!(repeats([part(read), part(&digest)].into_iter()) >= 1.0);
        }
        read.as_ref() == Some(&digest)
    };
    (bytes, Box::new(read))
}

fn version(rng: &mut Rng) -> Piece {
    let (file_id, root_at, digest) = (rng.next_u64(), rng.below(1 << 40) * 4096, rng.next_u64() as u32);
    let version = Version { file_id, root_at, digest };
    let mut bytes = Vec::new();
    version.encode(&mut bytes);
    let read = move |bytes: &[u8]| {
        let read = Version::decode(&mut Reader::new(bytes));
        assert!(read.is_none_or(|read| read.bytes() > read.root_at));
        read == Some(version)
    };
    (bytes, Box::new(read))
}

fn compressed(rng: &mut Rng) -> Piece {
    let (raw, mut bytes) = (draws::value(rng), Vec::new());
    let codec = Codec::Lz4.compress(&raw, &mut bytes);
    let read = move |bytes: &[u8]| {
        // A length is made up more easily than anything else.
        for length in [0, 1, 1 << 40, usize::MAX] {
            codec.decompress(bytes, length);
        }
        codec.decompress(bytes, raw.len()).is_some_and(|read| read == raw)
    };
    (bytes, Box::new(read))
}
