//! Records of differing lengths: where each ends, in a word; and copying short ones without a call.

use crate::limits::KEY_BYTES_MAX;

/// Where a record ends, and the length of its key, in one word: keys are of 64 KiB at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct End(u64);

const KEY_BITS: u32 = 17;

const _: () = assert!(KEY_BYTES_MAX < 1 << KEY_BITS, "any key's length has room beside where it ends");

impl End {
    #[inline]
    pub(super) fn new(end: usize, key_bytes: usize) -> Self {
        debug_assert!(key_bytes < 1 << KEY_BITS && key_bytes <= end);
        Self((end as u64) << KEY_BITS | key_bytes as u64)
    }

    #[inline]
    pub(super) fn end(self) -> usize {
        (self.0 >> KEY_BITS) as usize
    }

    #[inline]
    pub(super) fn key_bytes(self) -> usize {
        (self.0 & ((1 << KEY_BITS) - 1)) as usize
    }
}

/// Appends `from[start..end]`. Up to this many bytes are copied as this many, wherever they are there, and cut: a few
/// stores rather than a call.
#[inline]
pub(super) fn put_short(out: &mut Vec<u8>, from: &[u8], start: usize, end: usize) {
    const SHORT: usize = 32;
    match from[start..].first_chunk::<SHORT>() {
        Some(chunk) if end - start <= SHORT => {
            let len = out.len() + end - start;
            out.extend_from_slice(chunk);
            out.truncate(len);
        }
        _ => out.extend_from_slice(&from[start..end]),
    }
}
