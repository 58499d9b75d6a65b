//! Page compression: bytes to bytes.

/// How a page's payload is stored. The numbers are part of the list format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Codec {
    /// As it is.
    #[default]
    None = 0,
    /// LZ4 block format.
    Lz4 = 1,
}

impl Codec {
    /// The codec of this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Appends the compressed form of `raw` to `out`, and says which codec was worth it: what does not
    /// shrink stays as it is.
    pub fn compress(self, raw: &[u8], out: &mut Vec<u8>) -> Self {
        if self == Self::Lz4 {
            let start = out.len();
            out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
            if let Ok(used) = lz4_flex::block::compress_into(raw, &mut out[start..])
                && used < raw.len()
            {
                out.truncate(start + used);
                debug_assert_eq!(self.decompress(&out[start..], raw.len()).as_deref(), Some(raw));
                return Self::Lz4;
            }
            out.truncate(start);
        }
        out.extend_from_slice(raw);
        Self::None
    }

    /// The `raw_bytes` bytes that `stored` stands for; `None` where it does not stand for that many.
    pub fn decompress(self, stored: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
        match self {
            Self::None => (stored.len() == raw_bytes).then(|| stored.to_vec()),
            Self::Lz4 => {
                // LZ4 cannot expand more than 255-fold: a damaged length must not ask for more memory.
                if raw_bytes > stored.len().saturating_mul(255) {
                    return None;
                }
                let mut raw = vec![0; raw_bytes];
                let used = lz4_flex::block::decompress_into(stored, &mut raw).ok()?;
                (used == raw_bytes).then_some(raw)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_codecs_give_back_what_went_in() {
        for raw in [Vec::new(), b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab".repeat(50), (0..=255).collect()]
        {
            for codec in [Codec::None, Codec::Lz4] {
                let mut stored = Vec::new();
                let used = codec.compress(&raw, &mut stored);
                assert_eq!(used.decompress(&stored, raw.len()), Some(raw.clone()));
                assert_eq!(used.decompress(&stored, raw.len() + 1), None);
            }
        }
    }
}
