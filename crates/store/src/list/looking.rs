//! Candidates being looked at: those of one lookup one after the other, and of many lookups a turn of each at a time.

use std::sync::Arc;

use forebay_base::{Record, Result};
use smallvec::SmallVec;

use super::candidates::{Candidate, Left, Seen, following};
use super::fetch::{Ahead, Unchecked, read};
use super::file::ListFile;
use super::lookup::Lookup;
use super::page::Page;
use super::search::{Search, Seeker};
use super::spot::Spot;

/// Pages that are read together take about this at most: a page each for as many reads as any device does at a time.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// Of no more records than these each is looked at; of more the order tells where the key would be.
const FEW_RECORDS: u32 = 4;

/// Candidates being looked at.
pub(super) struct Looking<'a, 'e> {
    pub(super) lookups: &'a [Lookup<'a>],
    pub(super) seeker: &'e mut dyn Seeker,
    /// Which keys some list had already.
    pub(super) found: SmallVec<[bool; 8]>,
    pub(super) cache_hits: u64,
    /// Pages that did not have the key.
    pub(super) wasted: u64,
    /// Pages read from files that did not have the key, or only more of it.
    pub(super) read_wasted: u64,
    /// Pages in the cache that had more of a key.
    pub(super) found_again: u64,
    pub(super) ahead: Ahead<'a>,
}

