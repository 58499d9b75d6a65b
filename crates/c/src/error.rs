//! What C is told of an error: a code to decide by, and a text to show.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;

use crate::kernel::plain;
use crate::outcome::Report;

/// `forebay_error`.
pub(crate) struct Error {
    code: Code,
    message: CString,
}

/// `forebay_code`, in its order: a number keeps its meaning.
#[derive(Clone, Copy)]
enum Code {
    Ok,
    Io,
    TooManyFiles,
    Corruption,
    TooLong,
    Invalid,
    Locked,
    NotFound,
    NewerFormat,
    NoSpace,
    ChangesGone,
    Panicked,
    Bug,
    Poisoned,
    Other,
    Conflict,
}

impl From<forebay::Error> for Error {
    fn from(error: forebay::Error) -> Self {
        use forebay::Error as E;
        let code = match &error {
            error if error.is_not_found() => Code::NotFound,
            error if error.is_no_space() => Code::NoSpace,
            E::Io { .. } => Code::Io,
            E::TooManyFiles { .. } => Code::TooManyFiles,
            E::Corruption { .. } => Code::Corruption,
            E::TooLong(_) => Code::TooLong,
            E::Invalid(_) => Code::Invalid,
            E::Locked { .. } => Code::Locked,
            E::NewerFormat { .. } => Code::NewerFormat,
            E::ChangesGone { .. } => Code::ChangesGone,
            E::Panicked(_) => Code::Panicked,
            E::Bug(_) => Code::Bug,
            E::Poisoned(_) => Code::Poisoned,
            E::Conflict(_) => Code::Conflict,
            _ => Code::Other,
        };
        // A name in the text may have zero bytes, which no text of C has.
        let message = CString::new(error.to_string().replace('\0', "\\0")).unwrap_or_default();
        Self { code, message }
    }
}

/// `forebay_error **error`: null once the call has succeeded, whatever was there. Whoever wants no error passes null.
pub(crate) type ErrorOut<'a> = Option<&'a mut MaybeUninit<Option<Box<Error>>>>;

impl Report for ErrorOut<'_> {
    fn report(self, fault: Option<forebay::Error>) {
        if let Some(slot) = self {
            slot.write(fault.map(|fault| Box::new(fault.into())));
        }
    }
}

plain! {
    fn forebay_error_code(error: Option<&Error>) -> c_int {
        error.map_or(Code::Ok, |error| error.code) as c_int
    }

    fn forebay_error_message(error: Option<&Error>) -> *const c_char {
        error.map_or(c"", |error| &error.message).as_ptr()
    }

    fn forebay_error_free(error: Option<Box<Error>>) {
        drop(error);
    }
}
