//! Looking keys up in many lists at once, so that no key and no list waits for the memory another one needs:
//!
//! 1. every list's filter says where it will look, and asks for that memory;
//! 2. once many have, they look. Lists whose filter does not deny the key become *candidates*, newest first;
//! 3. of each key, the page of its newest candidate is taken from the cache or read, those of many keys together;
//!    where that does not decide, the next candidate's; and so on.

use std::sync::Arc;

use forebay_base::{Record, Result};
use smallvec::SmallVec;

use super::candidates::{Candidate, Left, Seen, following};
use super::fetch::{Ahead, fetch, fetch_ahead};
use super::file::{Body, ListFile};
use super::filter::{Filter, Place};
use super::index::Starts;
use super::lookup::Lookup;
use super::page::Page;
use super::spot::{Spot, propose_ranks};
use crate::cache::Caching;

/// This many filters are asked at a time: what they ask for fits the nearest cache.
const PROBES: usize = 64;

/// What a filter costs that is asked in vain, in nanoseconds.
const FILTER_NANOSECONDS: u64 = 15;
/// What a page costs that is read from a file in vain.
const READ_NANOSECONDS: u64 = 100_000;
/// What it costs to find more of a key in a page that is at hand.
const FOUND_NANOSECONDS: u64 = 500;

/// Pages that are read together take about this at most: a page each for as many reads as any device does at a time.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// Who looks keys up.
pub trait Seeker {
    /// Takes what a list has of the key of a lookup, newest first. Says whether it wants more of that one.
    fn show(&mut self, lookup: usize, record: &Record<'_>) -> bool;

    /// Whether it still wants to know of a lookup. For one that it does not want nothing is read.
    fn wants(&mut self, _lookup: usize) -> bool {
        true
    }
}

impl<F: FnMut(usize, &Record<'_>) -> bool> Seeker for F {
    fn show(&mut self, lookup: usize, record: &Record<'_>) -> bool {
        self(lookup, record)
    }
}

/// Lookups on their way.
pub struct Search<'a> {
    lookups: &'a [Lookup<'a>],
    probes: SmallVec<[Probe<'a>; PROBES]>,
    candidates: SmallVec<[Candidate<'a>; 4]>,
    /// One of the lists, where there are any.
    list: Option<&'a ListFile>,
    filters_asked: u64,
    takes_all: bool,
}

/// A list that is being asked for a key.
struct Probe<'a> {
    lookup: u32,
    list: &'a ListFile,
    /// The list where it is open and sound.
    body: Option<&'a Body>,
    place: Place,
}

impl<'a> Search<'a> {
    /// Begins a search for some keys.
    pub fn new(lookups: &'a [Lookup<'a>]) -> Self {
        Self {
            lookups,
            probes: SmallVec::new(),
            candidates: SmallVec::new(),
            list: None,
            filters_asked: 0,
            takes_all: false,
        }
    }

    /// For keys of which older lists always matter: those of one lookup are read at the same time.
    pub fn taking_all(self) -> Self {
        Self { takes_all: true, ..self }
    }

    /// Adds the next older list of those that may have a key. All lists of a lookup come before those of the
    /// next.
    #[inline]
    pub fn add(&mut self, lookup: usize, list: &'a ListFile) {
        debug_assert!(
            self.probes.last().is_none_or(|last| last.lookup as usize <= lookup),
            "one lookup after the other"
        );
        let hash = self.lookups[lookup].hash;
        let body = list.ready();
        let filter = body.and_then(Body::filter);
        self.list = Some(list);
        self.filters_asked += filter.is_some() as u64;
        let place = match filter {
            Some(Filter::Fingerprints(ranks)) => ranks.locate(hash),
            Some(Filter::Blocks(blocks, _)) => blocks.locate(hash),
            None => Place::default(),
        };
        self.probes.push(Probe { lookup: lookup as u32, list, body, place });
        if self.probes.len() == PROBES {
            self.sift();
        }
    }

    /// Takes all probes to their end.
    fn sift(&mut self) {
        for probe in &self.probes {
            let lookup = &self.lookups[probe.lookup as usize];
            probe.judge(lookup, &mut |spot| {
                self.candidates.push(Candidate { lookup: probe.lookup, list: probe.list, spot });
            });
        }
        debug_assert!(self.candidates.is_sorted_by_key(|candidate| candidate.lookup));
        self.probes.clear();
    }

    /// Shows a seeker what lists have of its keys, until it has seen enough of each. Device reads: one for each list that has the key or whose filter errs, and
    /// none for pages in the cache. Returns about how many nanoseconds went to lists in vain: what one list in
    /// place of many would have spared.
    pub fn finish(&mut self, seeker: &mut dyn Seeker) -> Result<u64> {
        let Some(list) = self.list else { return Ok(0) };
        self.sift();
        let metrics = &list.store().metrics;
        metrics.filter_probes.add(self.filters_asked);
        let asked_wasted = self.filters_asked.saturating_sub(self.lookups.len() as u64);
        if self.candidates.is_empty() {
            return Ok(asked_wasted * FILTER_NANOSECONDS);
        }
        let found = SmallVec::from_elem(false, self.lookups.len());
        let takes_all = self.takes_all && self.lookups.len() == 1;
        let ahead = if takes_all {
            fetch_ahead(&self.candidates, Lookup::caching_of(self.lookups))
        } else {
            Vec::new()
        };
        let mut reading = Reading {
            lookups: self.lookups,
            seeker,
            found,
            cache_hits: 0,
            wasted: 0,
            // One list in place of all would have spared the others.
            read_wasted: ahead.len().saturating_sub(1) as u64,
            found_again: 0,
            ahead,
        };
        let outcome = match self.lookups {
            [_] if !reading.seeker.wants(0) => Ok(()),
            [_] => reading.one_by_one(&self.candidates),
            _ => reading.together(&self.candidates),
        };
        metrics.cache_hits.add(reading.cache_hits);
        metrics.filter_false.add(reading.wasted);
        outcome?;
        let read_wasted = reading.read_wasted * READ_NANOSECONDS;
        Ok(asked_wasted * FILTER_NANOSECONDS + read_wasted + reading.found_again * FOUND_NANOSECONDS)
    }
}

