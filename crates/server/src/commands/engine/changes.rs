//! `FB.CHANGES`: what was written, commit by commit.

use forebay::{Change, ChangeBatch, Operation};

use crate::commands::{Answer, Call, NOT_AN_INTEGER, SYNTAX, integer, is};
use crate::resp::Reply;

/// Commits of one reply, by default and at most.
const COUNT: i64 = 100;
const COUNT_MAX: i64 = 10_000;
/// Once a reply takes so much, it has no more of them.
const REPLY_BYTES_MAX: usize = 16 << 20;

/// `FB.CHANGES since [COUNT n]`: commits after a number, each with the number to go on from and its changes.
pub(super) fn changes(call: &mut Call<'_, '_>) -> Answer {
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
    let database = std::sync::Arc::clone(&call.turn.shared.database);
    call.later(0, move |reply, slot| {
        let mut all = Reply { bytes: Vec::new(), version: reply.version };
        let mut commits = 0;
        for batch in database.changes(since)? {
            slot.check()?;
            commit(&mut all, &batch?);
            commits += 1;
            if commits == count || all.bytes.len() >= REPLY_BYTES_MAX {
                break;
            }
        }
        reply.array(commits as usize);
        reply.bytes.extend_from_slice(&all.bytes);
        Ok(())
    })
}

/// The number to go on from, and the changes.
fn commit(reply: &mut Reply, batch: &ChangeBatch) {
    reply.array(2);
    reply.int(batch.last_sequence.cast_signed());
    reply.array(batch.changes.len());
    batch.changes.iter().for_each(|change| one(reply, change));
}

/// The table, what was done, the key, and what belongs to it.
fn one(reply: &mut Reply, change: &Change) {
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
