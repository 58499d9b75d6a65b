//! All records of one key: passed, or folded; and cursors of which keys alone are asked.

use forebay_base::Result;
use forebay_base::combine::Depth;
use forebay_base::merge::{Cursor as _, Others};
use forebay_base::wire::{is_same, put_raw};
use forebay_env::guest;
use forebay_layouts::answered;

use super::stretch::Source;
use super::{Cursor, Stand};

/// What is asked of a cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Entries,
    /// Values that stand apart are not fetched.
    Keys,
}

impl Cursor {
    /// The same, of which nobody asks for more than whether it [has a key](Self::has_key).
    pub(crate) fn of_keys(self) -> Self {
        Self { shows: Shows::Keys, ..self }
    }

    /// Whether it stands on an entry.
    pub(crate) fn has_key(&self) -> bool {
        matches!(self.stand, Stand::Lent | Stand::Folded)
    }

    /// Goes past all records of the key before the merge.
    #[inline]
    pub(super) fn pass_key(&mut self) -> Result<()> {
        let Some(merge) = &mut self.merge else { return Ok(()) };
        let is_alone = |(source, others): (&Source, _)| others == Others::Ended && source.has_keys_once();
        let has_one = merge.first().is_none_or(is_alone);
        let prefix = merge.prefix();
        if !has_one {
            self.key.clear();
            put_raw(&mut self.key, merge.record().key);
        }
        loop {
            merge.advance()?;
            if has_one || merge.prefix() != prefix || !is_same(merge.record().key, &self.key) {
                return Ok(());
            }
        }
    }

    /// Folds all records of the key before the merge, and fetches a value that stands apart. Says whether it has one.
    pub(super) fn fold_key(&mut self) -> Result<bool> {
        let Some(merge) = &mut self.merge else { return Ok(false) };
        guest::take_failure();
        let prefix = merge.prefix();
        self.key.clear();
        put_raw(&mut self.key, merge.record().key);
        self.fold.clear();
        let mut open = true;
        self.folded = 0;
        while merge.prefix() == prefix && is_same(merge.record().key, &self.key) {
            self.folded += usize::from(open);
            open = open && self.fold.add(&self.rule, &merge.record());
            merge.advance()?;
        }
        if let Some(pointer) = self.fold.pointer()
            && self.shows == Shows::Entries
            && !self.ttl.is_expired(pointer)
        {
            let value = self.table.version.values().read(&self.key, pointer)?;
            self.fold.fetched(value);
        }
        let is_there = self.fold.finish(&self.key, Depth::Bottom).is_some();
        answered(Ok(is_there && !(self.ttl.expires() && self.ttl.is_expired(self.fold.value()))))
    }
}
