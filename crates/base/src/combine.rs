//! What becomes of several records of one key.

use crate::record::{Kind, Record};

/// A table's rule for folding operands. Puts and deletes are barriers: what is older than one is dropped.
pub trait Combine: Send + Sync {
    /// Appends to `out` the fold of a newer operand into an older operand or value of `key`.
    fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>);
}

/// The rule of plain tables, which hold no operands; if one is met, the newer wins.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastWriterWins;

impl Combine for LastWriterWins {
    fn fold(&self, _key: &[u8], newer: &[u8], _older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
    }
}

/// How much lies beneath the records being collapsed. Only at the bottom may a tombstone vanish and an
/// operand become a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Older records of the same keys may exist elsewhere.
    Partial,
    /// Nothing older exists anywhere.
    Bottom,
}

/// Folds the records of one key, fed newest first, into at most one.
#[derive(Debug, Default)]
pub struct Fold {
    kind: Option<Kind>,
    value: Vec<u8>,
    spare: Vec<u8>,
}

impl Fold {
    /// Forgets the last key.
    pub fn clear(&mut self) {
        self.kind = None;
        self.value.clear();
    }

    /// Adds the next older record. Returns whether still older ones can matter.
    pub fn add(&mut self, rule: &impl Combine, record: &Record<'_>) -> bool {
        match self.kind {
            None => {
                self.kind = Some(record.kind);
                self.value.extend_from_slice(record.value);
            }
            Some(Kind::Merge) => match record.kind {
                Kind::Delete => self.kind = Some(Kind::Put),
                older => {
                    self.spare.clear();
                    rule.fold(record.key, &self.value, record.value, &mut self.spare);
                    std::mem::swap(&mut self.value, &mut self.spare);
                    self.kind = Some(older);
                }
            },
            Some(_) => {}
        }
        self.kind == Some(Kind::Merge)
    }

    /// The key's value, if all records of the key that can matter were added and it has one.
    pub fn into_value(self) -> Option<Vec<u8>> {
        (self.kind? != Kind::Delete).then_some(self.value)
    }

    /// The record that stands for all that were added, or `None` when nothing is left of them.
    pub fn finish<'a>(&'a self, key: &'a [u8], depth: Depth) -> Option<Record<'a>> {
        let kind = match (self.kind?, depth) {
            (Kind::Delete, Depth::Bottom) => return None,
            (Kind::Merge, Depth::Bottom) => Kind::Put,
            (kind, _) => kind,
        };
        Some(Record { kind, key, value: &self.value })
    }
}
