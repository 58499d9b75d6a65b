//! Lookups among lists and trees.

use std::cell::Cell;

use forebay_base::{Range, Record, Result};
use forebay_buffer_tree::Portion;
use forebay_store::list::{Lookup, Search, Seeker};

use super::set::{Part, RunSet};
use crate::files::DataFile;

/// As [`Reads::find`](crate::Reads::find), where all files are lists.
pub(super) fn together(
    set: &RunSet<DataFile>,
    lookups: &[Lookup<'_>],
    seeker: &mut dyn Seeker,
) -> Result<u64> {
    let mut search = Search::new(lookups);
    for (number, lookup) in lookups.iter().enumerate() {
        for part in set.runs().iter().filter_map(|run| run.find(lookup.prefix, lookup.key)) {
            debug_assert!(part.fragment.list().is_some(), "no tree is passed over");
            part.fragment.list().into_iter().for_each(|list| search.add(number, list));
        }
    }
    search.finish(seeker)
}

/// As [`Reads::find`](crate::Reads::find), one key after the other. Lists side by side are asked
/// together.
pub(super) fn one_by_one(
    set: &RunSet<DataFile>,
    lookups: &[Lookup<'_>],
    seeker: &mut dyn Seeker,
) -> Result<u64> {
    let mut wasted_nanoseconds = 0;
    for (number, lookup) in lookups.iter().enumerate() {
        if !seeker.wants(number) {
            continue;
        }
        let more = Cell::new(true);
        let mut show = |_, record: &Record<'_>| {
            more.set(seeker.show(number, record));
            more.get()
        };
        let mut lists: Option<Search<'_>> = None;
        for part in set.runs().iter().filter_map(|run| run.find(lookup.prefix, lookup.key)) {
            match &part.fragment {
                DataFile::List(list) => {
                    lists.get_or_insert_with(|| Search::new(std::slice::from_ref(lookup))).add(0, list);
                }
                DataFile::Tree(tree) => {
                    if let Some(mut newer) = lists.take() {
                        wasted_nanoseconds += newer.finish(&mut show)?;
                    }
                    if more.get() {
                        tree.find(lookup, |record| show(0, record))?;
                    }
                }
            }
            if !more.get() {
                break;
            }
        }
        if let Some(mut oldest) = lists.filter(|_| more.get()) {
            wasted_nanoseconds += oldest.finish(&mut show)?;
        }
    }
    Ok(wasted_nanoseconds)
}

impl Part<DataFile> {
    /// About how much of it lies in a range.
    pub(crate) fn portion_inside(&self, range: &Range) -> Portion {
        self.fragment.portion_inside(&self.range, self.portion, &self.range.intersect(range))
    }
}
