//! Numbers of items: C has them signed and unsigned.

use std::ffi::c_int;

/// A number of items, as C passes it.
pub(crate) trait Count {
    fn count(self) -> usize;
}

impl Count for usize {
    fn count(self) -> usize {
        self
    }
}

impl Count for c_int {
    /// A negative one is more than there can be, and refused as that.
    fn count(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_is_more_than_any_array_has() {
        assert_eq!(((-1).count(), 3.count(), 4_usize.count()), (usize::MAX, 3, 4));
    }
}
