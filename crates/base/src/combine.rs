//! What becomes of several records of one key.

use crate::limits::STORED_VALUE_BYTES_MAX;
use crate::record::{Kind, Record};

/// A table's rule for folding records of one key, which are *open* or *decided*: an open one is folded into the next
/// older one, and what is older than a decided one is dropped. Operands are open, and puts are decided; of states it is
/// the other way round. Deletes are decided, and what is open above one becomes decided.
pub trait Combine: Send + Sync {
    /// Appends to `out` the fold of a newer operand into an older operand or value of `key`.
    fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>);

    /// Whether an open record is folded into this older one. Where it is not, what is older counts no more, and the
    /// newer one is decided.
    #[inline]
    fn joins(&self, _newer: &[u8], _older: &[u8]) -> bool {
        true
    }

    /// Whether puts are states, which merge with all older ones, rather than values that hide them.
    fn merges_puts(&self) -> bool {
        false
    }

    /// Whether a table of states has deletes, and so states that are decided. Otherwise all its records are puts.
    fn deletes_states(&self) -> bool {
        false
    }

    /// Whether what is older still matters to records of this kind.
    #[inline]
    fn is_open(&self, kind: Kind) -> bool {
        kind == if self.merges_puts() { Kind::Put } else { Kind::Merge }
    }

    /// What an open record becomes above a delete.
    #[inline]
    fn decided(&self) -> Kind {
        if self.merges_puts() { Kind::Merge } else { Kind::Put }
    }

    /// Whether states of one length merge to a state of that length, so that tables of them have a fixed shape.
    fn keeps_length(&self) -> bool {
        false
    }

    /// Appends the merge of two states or more, newest first.
    fn merge_states(&self, key: &[u8], states: &[&[u8]], out: &mut Vec<u8>) {
        let Some((newest, older)) = states.split_first() else { return };
        let (mut merged, mut spare) = (newest.to_vec(), Vec::new());
        for older in older {
            spare.clear();
            self.fold(key, &merged, older, &mut spare);
            std::mem::swap(&mut merged, &mut spare);
        }
        out.extend_from_slice(&merged);
    }

    /// Merges an older state into a newer one of the same length, in place. Says whether it could; if so, it always
    /// can where two states are equally long.
    #[inline]
    fn merge_in_place(&self, _newer: &mut [u8], _older: &[u8]) -> bool {
        false
    }

    /// The longest value that a merge of lists may make. Where records of a key come to more, the lists stay as they
    /// are.
    fn value_bytes_max(&self) -> usize {
        STORED_VALUE_BYTES_MAX
    }

    /// Whether [`keeps`](Self::keeps) is to be asked.
    fn is_choosy(&self) -> bool {
        false
    }

    /// Whether a value is kept that nothing older lies beneath.
    fn keeps(&self, _key: &[u8], _value: &[u8]) -> bool {
        true
    }

    /// The same of a value that stands in a value file.
    fn keeps_pointed(&self, _key: &[u8], _pointer: &[u8]) -> bool {
        true
    }
}

impl<C: Combine + ?Sized> Combine for std::sync::Arc<C> {
    fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        (**self).fold(key, newer, older, out);
    }
    #[inline]
    fn joins(&self, newer: &[u8], older: &[u8]) -> bool {
        (**self).joins(newer, older)
    }
    #[inline]
    fn merges_puts(&self) -> bool {
        (**self).merges_puts()
    }
    fn deletes_states(&self) -> bool {
        (**self).deletes_states()
    }
    fn keeps_length(&self) -> bool {
        (**self).keeps_length()
    }
    fn merge_states(&self, key: &[u8], states: &[&[u8]], out: &mut Vec<u8>) {
        (**self).merge_states(key, states, out);
    }
    #[inline]
    fn merge_in_place(&self, newer: &mut [u8], older: &[u8]) -> bool {
        (**self).merge_in_place(newer, older)
    }
    fn value_bytes_max(&self) -> usize {
        (**self).value_bytes_max()
    }
    fn is_choosy(&self) -> bool {
        (**self).is_choosy()
    }
    fn keeps(&self, key: &[u8], value: &[u8]) -> bool {
        (**self).keeps(key, value)
    }
    fn keeps_pointed(&self, key: &[u8], pointer: &[u8]) -> bool {
        (**self).keeps_pointed(key, pointer)
    }
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
    /// An empty one, which keeps the value in this memory.
    pub fn within(mut memory: Vec<u8>) -> Self {
        memory.clear();
        Self { kind: None, value: memory, spare: Vec::new() }
    }

    /// The memory that the value is in.
    pub fn into_memory(self) -> Vec<u8> {
        self.value
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.kind.is_none()
    }

    /// Forgets the last key.
    pub fn clear(&mut self) {
        self.kind = None;
        self.value.clear();
    }

    /// Adds the next older record. Returns whether still older ones can matter.
    pub fn add(&mut self, rule: &(impl Combine + ?Sized), record: &Record<'_>) -> bool {
        match self.kind {
            None => {
                self.kind = Some(record.kind);
                self.value.extend_from_slice(record.value);
            }
            Some(kind) if rule.is_open(kind) => match record.kind {
                Kind::Delete => self.kind = Some(rule.decided()),
                _ if !rule.joins(&self.value, record.value) => self.kind = Some(rule.decided()),
                older => {
                    self.merge(rule, record);
                    self.kind = Some(older);
                }
            },
            Some(_) => {}
        }
        debug_assert!(self.kind.is_some(), "what was added to is not empty");
        self.kind.is_some_and(|kind| rule.is_open(kind))
    }

    fn merge(&mut self, rule: &(impl Combine + ?Sized), older: &Record<'_>) {
        let in_place = self.value.len() == older.value.len();
        if in_place && rule.merge_in_place(&mut self.value, older.value) {
            return;
        }
        self.spare.clear();
        rule.fold(older.key, &self.value, older.value, &mut self.spare);
        std::mem::swap(&mut self.value, &mut self.spare);
    }

    /// The key's value, if all records of the key that can matter were added and it has one. A value that stands in a
    /// value file is to be [fetched](Self::fetched) first.
    pub fn into_value(self) -> Option<Vec<u8>> {
        debug_assert!(self.kind != Some(Kind::Pointer), "the way to a value is not the value");
        (self.kind? != Kind::Delete).then_some(self.value)
    }

    /// Whether the key has a value, if all records of it that can matter were added.
    #[inline]
    pub fn has_value(&self) -> bool {
        debug_assert!(self.kind != Some(Kind::Pointer), "the way to a value is not the value");
        self.kind.is_some_and(|kind| kind != Kind::Delete)
    }

    /// How much memory it holds.
    pub fn memory_bytes(&self) -> usize {
        self.value.capacity() + self.spare.capacity()
    }

    /// The way to the key's value, where that stands in a value file.
    pub fn pointer(&self) -> Option<&[u8]> {
        (self.kind == Some(Kind::Pointer)).then_some(&self.value[..])
    }

    /// Takes the value that the way led to.
    pub fn fetched(&mut self, value: Vec<u8>) {
        debug_assert!(self.kind == Some(Kind::Pointer), "only what is elsewhere is fetched");
        (self.kind, self.value) = (Some(Kind::Put), value);
    }

    /// What was added comes to this value, unless it comes to nothing.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.value
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
