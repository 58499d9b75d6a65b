//! Commands that wait until a list or sorted set has something.
//!
//! 1. A command that finds nothing has its client wait: it stands in a row at each of its keys, under the key's lock. There
//!    is one for lists and one for sorted sets.
//! 2. A turn that writes such a key wakes the first of each row, behind its commit. That client's loop does the command again,
//!    in a turn of its own.
//! 3. Only the first of a row takes. Once it has, or has gone, the next one is woken.
//!
//! **Invariant:** whoever is first in a row was woken behind the last write of its key. So nobody sleeps while there is
//! something, and who waits gets nothing that it does not take itself: one that has gone loses nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{
    Answer, COUNTED_BEHIND_ONE, Call, Client, Command, NOT_AN_INTEGER, Refusal, Use, acl, containers, find,
    lists, run_command, sorted_sets,
};
use crate::resp::Reply;
use crate::shared::Shared;
use crate::stripe::Waiter;
use crate::value::Type;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "BLPOP", arity: -3, keys: (1, -2, 1), uses: Use::Changes, run: pop },
    Command { name: "BRPOP", arity: -3, keys: (1, -2, 1), uses: Use::Changes, run: pop },
    Command { name: "BZPOPMIN", arity: -3, keys: (1, -2, 1), uses: Use::Changes, run: pop },
    Command { name: "BZPOPMAX", arity: -3, keys: (1, -2, 1), uses: Use::Changes, run: pop },
    Command {
        name: "BLMPOP",
        arity: -5,
        keys: (3, COUNTED_BEHIND_ONE, 1),
        uses: Use::Changes,
        run: pop_some,
    },
    Command {
        name: "BZMPOP",
        arity: -5,
        keys: (3, COUNTED_BEHIND_ONE, 1),
        uses: Use::Changes,
        run: pop_some,
    },
    Command { name: "BLMOVE", arity: 6, keys: (1, 2, 1), uses: Use::Changes, run: move_one },
    Command { name: "BRPOPLPUSH", arity: 4, keys: (1, 2, 1), uses: Use::Changes, run: move_one },
];

/// What the arguments of a client that waits may take.
const BYTES_MAX: usize = 4 << 20;
/// What a key takes besides its bytes, which are there four times: a place in a stripe, with a row.
const KEY_BYTES: usize = 300;

/// A command that waits.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) arguments: Arc<[Vec<u8>]>,
    database: usize,
    keys: Vec<Vec<u8>>,
    pub(crate) deadline: Option<Instant>,
    bytes: usize,
}

impl Client {
    /// Memory of what waits.
    pub(crate) fn blocked_bytes(&self) -> usize {
        self.blocked.as_ref().map_or(0, |blocked| blocked.bytes)
    }

    /// Waits no more, outside of any turn. `false` if it did not.
    pub(crate) fn stop_waiting(&mut self, shared: &Shared) -> bool {
        let Some(blocked) = self.blocked.take() else { return false };
        shared.blocked.fetch_sub(1, Ordering::Relaxed);
        for key in &blocked.keys {
            let next = shared.lock(Shared::stripe_of(key)).stop_waiting(blocked.database, key, self.id);
            next.iter().for_each(crate::pushes::Seat::ring);
        }
        true
    }
}

/// What a client is told whose time is over.
pub(crate) fn time_out(reply: &mut Reply) {
    reply.null_array();
}

/// Does a command again that waits, in a turn that has its keys. Its user may have other rights by now.
pub(crate) fn run_again(call: &mut Call<'_, '_>) {
    let Some(command) = find(call.arguments[0]) else { return };
    if let Err(Refusal(text, _)) = acl::checked(call, command).and_then(|()| run_command(command, call)) {
        stop(call);
        call.reply.error(&text);
    }
}

/// Has the client wait no more, in a turn that has its keys.
fn stop(call: &mut Call<'_, '_>) {
    let Some(blocked) = call.client.blocked.take() else { return };
    call.turn.shared.blocked.fetch_sub(1, Ordering::Relaxed);
    for key in &blocked.keys {
        let id = call.client.id;
        let next = call.turn.stripe(key).and_then(|stripe| stripe.stop_waiting(blocked.database, key, id));
        call.turn.wake(next);
    }
}

/// How long a client waits at most; without an end where it says 0.
fn deadline(argument: &[u8]) -> Result<Option<Instant>, Refusal> {
    let seconds = std::str::from_utf8(argument).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| seconds.is_finite());
    let seconds = seconds.ok_or("ERR timeout is not a float or out of range")?;
    if seconds < 0.0 {
        return Err("ERR timeout is negative".into());
    }
    if seconds == 0.0 {
        return Ok(None);
    }
    let waits = Duration::try_from_secs_f64(seconds).ok().and_then(|waits| Instant::now().checked_add(waits));
    waits.map(Some).ok_or("ERR timeout is out of range".into())
}

/// Does a part of a command that has arguments of its own.
fn with<'a>(
    call: &mut Call<'_, '_>,
    arguments: &'a [&'a [u8]],
    run: fn(&mut Call<'_, '_>) -> Answer,
) -> Answer {
    let Call { client, turn, reply, .. } = call;
    run(&mut Call { arguments, client, turn, reply })
}

