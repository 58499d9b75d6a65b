//! Short writes without a call: a window of the file is mapped, and they are stored into it.
//!
//! A store cannot fail with an error: where the kernel has no page for it, it ends the process. So only a file whose
//! blocks are reserved is written to in this way, on a file system that then needs nothing more for it; each window is
//! faulted in as a whole by a call that can fail, and is left after a moment, before the kernel would take its pages.
//! Where any of this cannot be had, the caller writes by calls.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::fs::fstatfs;

use crate::kernel::{FileWindow, PAGE_BYTES};

/// How much of the file is mapped at a time: what the store that comes to its end waits for.
const WINDOW_BYTES: usize = 64 << 10;
/// How long a window is stored into. The kernel writes back what has been dirty for longer.
const WINDOW_AGE_MAX: Duration = Duration::from_secs(1);
/// By these numbers file systems tell what they are: ext2 to ext4, XFS and tmpfs. A page of theirs that has its block
/// can be written to; one of those that copy on write needs another block.
const FILE_SYSTEMS: [i64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

const _: () = assert!(WINDOW_BYTES.is_multiple_of(PAGE_BYTES));

/// Whether a file is on one of those.
pub(super) fn is_known(file: BorrowedFd<'_>) -> bool {
    fstatfs(file).is_ok_and(|found| FILE_SYSTEMS.contains(&found.f_type))
}

/// How one file is stored into.
#[derive(Debug, Default)]
pub(super) struct Stores {
    /// The file has its blocks below this.
    reserved_bytes: u64,
    window: Option<(u64, FileWindow, Instant)>,
}

impl Stores {
    /// The file has its blocks below `bytes` from now on.
    pub(super) fn reserved(&mut self, file: BorrowedFd<'_>, bytes: u64) {
        self.reserved_bytes = if is_known(file) { self.reserved_bytes.max(bytes) } else { 0 };
    }

    /// The file is cut to `bytes`.
    pub(super) fn cut(&mut self, bytes: u64) {
        self.reserved_bytes = self.reserved_bytes.min(bytes);
        self.window = None;
    }

    /// The next store maps its window anew.
    pub(super) fn leave(&mut self) {
        self.window = None;
    }

    /// Stores `bytes` at `offset`. Says whether that was done; else nothing was.
    pub(super) fn store(&mut self, file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> bool {
        let is_within = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.reserved_bytes);
        if !is_within || bytes.len() > WINDOW_BYTES - PAGE_BYTES {
            return false;
        }
        let now = Instant::now();
        for _ in 0..2 {
            if let Some((start, window, since)) = &mut self.window
                && offset >= *start
                && now.duration_since(*since) <= WINDOW_AGE_MAX
                && window.store((offset - *start) as usize, bytes)
            {
                return true;
            }
            // The old one goes first, so that there is never more than one in memory.
            self.window = None;
            let start = offset - offset % PAGE_BYTES as u64;
            let len = (self.reserved_bytes - start).min(WINDOW_BYTES as u64) as usize;
            let Some(window) = FileWindow::map(file, start, len) else {
                self.reserved_bytes = 0;
                return false;
            };
            self.window = Some((start, window, now));
        }
        false
    }
}
