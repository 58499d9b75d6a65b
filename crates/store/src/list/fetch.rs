//! Reading single pages of several lists at once, mostly into the cache.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::fs::ReadRequest;

use super::candidates::Candidate;
use super::file::ListFile;
use super::page::Page;
use crate::cache::Caching;

/// The pages of these numbers, in their order, which the cache did not have: read together.
pub(super) fn fetch(wanted: &[(&ListFile, usize)], caching: Caching) -> Result<Vec<Arc<Page>>> {
    let fs = match wanted {
        [] => return Ok(Vec::new()),
        [(list, number)] => return Ok(vec![list.page(*number, caching)?]),
        // Any file system reads files in memory, too; theirs reads one at a time.
        [first, ..] => &wanted.iter().find(|(list, _)| !list.is_resident()).unwrap_or(first).0.store().fs,
    };
    let mut reads = Vec::with_capacity(wanted.len());
    for &(list, number) in wanted {
        let body = list.body()?;
        let (offset, bytes) = body.index.extent(number);
        reads.push((list, body, number, offset, vec![0; bytes]));
    }
    let mut requests: Vec<_> = reads
        .iter_mut()
        .map(|(_, body, _, offset, bytes)| ReadRequest::new(&*body.file, *offset, bytes))
        .collect();
    debug_assert_eq!(requests.len(), wanted.len());
    fs.read_many(&mut requests);
    let outcomes: Vec<Result<usize>> = requests.into_iter().map(|request| request.outcome).collect();
    let read = reads.into_iter().zip(outcomes);
    read.map(|((list, body, number, offset, bytes), outcome)| {
        list.check_read(offset, outcome?, bytes.len())?;
        list.take_page(body, number, bytes, caching)
    })
    .collect()
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
