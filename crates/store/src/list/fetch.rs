//! Reading single pages of several lists at once, mostly into the cache.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::fs::ReadRequest;

use super::candidates::Candidate;
use super::file::{Body, ListFile};
use super::page::Page;
use crate::cache::Caching;

/// A page as it stands in its file: nobody has looked whether it is whole, or made it as long as it is in memory.
pub(super) struct Unchecked<'a> {
    list: &'a ListFile,
    body: &'a Body,
    number: usize,
    bytes: Vec<u8>,
}

impl Unchecked<'_> {
    /// The page, which the cache may take.
    pub(super) fn page(self, caching: Caching) -> Result<Arc<Page>> {
        self.list.take_page(self.body, self.number, self.bytes, caching)
    }
}

/// The pages of these numbers, in their order, which the cache did not have: read together.
pub(super) fn read<'a>(wanted: &[(&'a ListFile, usize)]) -> Result<Vec<Unchecked<'a>>> {
    // Any file system reads files in memory, too; theirs reads one at a time.
    let Some((first, _)) = wanted.iter().find(|(list, _)| !list.is_resident()).or(wanted.first()) else {
        return Ok(Vec::new());
    };
    let mut reads = Vec::with_capacity(wanted.len());
    for &(list, number) in wanted {
        let body = list.body()?;
        let (offset, bytes) = body.index.extent(number);
        reads.push((offset, Unchecked { list, body, number, bytes: vec![0; bytes] }));
    }
    let mut requests: Vec<_> = reads
        .iter_mut()
        .map(|(offset, read)| ReadRequest::new(&*read.body.file, *offset, &mut read.bytes))
        .collect();
    debug_assert_eq!(requests.len(), wanted.len());
    first.store().fs.read_many(&mut requests);
    let outcomes: Vec<Result<usize>> = requests.into_iter().map(|request| request.outcome).collect();
    let read = reads.into_iter().zip(outcomes).map(|((offset, read), outcome)| {
        read.list.check_read(offset, outcome?, read.bytes.len())?;
        Ok(read)
    });
    read.collect()
}

/// The same as pages.
pub(super) fn fetch(wanted: &[(&ListFile, usize)], caching: Caching) -> Result<Vec<Arc<Page>>> {
    match wanted {
        [(list, number)] => Ok(vec![list.page(*number, caching)?]),
        _ => read(wanted)?.into_iter().map(|read| read.page(caching)).collect(),
    }
}

/// All pages that are read before their turn take no more than this.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// Pages that were read before their turn.
pub(super) type Ahead<'a> = Vec<(&'a ListFile, usize, Arc<Page>)>;

/// The first page of each list that may have a key, where the cache lacks several of them: read together.
pub(super) fn fetch_ahead<'a>(candidates: &[Candidate<'a>], caching: Caching) -> Ahead<'a> {
    let is_first = |&at: &usize| at == 0 || !std::ptr::eq(candidates[at - 1].list, candidates[at].list);
    let firsts = (0..candidates.len()).filter(is_first).map(|at| &candidates[at]);
    let numbered = firsts.filter_map(|first| Some((first.list, first.page_number()?)));
    let mut room = AHEAD_BYTES_MAX;
    let mut fits = |list: &ListFile, number: usize| {
        let page_bytes = list.body().map_or(usize::MAX, |body| body.index.extent(number).1);
        let left = room.checked_sub(page_bytes);
        room = left.unwrap_or(room);
        left.is_some()
    };
    let wanted: Vec<_> =
        numbered.filter(|(list, number)| list.cached(*number).is_none() && fits(list, *number)).collect();
    debug_assert!(wanted.len() <= candidates.len(), "a page of each list at most");
    if wanted.len() < 2 {
        return Vec::new();
    }
    // What cannot be read is told of where its turn comes.
    let pages = fetch(&wanted, caching).unwrap_or_default();
    wanted.into_iter().zip(pages).map(|((list, number), page)| (list, number, page)).collect()
}
