//! Files of keys. They are read a block at a time, by as many threads as like to, and no engine holds more of them.
//!
//! A file is blocks of one size, a block is keys, `u8 length | key`, and zeros behind them. No key is empty.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// A file of keys that is being read.
pub(crate) struct Blocks {
    file: File,
    count: u64,
    next: AtomicU64,
}

impl Blocks {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let count = file.metadata()?.len() / BLOCK_BYTES as u64;
        Ok(Self { file, count, next: AtomicU64::new(0) })
    }

    /// Reads the next block that nobody has read; `None` behind the last one.
    pub(crate) fn read<'a>(&self, block: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        if at >= self.count {
            return Ok(None);
        }
        block.resize(BLOCK_BYTES, 0);
        self.file.read_exact_at(block, at * BLOCK_BYTES as u64)?;
        Ok(Some(block))
    }
}

/// The keys of a block.
pub(crate) struct Keys<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (&length, rest) = self.0.split_first()?;
        if length == 0 {
            return None;
        }
        let (key, rest) = rest.split_at_checked(length.into())?;
        self.0 = rest;
        Some(key)
    }
}
