//! Ranges of keys, as Rust writes them.

use std::ops::{
    Bound, Range as Keys, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use forebay_base::{Order, Range};

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..` or two [`Bound`]s, of anything that is bytes. (Of the standard
/// library's `RangeBounds` a type has several, and then `..` would have to be told of which keys it is.)
///
/// ```
/// # use std::ops::Bound;
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Database, Layout, Options};
/// # let db = Database::open("/db", Options::default().env(env))?;
/// let table = db.table("t").layout(Layout::wb_tree_ordered()).open_ordered()?;
/// table.range("a".."b")?;
/// table.range(b"a"..=b"b")?;
/// table.range(1_u64.to_be_bytes()..)?;
/// table.range(..)?;
/// table.range((Bound::Excluded(vec![1, 2]), Bound::Unbounded))?;
/// # Ok::<(), forebay::Error>(())
/// ```
pub trait KeyBounds {
    /// Where the range begins.
    fn low(&self) -> Bound<&[u8]>;
    /// Where it ends.
    fn high(&self) -> Bound<&[u8]>;
}

impl KeyBounds for RangeFull {
    fn low(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn high(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

macro_rules! key_bounds {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn low(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::start_bound(self).map(AsRef::as_ref)
            }

            fn high(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::end_bound(self).map(AsRef::as_ref)
            }
        }
    )*};
}

key_bounds!(Keys<K>, RangeFrom<K>, RangeInclusive<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

/// The key right behind `key`.
fn key_after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

pub(crate) fn range_of(order: Order, bounds: &impl KeyBounds) -> Range {
    let low = match bounds.low() {
        Bound::Included(key) => order.bound(key),
        Bound::Excluded(key) => order.bound(&key_after(key)),
        Bound::Unbounded => Range::all().low,
    };
    let high = match bounds.high() {
        Bound::Included(key) => Some(order.bound(&key_after(key))),
        Bound::Excluded(key) => Some(order.bound(key)),
        Bound::Unbounded => None,
    };
    Range { low, high }
}

pub(crate) fn prefix_range(order: Order, prefix: &[u8]) -> Range {
    // The first key behind all that begin with the prefix: its last byte that can grow, grown.
    let end = prefix.iter().rposition(|&byte| byte < 0xff).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    Range { low: order.bound(prefix), high: end.map(|end| order.bound(&end)) }
}
