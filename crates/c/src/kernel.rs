//! The border to C: all that is unsafe of this crate.
//!
//! 1. [`fallible`], [`plain`] and [`noted`] declare the functions that C calls. Each parameter comes as C has it and is
//!    taken by its [`Argument`]: a null pointer where something must be is an error.
//! 2. [`guarded`](crate::outcome::guarded) runs the call. A panic is an error, so nothing unwinds into C.
//! 3. A handle is a box. C holds its pointer, lends it to calls, and gives it back to be freed.
//! 4. Plain memory that C gets is from `malloc`: [`given`].
//!
//! **Invariant:** outside this file no raw pointer is read. What C passes is taken to be what the header demands: a
//! handle came from a call and is not freed; one that a call changes is in no other call; a pointer with a length leads
//! to that many items; text ends with a zero byte; and all of it stays as it is until the call returns. Calls keep
//! copies only.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay::{Error, Result};

// SAFETY: the C library has these, with these signatures.
unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// Each parameter as the call's body has it.
macro_rules! taken {
    ($($arg:ident: $type:ty $([$length:ident])? $(where $count:ident)?),*) => {$(
        let length = 0 $(+ $length)? $(+ $crate::count::Count::count($count))?;
        // SAFETY: C passes what its header demands.
        let $arg = unsafe { <$type as $crate::kernel::Argument>::take($arg, length, stringify!($arg)) }?;
    )*};
}

/// Declares functions for C whose last parameter, of the type before the semicolon, is told how they ended. A body gives
/// a `Result` of what is returned; after an error C gets the type's default. `key: &[u8] [key_bytes]` stands for two
/// parameters, a pointer and a length; `keys: &[Slice] where count` for a pointer to as many items as another one says.
macro_rules! fallible {
    ($error:ty; $(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty $([$length:ident])? $(where $count:ident)?),* $(,)?)
            $(-> $out:ty)? $body:block
    )*) => {$(
        $(#[$doc])*
        // SAFETY: only this crate has names that begin so.
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            $($arg: <$type as $crate::kernel::Argument>::C, $($length: usize,)?)*
            error: $error,
        ) $(-> $out)? {
            $crate::outcome::guarded(error, move || {
                $crate::kernel::taken!($($arg: $type $([$length])? $(where $count)?),*);
                $body
            })
        }
    )*};
}

/// The same for functions that cannot fail: null where something must be, and panics, give the default, too.
macro_rules! plain {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty $([$length:ident])? $(where $count:ident)?),* $(,)?)
            $(-> $out:ty)? $body:block
    )*) => {$(
        $(#[$doc])*
        // SAFETY: only this crate has names that begin so.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: <$type as $crate::kernel::Argument>::C, $($length: usize,)?)*) $(-> $out)? {
            $crate::outcome::guarded((), move || {
                $crate::kernel::taken!($($arg: $type $([$length])? $(where $count)?),*);
                Ok($body)
            })
        }
    )*};
}

/// The same for functions that add to something, their first parameter, which keeps what is wrong with a call.
macro_rules! noted {
    ($to:ident: &mut $kept:ty; $(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty $([$length:ident])? $(where $count:ident)?),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        // SAFETY: only this crate has names that begin so.
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            $to: Option<&mut $kept>,
            $($arg: <$type as $crate::kernel::Argument>::C, $($length: usize,)?)*
        ) {
            let Some($to) = $to else { return };
            let mut fault = None;
            $crate::outcome::guarded(&mut fault, || {
                $crate::kernel::taken!($($arg: $type $([$length])? $(where $count)?),*);
                $body
                Ok(())
            });
            $to.note(fault);
        }
    )*};
}

/// Parameters that C has a number for.
macro_rules! numbered {
    ($($type:ty: $of:path),*) => {$(
        impl $crate::kernel::Argument for $type {
            type C = std::ffi::c_int;

            unsafe fn take(given: std::ffi::c_int, _: usize, _: &'static str) -> forebay::Result<Self> {
                $of(given)
            }
        }
    )*};
}

