//! `CONFIG`: what the server was told, and what it can be told while it runs.

use std::time::Duration;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, shown};
use crate::glob;

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "CONFIG", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: config }];

const PATTERNS_MAX: usize = 100;
const EVENTS: &str = "notify-keyspace-events";
const SLOW: &str = "slowlog-log-slower-than";

/// Names and values, as Redis has them.
fn all(call: &Call<'_, '_>) -> [(&'static str, String); 12] {
    let shared = call.turn.shared;
    let config = &shared.config;
    [
        ("maxclients", config.connections_max.to_string()),
        ("proto-max-bulk-len", config.argument_bytes_max.to_string()),
        ("databases", crate::shared::DATABASES.to_string()),
        ("appendonly", "yes".into()),
        ("save", String::new()),
        ("maxmemory", "0".into()),
        ("maxmemory-policy", "noeviction".into()),
        ("timeout", "0".into()),
        ("tcp-keepalive", config.keepalive_seconds.to_string()),
        ("port", config.listen.port().to_string()),
        (EVENTS, shared.events.shown()),
        (SLOW, shared.slow.threshold().as_micros().to_string()),
    ]
}

fn get(call: &mut Call<'_, '_>, patterns: &[&[u8]]) -> Answer {
    if patterns.len() > PATTERNS_MAX {
        return Err(format!("ERR CONFIG GET takes at most {PATTERNS_MAX} patterns").into());
    }
    let lower = |pattern: &&[u8]| glob::checked(pattern).map(<[u8]>::to_ascii_lowercase);
    let patterns = patterns.iter().map(lower).collect::<Result<Vec<_>, _>>()?;
    let is_asked = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let found: Vec<_> = all(call).into_iter().filter(|(name, _)| is_asked(name)).collect();
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// Sets one of them. What stands already as it is asked to is no error.
fn set(call: &Call<'_, '_>, name: &[u8], value: &[u8]) -> Answer {
    let (shared, text) = (call.turn.shared, String::from_utf8_lossy(value));
    if is(name, EVENTS) {
        shared.events.set(&text).map_err(|text| format!("ERR {text}"))?;
        if !shared.events.tell_of_expiry() {
            // What is written from now on is not noted, and would make it wrong.
            shared.expiries.forget(None);
        }
        return Ok(());
    }
    if is(name, SLOW) {
        // None at all where it is negative, as in Redis.
        let microseconds = u64::try_from(integer(value)?).unwrap_or(u64::MAX);
        shared.slow.set_threshold(Duration::from_micros(microseconds));
        return Ok(());
    }
    match all(call).iter().find(|(known, _)| is(name, known)) {
        Some((_, is_now)) if is_now.eq_ignore_ascii_case(&text) => Ok(()),
        Some((known, is_now)) => Err(Refusal::from(format!(
            "ERR CONFIG SET failed - {known} is '{is_now}' while the server runs: options are given to `forebay serve`"
        ))),
        None => {
            Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{}'", shown(name))
                .into())
        }
    }
}

fn config(call: &mut Call<'_, '_>) -> Answer {
    match &call.arguments[1..] {
        [word, patterns @ ..] if is(word, "GET") && !patterns.is_empty() => return get(call, patterns),
        [word] if is(word, "RESETSTAT") => {}
        [word, pairs @ ..] if is(word, "SET") && !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
            for pair in pairs.chunks(2) {
                set(call, pair[0], pair[1])?;
            }
        }
        [word] if is(word, "REWRITE") => {
            return Err("ERR The server is running without a config file".into());
        }
        _ => return Err(SYNTAX.into()),
    }
    call.reply.ok();
    Ok(())
}
