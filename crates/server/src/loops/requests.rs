//! The requests of one connection in a turn: one after the other, until something has to be waited for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use forebay::Error;
use smallvec::SmallVec;

use super::connection::Connection;
use crate::commands::{self, Call, Replies};
use crate::observe::{Sampler, shown};
use crate::resp::{Requests, Spans};
use crate::shared::Shared;
use crate::turn::Turn;

pub(super) fn arguments<'r>(requests: &'r Requests, spans: &Spans) -> SmallVec<[&'r [u8]; 8]> {
    spans.iter().map(|span| requests.argument(*span)).collect()
}

/// Notes requests that took long.
pub(super) fn note(shared: &Shared, begin: Instant, connection: &Connection, done: usize) {
    let request = || {
        let first = connection.waiting.first().map(|spans| arguments(&connection.requests, spans));
        shown(&first.unwrap_or_default(), done.saturating_sub(1))
    };
    shared.slow.note(begin.elapsed(), || shared.database.unix_milliseconds(), request);
}

/// Does something that must not end the loop. Where it panics half of what it writes may be there: the turn is lost, and who
/// was in it connects anew.
pub(super) fn guarded<T>(turn: &mut Turn<'_>, run: impl FnOnce(&mut Turn<'_>) -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(|| run(turn)));
    done.map_err(|_| turn.fail(&Error::bug("a command failed inside; the server's own messages tell more")))
        .ok()
}

/// Whether a request waits until a pause is over. Who can end that never does.
fn is_paused(turn: &Turn<'_>, arguments: &[&[u8]]) -> bool {
    let pause = &turn.shared.clients.pause;
    if !pause.stops(true) || turn.shared.stopping.load(Ordering::Relaxed) {
        return false;
    }
    let Some(command) = commands::find(arguments[0]) else { return false };
    let writes = command.changes_data() || ["EXEC", "PUBLISH", "SPUBLISH"].contains(&command.name);
    let may_end_it = command.name == "CLIENT" || commands::is_open(command.name);
    !may_end_it && pause.stops(writes)
}

/// Does a connection's requests in order, until it has to read. Returns how many.
pub(super) fn run(connection: &mut Connection, turn: &mut Turn<'_>, sampler: &mut Sampler) -> usize {
    // Nothing was planned for who is not known, so one request is done: what that may be has no keys.
    let most = if connection.client.is_known { usize::MAX } else { 1 };
    for at in 0..connection.waiting.len().min(most) {
        if connection.client.is_leaving || connection.is_behind() {
            return at;
        }
        if turn.is_over() {
            return at;
        }
        let Connection { requests, waiting, reply, client, .. } = connection;
        let arguments = arguments(requests, &waiting[at]);
        if sampler.takes() && client.is_known {
            commands::note_key(turn.shared, client, &arguments);
        }
        if is_paused(turn, &arguments) {
            connection.is_paused = true;
            return at;
        }
        let (before, was_known) = (reply.bytes.len(), client.is_known);
        let skips = client.replies == Replies::NotNext;
        if skips {
            client.replies = Replies::All;
        }
        let done =
            guarded(turn, |turn| commands::run(&mut Call { arguments: &arguments, client, turn, reply }));
        client.is_hushed = skips || client.replies != Replies::All;
        if client.is_hushed {
            reply.bytes.truncate(before);
        }
        turn.worked(reply.bytes.len().saturating_sub(before));
        // Who is let in has asked for locks of nothing, and who is not any more is to ask one thing at a time.
        let is_other = client.is_known != was_known;
        let waits = client.work.is_some() || client.blocked.is_some() || client.held_seconds > 0;
        let waits = waits || client.follower.is_some();
        if done.is_none() || is_other || waits {
            return at + 1;
        }
    }
    connection.waiting.len().min(most)
}