fn null(name: &str) -> Error {
    Error::invalid(format!("{name} is a null pointer"))
}

/// What a parameter is to a call's body.
pub(crate) trait Argument: Sized {
    /// What it is to C.
    type C;

    /// # Safety
    ///
    /// `given`, with `length`, is what the file's invariant says, for as long as the call lasts.
    unsafe fn take(given: Self::C, length: usize, name: &'static str) -> Result<Self>;
}

/// Parameters that are the same to C.
macro_rules! as_they_are {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> $crate::kernel::Argument for $type {
            type C = Self;

            unsafe fn take(given: Self, _: usize, _: &'static str) -> forebay::Result<Self> {
                Ok(given)
            }
        }
    )*};
}

pub(crate) use {as_they_are, fallible, noted, numbered, plain, taken};

as_they_are! {
    [] u8, [] c_int, [] u64, [] usize, [] *mut c_void,
    ['a, T] Option<&'a T>,
    // Also what C has no value in yet, as `MaybeUninit`.
    ['a, T] Option<&'a mut T>,
    [T] Option<Box<T>>,
}

/// Where a call puts a value, if C wants it.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Puts a value there.
pub(crate) fn put<T: Copy>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Handles.
macro_rules! handles {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> Argument for $type {
            type C = Option<Self>;

            unsafe fn take(given: Option<Self>, _: usize, name: &'static str) -> Result<Self> {
                given.ok_or_else(|| null(name))
            }
        }
    )*};
}

handles!(['a, T] &'a T, ['a, T] &'a mut T, [T] Box<T>);

impl Argument for &[u8] {
    type C = *const c_void;

    unsafe fn take(given: *const c_void, length: usize, name: &'static str) -> Result<Self> {
        // SAFETY: the caller's word.
        unsafe { items(given.cast(), length, name) }
    }
}

/// Null is for none.
impl Argument for Option<&[u8]> {
    type C = *const c_void;

    unsafe fn take(given: *const c_void, length: usize, name: &'static str) -> Result<Self> {
        if given.is_null() && length == 0 {
            return Ok(None);
        }
        // SAFETY: the caller's word.
        unsafe { items(given.cast(), length, name) }.map(Some)
    }
}

impl<T> Argument for &mut [T] {
    type C = *mut T;

    unsafe fn take(given: *mut T, length: usize, name: &'static str) -> Result<Self> {
        is_array(given, length, name)?;
        // SAFETY: the caller's word. What is not null leads to so many, which nobody else uses meanwhile.
        Ok(if length == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(given, length) } })
    }
}

/// An array of something else than bytes.
pub(crate) struct Items<'a, T>(pub(crate) &'a [T]);

impl<T> Argument for Items<'_, T> {
    type C = *const T;

    unsafe fn take(given: *const T, length: usize, name: &'static str) -> Result<Self> {
        // SAFETY: the caller's word.
        unsafe { items(given, length, name) }.map(Items)
    }
}

/// An array that a call fills: with nothing in it yet.
pub(crate) type Room<'a, T> = &'a mut [MaybeUninit<T>];

/// # Safety
///
/// What is not null leads to this many items, which nobody changes during `'a`.
unsafe fn items<'a, T>(given: *const T, length: usize, name: &str) -> Result<&'a [T]> {
    is_array(given, length, name)?;
    // SAFETY: the caller's word; a length that no array has was refused.
    Ok(if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(given, length) } })
}

/// Refuses what cannot be an array of so many.
fn is_array<T>(given: *const T, length: usize, name: &str) -> Result<()> {
    if length > 0 && given.is_null() {
        return Err(null(name));
    }
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Error::invalid(format!("{name} cannot have {length} items")));
    }
    Ok(())
}

impl Argument for &CStr {
    type C = *const c_char;

