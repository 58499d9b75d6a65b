//! The persistent 64-bit hashes. Their outputs are part of the file format: the superblock holds the seed
//! and [`VERSION`], and a change of either function needs a new version.

/// The version of the functions below, as the superblock stores it.
pub const VERSION: u8 = 1;

const LENGTH_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a key. Up to eight bytes it is an invertible mix of the padded key and its length, so two
/// keys of one such length never collide; longer keys go through rapidhash V3.
#[inline]
pub fn key_hash(key: &[u8], seed: u64) -> u64 {
    if let Some(word) = padded(key) {
        let length = (key.len() as u64).wrapping_mul(LENGTH_STEP);
        mix(word ^ seed.wrapping_add(length))
    } else {
        rapidhash::v3::rapidhash_v3_seeded(key, &rapidhash::v3::RapidSecrets::seed_cpp(seed))
    }
}

/// A key of up to eight bytes with zeros behind it, little-endian: two loads that may overlap, where a copy of a length
/// that is not known would be a call.
#[inline]
fn padded(key: &[u8]) -> Option<u64> {
    macro_rules! ends {
        ($number:ty, $bytes:literal) => {{
            let (first, last) = (key.first_chunk::<$bytes>()?, key.last_chunk::<$bytes>()?);
            let [first, last] = [first, last].map(|bytes| u64::from(<$number>::from_le_bytes(*bytes)));
            first | last << (8 * (key.len() - $bytes))
        }};
    }
    Some(match key.len() {
        0 => 0,
        1 => key[0].into(),
        2..4 => ends!(u16, 2),
        4..8 => ends!(u32, 4),
        8 => ends!(u64, 8),
        _ => return None,
    })
}

/// An invertible mix of 64 bits in which every input bit moves every output bit (the finaliser of
/// SplitMix64).
#[inline]
pub const fn mix(mut word: u64) -> u64 {
    word ^= word >> 30;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^= word >> 27;
    word = word.wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The key of `key_bytes` bytes, eight at most, that has this hash: the inverse of [`key_hash`]. What lies behind the
/// key in the answer is zero if there is such a key.
#[inline]
pub fn short_key(hash: u64, key_bytes: usize, seed: u64) -> [u8; 8] {
    let length = (key_bytes as u64).wrapping_mul(LENGTH_STEP);
    (unmix(hash) ^ seed.wrapping_add(length)).to_le_bytes()
}

/// The inverse of [`mix`].
#[inline]
const fn unmix(mut word: u64) -> u64 {
    word ^= word >> 31 ^ word >> 62;
    word = word.wrapping_mul(0x3196_42b2_d24d_8ec3);
    word ^= word >> 27 ^ word >> 54;
    word = word.wrapping_mul(0x96de_1b17_3f11_9089);
    word ^ word >> 30 ^ word >> 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_frozen() {
        let keys: [&[u8]; 4] = [b"", b"forebay", b"forebay!", b"a key longer than eight bytes"];
        assert_eq!(keys.map(|key| key_hash(key, 1)), GOLDEN);
        assert_ne!(key_hash(b"a", 1), key_hash(b"a", 2), "the seed matters");
        assert_ne!(key_hash(b"a", 1), key_hash(b"a\0", 1), "the length matters");
    }

    #[test]
    fn short_keys_are_padded_with_zeros() {
        let key = *b"\xff\x02\x03\x84\x05\x06\x07\xf8\x09";
        for length in 0..=8 {
            let mut word = [0; 8];
            word[..length].copy_from_slice(&key[..length]);
            assert_eq!(padded(&key[..length]), Some(u64::from_le_bytes(word)), "{length} bytes");
        }
        assert_eq!(padded(&key), None);
    }

    #[test]
    fn short_keys_come_back() {
        for key in [&b""[..], b"a", b"forebay", b"forebay!", &[255; 8]] {
            let found = short_key(key_hash(key, 7), key.len(), 7);
            assert_eq!(&found[..key.len()], key);
            assert!(found[key.len()..].iter().all(|&byte| byte == 0));
        }
    }

    const GOLDEN: [u64; 4] =
        [6238072747940578789, 7480441124045419165, 4414881302158622235, 12808455303204390001];
}
