//! Where a list may have a key, by what its filter says.

use std::ops::Range;

use super::file::Body;
use super::filter::Place;

/// Where a list may have a key.
pub(super) enum Spot {
    /// In a page, among these of its records.
    Records(u32, Range<u32>),
    /// Somewhere in a page.
    Page(u32),
    /// The list is not open, or not sound: opening it will tell.
    Unknown,
}

/// Proposes the pages of the records of these ranks. That is one, unless hashes are alike, or all of a line's: those are
/// neighbours. The page of the likeliest rank comes first, then those before it, the nearest first, then those behind it:
/// which of these two matter, the first one tells.
#[cold]
pub(super) fn propose_ranks(body: &Body, ranks: Range<u32>, place: &Place, propose: &mut impl FnMut(Spot)) {
    let Some(last) = ranks.end.checked_sub(1) else { return };
    let ((page, first), (last_page, last)) = (body.index.page_of(ranks.start), body.index.page_of(last));
    let records = |at: usize| {
        let end = if at == last_page { last + 1 } else { u32::MAX };
        Spot::Records(at as u32, if at == page { first } else { 0 }..end)
    };
    let likely = body.index.page_of(place.likely(&ranks)).0;
    debug_assert!((page..=last_page).contains(&likely), "the likeliest rank is one of them");
    propose(records(likely));
    (page..likely).rev().chain(likely + 1..=last_page).for_each(|at| propose(records(at)));
}