impl Looking<'_, '_> {
    /// The candidates of one lookup.
    pub(super) fn one_by_one(&mut self, candidates: &[Candidate<'_>]) -> Result<()> {
        let (mut next, mut failed) = (0, None);
        while let Some(candidate) = candidates.get(next) {
            let seen = match candidate.page_number() {
                None => self.open_and_ask(candidate)?,
                Some(number) => {
                    let cached = self.cached(candidate.list, number);
                    let was_read = cached.is_none();
                    match cached
                        .map_or_else(|| candidate.list.page(number, Lookup::caching_of(self.lookups)), Ok)
                    {
                        Ok(page) => self.show(candidate, &page, was_read),
                        // A page that cannot be read takes no other's keys with it.
                        Err(error) => {
                            failed.get_or_insert(error);
                            Seen { more: true, left: Left::Anywhere }
                        }
                    }
                }
            };
            if seen.left == Left::Nowhere {
                failed = None;
            }
            if !seen.more {
                break;
            }
            let seen = if failed.is_some() { Seen { left: Left::Anywhere, ..seen } } else { seen };
            next = following(candidates, next, seen);
            // It may have had the key, which hides what older lists have.
            let is_of_list = |next: &Candidate<'_>| std::ptr::eq(next.list, candidate.list);
            if !candidates.get(next).is_some_and(is_of_list)
                && let Some(error) = failed.take()
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The candidates of many lookups: a turn of each of them at a time.
    pub(super) fn together(&mut self, candidates: &[Candidate<'_>]) -> Result<()> {
        let is_first = |&at: &usize| at == 0 || candidates[at - 1].lookup != candidates[at].lookup;
        let mut turns: Vec<usize> = (0..candidates.len()).filter(is_first).collect();
        while !turns.is_empty() {
            let (mut waiting, mut left) = (turns.iter().copied().peekable(), Vec::new());
            while waiting.peek().is_some() {
                self.some_together(candidates, &mut waiting, &mut left)?;
            }
            debug_assert!(left.len() <= turns.len() && left.is_sorted(), "each lookup has one turn");
            turns = left;
        }
        Ok(())
    }

    /// As many turns as fit in memory together, one at least. Notes the next turns of their lookups.
    fn some_together(
        &mut self,
        candidates: &[Candidate<'_>],
        waiting: &mut impl Iterator<Item = usize>,
        left: &mut Vec<usize>,
    ) -> Result<()> {
        let (mut turns, mut missing_bytes) = (Vec::new(), 0);
        for turn in waiting {
            let candidate = &candidates[turn];
            if !self.seeker.wants(candidate.lookup as usize) {
                continue;
            }
            let page = candidate.page_number().and_then(|number| self.cached(candidate.list, number));
            page.iter().for_each(|page| page.prefetch(candidate.first_record()));
            missing_bytes += if page.is_some() { 0 } else { candidate.page_bytes() };
            turns.push((turn, page.map_or(Sought::Missing, Sought::Cached)));
            if missing_bytes >= TOGETHER_BYTES_MAX {
                break;
            }
        }
        read_missing(candidates, &mut turns)?;
        let caching = Lookup::caching_of(self.lookups);
        for (turn, sought) in turns {
            let candidate = &candidates[turn];
            if !self.seeker.wants(candidate.lookup as usize) {
                continue;
            }
            let seen = match sought {
                Sought::Missing => self.open_and_ask(candidate)?,
                Sought::Cached(page) => self.show(candidate, &page, false),
                // One at a time: compressed ones may be very much longer in memory.
                Sought::Read(read) => self.show(candidate, &*read.page(caching)?, true),
            };
            let next = following(candidates, turn, seen);
            if seen.more && candidates.get(next).is_some_and(|next| next.lookup == candidate.lookup) {
                left.push(next);
            }
        }
        Ok(())
    }

    fn cached(&mut self, list: &ListFile, number: usize) -> Option<Arc<Page>> {
        let is_it = |other: &ListFile, at: usize| std::ptr::eq(other, list) && at == number;
        if let Some((.., page)) = self.ahead.iter().find(|(other, at, _)| is_it(other, *at)) {
            return Some(Arc::clone(page));
        }
        let page = list.cached(number)?;
        self.cache_hits += 1;
        Some(page)
    }

    /// Shows what the page has of the key.
    fn show(&mut self, candidate: &Candidate<'_>, page: &Page, was_read: bool) -> Seen {
        let lookup = &self.lookups[candidate.lookup as usize];
        let (among, left) = match &candidate.spot {
            Spot::Records(_, among) if among.end - among.start <= FEW_RECORDS => {
                (among.start as usize..(among.end as usize).min(page.len()), Left::Anywhere)
            }
            _ => {
                let order = candidate.list.store().options.order;
                let sought = (lookup.prefix, lookup.key);
                let at = page.lower_bound(order, |prefix, key| (prefix, key).cmp(&sought));
                let left = match at {
                    0 => Left::Before,
                    at if at == page.len() => Left::Behind,
                    _ => Left::Nowhere,
                };
                (at..(at + 1).min(page.len()), left)
            }
        };
        match among.map(|at| page.record(at)).find(|record| record.key == lookup.key) {
            Some(record) => {
                let again = std::mem::replace(&mut self.found[candidate.lookup as usize], true);
                self.read_wasted += (again && was_read) as u64;
                self.found_again += (again && !was_read) as u64;
                Seen { more: self.seeker.show(candidate.lookup as usize, &record), left: Left::Nowhere }
            }
            None => {
                // Where it leads to another page of the list no merge would have spared it.
                let is_wasted = matches!(left, Left::Nowhere | Left::Anywhere);
                self.wasted += is_wasted as u64;
                self.read_wasted += (is_wasted && was_read) as u64;
                Seen { more: true, left }
            }
        }
    }

    /// Asks a list that was not open when the others were asked.
    fn open_and_ask(&mut self, candidate: &Candidate<'_>) -> Result<Seen> {
        candidate.list.body()?;
        let number = candidate.lookup as usize;
        let mut search = Search::new(&self.lookups[number..=number]);
        search.add(0, candidate.list);
        let mut more = true;
        search.finish(&mut |_, record: &Record<'_>| {
            more = self.seeker.show(number, record);
            more
        })?;
        Ok(Seen { more, left: Left::Nowhere })
    }
}

/// The page of a candidate whose turn it is.
enum Sought<'a> {
    /// Nobody has it, or knows which one it is.
    Missing,
    Cached(Arc<Page>),
    Read(Unchecked<'a>),
}

/// Reads the pages that the cache did not have, all at once.
fn read_missing<'a>(candidates: &[Candidate<'a>], turns: &mut [(usize, Sought<'a>)]) -> Result<()> {
    let missing = turns.iter_mut().filter(|(_, sought)| matches!(sought, Sought::Missing));
    let (slots, wanted): (Vec<_>, Vec<_>) = missing
        .filter_map(|(turn, sought)| {
            let candidate = &candidates[*turn];
            Some((sought, (candidate.list, candidate.page_number()?)))
        })
        .unzip();
    let pages = read(&wanted)?;
    debug_assert_eq!(slots.len(), pages.len(), "each candidate gets its page");
    for (slot, page) in slots.into_iter().zip(pages) {
        *slot = Sought::Read(page);
    }
    Ok(())
}
