//! Reading and writing the small binary pieces that every format is made of: little-endian integers
//! and LEB128 varints. A reader never panics: past the end it answers `None`.

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    let (start, whole) = (out.len(), value);
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    debug_assert_eq!(out.len() - start, varint_bytes(whole));
}

/// Appends bytes. Eight or sixteen of them, the commonest keys and values, are a store rather than a call.
#[inline]
pub fn put_raw(out: &mut Vec<u8>, bytes: &[u8]) {
    if let Ok(word) = <[u8; 8]>::try_from(bytes) {
        out.extend_from_slice(&word);
    } else if let Ok(words) = <[u8; 16]>::try_from(bytes) {
        out.extend_from_slice(&words);
    } else {
        out.extend_from_slice(bytes);
    }
}

/// Whether two byte strings are equal; for short ones without a call.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    // The first and the last bytes, which may overlap.
    macro_rules! ends {
        ($bytes:literal) => {
            one.first_chunk::<$bytes>() == other.first_chunk()
                && one.last_chunk::<$bytes>() == other.last_chunk()
        };
    }
    match one.len() {
        length if length != other.len() => false,
        4..8 => ends!(4),
        8..=16 => ends!(8),
        17..=32 => ends!(16),
        _ => one == other,
    }
}

/// Appends bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    debug_assert_eq!(Reader::new(&out[start..]).bytes(), Some(bytes), "what is put is read");
}

/// The varint at the start of `bytes` and its length, or `None` where it is cut or overlong.
#[inline]
pub fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((first as u64, 1));
    }
    let mut value = (first & 0x7f) as u64;
    for (index, &byte) in bytes.iter().enumerate().take(10).skip(1) {
        let bits = (byte & 0x7f) as u64;
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// How many bytes `value` takes as a varint.
#[inline]
pub fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// A cursor over a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    /// A little-endian 16-bit integer.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.array()?))
    }

    /// A little-endian 32-bit integer.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    /// A little-endian 64-bit integer.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    /// A varint.
    pub fn varint(&mut self) -> Option<u64> {
        let (value, used) = get_varint(self.rest)?;
        self.rest = &self.rest[used..];
        Some(value)
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.take(count)
    }
}

/// The first eight bytes of `bytes` as a little-endian integer; the caller knows that there are eight.
#[inline]
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

/// Four bytes at `offset` as a little-endian integer; the caller knows that there are four.
#[inline]
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_of_any_length_are_compared() {
        for length in 0..40usize {
            let one: Vec<u8> = (0..length as u8).collect();
            assert!(is_same(&one, &one.clone()));
            assert!(!is_same(&one, &[&one[..], &[0]].concat()));
            for differing in 0..length {
                let mut other = one.clone();
                other[differing] ^= 0x80;
                assert!(!is_same(&one, &other), "{length} bytes, byte {differing}");
            }
        }
    }

    #[test]
    fn varints_round_trip_and_cut_ones_are_refused() {
        for value in [0, 1, 127, 128, 300, u32::MAX as u64, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_bytes(value));
            assert_eq!(get_varint(&out), Some((value, out.len())));
            for cut in 0..out.len() {
                assert_eq!(get_varint(&out[..cut]), None);
            }
        }
        assert_eq!(get_varint(&[0xff; 10]), None, "more than 64 bits");
    }
}
