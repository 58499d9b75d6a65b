//! The unsafe code of this crate, but for reads by io_uring (fs/kernel.rs) and page frames (page_frames/kernel.rs):
//! aligned memory, words in it, the shared bytes of an [`Arena`], and prefetching.
//!
//! **Invariant:** every byte of a [`Pages`] is initialised from birth (zeroed by the allocator or the
//! kernel), its address never changes, and it is freed exactly once.
//!
//! **Why an arena is sound.** Its bytes fall in three parts: `0..published`, `published..len`,
//! `len..capacity`, where `len` belongs to the one [`Appender`].
//! - Readers make slices only of `0..published`; they load `published` with Acquire, the appender stores
//!   it with Release after the copies, so what a reader sees is fully written and happens-before it.
//! - The appender writes only to `len..capacity` (through `&mut self`, and it cannot be cloned), which no
//!   slice of a reader or of the appender itself overlaps, as `published <= len`.
//! - The appender reads only `0..len`, through `&self`: no write can run meanwhile.
//! - Lengths fall only in [`reclaim`], which owns the arena by value: no slice borrowed from it is left.
//!
//! **Why a file may take the place of pages.** [`Pages::turn_to_file`] maps a file over them that has the same bytes,
//! so whoever reads them while that happens reads the same before and after. The file has no name and nobody else has
//! it, so nobody changes or cuts it; were something written to the pages, that would be the process's own copy.
//!
//! **Why stores into a file are sound.** No reference is ever made to what a [`FileWindow`] maps: bytes are only copied
//! into it, through `&mut self`. What else the file's bytes are read or changed by is none of this process's memory.
//!
//! **Why words are sound.** [`PagedWords`] owns its pages alone and shows them only as atomics. That the kernel
//! puts zeros in place of released pages is, to whoever reads, one more atomic store.

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

use forebay_base::limits::BLOCK_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of every allocation, in bytes: what direct I/O asks for.
pub(crate) const PAGE_BYTES: usize = 4096;
/// From this size on memory comes from the kernel in huge pages, aligned to them.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;
/// From this size on memory comes from the kernel, and goes back to it at once: an allocator may keep what is freed,
/// and what is left between what is not.
const MAPPED_BYTES_MIN: usize = 64 << 10;

const _: () = assert!(PAGE_BYTES == BLOCK_BYTES, "what is aligned to pages is aligned for direct I/O");
const _: () = assert!(HUGE_PAGE_BYTES.is_power_of_two() && HUGE_PAGE_BYTES.is_multiple_of(PAGE_BYTES));
const _: () = assert!(MAPPED_BYTES_MIN >= PAGE_BYTES && MAPPED_BYTES_MIN < HUGE_PAGE_BYTES);

/// An aligned, zero-initialised block of memory.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    len_bytes: usize,
    /// Whether it is a mapping of its own, and none of the allocator's.
    is_mapped: bool,
}

