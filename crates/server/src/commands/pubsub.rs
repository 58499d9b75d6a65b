//! Channels: who listens, and what is told to those who do.

use super::{Answer, Call, Command, Refusal, Use, engine, is, reply_bytes_max, shown, wrong_arity};
use crate::glob;
use crate::pushes::Kind;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "SUBSCRIBE", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: subscribe },
    Command { name: "PSUBSCRIBE", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: subscribe },
    Command { name: "SSUBSCRIBE", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: subscribe },
    Command { name: "UNSUBSCRIBE", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: unsubscribe },
    Command { name: "PUNSUBSCRIBE", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: unsubscribe },
    Command { name: "SUNSUBSCRIBE", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: unsubscribe },
    Command { name: "PUBLISH", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: publish },
    Command { name: "SPUBLISH", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: publish },
    Command { name: "PUBSUB", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: pubsub },
];

/// What a connection may ask that listens, in version 2 of the protocol: its replies could be taken for messages.
const CONFINED: [&str; 9] = [
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "PING",
    "QUIT",
    "RESET",
];

/// Whether messages come where replies would.
pub(super) fn is_confined(call: &Call<'_, '_>) -> bool {
    call.reply.version == 2 && (call.client.subscriptions.is_any() || call.client.feed.is_some())
}

/// Refuses what may not be asked while messages come.
pub(super) fn check(call: &Call<'_, '_>, command: &Command) -> Answer {
    if !is_confined(call) || CONFINED.contains(&command.name) || engine::is_following(call, command.name) {
        return Ok(());
    }
    Err(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command.name.to_ascii_lowercase()
    )
    .into())
}

/// What kind of names a command takes, and the word of its replies.
fn kind_of(call: &Call<'_, '_>) -> (Kind, String) {
    let name = call.arguments[0].to_ascii_lowercase();
    let kind = match name[0] {
        b'p' if name != b"publish" => Kind::Pattern,
        b's' if name.starts_with(b"ss") || name.starts_with(b"sun") || name.starts_with(b"sp") => Kind::Shard,
        _ => Kind::Channel,
    };
    (kind, String::from_utf8_lossy(&name).into_owned())
}

/// Tells of one name how many there are now.
fn tell(call: &mut Call<'_, '_>, word: &str, name: Option<&[u8]>, count: usize) {
    call.reply.push(3);
    call.reply.bulk(word.as_bytes());
    call.reply.bulk_or_null(name);
    call.reply.int(count as i64);
}

fn subscribe(call: &mut Call<'_, '_>) -> Answer {
    let (kind, word) = kind_of(call);
    if call.turn.is_in_transaction() {
        return Err(
            format!("ERR {word} cannot stand in a transaction: each name has a reply of its own").into()
        );
    }
    let names = &call.arguments[1..];
    let mut count = call.client.subscriptions.count(kind);
    let (shared, client) = (call.turn.shared, &mut *call.client);
    // One that reads nothing costs no more than an eighth of what all have.
    let who = (client.id, &client.seat, shared.config.buffers_bytes_max / 8);
    let are_new = shared.hub.subscribe(who, &mut client.subscriptions, kind, names)?;
    // Each name is told with the count that there was behind it.
    for (name, is_new) in names.iter().zip(are_new) {
        count += usize::from(is_new);
        tell(call, &word, Some(name), count);
    }
    Ok(())
}

fn unsubscribe(call: &mut Call<'_, '_>) -> Answer {
    let (kind, word) = kind_of(call);
    if call.turn.is_in_transaction() {
        return Err(
            format!("ERR {word} cannot stand in a transaction: each name has a reply of its own").into()
        );
    }
    let all = if call.arguments.len() == 1 { call.client.subscriptions.of(kind) } else { Vec::new() };
    let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let names = if call.arguments.len() == 1 { &all[..] } else { &call.arguments[1..] };
    let mut count = call.client.subscriptions.count(kind);
    let client = &mut *call.client;
    let own = &mut client.subscriptions;
    let were_there = call.turn.shared.hub.unsubscribe(client.id, own, kind, names.iter().copied());
    if names.is_empty() {
        tell(call, &word, None, count);
    }
    for (name, was_there) in names.iter().zip(were_there) {
        count -= usize::from(was_there);
        tell(call, &word, Some(name), count);
    }
    Ok(())
}

/// Listens to nothing any more.
pub(super) fn reset(call: &mut Call<'_, '_>) {
    engine::stop_following(call);
    let client = &mut *call.client;
    call.turn.shared.hub.leave(client.id, &mut client.subscriptions);
}

/// Answers how many will get it. It goes out behind the commit of the turn.
fn publish(call: &mut Call<'_, '_>) -> Answer {
    let (kind, _) = kind_of(call);
    let count = call.turn.publish(kind, call.arguments[1], call.arguments[2])?;
    call.reply.int(count as i64);
    Ok(())
}

fn pubsub(call: &mut Call<'_, '_>) -> Answer {
    let hub = &call.turn.shared.hub;
    match &call.arguments[1..] {
        [word, pattern @ ..] if pattern.len() < 2 && (is(word, "CHANNELS") || is(word, "SHARDCHANNELS")) => {
            let kind = if is(word, "CHANNELS") { Kind::Channel } else { Kind::Shard };
            let pattern = pattern.first().map(|pattern| glob::checked(pattern)).transpose()?;
            let (active, work) = hub.active(kind, pattern, reply_bytes_max(call))?;
            call.turn.worked(work);
            call.reply.array(active.len());
            active.iter().for_each(|name| call.reply.bulk(name));
        }
        [word, names @ ..] if is(word, "NUMSUB") || is(word, "SHARDNUMSUB") => {
            let kind = if is(word, "NUMSUB") { Kind::Channel } else { Kind::Shard };
            call.reply.map(names.len());
            for name in names {
                call.reply.bulk(name);
                call.reply.int(hub.listeners(kind, name) as i64);
            }
        }
        [word] if is(word, "NUMPAT") => call.reply.int(hub.count_of(Kind::Pattern) as i64),
        [word] if ["CHANNELS", "SHARDCHANNELS", "NUMPAT"].iter().any(|known| is(word, known)) => {
            return Err(wrong_arity("pubsub"));
        }
        [word, ..] => {
            let word = shown(word);
            return Err(Refusal::from(format!("ERR unknown subcommand '{word}'. Try PUBSUB HELP.")));
        }
        [] => return Err(wrong_arity("pubsub")),
    }
    Ok(())
}
