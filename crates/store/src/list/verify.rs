//! Reading a whole list file and holding every promise of its format against what is there.

use std::sync::Arc;

use forebay_base::checksum::append;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Error, Range, Result};

use super::cursor::{ListCursor, Reading};
use super::file::ListFile;
use super::page;
use crate::metrics::Cause;

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

impl ListFile {
    /// Reads all of the file and checks it: footer, page search and filter, every page's checksum, the
    /// records' order and count, and that the filter knows each key. The first fault is the error.
    pub fn verify(self: &Arc<Self>) -> Result<ListReport> {
        let body = self.body()?;
        let pages_sum = self.check_pages()?;
        let damaged = |reason: String| Error::corruption(self.path(), body.footer.pages_bytes, reason);
        if pages_sum != body.footer.pages_sum {
            return Err(damaged("the pages are not those that the footer counts".into()));
        }
        let reading = Reading::Job { cause: Cause::Merge, chunk_bytes: 1 << 20 };
        let mut cursor = ListCursor::new(self, &Range::all(), Direction::Forward, reading)?;
        let mut last: Option<(u64, Vec<u8>)> = None;
        let mut records = 0;
        while let Some(prefix) = cursor.prefix() {
            let key = cursor.record().key;
            if last.as_ref().is_some_and(|(last_prefix, last_key)| (*last_prefix, &last_key[..]) >= (prefix, key)) {
                return Err(damaged(format!("record {records} is out of order")));
            }
            let hash = self.store().filter_hash(prefix, key);
            if body.filter().is_some_and(|filter| !filter.may_contain(hash)) {
                return Err(damaged(format!("the filter denies record {records}")));
            }
            if body.index.find(prefix, key).is_none() {
                return Err(damaged(format!("the page search misses record {records}")));
            }
            let (_, last_key) = last.get_or_insert_default();
            last_key.clear();
            last_key.extend_from_slice(key);
            last = last.take().map(|(_, key)| (prefix, key));
            records += 1;
            cursor.advance()?;
        }
        if records != body.footer.records {
            return Err(damaged(format!("{records} records where {} were written", body.footer.records)));
        }
        Ok(ListReport { pages: body.index.pages() as u64, records, bytes: self.meta().bytes })
    }

    /// The checksum of the pages' checksums, as they stand in the file.
    fn check_pages(&self) -> Result<u32> {
        let body = self.body()?;
        let mut sum = 0;
        let mut header = [0; page::HEADER_BYTES];
        for number in 0..body.index.pages() {
            let (offset, _) = body.index.extent(number);
            body.file.read_at(offset, &mut header)?;
            sum = append(sum, &page::checksum_of(&header).to_le_bytes());
        }
        Ok(sum)
    }
}
