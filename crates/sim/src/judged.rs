//! What is known of an operation before it is done.

use forebay_testkit::{Act, Beside, Op};

/// Whether it has an effect whole or not at all, of which only recovery tells once it has failed.
pub(crate) fn is_doubtful(op: &Op) -> bool {
    match op {
        Op::Transact(acts, _) => acts.iter().any(|act| matches!(act, Act::Beside(op) if is_doubtful(op))),
        Op::Reopen
        | Op::ReopenKeeping
        | Op::Turn(..)
        | Op::Fork
        | Op::Checkpoint
        | Op::Savepoint(_)
        | Op::Rollback(_)
        | Op::DropSavepoint(_)
        | Op::Ingest(..)
        | Op::Renew
        | Op::RenewGroups(_)
        | Op::Expire(_, Beside::Savepoint(_)) => true,
        _ => false,
    }
}

/// Whether what an operation does is on disk once it returns, and not in the log.
pub(crate) fn is_told_durable(op: &Op) -> bool {
    use Op::{Checkpoint, DropSavepoint, Fork, Ingest, Renew, Rollback, Savepoint};
    matches!(op, Checkpoint | DropSavepoint(_) | Fork | Ingest(..) | Renew | Rollback(_) | Savepoint(_))
}

/// Whether it opens a copy, too, which may stop while its source goes on.
pub(crate) fn opens_a_copy(op: &Op) -> bool {
    matches!(op, Op::Checkpoint | Op::Fork)
}

/// What a person is told of it.
pub(crate) fn brief(op: &Op) -> String {
    match op {
        Op::Commit(changes, durability) => format!("commit {} records, {durability:?}", changes.len()),
        other => {
            let mut text = format!("{other:?}");
            text.truncate(text.char_indices().nth(90).map_or(text.len(), |(at, _)| at));
            text
        }
    }
}
