//! The block that ends an append: what the tree comes to and where its topmost node is. And the version, by
//! which others remember a root.

use std::path::Path;

use forebay_base::checksum::checksum;
use forebay_base::codec::Codec;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::wire::{Reader, put_varint, u32_at};
use forebay_base::{Error, Kind, Order, Record, Result};
use forebay_store::list::Expiries;

use crate::extent::Extent;
use crate::filter::Chain;
use crate::node::LEVEL_MAX;

const MAGIC: &[u8; 8] = b"FBCOWT\r\n";
/// The versions of the format: of roots that reach no record of kind pointer, of others, and of files with a codec, which
/// say both. The newest is the last.
const FORMAT_PLAIN: u32 = 1;
const FORMAT_POINTERS: u32 = 2;
const FORMAT_PACKED: u32 = 3;

/// A root's length; it begins at a multiple of that.
pub(crate) const ROOT_BYTES: u64 = BLOCK_BYTES as u64;

const _: () =
    assert!(ROOT_BYTES.is_power_of_two() && LEVEL_MAX < u8::MAX, "a height is a level and one more");

/// One root of one file: all that it takes to open a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// The file.
    pub file_id: u64,
    /// Where the root begins.
    pub root_at: u64,
    /// The root's checksum, which vouches for all that it reaches.
    pub digest: u32,
}

impl Version {
    /// The one whose root ends a file of this many bytes.
    pub fn ending_at(file_id: u64, bytes: u64, digest: u32) -> Self {
        Self { file_id, root_at: bytes.saturating_sub(ROOT_BYTES), digest }
    }

    /// How long the file is up to the root's end. What is behind does not belong to this version.
    pub fn bytes(&self) -> u64 {
        self.root_at + ROOT_BYTES
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.file_id);
        put_varint(out, self.root_at / ROOT_BYTES);
        out.extend_from_slice(&self.digest.to_le_bytes());
    }

    /// What [`encode`](Self::encode) appended; `None` where the bytes are no version.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (file_id, block, digest) = (from.varint()?, from.varint()?, from.u32()?);
        // Offsets of files are signed for the system.
        let root_at = block.checked_mul(ROOT_BYTES).filter(|&at| at < i64::MAX as u64 - ROOT_BYTES)?;
        Some(Self { file_id, root_at, digest })
    }
}

/// The topmost node of a tree that has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Top {
    pub(crate) node: Extent,
    pub(crate) level: u8,
}

/// What a root block says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Root {
    pub(crate) order_is_lexical: bool,
    /// Whether values of its records may stand in value files.
    pub(crate) has_pointers: bool,
    /// By what nodes and values of the file are compressed.
    pub(crate) codec: Codec,
    /// Where the append began that this root ends.
    pub(crate) append_at: u64,
    /// The checksum of all that it wrote before this root, padding included.
    pub(crate) append_sum: u32,
    pub(crate) records: u64,
    /// Bytes of nodes, values and parts of filters that the root reaches, and of the root itself.
    pub(crate) live_bytes: u64,
    pub(crate) top: Option<Top>,
    pub(crate) filter: Option<Chain>,
    pub(crate) lives: Lives,
}

/// When what was written expires, since the file was built. What is replaced later stays counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lives {
    /// Puts and operands.
    pub(crate) entries: u64,
    pub(crate) expiries: Expiries,
}

impl Lives {
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        self.entries += u64::from(record.kind != Kind::Delete);
        self.expiries.add(record);
    }
}

