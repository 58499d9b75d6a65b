//! Walks over members that may be long: a few steps are done at once, in the turn. What is not over then is begun anew by a
//! thread, over the table as it was behind the turn's commit. A transaction, which is one batch, takes more steps, and is
//! refused beyond.

use std::ops::Range;

use forebay::{Result as Done, Scan};

use super::super::{Answer, Call, Refusal};
use crate::jobs::Slot;
use crate::resp::Reply;
use crate::turn::Element;

/// So many steps are done at once.
const AT_ONCE: u64 = 4096;
/// And so many in a transaction: its loop answers nobody else meanwhile.
const OF_TRANSACTION: u64 = 1 << 20;
/// What a step counts as, of what a turn may handle.
const STEP_BYTES: usize = 64;
/// A thread looks so often whether somebody still waits.
const STEPS_BETWEEN_LOOKS: u64 = 1024;

/// How far a walk may go.
pub(super) enum Steps<'s> {
    AtMost(u64),
    WhileAwaited(&'s Slot),
}

impl Steps<'_> {
    /// Whether it goes on behind so many steps.
    fn go_on(&self, steps: u64) -> Result<bool, Refusal> {
        match self {
            Self::AtMost(most) => return Ok(steps < *most),
            Self::WhileAwaited(slot) if steps.is_multiple_of(STEPS_BETWEEN_LOOKS) => slot.check()?,
            Self::WhileAwaited(_) => {}
        }
        Ok(true)
    }
}

/// So many steps a call takes by itself.
pub(super) fn steps(call: &Call<'_, '_>) -> Steps<'static> {
    Steps::AtMost(if call.turn.is_in_transaction() { OF_TRANSACTION } else { AT_ONCE })
}

/// Whether so many steps are too many for a call by itself.
pub(super) fn is_long(call: &Call<'_, '_>, asked: usize) -> bool {
    !steps(call).go_on(asked as u64).unwrap_or(true)
}

/// Notes that a call has taken all the steps that it may.
pub(super) fn note(call: &mut Call<'_, '_>) {
    if let Steps::AtMost(most) = steps(call) {
        call.turn.worked(most as usize * STEP_BYTES);
    }
}

/// Has a thread walk a range of elements, and answer.
pub(super) fn later(
    call: &mut Call<'_, '_>,
    range: &Range<Vec<u8>>,
    answer: impl FnOnce(Scan, &mut Reply, &Slot) -> Answer + Send + 'static,
) -> Answer {
    if call.turn.is_in_transaction() {
        return Err("ERR the walk is too long for a transaction; ask outside of one".into());
    }
    // The thread sees what the turn has written so far.
    call.turn.write_out()?;
    let elements = call.turn.shared.elements(call.client.database)?;
    let scan = elements.range(&range.start[..]..&range.end[..])?;
    call.later(0, move |reply, slot| answer(scan, reply, slot))
}

/// How many elements there are, or nothing where that takes more steps.
pub(super) fn count<E>(
    walk: impl Iterator<Item = Result<Element, E>>,
    steps: &Steps<'_>,
) -> Result<Option<u64>, Refusal>
where
    Refusal: From<E>,
{
    let mut count = 0;
    for element in walk {
        element?;
        count += 1;
        if !steps.go_on(count)? {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// What two walks from both ends, of so many elements each, make of a key: how many are before it. Nothing where that takes
/// more steps, or where it is not there.
pub(super) fn rank(
    mut step: impl FnMut() -> Result<[Option<Element>; 2], Refusal>,
    count: u64,
    key: &[u8],
    steps: &Steps<'_>,
) -> Result<Option<u64>, Refusal> {
    for taken in 0..count {
        let [front, back] = step()?;
        if front.is_some_and(|(found, _)| found == key) {
            return Ok(Some(taken));
        }
        if back.is_some_and(|(found, _)| found == key) {
            return Ok(Some(count - 1 - taken));
        }
        if !steps.go_on(taken + 1)? {
            break;
        }
    }
    Ok(None)
}

/// The next elements from both ends.
pub(super) fn both_ends(scan: &mut Scan) -> Done<[Option<Element>; 2]> {
    Ok([scan.next().transpose()?, scan.next_back().transpose()?])
}
