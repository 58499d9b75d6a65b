//! Looking keys up in many lists at once, so that no key and no list waits for the memory another one needs:
//!
//! 1. every list's filter says where it will look, and asks for that memory;
//! 2. once many have, they look. Lists whose filter does not deny the key become *candidates*, newest first;
//! 3. of each key, the page of its newest candidate is taken from the cache or read, those of many keys together;
//!    where that does not decide, the next candidate's; and so on.

use forebay_base::{Record, Result};
use smallvec::SmallVec;

use super::candidates::Candidate;
use super::fetch::fetch_ahead;
use super::file::{Body, ListFile};
use super::filter::{Filter, Place};
use super::index::Starts;
use super::looking::Looking;
use super::lookup::Lookup;
use super::spot::{Spot, propose_ranks};

/// This many filters are asked at a time: what they ask for fits the nearest cache.
const PROBES: usize = 64;

/// What a filter costs that is asked in vain, in nanoseconds.
const FILTER_NANOSECONDS: u64 = 15;
/// What a page costs that is read from a file in vain.
const READ_NANOSECONDS: u64 = 100_000;
/// What it costs to find more of a key in a page that is at hand.
const FOUND_NANOSECONDS: u64 = 500;

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
        let mut looking = Looking {
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
            [_] if !looking.seeker.wants(0) => Ok(()),
            [_] => looking.one_by_one(&self.candidates),
            _ => looking.together(&self.candidates),
        };
        metrics.cache_hits.add(looking.cache_hits);
        metrics.filter_false.add(looking.wasted);
        outcome?;
        let read_wasted = looking.read_wasted * READ_NANOSECONDS;
        Ok(asked_wasted * FILTER_NANOSECONDS + read_wasted + looking.found_again * FOUND_NANOSECONDS)
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
