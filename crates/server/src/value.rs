//! What a key holds: one byte that says of which type it is, and then the text, or the header of a container. See
//! `docs/format/server.md`.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    String,
    Hash,
    Set,
    SortedSet,
    List,
    /// Sketches, which stand in the value as texts do.
    HyperLogLog,
    CountMin,
    Bloom,
    TopK,
    TDigest,
}

/// Each with the byte that stands for it, and the name that clients know.
const ALL: [(Type, u8, &str); 10] = [
    (Type::String, b's', "string"),
    (Type::Hash, b'h', "hash"),
    (Type::Set, b'm', "set"),
    (Type::SortedSet, b'z', "zset"),
    (Type::List, b'l', "list"),
    (Type::HyperLogLog, b'p', "hyperloglog"),
    (Type::CountMin, b'c', "CMSk-TYPE"),
    (Type::Bloom, b'b', "MBbloom--"),
    (Type::TopK, b't', "TopK-TYPE"),
    (Type::TDigest, b'q', "TDIS-TYPE"),
];

impl Type {
    fn mark(self) -> u8 {
        ALL[self as usize].1
    }

    pub(crate) fn name(self) -> &'static str {
        ALL[self as usize].2
    }

    /// Of what is stored; `None` where a newer server wrote it.
    pub(crate) fn of(stored: &[u8]) -> Option<Self> {
        let mark = stored.first()?;
        ALL.iter().find(|one| one.1 == *mark).map(|one| one.0)
    }
}

/// Puts the mark of a text before it.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    marked(Type::String, text)
}

/// Puts the mark of a type before what stands in the value itself.
pub(crate) fn marked(kind: Type, bytes: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + bytes.len());
    stored.push(kind.mark());
    stored.extend_from_slice(bytes);
    stored
}

/// What a key holds of a hash, a set, a sorted set or a list: its elements stand in a table of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Type,
    /// No other container of the database has had this number.
    pub(crate) id: u64,
    /// So many elements it has, never none.
    pub(crate) count: u64,
    /// Of a list: the place of its first element. The others follow without a gap.
    pub(crate) first: i64,
}

/// Whose elements stand in a table of their own.
const CONTAINERS: [Type; 4] = [Type::Hash, Type::Set, Type::SortedSet, Type::List];
/// Mark, number, count and first place.
const HEADER_BYTES: usize = 1 + 8 + 8 + 8;

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut stored = Vec::with_capacity(HEADER_BYTES);
        stored.push(self.kind.mark());
        stored.extend_from_slice(&self.id.to_le_bytes());
        stored.extend_from_slice(&self.count.to_le_bytes());
        stored.extend_from_slice(&self.first.to_le_bytes());
        stored
    }

    /// Of what is stored; `None` where that is no container.
    pub(crate) fn of(stored: &[u8]) -> Option<Self> {
        let kind = Type::of(stored).filter(|kind| CONTAINERS.contains(kind))?;
        let numbers: &[u8; HEADER_BYTES - 1] = stored[1..].try_into().ok()?;
        let [id, count, first] = [0, 8, 16].map(|at| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[at..at + 8]);
            u64::from_le_bytes(bytes)
        });
        Some(Self { kind, id, count, first: first as i64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_headers_come_back() {
        for (at, (kind, mark, _)) in ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at, "they stand in their order");
            assert_eq!(Type::of(&[*mark]), Some(*kind));
        }
        let header = Header { kind: Type::List, id: 7, count: 3, first: -2 };
        assert_eq!(Header::of(&header.encode()), Some(header));
        assert_eq!(Header::of(&header.encode()[..24]), None);
        assert_eq!(Header::of(&string(b"text")), None);
        assert_eq!(Header::of(&marked(Type::TopK, &[0; 24])), None);
        assert_eq!(Type::of(b"?"), None);
    }
}
