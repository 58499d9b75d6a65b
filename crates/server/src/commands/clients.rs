//! `CLIENT`: who is there, and what is asked of others.

use std::sync::Arc;

use super::connection::checked_name;
use super::{
    Answer, Call, Command, NOT_AN_INTEGER, Refusal, SYNTAX, Use, integer, is, reply_bytes_max, shown,
};
use crate::clients::{Ask, Known};

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "CLIENT", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: client }];

const LIBRARY_BYTES_MAX: usize = 128;

const HELP: [&str; 16] = [
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME: the name of this connection",
    "GETREDIR: -1, as there is no tracking",
    "HELP: this",
    "ID: the number of this connection",
    "INFO: a line on this connection",
    "KILL <ip:port> | [ID id] [TYPE type] [USER user] [ADDR ip:port] [LADDR ip:port] [SKIPME yes|no] [MAXAGE seconds]: ends connections",
    "LIST [TYPE type] [ID id ...]: a line on each connection",
    "NO-EVICT ON|OFF, NO-TOUCH ON|OFF: nothing, as nothing is evicted",
    "PAUSE <milliseconds> [WRITE|ALL]: has commands wait",
    "REPLY ON|OFF|SKIP: whether this connection is answered",
    "SETINFO LIB-NAME|LIB-VER <value>: what library this connection is of",
    "SETNAME <name>: names this connection",
    "TRACKING OFF: nothing, as there is none",
    "UNBLOCK <id> [TIMEOUT|ERROR]: ends a command that waits",
    "UNPAUSE: has commands wait no more",
];

/// Whether, and for how long, a connection is told nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    #[default]
    All,
    None,
    /// To all but the next.
    NotNext,
}

fn client(call: &mut Call<'_, '_>) -> Answer {
    let shared = call.turn.shared;
    match &call.arguments[1..] {
        [word, name] if is(word, "SETNAME") => {
            call.client.name = checked_name(name)?;
            call.reply.ok();
        }
        [word] if is(word, "GETNAME") => match &*call.client.name {
            [] => call.reply.null(),
            name => call.reply.bulk(name),
        },
        [word] if is(word, "ID") => call.reply.int(call.client.id as i64),
        [word] if is(word, "GETREDIR") => call.reply.int(-1),
        [word] if is(word, "INFO") => {
            let version = call.reply.version;
            call.client.tell(version, (0, 0, 0));
            let text = line(&call.client.known, call.turn.now);
            call.reply.verbatim(&text);
        }
        [word, rest @ ..] if is(word, "LIST") => return list(call, rest),
        [word, rest @ ..] if is(word, "KILL") => return kill(call, rest),
        [word, rest @ ..] if is(word, "UNBLOCK") => return unblock(call, rest),
        [word, rest @ ..] if is(word, "PAUSE") => return pause(call, rest),
        [word] if is(word, "UNPAUSE") => {
            shared.clients.pause.end();
            call.reply.ok();
        }
        [word, mode] if is(word, "REPLY") => {
            call.client.replies = match mode {
                mode if is(mode, "ON") => Replies::All,
                mode if is(mode, "OFF") => Replies::None,
                mode if is(mode, "SKIP") && call.client.replies == Replies::None => Replies::None,
                mode if is(mode, "SKIP") => Replies::NotNext,
                _ => return Err(SYNTAX.into()),
            };
            call.reply.ok();
        }
        [word, field, value] if is(word, "SETINFO") => return set_info(call, field, value),
        [word, mode] if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => {
            match is(mode, "ON") || is(mode, "OFF") {
                true => call.reply.ok(),
                false => return Err(SYNTAX.into()),
            }
        }
        [word, mode, ..] if is(word, "TRACKING") && is(mode, "OFF") => call.reply.ok(),
        [word, ..] if is(word, "TRACKING") || is(word, "CACHING") => {
            return Err(
                "ERR there is no tracking of what clients keep; keyspace events tell of writes".into()
            );
        }
        [word] if is(word, "HELP") => {
            call.reply.array(HELP.len());
            HELP.iter().for_each(|line| call.reply.simple(line));
        }
        [word, ..] => {
            let word = shown(word);
            return Err(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try CLIENT HELP."
            )
            .into());
        }
        [] => return Err(NOT_AN_INTEGER.into()),
    }
    Ok(())
}