/// The first key that has something which this client may take.
fn ready<'k>(call: &mut Call<'_, '_>, keys: &[&'k [u8]], kind: Type) -> Result<Option<&'k [u8]>, Refusal> {
    let (database, id, is_again) = (call.client.database, call.client.id, call.client.blocked.is_some());
    for key in keys {
        match call.container(key, kind) {
            Ok(None) => continue,
            // Who waits for a list is not concerned by what else the key may hold meanwhile.
            Err(Refusal(_, None)) if is_again => continue,
            found => drop(found?),
        }
        // A transaction waits for nobody, so it stands in no row.
        if call.turn.is_in_transaction()
            || call.turn.stripe(key).is_none_or(|stripe| stripe.is_first(database, key, kind, id))
        {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Has the client wait, or tells it that there is nothing where it cannot.
fn wait(call: &mut Call<'_, '_>, keys: &[&[u8]], kind: Type, deadline: Option<Instant>) -> Answer {
    if call.turn.is_in_transaction() {
        match call.arguments[0].to_ascii_uppercase().as_slice() {
            b"BLMOVE" | b"BRPOPLPUSH" => call.reply.null(),
            _ => call.reply.null_array(),
        }
        return Ok(());
    }
    if call.client.blocked.is_some() {
        return Ok(());
    }
    let taken = |argument: &&[u8]| 4 * argument.len() + KEY_BYTES;
    let bytes = call.arguments.iter().map(taken).sum();
    if bytes > BYTES_MAX {
        return Err("ERR too many keys to wait for".into());
    }
    let database = call.client.database;
    for key in keys {
        let waiter = Waiter { id: call.client.id, seat: call.client.seat.clone() };
        if let Some(stripe) = call.turn.stripe(key) {
            stripe.wait(database, key, kind, waiter);
        }
        // There may be something, though others stand before it that were not told of it.
        call.turn.wake_firsts(database, key);
    }
    call.turn.shared.blocked.fetch_add(1, Ordering::Relaxed);
    call.client.blocked = Some(Blocked {
        arguments: call.arguments.iter().map(|argument| argument.to_vec()).collect(),
        database,
        keys: keys.iter().map(|key| key.to_vec()).collect(),
        deadline,
        bytes,
    });
    Ok(())
}

/// From one end of the first of some keys.
fn pop(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let (timeout, keys) = arguments[1..].split_last().ok_or(NOT_AN_INTEGER)?;
    let deadline = deadline(timeout)?;
    let name = &arguments[0][1..];
    let is_sorted = name[0].eq_ignore_ascii_case(&b'Z');
    let (kind, run): (_, fn(&mut Call<'_, '_>) -> Answer) =
        if is_sorted { (Type::SortedSet, sorted_sets::zpop) } else { (Type::List, lists::pop) };
    let Some(key) = ready(call, keys, kind)? else { return wait(call, keys, kind, deadline) };
    let before = call.reply.bytes.len();
    with(call, &[name, key], run)?;
    let taken = call.reply.bytes.split_off(before);
    // A member comes with its score as an array, whose head is this long.
    let taken = if is_sorted { &taken[b"*2\r\n".len()..] } else { &taken[..] };
    call.reply.array(if is_sorted { 3 } else { 2 });
    call.reply.bulk(key);
    call.reply.bytes.extend_from_slice(taken);
    stop(call);
    Ok(())
}

/// Some from the first of some keys.
fn pop_some(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let deadline = deadline(arguments[1])?;
    let name = &arguments[0][1..];
    let (kind, run): (_, fn(&mut Call<'_, '_>) -> Answer) = match name[0].eq_ignore_ascii_case(&b'Z') {
        true => (Type::SortedSet, sorted_sets::zmpop),
        false => (Type::List, lists::lmpop),
    };
    let (keys, words) = containers::counted_of(&arguments[1..])?;
    let (end, _) = containers::end_and_count(words)?;
    let ends = if kind == Type::List { ["LEFT", "RIGHT"] } else { ["MIN", "MAX"] };
    if !ends.iter().any(|known| super::is(end, known)) {
        return Err(super::SYNTAX.into());
    }
    let Some(key) = ready(call, keys, kind)? else { return wait(call, keys, kind, deadline) };
    with(call, &[&[name, b"1", key], words].concat(), run)?;
    stop(call);
    Ok(())
}

/// From one list to another.
fn move_one(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let (timeout, rest) = arguments.split_last().ok_or(NOT_AN_INTEGER)?;
    let is_short = rest.len() == 3;
    if !is_short {
        lists::check_ends(rest)?;
    }
    let deadline = deadline(timeout)?;
    let keys = &rest[1..2];
    if ready(call, keys, Type::List)?.is_none() {
        return wait(call, keys, Type::List, deadline);
    }
    with(call, rest, if is_short { lists::rpoplpush } else { lists::lmove })?;
    stop(call);
    Ok(())
}
