//! Reading a whole list file and holding every promise of its format against what is there.

use forebay_base::checksum::append;
use forebay_base::merge::Direction;
use forebay_base::{Error, Record, Result};

use super::chunks::{Chunks, Reading};
use super::file::{Body, ListFile};
use super::index::Starts;
use super::page::{self, Page};

/// What was found in an intact file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListReport {
    /// Pages read.
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
    last: Option<(u64, Vec<u8>)>,
    pages_sum: u32,
}

impl ListFile {
    /// Reads all of the file and checks it: footer, page search and filter, every page's checksum, the
    /// records' order and count, and that the page search and the filter find each key. The first fault is
    /// the error.
    pub fn verify(&self) -> Result<ListReport> {
        let body = self.body()?;
        let mut chunks = Chunks::new(self, Reading::Check)?;
        let (mut walk, mut page) = (Walk::default(), Page::default());
        let all = 0..body.index.pages();
        for number in all.clone() {
            let found = chunks.page(self, number, &all, Direction::Forward)?;
            let damaged = |reason: &str| Error::corruption(self.path(), found.offset, reason);
            walk.pages_sum = append(walk.pages_sum, &page::checksum_of(found.bytes).to_le_bytes());
            page.read(found.bytes, self.meta().id, found.offset, found.shape).map_err(damaged)?;
            for index in 0..page.len() {
                self.check_record(body, &mut walk, (number, index as u32), &page.record(index))
                    .map_err(damaged)?;
            }
        }
        let damaged = |reason: String| Error::corruption(self.path(), body.footer.pages_bytes, reason);
        if walk.pages_sum != body.footer.pages_sum {
            return Err(damaged("the pages are not those that the footer counts".into()));
        }
        if walk.records != body.footer.records {
            return Err(damaged(format!(
                "{} records where {} were written",
                walk.records, body.footer.records
            )));
        }
        Ok(ListReport { pages: all.len() as u64, records: walk.records, bytes: self.meta().bytes })
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
        let hash = self.store().filter_hash(prefix, key);
        if body.filter().is_some_and(|filter| !filter.may_contain(hash)) {
            return Err("the filter denies a record");
        }
        let leads_here = match (body.index.starts(), body.ranks()) {
            (Starts::Prefixes(prefixes), _) => prefixes.find(prefix, key) == Some(place.0),
            (_, ranks) => {
                let rank = walk.records as u32;
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
        Ok(())
    }
}
