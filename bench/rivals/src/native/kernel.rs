//! What C libraries hand out and must get back: objects, bytes and error texts. Each is given back exactly once.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null_mut};

use forebay_bench::Failure;

/// Gives memory back to the library that handed it out.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);

/// An object of a C library that is ours to destroy.
pub(crate) struct Owned<T> {
    at: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// # Safety
    /// `at` is null, or an object that nothing else destroys and that `destroy` may be called on once.
    pub(crate) unsafe fn new(at: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Result<Self, Failure> {
        let at = NonNull::new(at).ok_or("a C library gave no object")?;
        Ok(Self { at, destroy })
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.at.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised an object of ours, and this is the only place that destroys it.
        unsafe { (self.destroy)(self.at.as_ptr()) }
    }
}

/// Makes a call that tells its failure by an error text.
///
/// # Safety
/// `call` leaves the pointer null, or sets it to a text that ends in NUL and that `free` gives back.
pub(crate) unsafe fn checked<T>(free: Free, call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Failure> {
    let mut text = null_mut();
    let answer = call(&raw mut text);
    // SAFETY: as promised to us.
    match unsafe { taken_text(free, text) } {
        None => Ok(answer),
        Some(reason) => Err(reason.into()),
    }
}

/// Copies a text and gives it back; `None` where there is none.
///
/// # Safety
/// `text` is null, or ends in NUL, is ours, and `free` gives it back.
pub(crate) unsafe fn taken_text(free: Free, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as promised to us.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as promised to us; the text is not looked at again.
    unsafe { free(text.cast()) };
    Some(copy)
}

/// Bytes that a C library shows. Null with no length is an empty slice.
///
/// # Safety
/// `at` is valid for `len` bytes, or `len` is 0, and they do not change while the slice lives.
pub(crate) unsafe fn shown<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as promised to us.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}
