//! The order of keys: by hash, then by key.

use forebay_base::hash::key_hash;

pub(crate) use crate::spilled::HASH_SEED as SEED;

/// How keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashing {
    /// All bits, but in tests, where other keys are to have equal hashes.
    kept: u64,
}

impl Hashing {
    pub(super) const WHOLE: Self = Self { kept: u64::MAX };

    /// With as many different hashes as so many bits have, which are far apart.
    pub(super) fn colliding(bits: u32) -> Self {
        Self { kept: !u64::MAX.checked_shr(bits).unwrap_or(0) }
    }

    #[inline]
    pub(super) fn of(self, key: &[u8]) -> u64 {
        key_hash(key, SEED) & self.kept
    }

    /// The same of a key whose whole hash is this.
    #[inline]
    pub(super) fn cut(self, hash: u64) -> u64 {
        hash & self.kept
    }

    /// Whether the hash of a short key gives it back.
    pub(super) fn is_invertible(self) -> bool {
        self == Self::WHOLE
    }
}
