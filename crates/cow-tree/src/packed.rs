//! Nodes and values as a file has them: as they are, or, in a file with a codec, compressed by themselves.
//!
//! `varint raw_bytes | bytes`: how long they are when they are whole, and 0 where they do not shrink and follow as they
//! are.

use forebay_base::codec::Codec;
use forebay_base::wire::{Reader as Bytes, put_varint};
use forebay_base::{Error, Result};

use crate::extent::Extent;
use crate::file::Reader;
use crate::tree::Tree;

/// Replaces `stored` by what a file with this codec has for these bytes.
pub(crate) fn pack(codec: Codec, raw: &[u8], stored: &mut Vec<u8>) {
    debug_assert_ne!(codec, Codec::None, "without a codec bytes stand as they are");
    stored.clear();
    put_varint(stored, raw.len() as u64);
    if codec.compress(raw, stored) == Codec::None {
        stored.clear();
        stored.push(0);
        stored.extend_from_slice(raw);
    }
}

/// Makes what a file with this codec has whole again. `None` where that does not stand for anything.
pub(crate) fn unpack(codec: Codec, stored: &mut Vec<u8>) -> Option<()> {
    if codec == Codec::None {
        return Some(());
    }
    let mut from = Bytes::new(stored);
    let raw_bytes = usize::try_from(from.varint()?).ok()?;
    let head_bytes = stored.len() - from.remaining();
    match raw_bytes {
        0 => drop(stored.drain(..head_bytes)),
        _ => *stored = codec.decompress(&stored[head_bytes..], raw_bytes)?,
    }
    Some(())
}

impl Tree {
    /// A node or a value by itself, around the cache.
    pub(crate) fn read_whole(&self, extent: Extent, bytes: &mut Vec<u8>, reader: Reader) -> Result<()> {
        self.read(extent, bytes, reader)?;
        self.unpack(extent, bytes)
    }

    /// Makes a node or a value whole that was read as the file has it.
    pub(crate) fn unpack(&self, extent: Extent, bytes: &mut Vec<u8>) -> Result<()> {
        let damaged =
            || Error::corruption(self.path(), extent.at, "what is compressed there stands for nothing");
        unpack(self.root()?.codec, bytes).ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_no_cut_or_wild_bytes_panic() {
        let uneven: Vec<u8> = (0..200_u32).map(|at| (at * at * 7) as u8).collect();
        for raw in [&b""[..], b"a", &[b'a'; 500], &uneven] {
            let mut stored = Vec::new();
            pack(Codec::Lz4, raw, &mut stored);
            assert!(stored.len() <= raw.len() + 1, "a byte more at most");
            for cut in 0..stored.len() {
                let mut cut = stored[..cut].to_vec();
                assert!(unpack(Codec::Lz4, &mut cut).is_none() || cut != raw);
            }
            for at in 0..stored.len() {
                let mut wild = stored.clone();
                wild[at] ^= 0x55;
                unpack(Codec::Lz4, &mut wild);
            }
            assert_eq!(unpack(Codec::Lz4, &mut stored), Some(()));
            assert_eq!(stored, raw);
        }
        let mut long = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3];
        assert_eq!(unpack(Codec::Lz4, &mut long), None, "no memory is asked for that cannot be filled");
    }
}
