//! The tables of `tables.cc`, each deleted once.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

use crate::Failure;

/// A table of C++.
#[repr(C)]
struct Native {
    _opaque: [u8; 0],
}

type Visit = extern "C" fn(*mut c_void, *const u8, usize, u64);

unsafe extern "C" {
    /// Null for keys that no table is made for.
    safe fn forebay_table_sparse(keys: c_int, key_bytes_max: usize) -> *mut Native;
    safe fn forebay_table_concurrent(keys: c_int, key_bytes_max: usize) -> *mut Native;
    /// Adds the keys of a block; ends the process for one that is longer than the table was made for. Concurrent
    /// tables take several calls at once.
    fn forebay_table_add(table: *mut Native, block: *const u8, bytes: usize);
    fn forebay_table_each(table: *const Native, context: *mut c_void, visit: Visit);
    fn forebay_table_delete(table: *mut Native);
    safe fn forebay_table_concurrent_version() -> *const c_char;
}

/// How a table keeps its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    /// As numbers of 64 bits.
    Number = 0,
    /// In structs that the longest fits into.
    InPlace = 1,
    /// Each in memory of its own.
    Pointer = 2,
}

/// A table for one thread.
pub(super) struct Table(NonNull<Native>);

impl Table {
    pub(super) fn sparse(keys: Keys, key_bytes_max: usize) -> Result<Self, Failure> {
        Self::owned(forebay_table_sparse(keys as c_int, key_bytes_max))
    }

    fn owned(at: *mut Native) -> Result<Self, Failure> {
        Ok(Self(NonNull::new(at).ok_or("no table is made for keys so long")?))
    }

    pub(super) fn add(&mut self, block: &[u8]) {
        // SAFETY: the table lives until `drop`, and is ours alone.
        unsafe { forebay_table_add(self.0.as_ptr(), block.as_ptr(), block.len()) }
    }

    pub(super) fn each(&self, visit: &mut dyn FnMut(&[u8], u64)) {
        extern "C" fn show(context: *mut c_void, key: *const u8, bytes: usize, count: u64) {
            // SAFETY: the context is what `each` gives below, which nobody else uses meanwhile.
            let visit = unsafe { &mut *context.cast::<&mut dyn FnMut(&[u8], u64)>() };
            // SAFETY: the table shows a key of so many bytes, which stay as they are during the call.
            visit(unsafe { std::slice::from_raw_parts(key, bytes) }, count);
        }
        let mut visit = visit;
        let context = (&raw mut visit).cast();
        // SAFETY: the table lives until `drop` and nobody adds to it; `show` is made for this context.
        unsafe { forebay_table_each(self.0.as_ptr(), context, show) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: the table is ours, and this is the only place that deletes it.
        unsafe { forebay_table_delete(self.0.as_ptr()) }
    }
}

/// A table to which several threads may add.
pub(super) struct Shared(Table);

// SAFETY: a concurrent table takes adds of several threads at once. `each` needs it without any meanwhile: it takes
// the table by `&mut`.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(keys: Keys, key_bytes_max: usize) -> Result<Self, Failure> {
        Ok(Self(Table::owned(forebay_table_concurrent(keys as c_int, key_bytes_max))?))
    }

    pub(super) fn add(&self, block: &[u8]) {
        // SAFETY: the table lives until `drop`, and takes adds of several threads.
        unsafe { forebay_table_add(self.0.0.as_ptr(), block.as_ptr(), block.len()) }
    }

    pub(super) fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) {
        self.0.each(visit);
    }
}

pub(super) fn concurrent_version() -> String {
    // SAFETY: the library's own text, which lives as long as the program and ends in NUL.
    let text = unsafe { CStr::from_ptr(forebay_table_concurrent_version()) };
    text.to_string_lossy().into_owned()
}
