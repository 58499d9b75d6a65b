//! What a leaf holds merged: chunks in the order of hashes, in which each key comes once.

use forebay_base::hash::key_hash;

use super::chunk::Packer;
use super::columns::Columns;
use super::leaves::SEED;

/// What a chunk takes besides its bytes: its entry, and what an allocator adds.
const CHUNK_ENTRY_BYTES: usize = size_of::<Chunk>() + 16;

/// Packed records, and the hash of the first.
pub(super) struct Chunk {
    pub(super) first: u64,
    pub(super) bytes: Box<[u8]>,
}

/// The chunks of a leaf.
#[derive(Default)]
pub(super) struct Base {
    pub(super) chunks: Vec<Chunk>,
    pub(super) records: u64,
    bytes: usize,
}

impl Base {
    /// Packs records that come behind all that are there, of which there is at least one.
    pub(super) fn push(&mut self, packer: &mut Packer, records: &Columns) {
        let bytes: Box<[u8]> = packer.pack(records).into();
        self.records += records.len() as u64;
        self.bytes += bytes.len() + CHUNK_ENTRY_BYTES;
        self.chunks.push(Chunk { first: records.hashes[0], bytes });
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes off the last chunk.
    pub(super) fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop()?;
        self.bytes -= chunk.bytes.len() + CHUNK_ENTRY_BYTES;
        self.records -= count(std::slice::from_ref(&chunk));
        Some(chunk)
    }

    /// Takes off the chunks from this hash on, on both sides of which none lies.
    pub(super) fn split_off(&mut self, hash: u64) -> Self {
        let upper = self.chunks.split_off(self.chunks.partition_point(|chunk| chunk.first < hash));
        let bytes = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.bytes.len() + CHUNK_ENTRY_BYTES).sum();
        let upper = Self { bytes: bytes(&upper), records: count(&upper), chunks: upper };
        self.chunks.shrink_to_fit();
        (self.bytes, self.records) = (bytes(&self.chunks), self.records - upper.records);
        upper
    }

    /// The state of a key.
    pub(super) fn get(&self, key: &[u8], state_bytes: Option<usize>) -> Option<Vec<u8>> {
        let hash = key_hash(key, SEED);
        let mut records = Columns::new(state_bytes);
        let mut packer = Packer::new(state_bytes);
        // Keys of one hash may begin in the chunk before.
        let first = self.chunks.partition_point(|chunk| chunk.first < hash).saturating_sub(1);
        for chunk in self.chunks[first..].iter().take_while(|chunk| chunk.first <= hash) {
            packer.unpack(&chunk.bytes, &mut records)?;
            let at = records.seek(records.hashes.partition_point(|&other| other < hash), hash, key);
            if records.is(at, hash, key) {
                return Some(records.states.get(at).to_vec());
            }
        }
        None
    }
}

/// How many records lie in chunks.
fn count(chunks: &[Chunk]) -> u64 {
    chunks
        .iter()
        .filter_map(|chunk| forebay_base::wire::get_varint(&chunk.bytes))
        .map(|(count, _)| count)
        .sum()
}