/// Notes what library a connection is of.
fn set_info(call: &mut Call<'_, '_>, field: &[u8], value: &[u8]) -> Answer {
    let at = ["LIB-NAME", "LIB-VER"].iter().position(|known| is(field, known));
    let at = at.ok_or_else(|| format!("ERR Unrecognized option '{}'", shown(field)))?;
    let name = checked_name(value)?;
    if name.len() > LIBRARY_BYTES_MAX {
        return Err(format!("ERR lib-name and lib-ver have at most {LIBRARY_BYTES_MAX} bytes").into());
    }
    call.client.library[at] = name;
    call.reply.ok();
    Ok(())
}

/// A line on a connection, by the names of Redis.
fn line(known: &Known, now: u64) -> String {
    let seen = known.seen.lock().clone();
    let seconds = |since: u64| now.saturating_sub(since) / 1000;
    let [channels, patterns, shards] = seen.subscriptions;
    let flags: String =
        [(channels + patterns + shards > 0, 'P'), (seen.queued.is_some(), 'x'), (seen.is_blocked, 'b')]
            .into_iter()
            .filter_map(|(is_so, flag)| is_so.then_some(flag))
            .collect();
    let [name, user, library, library_version] =
        [&seen.name, &seen.user.name, &seen.library[0], &seen.library[1]]
            .map(|text| String::from_utf8_lossy(text));
    format!(
        "id={} addr={} laddr={} fd=0 name={name} age={} idle={} flags={} db={} sub={channels} psub={patterns} ssub={shards} \
         multi={} watch={} qbuf={} qbuf-free=0 omem={} tot-mem={} cmd={} user={user} resp={} lib-name={library} \
         lib-ver={library_version}\n",
        known.id,
        known.peer,
        known.local,
        seconds(known.since),
        seconds(seen.at),
        if flags.is_empty() { "N" } else { &flags },
        seen.database,
        seen.queued.map_or(-1, |queued| queued as i64),
        seen.watched,
        seen.requests_bytes,
        seen.replies_bytes,
        seen.all_bytes,
        seen.command.to_ascii_lowercase(),
        seen.version,
    )
}

/// Of which connections a command is.
#[derive(Default)]
struct Filter<'a> {
    ids: Vec<u64>,
    listens: Option<bool>,
    user: Option<&'a [u8]>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    age_min: Option<u64>,
    takes_own: bool,
    /// No connection is of this kind.
    is_of_none: bool,
}

impl<'a> Filter<'a> {
    fn kind(&mut self, kind: &[u8]) -> Answer {
        match kind {
            kind if is(kind, "NORMAL") => self.listens = Some(false),
            kind if is(kind, "PUBSUB") => self.listens = Some(true),
            kind if ["MASTER", "REPLICA", "SLAVE"].iter().any(|known| is(kind, known)) => {
                self.is_of_none = true
            }
            kind => return Err(format!("ERR Unknown client type '{}'", shown(kind)).into()),
        }
        Ok(())
    }

    fn option(&mut self, name: &[u8], value: &'a [u8]) -> Answer {
        match name {
            name if is(name, "ID") => self.ids = vec![id_of(value)?],
            name if is(name, "TYPE") => self.kind(value)?,
            name if is(name, "USER") => self.user = Some(value),
            name if is(name, "ADDR") => self.peer = Some(value),
            name if is(name, "LADDR") => self.local = Some(value),
            name if is(name, "SKIPME") && is(value, "NO") => self.takes_own = true,
            name if is(name, "SKIPME") && is(value, "YES") => self.takes_own = false,
            name if is(name, "MAXAGE") => {
                let age = integer(value).ok().and_then(|age| u64::try_from(age).ok());
                self.age_min = Some(age.ok_or("ERR maxage is not an integer or out of range")?);
            }
            _ => return Err(SYNTAX.into()),
        }
        Ok(())
    }

    fn takes(&self, known: &Known, own: u64, now: u64) -> bool {
        let seen = known.seen.lock();
        let listens = seen.subscriptions.iter().sum::<usize>() > 0;
        !self.is_of_none
            && (self.takes_own || known.id != own)
            && (self.ids.is_empty() || self.ids.contains(&known.id))
            && self.listens.is_none_or(|asked| asked == listens)
            && self.user.is_none_or(|user| user == &seen.user.name[..])
            && self.peer.is_none_or(|peer| peer == known.peer.as_bytes())
            && self.local.is_none_or(|local| local == known.local.as_bytes())
            && self.age_min.is_none_or(|age| now.saturating_sub(known.since) / 1000 >= age)
    }
}