// SAFETY: Pages owns its memory as a Box does; nothing in it is tied to a thread.
unsafe impl Send for Pages {}
// SAFETY: through `&Pages` memory can only be read, except by the arena below and by page frames, which keep their own
// rules.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed memory. Aborts when there is none left, as every Rust allocation does.
    pub(crate) fn zeroed(len_bytes: usize) -> Self {
        let layout = layout_of(len_bytes);
        let mapped = match len_bytes {
            // Miri can make a mapping but not cut it.
            _ if cfg!(miri) => None,
            HUGE_PAGE_BYTES.. => map_huge(layout.size()),
            MAPPED_BYTES_MIN.. => map(layout.size()),
            _ => None,
        };
        // The kernel may refuse one more mapping where there are very many.
        // SAFETY: the layout's size is at least one page, so not zero.
        let start = mapped.or_else(|| NonNull::new(unsafe { alloc_zeroed(layout) }));
        let start = start.unwrap_or_else(|| handle_alloc_error(layout));
        debug_assert!(start.addr().get().is_multiple_of(layout.align()) && layout.size() >= len_bytes);
        Self { start, len_bytes, is_mapped: mapped.is_some() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len_bytes
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Maps a file's bytes from `offset` on, a multiple of the page size, in the place of these pages, whose memory
    /// goes back to the system. Says whether that was done; it is not for memory of the allocator's. The file must
    /// reach as far as the whole pages do, have the same bytes as far as anybody reads, and be changed by nobody.
    pub(crate) fn turn_to_file(&self, file: BorrowedFd<'_>, offset: u64) -> bool {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES as u64));
        let size = layout_of(self.len_bytes).size();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the mapping of exactly this start and size is this one's own, and stays mapped with the same bytes.
        self.is_mapped
            && unsafe { mmap(self.start.as_ptr().cast(), size, protection, flags, file, offset) }.is_ok()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: all `len_bytes` are initialised and live as long as self; `&self` excludes `as_mut_slice`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes every other slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let layout = layout_of(self.len_bytes);
        if self.is_mapped {
            // SAFETY: the mapping of exactly this start and size was made in `zeroed` and nothing borrows it.
            // An error would mean it is no mapping: nothing to free then.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), layout.size()) };
        } else {
            // SAFETY: allocated in `zeroed` with this very layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// Size rounded up to whole pages, and the alignment that goes with it.
fn layout_of(len_bytes: usize) -> Layout {
    let align = if len_bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
    let size = len_bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
    let layout = size.and_then(|size| Layout::from_size_align(size, align).ok());
    // A size near usize::MAX: no allocator could serve it, so it ends as running out of memory does.
    layout.unwrap_or_else(|| handle_alloc_error(Layout::new::<u8>()))
}

/// Maps `size` bytes (whole pages), untouched.
fn map(size: usize) -> Option<NonNull<u8>> {
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
    let base =
        unsafe { mmap_anonymous(null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    NonNull::new(base.ok()?.cast())
}

/// Maps `size` bytes (whole pages) at a huge page boundary, untouched: pages come at first use, huge ones
/// but for the rest at the end.
fn map_huge(size: usize) -> Option<NonNull<u8>> {
    let whole = size.checked_add(HUGE_PAGE_BYTES)?;
    let base = map(whole)?.as_ptr();
    let head = base.align_offset(HUGE_PAGE_BYTES);
    let start = base.wrapping_add(head);
    // SAFETY: both cut pieces lie inside the mapping just made, outside start..start + size, and are
    // unknown to anybody. Failing to cut only keeps some address space; the advice is only advice.
    unsafe {
        if head > 0 {
            let _ = munmap(base.cast(), head);
        }
        let _ = munmap(start.wrapping_add(size).cast(), HUGE_PAGE_BYTES - head);
        let _ = madvise(start.cast(), size, Advice::LinuxHugepage);
    }
    NonNull::new(start)
}

/// A piece of a file, mapped to be written to.
#[derive(Debug)]
pub(crate) struct FileWindow {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: it owns its mapping as a Box does; nothing in it is tied to a thread.
unsafe impl Send for FileWindow {}
// SAFETY: nothing can be done through `&FileWindow`.
unsafe impl Sync for FileWindow {}

impl FileWindow {
    /// Maps this many bytes of a file from `offset` on, a multiple of the page size, every page there and writable.
    /// `None` where the system cannot. The file must reach as far for as long as this is stored into.
    pub(crate) fn map(file: BorrowedFd<'_>, offset: u64, len_bytes: usize) -> Option<Self> {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES as u64));
        if len_bytes == 0 || cfg!(miri) {
            return None;
        }
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(null_mut(), len_bytes, protection, flags, file, offset) };
        let window = Self { start: NonNull::new(start.ok()?.cast())?, len_bytes };
        // SAFETY: the range is the mapping just made; its bytes stay what they are.
        let populated =
            unsafe { madvise(window.start.as_ptr().cast(), len_bytes, Advice::LinuxPopulateWrite) };
        populated.is_ok().then_some(window)
    }

    /// Copies `bytes` to this place of it. Says whether they fit there; else nothing is done.
    #[inline]
    pub(crate) fn store(&mut self, at: usize, bytes: &[u8]) -> bool {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.len_bytes) {
            return false;
        }
        // SAFETY: the range is inside the mapping, of which no reference is ever made, so `bytes` is elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
        true
    }
}

impl Drop for FileWindow {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this start and length, and nothing borrows it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}

/// Words of a file, mapped.
#[derive(Debug)]
pub struct FiledWords {
    start: NonNull<u64>,
    len: usize,
}

// SAFETY: it owns its mapping as a Box does, and nobody can write to it.
unsafe impl Send for FiledWords {}
// SAFETY: as above.
unsafe impl Sync for FiledWords {}

impl FiledWords {
    /// Maps this many words, little-endian ones, from `offset` on, a multiple of the page size. `None` where the
    /// system cannot. The file must reach as far, and be changed by nobody: best has it no name.
    pub(crate) fn map(file: BorrowedFd<'_>, offset: u64, len: usize) -> Option<Self> {
        if len == 0 || cfg!(target_endian = "big") {
            return None;
        }
        debug_assert!(offset.is_multiple_of(PAGE_BYTES as u64));
        let bytes = len.checked_mul(size_of::<u64>())?;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, offset) };
        Some(Self { start: NonNull::new(start.ok()?.cast())?, len })
    }

    /// The words.
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: a mapping is aligned to pages, of `len` words, any bytes are words, and it lives as long as self.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for FiledWords {
    /// Their bytes, as the file has them.
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as above; any word is this many bytes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len * size_of::<u64>()) }
    }
}

impl Drop for FiledWords {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this start and length, and nothing borrows it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len * size_of::<u64>()) };
    }
}

/// 64-bit words that may change while others read them.
#[derive(Debug)]
pub(crate) struct PagedWords(Pages);

