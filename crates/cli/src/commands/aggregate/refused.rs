//! Why a value was not added, and who is to blame.

use forebay::Error;
use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::Aggregate;

/// Why a value was not added.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its key or the value itself is at fault.
    Record(Error),
    /// The work failed.
    Work(Error),
}

/// Who is to blame for an error at adding a value.
#[cold]
pub(super) fn refusal<A: Aggregate>(function: &A, key: &[u8], value: A::Input<'_>, error: Error) -> Refused {
    if key.len() > KEY_BYTES_MAX {
        let reason = format!("the key has {} bytes; at most {KEY_BYTES_MAX} are allowed", key.len());
        return Refused::Record(Error::Invalid(reason));
    }
    function.lift(value, &mut Vec::new()).map_or_else(Refused::Record, |()| Refused::Work(error))
}
