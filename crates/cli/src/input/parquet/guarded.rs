//! The library that reads Parquet panics at some of what damage makes of a file. Such a panic is an error of that file.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use forebay_env::jobs::text_of;
use parquet::errors::ParquetError;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does what may panic. What it was at work on is not to be used any more then.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static SILENCED: Once = Once::new();
    // Nobody needs the trace of what is told as an error.
    SILENCED.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                told(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        Err(ParquetError::General(format!("the file is damaged: {}", text_of(&*panic))))
    })
}