impl Probe<'_> {
    /// Proposes where the list may have the key, if anywhere.
    #[inline]
    fn judge(&self, lookup: &Lookup<'_>, propose: &mut impl FnMut(Spot)) {
        let Some(body) = self.body else { return propose(Spot::Unknown) };
        match body.filter() {
            Some(Filter::Fingerprints(ranks)) => {
                let ranks = ranks.matches(&self.place);
                if !ranks.is_empty() {
                    propose_ranks(body, ranks, &self.place, propose);
                }
                return;
            }
            Some(Filter::Blocks(blocks, _)) if !blocks.may_contain(lookup.hash) => return,
            _ => {}
        }
        if let Starts::Prefixes(prefixes) = body.index.starts()
            && let Some(page) = prefixes.find(lookup.prefix, lookup.key)
        {
            propose(Spot::Page(page as u32));
        }
    }
}

/// Of no more records than these each is looked at; of more the order tells where the key would be.
const FEW_RECORDS: u32 = 4;

/// Candidates being looked at.
struct Reading<'a, 'e> {
    lookups: &'a [Lookup<'a>],
    seeker: &'e mut dyn Seeker,
    /// Which keys some list had already.
    found: SmallVec<[bool; 8]>,
    cache_hits: u64,
    /// Pages that did not have the key.
    wasted: u64,
    /// Pages read from files that did not have the key, or only more of it.
    read_wasted: u64,
    /// Pages in the cache that had more of a key.
    found_again: u64,
    ahead: Ahead<'a>,
}

impl Reading<'_, '_> {
    /// The candidates of one lookup.
    fn one_by_one(&mut self, candidates: &[Candidate<'_>]) -> Result<()> {
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
    fn together(&mut self, candidates: &[Candidate<'_>]) -> Result<()> {
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
            turns.push((turn, page.is_some(), page));
            if missing_bytes >= TOGETHER_BYTES_MAX {
                break;
            }
        }
        read_missing(candidates, &mut turns, Lookup::caching_of(self.lookups))?;
        for (turn, was_cached, page) in turns {
            let candidate = &candidates[turn];
            if !self.seeker.wants(candidate.lookup as usize) {
                continue;
            }
            let seen = match page {
                None => self.open_and_ask(candidate)?,
                Some(page) => self.show(candidate, &page, !was_cached),
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

/// A candidate whose turn it is: its number, whether the cache had its page, and the page.
type Turn = (usize, bool, Option<Arc<Page>>);

/// Reads the pages that the cache did not have, all at once.
fn read_missing(candidates: &[Candidate<'_>], turns: &mut [Turn], caching: Caching) -> Result<()> {
    let missing = turns.iter_mut().filter(|(.., page)| page.is_none());
    let (slots, wanted): (Vec<_>, Vec<_>) = missing
        .filter_map(|(turn, _, page)| {
            let candidate = &candidates[*turn];
            Some((page, (candidate.list, candidate.page_number()?)))
        })
        .unzip();
    let fetched = fetch(&wanted, caching)?;
    debug_assert_eq!(slots.len(), fetched.len(), "each candidate gets its page");
    for (slot, page) in slots.into_iter().zip(fetched) {
        *slot = Some(page);
    }
    Ok(())
}
