//! [`AlignedBuf`]: bytes that direct I/O accepts.
//!
//! **Invariant:** starts at a multiple of 4096; of 2 MiB, in huge pages if the system has them, when it
//! is that long.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::kernel::Pages;

/// An aligned buffer of fixed length.
pub struct AlignedBuf {
    pages: Pages,
}

impl AlignedBuf {
    /// `len_bytes` zeros.
    pub fn zeroed(len_bytes: usize) -> Self {
        let pages = Pages::zeroed(len_bytes);
        debug_assert_eq!(pages.len(), len_bytes);
        Self { pages }
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages.as_slice()
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pages.as_mut_slice()
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len())
    }
}