impl PagedWords {
    /// This many zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self(Pages::zeroed(len * size_of::<u64>()))
    }

    pub(crate) fn as_slice(&self) -> &[AtomicU64] {
        // SAFETY: the pages are initialised, aligned for words, and live as long as self. Nothing else makes
        // slices of them, and through atomics they may be shared.
        unsafe {
            std::slice::from_raw_parts(self.0.start.as_ptr().cast(), self.0.len_bytes / size_of::<u64>())
        }
    }

    /// Gives back the memory of all whole pages behind the first `len` words, which read as zeros from then on; none where
    /// the system's pages are longer than ours and have something of others.
    pub(crate) fn release(&self, len: usize) {
        // The kernel takes whole pages of its own, which may be longer than ours.
        let page_bytes = if cfg!(miri) { PAGE_BYTES } else { page_size().max(PAGE_BYTES) };
        let start = (len * size_of::<u64>()).next_multiple_of(page_bytes);
        // Behind the last word the rest of its page is nobody else's: of ours, or of a mapping.
        let end = self.0.len_bytes.next_multiple_of(page_bytes);
        let owns_pages = self.0.is_mapped || page_bytes == PAGE_BYTES;
        if cfg!(miri) {
            // It has no kernel to ask, so this does what the kernel does to readers.
            let released = self.as_slice().iter().skip(start / size_of::<u64>());
            released.for_each(|word| word.store(0, Ordering::Relaxed));
        } else if start < end && owns_pages {
            let released = self.0.start.as_ptr().wrapping_add(start).cast();
            // SAFETY: the range is whole pages inside memory that self owns; it stays mapped and, to atomic
            // loads, turns to zeros. Where the kernel refuses, nothing happens. That no huge pages are wanted any more
            // keeps the kernel from making one of what is left.
            unsafe {
                if self.0.is_mapped && self.0.len_bytes >= HUGE_PAGE_BYTES {
                    let _ = madvise(self.0.start.as_ptr().cast(), end, Advice::LinuxNoHugepage);
                }
                let _ = madvise(released, end - start, Advice::LinuxDontNeed);
            }
        }
    }
}

/// Asks for the cache line of `place`, and does not wait for it.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing, and the address is a live reference's.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Append-only bytes at a fixed address: one appender, any number of readers at the same time.
#[derive(Debug)]
pub struct Arena {
    pages: Pages,
    published: AtomicUsize,
}

/// The right to append to one [`Arena`].
#[derive(Debug)]
pub struct Appender {
    arena: Arc<Arena>,
    len_bytes: usize,
}

/// An arena and its only appender.
pub(crate) fn arena(pages: Pages) -> (Arc<Arena>, Appender) {
    let arena = Arc::new(Arena { pages, published: AtomicUsize::new(0) });
    (Arc::clone(&arena), Appender { arena, len_bytes: 0 })
}

/// The memory of an arena nobody else holds.
pub(crate) fn reclaim(arena: Arc<Arena>) -> Result<Pages, Arc<Arena>> {
    let pages = Arc::try_unwrap(arena).map(|arena| arena.pages);
    #[cfg(invariants)]
    let pages = pages.map(|mut pages| {
        // Who reads what was not appended since does not find what he looks for.
        pages.as_mut_slice().fill(0xdb);
        pages
    });
    pages
}

impl Arena {
    /// How many bytes fit, in all.
    pub fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// How many bytes readers may see.
    pub fn published(&self) -> usize {
        self.published.load(Ordering::Acquire)
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// What readers may see.
    pub fn bytes(&self) -> &[u8] {
        let published = self.published();
        debug_assert!(published <= self.capacity());
        // SAFETY: `0..published` is initialised, never written again while self is borrowed, and within
        // the pages (see the module's argument).
        unsafe { std::slice::from_raw_parts(self.pages.start.as_ptr(), published) }
    }
}

impl Arena {
    /// Asks memory for the published bytes around `place`, and goes on without waiting for them.
    #[inline]
    pub fn prefetch(&self, place: usize) {
        debug_assert!(place < self.published());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads and writes nothing, faults on no address, and `wrapping_add` makes any.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.pages.start.as_ptr().wrapping_add(place).cast());
        }
    }
}

impl Appender {
    /// How many bytes were appended, published or not.
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    /// Whether nothing was appended yet.
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// The arena appended to.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Copies `bytes` to the end; returns where they start, or `None` when they do not fit.
    pub fn append(&mut self, bytes: &[u8]) -> Option<usize> {
        let offset = self.len_bytes;
        let end = offset.checked_add(bytes.len()).filter(|&end| end <= self.arena.capacity())?;
        // SAFETY: `offset..end` is within the pages and in the part only this appender touches. `bytes`
        // cannot overlap it: no slice of that part exists.
        unsafe {
            let to = self.arena.pages.start.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.len_bytes = end;
        debug_assert!(self.arena.published() <= offset, "no reader sees what is being written");
        Some(offset)
    }

    /// Lets readers see everything appended so far.
    pub fn publish(&mut self) {
        debug_assert!(self.arena.published() <= self.len_bytes, "what readers have seen stays");
        self.arena.published.store(self.len_bytes, Ordering::Release);
    }

    /// The appender's own bytes, published or not; empty when `range` was not appended.
    pub fn unpublished_view(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: `0..len_bytes` is initialised and nothing writes to it while self is borrowed.
        let all = unsafe { std::slice::from_raw_parts(self.arena.pages.start.as_ptr(), self.len_bytes) };
        all.get(range).unwrap_or_default()
    }
}
