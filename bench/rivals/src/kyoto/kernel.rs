//! Kyoto Cabinet's C interface, as far as it is needed, and a safe face for it. Every pointer that is handed in
//! lives until the call returns.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

use forebay_bench::Failure;

use crate::native::kernel::{Owned, shown};

#[repr(C)]
struct CDb {
    _private: [u8; 0],
}

/// Tells how far a sync is; never given.
type Progress = Option<unsafe extern "C" fn(*const c_char, i64, i64, *mut c_void) -> i32>;

/// Is shown a record, and answers what becomes of it.
type Visit = unsafe extern "C" fn(
    key: *const c_char,
    key_bytes: usize,
    value: *const c_char,
    value_bytes: usize,
    new_bytes: *mut usize,
    given: *mut c_void,
) -> *const c_char;

/// What is called with keys and values.
type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]);

/// Shows a record to the [`Each`] that `given` points to, and leaves it as it is.
///
/// # Safety
/// Key and value are valid for their lengths; `given` points to an [`Each`] that nothing else uses meanwhile.
unsafe extern "C" fn show(
    key: *const c_char,
    key_bytes: usize,
    value: *const c_char,
    value_bytes: usize,
    _: *mut usize,
    given: *mut c_void,
) -> *const c_char {
    // SAFETY: as promised to us.
    unsafe {
        (*given.cast::<Each<'_>>())(shown(key, key_bytes), shown(value, value_bytes));
        KCVISNOP
    }
}

// SAFETY: as <kclangc.h> of 1.2.79 declares them.
unsafe extern "C" {
    static KCVERSION: *const c_char;
    fn kcdbnew() -> *mut CDb;
    fn kcdbdel(db: *mut CDb);
    fn kcdbopen(db: *mut CDb, path: *const c_char, mode: u32) -> i32;
    fn kcdbclose(db: *mut CDb) -> i32;
    fn kcdbecode(db: *mut CDb) -> i32;
    fn kcdbemsg(db: *mut CDb) -> *const c_char;
    fn kcdbset(
        db: *mut CDb,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    ) -> i32;
    fn kcdbincrint(db: *mut CDb, key: *const c_char, key_bytes: usize, number: i64, origin: i64) -> i64;
    fn kcdbiterate(db: *mut CDb, visit: Visit, given: *mut c_void, writable: i32) -> i32;
    static KCVISNOP: *const c_char;
    fn kcdbremove(db: *mut CDb, key: *const c_char, key_bytes: usize) -> i32;
    fn kcdbgetbuf(
        db: *mut CDb,
        key: *const c_char,
        key_bytes: usize,
        value: *mut c_char,
        value_bytes_max: usize,
    ) -> i32;
    fn kcdbsync(db: *mut CDb, hard: i32, progress: Progress, given: *mut c_void) -> i32;
}

const WRITER: u32 = 1 << 1;
const CREATE: u32 = 1 << 2;
const NO_RECORD: i32 = 7;

pub(super) fn version() -> String {
    // SAFETY: a constant text of the library's.
    unsafe { CStr::from_ptr(KCVERSION) }.to_string_lossy().into_owned()
}

/// An open database.
pub(super) struct Db(Owned<CDb>);

impl Db {
    /// Opens or makes a database. `path` holds the options too, each behind a `#`.
    pub(super) fn open(path: &CString) -> Result<Self, Failure> {
        // SAFETY: a fresh object with its destructor, which also closes what is open.
        unsafe {
            let db = Self(Owned::new(kcdbnew(), kcdbdel)?);
            db.checked(kcdbopen(db.0.as_ptr(), path.as_ptr(), WRITER | CREATE))?;
            Ok(db)
        }
    }

    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        self.checked(unsafe { kcdbset(self.0.as_ptr(), key.cast(), key_bytes, value.cast(), value_bytes) })
    }

    /// Adds to a number, which an absent key has as 0. Numbers are kept as eight bytes, most significant first.
    pub(super) fn add(&mut self, key: &[u8], number: i64) -> Result<(), Failure> {
        // SAFETY: the slice outlives the call.
        let sum = unsafe { kcdbincrint(self.0.as_ptr(), key.as_ptr().cast(), key.len(), number, 0) };
        if sum == i64::MIN { Err(self.failure()) } else { Ok(()) }
    }

    /// Shows every record.
    pub(super) fn for_each(&mut self, mut each: Each<'_>) -> Result<(), Failure> {
        let given = (&raw mut each).cast();
        // SAFETY: `each` outlives the call, in which nobody else uses it.
        self.checked(unsafe { kcdbiterate(self.0.as_ptr(), show, given, 0) })
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Result<(), Failure> {
        // SAFETY: the slice outlives the call.
        match unsafe { kcdbremove(self.0.as_ptr(), key.as_ptr().cast(), key.len()) } {
            0 if self.is_absent() => Ok(()),
            answer => self.checked(answer),
        }
    }

    /// Copies the value's beginning into `value`, and tells its whole length; `None` where the key is absent.
    pub(super) fn get(&mut self, key: &[u8], value: &mut [u8]) -> Result<Option<usize>, Failure> {
        let (at, bytes_max) = (value.as_mut_ptr().cast(), value.len());
        // SAFETY: both slices outlive the call, which writes no further than it is told.
        let length = unsafe { kcdbgetbuf(self.0.as_ptr(), key.as_ptr().cast(), key.len(), at, bytes_max) };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if self.is_absent() => Ok(None),
            Err(_) => Err(self.failure()),
        }
    }

    /// Writes everything to the device.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        // SAFETY: the database is open; no progress is asked for.
        self.checked(unsafe { kcdbsync(self.0.as_ptr(), 1, None, null_mut()) })
    }

    pub(super) fn close(self) -> Result<(), Failure> {
        // SAFETY: the database is open. Its destructor finds it closed.
        self.checked(unsafe { kcdbclose(self.0.as_ptr()) })
    }

    /// Whether the last call failed because the key is absent.
    fn is_absent(&self) -> bool {
        // SAFETY: the database lives.
        unsafe { kcdbecode(self.0.as_ptr()) == NO_RECORD }
    }

    /// Kyoto Cabinet answers 0 where it failed.
    fn checked(&self, answer: i32) -> Result<(), Failure> {
        if answer == 0 { Err(self.failure()) } else { Ok(()) }
    }

    fn failure(&self) -> Failure {
        // SAFETY: the database lives; the text is the library's, and is copied before the next call.
        unsafe { CStr::from_ptr(kcdbemsg(self.0.as_ptr())) }.to_string_lossy().into()
    }
}
