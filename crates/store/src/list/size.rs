//! How large a list will be, without writing it: for plans that only count. Every part is asked of the code
//! that makes it.

use forebay_base::digest::Digest;
use forebay_base::limits::BLOCK_BYTES;

use super::ListOptions;
use super::filter::Filter;
use super::index::PageIndex;
use super::page;

/// What a list of records of one size takes, on disk and in memory. Uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSize {
    /// The length of its file.
    pub file_bytes: u64,
    /// Memory of its filter.
    pub filter_bytes: u64,
    /// Memory of its page search and digest.
    pub search_bytes: u64,
}

impl ListSize {
    /// Of a list of `records` that was made for up to `records_max`, each of this many bytes of key and value.
    pub fn of(options: &ListOptions, record_bytes: u64, records_max: u64, records: u64) -> Self {
        let block = BLOCK_BYTES as u64;
        let (per_page, page_bytes) = page_of(record_bytes);
        let pages = records.div_ceil(per_page);
        let bits = options.filter_bits_per_key;
        let by_rank = bits > 0 && options.order.is_uniform();
        let index = PageIndex::memory_bytes_of(by_rank, pages, page_bytes, block);
        let digest = Digest::memory_bytes_of(records_max, records);
        let filter_bytes = Filter::memory_bytes_of(options.order, records_max, records, bits);
        let meta_bytes = (index + digest + filter_bytes).next_multiple_of(block);
        Self {
            file_bytes: pages * page_bytes + meta_bytes + block,
            filter_bytes,
            search_bytes: index + digest,
        }
    }

    /// What it takes where all of it is in memory.
    pub fn memory_bytes(&self) -> u64 {
        let (block, beside) = (BLOCK_BYTES as u64, self.filter_bytes + self.search_bytes);
        self.file_bytes - block - beside.next_multiple_of(block) + beside
    }

    /// What filters come to that are made thinner, a list at a time, until a key takes no more than this many bits: the
    /// share of their bytes that is left, and the share of absent keys to which one says yes.
    pub fn thinned(options: &ListOptions, bits_per_key: f64) -> (f64, f64) {
        let steps = Filter::steps(options.order, options.filter_bits_per_key);
        let allowed = bits_per_key / 8.0;
        let thinner = steps.iter().position(|(bytes, _)| *bytes <= allowed);
        let (bytes, rate) = match thinner {
            Some(0) => steps[0],
            // Some are at this step, the others still at the one before, so that all together just fit.
            Some(step) => {
                let ((more, better), (less, worse)) = (steps[step - 1], steps[step]);
                let ahead = (allowed - less) / (more - less);
                (allowed, worse + ahead * (better - worse))
            }
            None => steps[steps.len() - 1],
        };
        (if bytes > 0.0 { bytes / steps[0].0 } else { 1.0 }, rate)
    }

    /// About what is read of a list's file for a walk over this many of its records: they begin and end anywhere
    /// in a page.
    pub fn walk_bytes(record_bytes: u64, records: u64) -> u64 {
        let (per_page, page_bytes) = page_of(record_bytes);
        (records * page_bytes).div_ceil(per_page) + page_bytes
    }
}

/// How many records a page holds, and its length.
fn page_of(record_bytes: u64) -> (u64, u64) {
    let block = BLOCK_BYTES as u64;
    let header = page::HEADER_BYTES as u64;
    let per_page = ((block - header) / record_bytes.max(1)).clamp(1, page::RECORDS_MAX.into());
    (per_page, (header + per_page * record_bytes).next_multiple_of(block))
}
