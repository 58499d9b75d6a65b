//! Numbers in a sketch's bytes, one behind the other.

use super::{Refusal, damaged};

/// What is left to be read.
pub(super) struct Rest<'b>(pub(super) &'b [u8]);

impl<'b> Rest<'b> {
    pub(super) fn u32(&mut self) -> Result<u32, Refusal> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*first))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Refusal> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'b [u8], Refusal> {
        let (first, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(first)
    }
}

/// A number of a sketch that was looked at as a whole.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Two hashes of an item, of which a sketch makes as many as it needs.
pub(super) fn hashes(item: &[u8]) -> (u64, u64) {
    let first = rapidhash::v3::rapidhash_v3(item);
    (first, rapidhash::v3::rapidhash_v3(&first.to_le_bytes()) | 1)
}

/// A place below a bound, of the number-th hash.
pub(super) fn place((first, second): (u64, u64), number: u32, below: u64) -> u64 {
    let hash = first.wrapping_add(second.wrapping_mul(u64::from(number)));
    ((u128::from(hash) * u128::from(below)) >> 64) as u64
}