    unsafe fn take(given: *const c_char, _: usize, name: &'static str) -> Result<Self> {
        if given.is_null() {
            return Err(null(name));
        }
        // SAFETY: the caller's word: it ends with a zero byte.
        Ok(unsafe { CStr::from_ptr(given) })
    }
}

impl Argument for &str {
    type C = *const c_char;

    unsafe fn take(given: *const c_char, length: usize, name: &'static str) -> Result<Self> {
        // SAFETY: the caller's word.
        let text = unsafe { <&CStr>::take(given, length, name) }?;
        text.to_str().map_err(|_| Error::invalid(format!("{name} is not UTF-8: {text:?}")))
    }
}

/// Null is for none.
impl Argument for Option<&str> {
    type C = *const c_char;

    unsafe fn take(given: *const c_char, length: usize, name: &'static str) -> Result<Self> {
        // SAFETY: the caller's word.
        if given.is_null() { Ok(None) } else { unsafe { <&str>::take(given, length, name) }.map(Some) }
    }
}

impl Argument for &Path {
    type C = *const c_char;

    unsafe fn take(given: *const c_char, length: usize, name: &'static str) -> Result<Self> {
        // SAFETY: the caller's word.
        let text = unsafe { <&CStr>::take(given, length, name) }?;
        Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
    }
}

/// Both ways of a socket, a pipe or a file: a descriptor of the call's own.
pub(crate) struct Channel(pub(crate) File);

impl Argument for Channel {
    type C = c_int;

    unsafe fn take(given: c_int, _: usize, name: &'static str) -> Result<Self> {
        if given < 0 {
            return Err(Error::invalid(format!("{name} is {given}, and no descriptor")));
        }
        // SAFETY: the caller's word: it is open, and stays so during the call. One that is not open is an error of the
        // system's below.
        let lent = unsafe { BorrowedFd::borrow_raw(given) };
        let own = lent.try_clone_to_owned();
        let own = own.map_err(|error| Error::io("duplicate the descriptor", Path::new(name), &error))?;
        Ok(Self(own.into()))
    }
}

/// Bytes of somebody's, as C has them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    data: *const c_char,
    bytes: usize,
}

impl Slice {
    /// What there is not.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), bytes: 0 };

    /// Whether there is nothing: not even no bytes.
    pub(crate) fn is_none(&self) -> bool {
        self.data.is_null() && self.bytes == 0
    }

    /// Bytes that stay where they are, for as long as the header says.
    pub(crate) fn lent(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), bytes: bytes.len() }
    }

    /// A copy, for C to free.
    pub(crate) fn given(bytes: &[u8]) -> Self {
        Self { data: given(bytes), bytes: bytes.len() }
    }

    /// Frees such a copy.
    pub(crate) fn free(&mut self) {
        Memory(self.data.cast_mut().cast()).free();
        *self = Self::NONE;
    }
}

/// The bytes of slices that C has passed.
pub(crate) fn bytes_of<'a>(slices: &Items<'a, Slice>, name: &'static str) -> Result<Vec<&'a [u8]>> {
    // SAFETY: they stand in an array that C has passed, and each is what the file's invariant says.
    slices.0.iter().map(|slice| unsafe { items(slice.data.cast(), slice.bytes, name) }).collect()
}

/// The bytes of arrays of pointers and lengths that C has passed.
pub(crate) fn bytes_at<'a>(
    pointers: &Items<'a, *const c_char>,
    lengths: &Items<'a, usize>,
) -> Result<Vec<&'a [u8]>> {
    let pairs = pointers.0.iter().zip(lengths.0);
    // SAFETY: they stand in arrays that C has passed, and each is what the file's invariant says.
    pairs.map(|(pointer, length)| unsafe { items(pointer.cast(), *length, "a key") }).collect()
}

