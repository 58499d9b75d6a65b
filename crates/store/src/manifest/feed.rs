//! What a database says of its feed of changes: how much of the log is kept for it, and of which history its records
//! are. Databases that have a history in common have a line in common.

use forebay_base::wire::{Reader, put_varint};

/// A lineage tells no more lines than this: the oldest are forgotten.
const LINES_MAX: usize = 64;

/// What is said of the feed of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// How much of the log is kept for its changes.
    pub keep_bytes: u64,
    /// Of which history the records are.
    pub lineage: Lineage,
}

/// A stretch of a history: the records that one database has taken in from a number on, until another line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, at random: no other line has it.
    pub id: u64,
    /// The last record before it.
    pub from: u64,
}

/// Which lines have led to a database's records. Two databases whose numbers lie in one line of both have the same
/// records up to the lower of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The id of the database that it began with.
    pub database: u64,
    /// Whether it is a copy that has written nothing itself so far: it may follow.
    pub is_copy: bool,
    /// Whether all that there ever was came in as records of the log: who has none of it can have all by that.
    pub is_whole: bool,
    /// Oldest first.
    pub lines: Vec<Line>,
}

impl Feed {
    /// Whether there is nothing to be said.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.keep_bytes);
        self.lineage.encode(out);
    }

    pub(super) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { keep_bytes: from.varint()?, lineage: Lineage::decode(from)? })
    }
}

impl Lineage {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.database.to_le_bytes());
        out.push(self.is_copy as u8 | (self.is_whole as u8) << 1);
        put_varint(out, self.lines.len() as u64);
        for Line { id, from } in &self.lines {
            out.extend_from_slice(&id.to_le_bytes());
            put_varint(out, *from);
        }
    }

    /// Reads it; `None` where the bytes are none.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let database = from.u64()?;
        let flags = from.u8().filter(|flags| *flags < 4)?;
        let (is_copy, is_whole) = (flags & 1 != 0, flags & 2 != 0);
        let mut lines: Vec<Line> = Vec::new();
        for _ in 0..from.varint()? {
            lines.push(Line { id: from.u64()?, from: from.varint()? });
        }
        let is_sound = lines.len() <= LINES_MAX && lines.is_sorted_by_key(|line| line.from);
        is_sound.then_some(Self { database, is_copy, is_whole, lines })
    }

    /// Begins it, by a line of this number, at a database whose last record this is; `is_whole` where its log has all
    /// there ever was, of which none is before the line then.
    pub fn found(&mut self, database: u64, id: u64, last: u64, is_whole: bool) {
        debug_assert!(self.lines.is_empty(), "a history begins once");
        (self.database, self.is_whole) = (database, is_whole);
        self.begin(id, if is_whole { 0 } else { last });
    }

    /// Another line begins behind this record. Of lines that begin later nothing is left.
    pub fn begin(&mut self, id: u64, from: u64) {
        self.lines.retain(|line| line.from <= from);
        self.lines.push(Line { id, from });
        let surplus = self.lines.len().saturating_sub(LINES_MAX);
        self.lines.drain(..surplus);
        debug_assert!(self.lines.is_sorted_by_key(|line| line.from), "lines follow each other");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_another_begins_and_the_oldest_are_forgotten() {
        let mut lineage = Lineage { database: 7, is_whole: true, ..Lineage::default() };
        for (id, from) in [(1, 0), (2, 10), (3, 20), (4, 15)] {
            lineage.begin(id, from);
        }
        let told: Vec<_> = lineage.lines.iter().map(|line| (line.id, line.from)).collect();
        assert_eq!(told, [(1, 0), (2, 10), (4, 15)]);
        (5..500).for_each(|id| lineage.begin(id, id * 10));
        assert_eq!((lineage.lines.len(), lineage.lines[LINES_MAX - 1].id), (LINES_MAX, 499));
        let mut bytes = Vec::new();
        lineage.encode(&mut bytes);
        assert_eq!(Lineage::decode(&mut Reader::new(&bytes)), Some(lineage));
        for end in 0..bytes.len() {
            assert_eq!(Lineage::decode(&mut Reader::new(&bytes[..end])), None);
        }
    }
}
