//! Checksums seeded with where the bytes belong, so that a stale, swapped or misdirected block fails as
//! surely as a damaged one.

use crate::hash::mix;

/// The CRC-32C of `bytes` that belong at `offset` of the file with this id.
#[inline]
pub fn checksum(file_id: u64, offset: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed(file_id, offset), bytes)
}

/// The CRC-32C of `bytes` alone.
#[inline]
pub fn plain(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues a checksum over more bytes.
#[inline]
pub fn append(sum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(sum, bytes)
}

#[inline]
fn seed(file_id: u64, offset: u64) -> u32 {
    mix(file_id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mix(offset)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_part_of_the_sum() {
        let sum = checksum(7, 4096, b"page");
        assert_ne!(sum, checksum(8, 4096, b"page"));
        assert_ne!(sum, checksum(7, 8192, b"page"));
        assert_ne!(sum, checksum(7, 4096, b"pagf"));
    }
}
