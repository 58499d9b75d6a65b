//! `FB.CHANGES`: what was written, commit by commit.

use forebay::{Change, ChangeBatch, Operation};

use super::following;
use crate::commands::{Answer, Call, NOT_AN_INTEGER, SYNTAX, integer, is};
use crate::resp::Reply;

/// Commits of one reply, by default and at most.
const COUNT: i64 = 100;
const COUNT_MAX: i64 = 10_000;
/// Once a reply takes so much, it has no more of them.
const REPLY_BYTES_MAX: usize = 16 << 20;

/// `FB.CHANGES since [COUNT n]`: commits after a number, each with the number to go on from and its changes. `FOLLOW` and
/// `STOP` have them pushed, and end that.
pub(super) fn changes(call: &mut Call<'_, '_>) -> Answer {
    if !call.client.user.may_see_all() {
        let text = "NOPERM the changes are of all keys, and this user may read some alone: FB.CHANGES needs `~*` or `%R~*`";
        return Err(text.into());
    }
    match &call.arguments[1..] {
        [word, rest @ ..] if is(word, "FOLLOW") => return following::follow(call, rest),
        [word] if is(word, "STOP") => return following::stop(call),
        _ => {}
    }
    let since = u64::try_from(integer(call.arguments[1])?).map_err(|_| NOT_AN_INTEGER)?;
    let count = match &call.arguments[2..] {
        [] => COUNT,
        [word, count] if is(word, "COUNT") => integer(count)?,
        _ => return Err(SYNTAX.into()),
    };
    if !(1..=COUNT_MAX).contains(&count) {
        return Err(format!("ERR COUNT is to be from 1 to {COUNT_MAX}").into());
    }
    call.turn.write_out()?;
    let shared = call.turn.shared;
    let (database, bytes_max) = (std::sync::Arc::clone(&shared.database), shared.config.reply_bytes_max());
    call.later(0, move |reply, slot| {
        let mut commits = 0;
        for batch in database.changes(since)? {
            slot.check()?;
            let batch = batch?;
            let bytes = following::commit_bytes(&batch);
            if commits > 0 && reply.bytes.len() + bytes > bytes_max {
                break;
            }
            if bytes > bytes_max {
                return Err(format!(
                    "ERR the next commit has {bytes} bytes, and a reply at most {bytes_max}: go on behind it from {}, and \
                     read it by `forebay changes`, or start the server with more for `--buffers`",
                    batch.last_sequence
                )
                .into());
            }
            commit(reply, &batch);
            commits += 1;
            if commits == count || reply.bytes.len() >= REPLY_BYTES_MAX {
                break;
            }
        }
        // How many there are is known now only, and stands before them.
        let mut head = Reply { bytes: Vec::new(), version: reply.version };
        head.array(commits as usize);
        reply.bytes.splice(0..0, head.bytes);
        Ok(())
    })
}

/// The number to go on from, and the changes.
pub(super) fn commit(reply: &mut Reply, batch: &ChangeBatch) {
    reply.array(2);
    reply.int(batch.last_sequence.cast_signed());
    reply.array(batch.changes.len());
    batch.changes.iter().for_each(|change| one(reply, change));
}

/// About what a change takes in a reply.
pub(super) fn bytes_of(change: &Change) -> usize {
    let parts = match &change.operation {
        Operation::Put { key, value, .. } => [key.len(), value.len()],
        Operation::Delete { key } => [key.len(), 0],
        Operation::Merge { key, operand, .. } => [key.len(), operand.len()],
        Operation::DeleteRange { low, high } => [low.len(), high.as_ref().map_or(0, Vec::len)],
        _ => [0, 0],
    };
    64 + change.table.len() + parts.iter().sum::<usize>()
}

/// The table, what was done, the key, and what belongs to it.
pub(super) fn one(reply: &mut Reply, change: &Change) {
    let (name, key, rest): (&str, &[u8], Option<&[u8]>) = match &change.operation {
        Operation::Put { key, value, .. } => ("put", key, Some(value)),
        Operation::Delete { key } => ("delete", key, None),
        Operation::Merge { key, operand, .. } => ("merge", key, Some(operand)),
        Operation::DeleteRange { low, high } => ("delete-range", low, high.as_deref()),
        _ => ("unknown", b"", None),
    };
    reply.array(if rest.is_some() { 4 } else { 3 });
    reply.bulk(change.table.as_bytes());
    reply.bulk(name.as_bytes());
    reply.bulk(key);
    rest.iter().for_each(|rest| reply.bulk(rest));
}
