//! Where keys may be, list by list and page by page, and which of that is left once a page was seen.

use super::file::ListFile;
use super::spot::Spot;

/// Where a key may be.
pub(super) struct Candidate<'a> {
    pub(super) lookup: u32,
    pub(super) list: &'a ListFile,
    pub(super) spot: Spot,
}

/// What a page says of a key.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Whether older lists matter.
    pub(super) more: bool,
    /// Where else in the list the key may be.
    pub(super) left: Left,
}

/// Which other pages of a list may have a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// None: it was found, or its place was.
    Nowhere,
    /// Those before the page.
    Before,
    /// Those behind it.
    Behind,
    /// Any that were proposed.
    Anywhere,
}

/// The candidate after this one: of the same list the next page that may have the key by what was seen, or the next of
/// another list.
pub(super) fn following(candidates: &[Candidate<'_>], at: usize, seen: Seen) -> usize {
    let this = &candidates[at];
    let is_of_it = |other: &Candidate<'_>| other.lookup == this.lookup && std::ptr::eq(other.list, this.list);
    let others = candidates[at + 1..].iter().take_while(|next| is_of_it(next)).count();
    // Behind the first page of a list come those before it, and then those behind it.
    let before = at.checked_sub(1).map(|before| &candidates[before]).filter(|before| is_of_it(before));
    let goes_down = before.map(|before| before.page_number() > this.page_number());
    let rest = &candidates[at + 1..=at + others];
    let found = match (seen.left, goes_down) {
        (Left::Anywhere, _) => return at + 1,
        (Left::Before, None | Some(true)) => {
            rest.iter().position(|next| next.page_number() < this.page_number())
        }
        (Left::Behind, None | Some(false)) => {
            rest.iter().position(|next| next.page_number() > this.page_number())
        }
        // Its place is between this page and the one before.
        _ => None,
    };
    at + 1 + found.unwrap_or(others)
}

impl Candidate<'_> {
    /// How long its page is; 0 where its list is not open yet.
    pub(super) fn page_bytes(&self) -> usize {
        let extent = |number| Some(self.list.ready()?.index.extent(number).1);
        self.page_number().and_then(extent).unwrap_or(0)
    }

    pub(super) fn page_number(&self) -> Option<usize> {
        match self.spot {
            Spot::Records(page, _) | Spot::Page(page) => Some(page as usize),
            Spot::Unknown => None,
        }
    }

    /// The record of its page to look at first, if that is known.
    pub(super) fn first_record(&self) -> usize {
        match &self.spot {
            Spot::Records(_, among) => among.start as usize,
            _ => 0,
        }
    }
}
