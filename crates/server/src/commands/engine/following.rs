//! `FB.CHANGES FOLLOW`: commits that come by themselves, as messages, and `FB.CHANGES STOP`, which ends that.

use forebay::ChangeBatch;

use super::changes::{bytes_of, one};
use super::text;
use crate::commands::{Answer, Call, NOT_AN_INTEGER, SYNTAX, integer, is};
use crate::resp::Reply;

/// A feed may be of so many tables.
const TABLES_MAX: usize = 64;
const TABLE_BYTES_MAX: usize = 1024;

/// About what a commit takes in a message.
pub(crate) fn commit_bytes(batch: &ChangeBatch) -> usize {
    batch.changes.iter().map(bytes_of).sum()
}

/// A message of a commit.
pub(crate) fn push_commit(reply: &mut Reply, batch: &ChangeBatch) {
    reply.push(3);
    reply.bulk(b"fb.changes");
    reply.int(batch.last_sequence.cast_signed());
    reply.array(batch.changes.len());
    batch.changes.iter().for_each(|change| one(reply, change));
}

/// The message that nothing more comes, and why.
pub(crate) fn push_end(reply: &mut Reply, last: u64, text: &str) {
    reply.push(3);
    reply.bulk(b"fb.changes.end");
    reply.int(last.cast_signed());
    reply.bulk(text.as_bytes());
}

/// `FB.CHANGES FOLLOW since|$ [TABLE name ...]`: answers the number behind which it begins.
pub(super) fn follow(call: &mut Call<'_, '_>, arguments: &[&[u8]]) -> Answer {
    if call.turn.is_in_transaction() {
        return Err(
            "ERR FB.CHANGES FOLLOW cannot stand in a transaction: its messages come by themselves".into()
        );
    }
    if call.client.feed.is_some() {
        return Err("ERR the connection follows the changes already; FB.CHANGES STOP ends that".into());
    }
    let (since, tables) = match arguments {
        [since] => (since, &[][..]),
        [since, word, tables @ ..] if is(word, "TABLE") && !tables.is_empty() => (since, tables),
        _ => return Err(SYNTAX.into()),
    };
    if tables.len() > TABLES_MAX || tables.iter().any(|name| name.len() > TABLE_BYTES_MAX) {
        return Err(
            format!("ERR a feed is of {TABLES_MAX} tables at most, or of all: leave out TABLE").into()
        );
    }
    let tables = tables.iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>()?;
    call.turn.write_out()?;
    let shared = call.turn.shared;
    let last = shared.database.last_sequence();
    let since = match *since {
        b"$" => last,
        since => u64::try_from(integer(since)?).map_err(|_| NOT_AN_INTEGER)?,
    };
    if since > last {
        return Err(format!(
            "ERR changes after {since} were asked for, but the last record has number {last}; whoever is ahead has followed \
             another database: begin anew, from a copy of this one"
        )
        .into());
    }
    call.client.feed = Some(shared.feeds.begin(&call.client.seat, since, tables)?);
    call.reply.int(since.cast_signed());
    Ok(())
}

/// `FB.CHANGES STOP`: answers the number to go on from another time.
pub(super) fn stop(call: &mut Call<'_, '_>) -> Answer {
    if call.turn.is_in_transaction() {
        return Err("ERR FB.CHANGES STOP cannot stand in a transaction".into());
    }
    let Some(told) = call.client.feed.as_ref().map(|feed| feed.told()) else {
        return Err("ERR the connection follows no changes; FB.CHANGES FOLLOW begins that".into());
    };
    stop_following(call);
    call.reply.int(told.cast_signed());
    Ok(())
}

/// Has the connection follow no changes any more.
pub(in crate::commands) fn stop_following(call: &mut Call<'_, '_>) {
    if let Some(feed) = call.client.feed.take() {
        feed.leave();
        call.turn.shared.feeds.wake();
    }
}

/// Whether a command is one of those by which who follows goes on.
pub(in crate::commands) fn is_following(call: &Call<'_, '_>, name: &str) -> bool {
    call.client.feed.is_some() && name == "FB.CHANGES"
}