/// A text that C's function returns, as a copy.
pub(crate) fn text_of(text: *const c_char) -> Option<String> {
    // SAFETY: the header demands a text, or null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Memory that C was given.
pub(crate) struct Memory(pub(crate) *mut c_void);

impl Argument for Memory {
    type C = *mut c_void;

    unsafe fn take(given: *mut c_void, _: usize, _: &'static str) -> Result<Self> {
        Ok(Self(given))
    }
}

impl Memory {
    /// Gives it back; null is no memory.
    pub(crate) fn free(self) {
        // SAFETY: it is from `malloc`, in [`room_for`], and C gives it back once.
        unsafe { free(self.0) }
    }
}

/// A copy for C to free, and a zero byte behind it, so that it is also a text.
pub(crate) fn given(bytes: &[u8]) -> *mut c_char {
    let memory = room_for(bytes.len() + 1);
    // SAFETY: there is room for all of it and one more.
    unsafe {
        memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        memory.add(bytes.len()).write(0);
    }
    memory.cast()
}

/// Copies of texts for C to free in one piece: an array of pointers, null at its end, and the texts behind it.
pub(crate) fn given_texts(texts: &[String]) -> *mut *mut c_char {
    let head = (texts.len() + 1) * size_of::<*mut c_char>();
    let bytes = texts.iter().map(|text| text.len() + 1).sum::<usize>();
    let memory = room_for(head + bytes);
    let pointers: *mut *mut c_char = memory.cast();
    let mut place = head;
    for (index, text) in texts.iter().enumerate() {
        // SAFETY: there is room for a pointer to each and one more, and behind them for each text and a zero byte;
        // memory of `malloc` is aligned for pointers.
        unsafe {
            let to = memory.add(place);
            pointers.add(index).write(to.cast());
            to.copy_from_nonoverlapping(text.as_ptr(), text.len());
            to.add(text.len()).write(0);
        }
        place += text.len() + 1;
    }
    debug_assert_eq!(place, head + bytes, "all of it is filled");
    // SAFETY: as above.
    unsafe { pointers.add(texts.len()).write(std::ptr::null_mut()) };
    pointers
}

/// So much memory from `malloc`, with nothing in it yet.
fn room_for(bytes: usize) -> *mut u8 {
    // SAFETY: `malloc` takes any number.
    let memory: *mut u8 = unsafe { malloc(bytes) }.cast();
    if memory.is_null() {
        // As it ends elsewhere in Rust, too.
        std::process::abort();
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_cannot_be_are_refused() {
        // SAFETY: what is not null has three bytes, and no more are asked for that could be.
        let take = |given: *const c_void, length| unsafe { <&[u8]>::take(given, length, "key") };
        let text = c"abc".as_ptr().cast();
        assert_eq!(take(text, 2).unwrap(), b"ab");
        assert_eq!(take(std::ptr::null(), 0).unwrap(), b"");
        assert_eq!(take(std::ptr::null(), 1).unwrap_err().to_string(), "key is a null pointer");
        assert!(take(text, usize::MAX).unwrap_err().to_string().contains("cannot have"));
        // SAFETY: null needs no bytes.
        let none = unsafe { <Option<&[u8]> as Argument>::take(std::ptr::null(), 0, "from") };
        assert_eq!(none.unwrap(), None);
    }

    #[test]
    fn what_c_is_given_ends_with_zero_and_is_freed() {
        let bytes = given(b"ab");
        assert_eq!(text_of(bytes).as_deref(), Some("ab"));
        Memory(bytes.cast()).free();
        let texts = given_texts(&["ada".into(), String::new(), "bob".into()]);
        // SAFETY: three texts, and null behind them.
        let read: Vec<_> = (0..4).map(|index| text_of(unsafe { texts.add(index).read() })).collect();
        assert_eq!(read, [Some("ada".to_string()), Some(String::new()), Some("bob".to_string()), None]);
        Memory(texts.cast()).free();
        let mut slice = Slice::given(b"");
        assert!(!slice.data.is_null(), "an empty value is there");
        slice.free();
        assert!(slice.data.is_null());
    }
}