fn id_of(argument: &[u8]) -> Result<u64, Refusal> {
    let id = integer(argument).ok().and_then(|id| u64::try_from(id).ok());
    id.filter(|id| *id > 0).ok_or("ERR client-id should be greater than 0".into())
}

/// Connections that a list names.
const IDS_MAX: usize = 1000;

fn list(call: &mut Call<'_, '_>, words: &[&[u8]]) -> Answer {
    let mut filter = Filter { takes_own: true, ..Filter::default() };
    match words {
        [] => {}
        [word, kind] if is(word, "TYPE") => filter.kind(kind)?,
        [word, ids @ ..] if is(word, "ID") && (1..=IDS_MAX).contains(&ids.len()) => {
            filter.ids = ids.iter().map(|id| id_of(id)).collect::<Result<_, _>>()?;
        }
        _ => return Err(SYNTAX.into()),
    }
    let version = call.reply.version;
    call.client.tell(version, (0, 0, 0));
    let (own, now, most) = (call.client.id, call.turn.now, reply_bytes_max(call));
    let mut text = String::new();
    for known in call.turn.shared.clients.all() {
        if filter.takes(&known, own, now) {
            text += &line(&known, now);
        }
        if text.len() > most {
            return Err("ERR the list of all connections is longer than a reply may be; ask by ID".into());
        }
    }
    call.reply.verbatim(&text);
    Ok(())
}

/// Ends a connection. The own one is answered before.
fn end(call: &mut Call<'_, '_>, known: &Arc<Known>) {
    match known.id == call.client.id {
        true => call.client.is_leaving = true,
        false => known.ask(Ask::End),
    }
}

fn kill(call: &mut Call<'_, '_>, words: &[&[u8]]) -> Answer {
    let (own, now) = (call.client.id, call.turn.now);
    if let [address] = words {
        let all = call.turn.shared.clients.all();
        let found = all.iter().find(|known| known.peer.as_bytes() == *address);
        end(call, found.ok_or("ERR No such client")?);
        call.reply.ok();
        return Ok(());
    }
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(SYNTAX.into());
    }
    let mut filter = Filter::default();
    for pair in words.chunks(2) {
        filter.option(pair[0], pair[1])?;
    }
    if let Some(user) = filter.user
        && call.turn.shared.acl.find(user).is_none()
    {
        return Err(format!("ERR No such user '{}'", shown(user)).into());
    }
    let all = call.turn.shared.clients.all();
    let found: Vec<_> = all.iter().filter(|known| filter.takes(known, own, now)).collect();
    found.iter().for_each(|known| end(call, known));
    call.reply.int(found.len() as i64);
    Ok(())
}

fn unblock(call: &mut Call<'_, '_>, words: &[&[u8]]) -> Answer {
    let (id, ask) = match words {
        [id] => (id, Ask::WakeWithNothing),
        [id, word] if is(word, "TIMEOUT") => (id, Ask::WakeWithNothing),
        [id, word] if is(word, "ERROR") => (id, Ask::WakeWithError),
        _ => return Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()),
    };
    let id = u64::try_from(integer(id)?).unwrap_or(0);
    let found = call.turn.shared.clients.find(id).filter(|known| known.seen.lock().is_blocked);
    found.iter().for_each(|known| known.ask(ask));
    call.reply.int(i64::from(found.is_some()));
    Ok(())
}

fn pause(call: &mut Call<'_, '_>, words: &[&[u8]]) -> Answer {
    let (milliseconds, is_of_all) = match words {
        [milliseconds] => (milliseconds, true),
        [milliseconds, word] if is(word, "ALL") => (milliseconds, true),
        [milliseconds, word] if is(word, "WRITE") => (milliseconds, false),
        _ => return Err("ERR CLIENT PAUSE mode must be WRITE or ALL".into()),
    };
    let milliseconds = integer(milliseconds).ok().and_then(|time| u64::try_from(time).ok());
    let milliseconds = milliseconds.ok_or("ERR timeout is not an integer or out of range")?;
    call.turn.shared.clients.pause.begin(milliseconds, is_of_all);
    call.reply.ok();
    Ok(())
}
