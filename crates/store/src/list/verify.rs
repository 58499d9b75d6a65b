//! Reading a whole list file and holding every promise of its format against what is there.

use forebay_base::checksum::append;
use forebay_base::merge::Direction;
use forebay_base::{Error, Kind, Record, Result};

use super::chunks::{Chunks, Reading};
use super::file::{Body, ListFile};
use super::filter::Filter;
use super::index::Starts;
use super::page::{self, Page};

/// This many faults of a file are told.
const FAULTS_MAX: usize = 100;

/// What was found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListReport {
    /// Pages read that are intact.
    pub pages: u64,
    /// Records in them.
    pub records: u64,
    /// The file's length.
    pub bytes: u64,
}

/// The walk's state from page to page.
#[derive(Default)]
struct Walk {
    records: u64,
    /// The next record's place among all, also behind damaged pages.
    rank: u32,
    last: Option<(u64, Vec<u8>)>,
    pages_sum: u32,
}

impl ListFile {
    /// Reads all of the file and checks it: footer, page search and filter, every page's checksum, the records' order
    /// and count, and that the page search and the filter find each key. What is wrong with pages goes to `faults`;
    /// the error is what keeps them from being read.
    pub fn verify(&self, faults: &mut Vec<Error>) -> Result<ListReport> {
        let body = self.body()?;
        let mut chunks = Chunks::new(self, Reading::Check)?;
        let (mut walk, mut page) = (Walk::default(), Page::default());
        let all = 0..body.index.pages();
        let (mut pages, mut records) = (0, 0);
        for number in all.clone() {
            let found = chunks.page(self, number, &all, Direction::Forward)?;
            walk.pages_sum = append(walk.pages_sum, &page::checksum_of(found.bytes).to_le_bytes());
            let read = page.read(found.bytes, self.meta().id, found.offset, found.shape);
            if read.is_ok() {
                self.check_values(&page, faults);
            }
            let checked = read.and_then(|()| {
                let mut places = (0..page.len()).map(|index| (number, index as u32));
                places.try_for_each(|place| {
                    self.check_record(body, &mut walk, place, &page.record(place.1 as usize))
                })
            });
            match checked {
                Ok(()) => (pages, records) = (pages + 1, records + page.len() as u64),
                Err(reason) => {
                    walk.rank = body.index.first_rank(number + 1);
                    let reason = match number - pages {
                        before if before < FAULTS_MAX => reason,
                        FAULTS_MAX => "more pages are damaged from here on",
                        _ => continue,
                    };
                    faults.push(Error::corruption(&self.path(), found.offset, reason));
                }
            }
        }
        let report = ListReport { pages: pages as u64, records, bytes: self.meta().bytes };
        let mut damaged = |reason: String| {
            faults.push(Error::corruption(&self.path(), body.footer.pages_bytes, reason));
        };
        if pages < all.len() {
            // What is wrong with pages is told.
        } else if walk.pages_sum != body.footer.pages_sum {
            damaged("the pages are not those that the footer counts".into());
        } else if walk.records != body.footer.records {
            damaged(format!("{} records; {} were written", walk.records, body.footer.records));
        }
        Ok(report)
    }

    /// Reads the values that a page has pointers to.
    fn check_values(&self, page: &Page, faults: &mut Vec<Error>) {
        if self.value_shares().is_empty() {
            return;
        }
        let records = (0..page.len()).map(|index| page.record(index));
        for record in records.filter(|record| record.kind == Kind::Pointer) {
            let read = self.store().values.load(record.key, record.value);
            faults.extend(read.err().filter(|_| faults.len() < FAULTS_MAX));
        }
    }

    fn check_record(
        &self,
        body: &Body,
        walk: &mut Walk,
        place: (usize, u32),
        record: &Record<'_>,
    ) -> Result<(), &'static str> {
        let (key, prefix) = (record.key, self.store().options.order.prefix(record.key));
        let (last_prefix, last_key) = walk.last.get_or_insert_default();
        if walk.records > 0 && (*last_prefix, &last_key[..]) >= (prefix, key) {
            return Err("a record is out of order");
        }
        let hash = self.store().options.order.key_hash(prefix, key);
        if body.filter().is_some_and(|filter| !filter.may_contain(hash)) {
            return Err("the filter denies a record");
        }
        let denied = |filter: &Filter| filter.prefixes()?.hash(key).filter(|hash| !filter.may_contain(*hash));
        if body.filter().is_some_and(|filter| denied(filter).is_some()) {
            return Err("the filter denies a record's key prefix");
        }
        let leads_here = match (body.index.starts(), body.ranks()) {
            (Starts::Prefixes(prefixes), _) => prefixes.find(prefix, key) == Some(place.0),
            (_, ranks) => {
                let rank = walk.rank;
                let is_found = ranks.is_some_and(|ranks| ranks.find(hash).contains(&rank));
                is_found && body.index.page_of(rank) == place
            }
        };
        if !leads_here {
            return Err("the page search does not lead to a record's page");
        }
        *last_prefix = prefix;
        last_key.clear();
        last_key.extend_from_slice(key);
        walk.records += 1;
        walk.rank += 1;
        Ok(())
    }
}
