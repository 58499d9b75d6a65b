//! States that are sorted runs of items, perhaps only the first this many: read, merged and written alike.
//!
//! **Invariant:** the first `k` of all items are among the first `k` of each part, so keeping no more than
//! those of each part gives the same bytes however the items were divided.

use forebay_base::wire::{Reader, put_bytes};

/// What such a run holds. The order is the run's.
pub(super) trait Item<'a>: Ord + Copy {
    /// Reads one.
    fn read(reader: &mut Reader<'a>) -> Option<Self>;
    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);
}

impl<'a> Item<'a> for &'a [u8] {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        reader.bytes()
    }
    fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }
}

/// Whether a run may hold equal items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Repeats {
    /// It may.
    Kept,
    /// Equal items are one.
    Folded,
}

/// Which items a run keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) repeats: Repeats,
    pub(super) items_max: usize,
}

impl Rule {
    /// The items of a run; `None` where the bytes are not one by this rule.
    pub(super) fn decode<'a, T: Item<'a>>(&self, bytes: &'a [u8]) -> Option<Vec<T>> {
        let mut reader = Reader::new(bytes);
        let mut items: Vec<T> = Vec::new();
        while reader.remaining() > 0 {
            let item = T::read(&mut reader)?;
            let follows = items.last().is_none_or(|last| match self.repeats {
                Repeats::Kept => *last <= item,
                Repeats::Folded => *last < item,
            });
            if !follows || items.len() == self.items_max {
                return None;
            }
            items.push(item);
        }
        Some(items)
    }

    /// Appends the run of all items in these runs, leaving out those that are no runs. Returns how many
    /// items fell behind the last that may be kept.
    pub(super) fn merge<'a, T: Item<'a>>(
        &self,
        runs: impl Iterator<Item = &'a [u8]>,
        write: impl FnOnce(&[T], u64),
    ) {
        let mut items: Vec<T> = runs.filter_map(|run| self.decode(run)).flatten().collect();
        // The standard stable sort finds the runs and merges them.
        items.sort();
        if self.repeats == Repeats::Folded {
            items.dedup();
        }
        let kept = items.len().min(self.items_max);
        debug_assert!(self.items_max > 0 && items.is_sorted());
        write(&items[..kept], (items.len() - kept) as u64);
    }
}

/// Appends items.
pub(super) fn write_all<'a, T: Item<'a>>(items: &[T], out: &mut Vec<u8>) {
    items.iter().for_each(|item| item.write(out));
}
