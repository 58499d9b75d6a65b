//! The end of a list: what stands behind its pages, and its one sync.

use std::sync::Arc;

use forebay_base::checksum::{append, checksum};
use forebay_base::digest::Digest;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::wire::Reader;
use forebay_base::{Error, Result};
use forebay_env::Access;
use forebay_env::sync::atomic::Ordering;

use super::ListWriter;
use crate::list::file::{Body, ListFile};
use crate::list::filter::{Filter, FilterWriter};
use crate::list::footer::{Extras, Footer};
use crate::list::index::{PageIndex, Starts};
use crate::list::store::{FileKind, FileMeta};

impl ListWriter {
    /// Completes the file and makes its bytes durable; its name is durable only after a sync of the
    /// directory. `None`, and no file, when nothing was pushed.
    pub fn finish(mut self) -> Result<Option<Arc<ListFile>>> {
        if self.records == 0 {
            return Ok(None);
        }
        self.seal_page()?;
        debug_assert_eq!(self.sealed_records, self.records, "each record is in a page");
        self.index.finish(self.last_prefix);
        self.digest.shrink();
        let too_many = || Error::bug("a list of more records than a filter can number");
        let finish = |filter: FilterWriter| {
            filter.finish(self.records, self.store.options.filter_bits_per_key).ok_or_else(too_many)
        };
        let filter = self.filter.take().map(finish).transpose()?;
        let pages_bytes = self.output.bytes();
        let (meta_bytes, meta_sum) = self.emit_meta(filter.as_ref())?;
        let footer_at = self.output.bytes();
        let extras = Extras {
            has_pointers: self.values.as_ref().is_some_and(|values| values.any()),
            knows_prefixes: filter.as_ref().and_then(Filter::prefixes).is_some(),
        };
        let footer = Footer {
            records: self.records,
            tombstones: self.tombstones,
            pages_bytes,
            meta_bytes,
            meta_sum,
            pages_sum: self.pages_sum,
            is_lexical: self.store.options.order.is_lexical(),
            shape: self.shape,
            expiries: self.expiries,
            version: extras.version(self.shape),
        };
        let block = footer.encode(self.id, footer_at);
        self.output.emit(&block)?;
        debug_assert_eq!(self.output.bytes(), footer_at + BLOCK_BYTES as u64, "the footer is the last block");
        self.output.finish()?;
        // Held until the list does.
        let values = self.values.take().map(|values| values.finish()).transpose()?.unwrap_or_default();
        let meta = FileMeta {
            values: Arc::clone(&values.shares),
            id: self.id,
            bytes: footer_at + BLOCK_BYTES as u64,
            digest: forebay_base::wire::u32_at(&block, 0),
            kind: FileKind::List,
        };
        let file = self.store.fs.open_read(&self.path, Access::Random)?;
        let starts = Starts::Ranks(Vec::new());
        let index = std::mem::replace(&mut self.index, PageIndex::new(starts, BLOCK_BYTES as u64));
        let digest = std::mem::replace(&mut self.digest, Digest::new(0));
        let density = index.density(self.store.options.order, footer.records);
        let allowed = self.store.filter_allowance(density, self.id);
        let body = Body::new(&self.store, file, footer, index, filter, digest, allowed);
        self.store.disk.finish(meta.bytes);
        self.finished = true;
        Ok(Some(ListFile::with_body(&self.store, meta, body)))
    }

    /// Appends page search, digest and filter, and zeros up to the end of a block. Returns how long they are without
    /// those, and the checksum of all. The filter's words go out piece by piece: they are most of it.
    fn emit_meta(&mut self, filter: Option<&Filter>) -> Result<(u64, u32)> {
        let begin = self.output.bytes();
        let mut piece = Vec::new();
        self.index.encode(&mut piece);
        debug_assert_eq!(
            PageIndex::decode(&mut Reader::new(&piece), self.records, begin).as_ref(),
            Some(&self.index)
        );
        let digest_at = piece.len();
        self.digest.encode(&mut piece);
        debug_assert_eq!(Digest::decode(&mut Reader::new(&piece[digest_at..])).as_ref(), Some(&self.digest));
        Filter::encode_head(filter, &mut piece);
        let mut sum = checksum(self.id, begin, &piece);
        self.output.emit(&piece)?;
        for words in filter.map_or(&[][..], Filter::words).chunks(BLOCK_BYTES / size_of::<u64>()) {
            piece.clear();
            let words = words.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
            words.for_each(|word| piece.extend_from_slice(&word));
            sum = append(sum, &piece);
            self.output.emit(&piece)?;
        }
        let bytes = self.output.bytes() - begin;
        let end = self.output.bytes().next_multiple_of(BLOCK_BYTES as u64);
        piece.clear();
        piece.resize((end - self.output.bytes()) as usize, 0);
        self.output.emit(&piece)?;
        Ok((bytes, append(sum, &piece)))
    }
}