impl Root {
    /// Live bytes of nodes and values.
    pub(crate) fn node_bytes(&self) -> u64 {
        self.live_bytes.saturating_sub(ROOT_BYTES + self.filter_bytes())
    }

    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter.map_or(0, |chain| chain.bytes)
    }

    pub(crate) fn encode(&self, file_id: u64, root_at: u64) -> [u8; ROOT_BYTES as usize] {
        let mut fields = Vec::with_capacity(160);
        fields.extend_from_slice(&[0; 4]);
        fields.extend_from_slice(MAGIC);
        let format = match (self.codec, self.has_pointers) {
            (Codec::None, false) => FORMAT_PLAIN,
            (Codec::None, true) => FORMAT_POINTERS,
            _ => FORMAT_PACKED,
        };
        fields.extend_from_slice(&format.to_le_bytes());
        for word in [file_id, self.append_at, self.records, self.live_bytes] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        let none = Extent { at: 0, bytes: 0, sum: 0 };
        let (node, height) = self.top.map_or((none, 0), |top| (top.node, top.level as u32 + 1));
        for word in [self.append_sum, self.order_is_lexical as u32, height, node.bytes, node.sum] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        fields.extend_from_slice(&node.at.to_le_bytes());
        let nothing = Chain { newest: none, blocks: 0, parts: 0, bytes: 0 };
        let Chain { newest, blocks, parts, bytes } = self.filter.unwrap_or(nothing);
        for word in [newest.bytes, newest.sum] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        fields.extend_from_slice(&newest.at.to_le_bytes());
        for word in [blocks, parts] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        fields.extend_from_slice(&bytes.to_le_bytes());
        let Lives { entries, expiries: Expiries { records, first, last } } = self.lives;
        for word in [entries, records, first, last] {
            fields.extend_from_slice(&word.to_le_bytes());
        }
        if format == FORMAT_PACKED {
            fields.extend_from_slice(&[self.codec as u8, self.has_pointers.into()]);
        }
        let mut block = [0; ROOT_BYTES as usize];
        block[..fields.len()].copy_from_slice(&fields);
        let sum = checksum(file_id, root_at, &block[4..]);
        block[..4].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// Whether these bytes, as a block of a file, are this root.
    pub(crate) fn is_read_from(&self, block: &[u8], file_id: u64, root_at: u64) -> bool {
        let order = if self.order_is_lexical { Order::Lexical } else { Order::Hashed { seed: 0 } };
        Self::digest_of(block, file_id, root_at).is_some()
            && Self::decode(block, Path::new(""), root_at, order).is_ok_and(|read| read == *self)
    }

    /// The root's own checksum, if the block is one that was written there.
    pub(crate) fn digest_of(block: &[u8], file_id: u64, root_at: u64) -> Option<u32> {
        let is_root = block.len() == ROOT_BYTES as usize && block[4..12] == *MAGIC;
        (is_root && checksum(file_id, root_at, &block[4..]) == u32_at(block, 0)).then(|| u32_at(block, 0))
    }

    /// What a block says whose checksum was compared.
    pub(crate) fn decode(block: &[u8], path: &Path, root_at: u64, order: Order) -> Result<Self> {
        let damaged = |reason: &str| Error::corruption(path, root_at, reason);
        let mut from = Reader::new(block.get(12..).unwrap_or_default());
        let (format, known) = (from.u32().unwrap_or_default(), FORMAT_PACKED);
        if format > known {
            return Err(Error::NewerFormat { file: path.to_path_buf(), version: format, known });
        }
        let root = Self::fields(&mut from, format, root_at)
            .ok_or_else(|| damaged("the root's fields do not fit"))?;
        if root.order_is_lexical != order.is_lexical() {
            return Err(damaged("the tree is sorted in another order than its table"));
        }
        Ok(root)
    }

    fn fields(from: &mut Reader<'_>, format: u32, root_at: u64) -> Option<Self> {
        let _file_id = from.u64()?;
        let (append_at, records, live_bytes) = (from.u64()?, from.u64()?, from.u64()?);
        let (append_sum, order_is_lexical, height) = (from.u32()?, from.u32()? == 1, from.u32()?);
        let (bytes, sum, at) = (from.u32()?, from.u32()?, from.u64()?);
        let top = match height.checked_sub(1) {
            None => None,
            Some(level) => {
                let level = u8::try_from(level).ok().filter(|&level| level <= LEVEL_MAX)?;
                Some(Top { node: Extent { at, bytes, sum }, level })
            }
        };
        let newest = Extent { bytes: from.u32()?, sum: from.u32()?, at: from.u64()? };
        let chain = Chain { newest, blocks: from.u32()?, parts: from.u32()?, bytes: from.u64()? };
        let filter = (chain.parts > 0).then_some(chain);
        let (entries, expiring) = (from.u64()?, from.u64()?);
        let expiries = Expiries { records: expiring, first: from.u64()?, last: from.u64()? };
        let lives = Lives { entries, expiries };
        let (codec, has_pointers) = match format {
            FORMAT_PACKED => {
                let codec = Codec::from_byte(from.u8()?).filter(|codec| *codec != Codec::None)?;
                (codec, from.u8().filter(|&flag| flag <= 1)? == 1)
            }
            _ => (Codec::None, format == FORMAT_POINTERS),
        };
        let fits = append_at <= root_at
            && expiring <= entries
            && expiries.first <= expiries.last
            && filter.is_none_or(|chain| chain.fits(root_at, live_bytes))
            && live_bytes <= root_at + ROOT_BYTES
            && at.checked_add(bytes as u64)? <= root_at;
        fits.then_some(Self {
            order_is_lexical,
            has_pointers,
            codec,
            append_at,
            append_sum,
            records,
            live_bytes,
            top,
            filter,
            lives,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_comes_back_and_no_cut_or_wild_one_is_accepted() {
        let version = Version { file_id: 300, root_at: 77 * ROOT_BYTES, digest: 0xdead_beef };
        let mut bytes = Vec::new();
        version.encode(&mut bytes);
        assert_eq!(Version::decode(&mut Reader::new(&bytes)), Some(version));
        for cut in 0..bytes.len() {
            assert_eq!(Version::decode(&mut Reader::new(&bytes[..cut])), None);
        }
        let mut wild = Vec::new();
        Version { root_at: u64::MAX, ..version }.encode(&mut wild);
        assert_eq!(Version::decode(&mut Reader::new(&wild)), None);
    }

    #[test]
    fn a_root_comes_back_and_only_from_its_place() {
        let node = Extent { at: 100, bytes: 200, sum: 3 };
        let newest = Extent { at: 300, bytes: 33, sum: 4 };
        let chain = Chain { newest, blocks: 1, parts: 2, bytes: 50 };
        let root = Root {
            order_is_lexical: true,
            has_pointers: true,
            codec: Codec::None,
            append_at: 4096,
            append_sum: 9,
            records: 5,
            live_bytes: 5000,
            top: Some(Top { node, level: 2 }),
            filter: Some(chain),
            lives: Lives { entries: 5, expiries: Expiries { records: 4, first: 10, last: 20 } },
        };
        let (path, at) = (Path::new("t"), 8 * ROOT_BYTES);
        let block = root.encode(7, at);
        assert_eq!(Root::digest_of(&block, 7, at), Some(u32_at(&block, 0)));
        assert_eq!(Root::digest_of(&block, 8, at), None, "another file");
        assert_eq!(Root::digest_of(&block, 7, at + ROOT_BYTES), None, "another place");
        assert_eq!(Root::decode(&block, path, at, Order::Lexical).unwrap(), root);
        for has_pointers in [false, true] {
            let packed = Root { codec: Codec::Lz4, has_pointers, ..root };
            let block = packed.encode(7, at);
            assert_eq!(Root::decode(&block, path, at, Order::Lexical).unwrap(), packed);
            assert!(Root::decode(&block[..141], path, at, Order::Lexical).is_err());
        }
        assert!(Root::decode(&block, path, at, Order::Hashed { seed: 1 }).is_err());
        assert!(Root::decode(&block, path, 0, Order::Lexical).is_err(), "it reaches behind itself");
        let wild = [
            Chain { newest: Extent { at: u64::MAX, ..newest }, ..chain },
            Chain { newest: Extent { at, ..newest }, ..chain },
            Chain { blocks: 0, ..chain },
            Chain { blocks: 2, ..chain },
            Chain { parts: 65, ..chain },
            Chain { bytes: 905, ..chain },
        ];
        for filter in wild {
            let block = Root { filter: Some(filter), ..root }.encode(7, at);
            assert!(Root::decode(&block, path, at, Order::Lexical).is_err(), "{filter:?}");
        }
        for lives in [
            Lives { entries: 3, ..root.lives },
            Lives { expiries: Expiries { first: 21, ..root.lives.expiries }, ..root.lives },
        ] {
            let block = Root { lives, ..root }.encode(7, at);
            assert!(Root::decode(&block, path, at, Order::Lexical).is_err(), "{lives:?}");
        }
        for cut in 0..140 {
            assert!(Root::decode(&block[..cut], path, at, Order::Lexical).is_err());
        }
    }
}
