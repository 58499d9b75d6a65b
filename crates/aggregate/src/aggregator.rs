//! [`Aggregator`]: what keeps one state for every key, however it does so.

use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::{Error, Result};

use crate::aggregate::Aggregate;

/// What is shown keys and their states; its error ends the showing.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Takes values under keys, and gives each key's state.
///
/// Keys are any bytes up to 64 KiB. States are read after [`finalize`](Self::finalize), which destroys
/// nothing: more may be added after it. Until it is called again an aggregator shows all that was added, or
/// refuses to be read; [`CompressedAggregator`](crate::CompressedAggregator) never does.
///
/// A call that fails for its key, state or value leaves all else as it was.
pub trait Aggregator<A: Aggregate> {
    /// Adds one value to a key.
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()>;

    /// Merges a state of this function's type into a key's.
    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()>;

    /// Adds values one after the other; those before a failing one stay added.
    fn add_batch<'a>(&mut self, batch: impl IntoIterator<Item = (&'a [u8], A::Input<'a>)>) -> Result<()>
    where
        Self: Sized,
    {
        batch.into_iter().try_for_each(|(key, value)| self.add(key, value))
    }

    /// Merges what is still to be merged, so that states can be read.
    fn finalize(&mut self) -> Result<()>;

    /// The state of a key that has one. An error where that became too long to be kept: all others stay right.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Shows every key once with its state, in an order that the aggregator keeps. States that became too long are left
    /// out, and an error tells of one at the end.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()>;

    /// How many bytes of memory it takes now: all it has asked the allocator for.
    fn memory_bytes(&self) -> usize;
}

/// Makes the state of a value in place of what `state` holds, and refuses what no aggregator may take.
#[inline]
pub(crate) fn lift<A: Aggregate>(
    function: &A,
    key: &[u8],
    value: A::Input<'_>,
    state: &mut Vec<u8>,
) -> Result<()> {
    state.clear();
    function.lift(value, state)?;
    check(function, key, state)
}

/// Refuses a key or state that no aggregator may take.
#[inline]
pub(crate) fn check<A: Aggregate>(function: &A, key: &[u8], state: &[u8]) -> Result<()> {
    let is_whole = function.state_bytes().is_none_or(|bytes| bytes == state.len());
    if key.len() <= KEY_BYTES_MAX && state.len() <= VALUE_BYTES_MAX && is_whole {
        return Ok(());
    }
    Err(refusal(function, key, state))
}

#[cold]
fn refusal<A: Aggregate>(function: &A, key: &[u8], state: &[u8]) -> Error {
    if key.len() > KEY_BYTES_MAX {
        return Error::invalid(format!("a key of {} bytes; {KEY_BYTES_MAX} at most", key.len()));
    }
    check_state(key, state).err().unwrap_or_else(|| function.state_type().malformed(state))
}

/// Refuses a state that has grown too long to be stored.
pub(crate) fn check_state(key: &[u8], state: &[u8]) -> Result<()> {
    check_length(key, state, VALUE_BYTES_MAX)
}

/// Refuses a state that has grown longer than this.
pub(crate) fn check_length(key: &[u8], state: &[u8], bytes_max: usize) -> Result<()> {
    if state.len() > bytes_max {
        return Err(Error::invalid(format!(
            "the state of key {:?} takes {} bytes; {bytes_max} at most: use a function that bounds it",
            String::from_utf8_lossy(&key[..key.len().min(64)]),
            state.len()
        )));
    }
    Ok(())
}

/// The error that a memory limit is too small for what is asked.
pub(crate) fn over_limit(memory_max: usize, instead: &str) -> Error {
    Error::invalid(format!("aggregating needs more than the memory limit of {memory_max} bytes; {instead}"))
}

/// How many bytes a vector will ask the allocator for when it takes `more` items.
pub(crate) fn growth<T>(vec: &Vec<T>, more: usize) -> usize {
    let len = vec.len() + more;
    if len <= vec.capacity() { 0 } else { len.max(2 * vec.capacity()).max(MIN_ITEMS) * size_of::<T>() }
}

/// Lets a vector grow by just as much as [`growth`] says.
pub(crate) fn grow<T>(vec: &mut Vec<T>, more: usize) {
    let len = vec.len() + more;
    if len > vec.capacity() {
        let capacity = len.max(2 * vec.capacity()).max(MIN_ITEMS);
        vec.reserve_exact(capacity - vec.len());
    }
}

/// The least capacity of a vector that holds anything.
const MIN_ITEMS: usize = 8;
