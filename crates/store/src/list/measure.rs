//! What planning asks of a list: where its middle is, and how much of it lies on one side of a bound. Both
//! are answered from the page search in memory.

use forebay_base::{Bound, Range};

use super::file::ListFile;

impl ListFile {
    /// The page boundary nearest to the middle of what it holds inside `range`, if there is one strictly
    /// inside.
    pub fn middle(&self, range: &Range) -> Option<Bound> {
        let body = self.body().ok()?;
        let pages = body.index.pages_of(range);
        if pages.len() < 2 {
            return None;
        }
        let bound = body.index.bound(pages.start + pages.len() / 2);
        range.can_split_at(&bound).then_some(bound)
    }

    /// The share of its records inside `range` that lie below `at`, by pages and, inside one, by the
    /// prefix's place. 0.0 and 1.0 are certain.
    pub fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let Ok(body) = self.body() else { return 0.5 };
        let index = &body.index;
        if at.prefix <= index.first_prefix() && at.key.is_empty() {
            return 0.0;
        }
        if at.prefix > index.last_prefix() {
            return 1.0;
        }
        let uniform = self.store().options.order.is_uniform();
        let place = |bound: &Bound| {
            let Some(page) = index.find(bound.prefix, &bound.key) else { return 0.0 };
            let first = index.bound(page);
            let next =
                if page + 1 < index.pages() { index.bound(page + 1).prefix } else { index.last_prefix() };
            let inside = match uniform {
                true if next > first.prefix => {
                    (bound.prefix - first.prefix.min(bound.prefix)) as f64 / (next - first.prefix) as f64
                }
                _ if first == *bound => 0.0,
                _ => 0.5,
            };
            page as f64 + inside.min(1.0)
        };
        let low = place(&range.low);
        let high = range.high.as_ref().map_or(index.pages() as f64, place);
        if high <= low {
            return 0.5;
        }
        ((place(at) - low) / (high - low)).clamp(0.001, 0.999)
    }
}
