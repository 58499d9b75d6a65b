//! Ranges of keys, as Rust writes them.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

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

key_bounds!(Range<K>, RangeFrom<K>, RangeInclusive<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));
