//! What concerns the server.

use super::{ALL, Answer, Call, Command, SYNTAX, Use, is};
use crate::glob;
use crate::pushes::Kind;

/// What clients take it for: they leave out what an older one would not know.
pub(super) const REDIS_VERSION: &str = "7.2.4";

const PATTERNS_MAX: usize = 100;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "INFO", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: info },
    Command { name: "COMMAND", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: command },
    Command { name: "CONFIG", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: config },
    Command { name: "DBSIZE", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: dbsize },
    Command { name: "FLUSHDB", arity: -1, keys: (0, 0, 0), uses: Use::Whole, run: flushdb },
    Command { name: "FLUSHALL", arity: -1, keys: (0, 0, 0), uses: Use::Whole, run: flushall },
    Command { name: "TIME", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: time },
    Command { name: "FB.INFO", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: fb_info },
];

fn info(call: &mut Call<'_, '_>) -> Answer {
    use std::sync::atomic::Ordering::Relaxed;
    let shared = call.turn.shared;
    let stats = shared.database.stats();
    let text = format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nforebay_version:{}\r\narch_bits:64\r\n\
         process_id:{}\r\nuptime_in_seconds:{}\r\n\r\n# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\n\r\n\
         # Memory\r\nused_memory:{}\r\n\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\r\n# Stats\r\n\
         total_connections_received:{}\r\ntotal_commands_processed:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\n\r\n# Replication\r\nrole:master\r\n\
         connected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        shared.uptime_seconds(),
        shared.connections.load(Relaxed),
        shared.config.connections_max,
        shared.blocked.load(Relaxed),
        stats.memory.total,
        shared.accepted.load(Relaxed),
        shared.commands.load(Relaxed),
        shared.hub.count_of(Kind::Channel),
        shared.hub.count_of(Kind::Pattern),
    );
    call.reply.verbatim(&text);
    Ok(())
}

/// The flags and keys that clients ask for.
fn described(call: &mut Call<'_, '_>, command: &Command) {
    let reply = &mut *call.reply;
    // As of commands that say how many keys there are, clients have to ask for those.
    let (first, last, step) = if [super::COUNTED, super::COUNTED_BEHIND_ONE].contains(&command.keys.1) {
        (0, 0, 0)
    } else {
        command.keys
    };
    reply.array(6);
    reply.bulk(command.name.to_ascii_lowercase().as_bytes());
    reply.int(command.arity as i64);
    reply.array(1);
    reply.simple(match command.uses {
        Use::Changes | Use::Writes | Use::Adds | Use::Whole | Use::ChangesNamed(_) => "write",
        Use::Reads | Use::ReadsNamed(_) => "readonly",
        Use::Nothing => "fast",
    });
    [first as i64, last as i64, step as i64].into_iter().for_each(|number| reply.int(number));
}

fn command(call: &mut Call<'_, '_>) -> Answer {
    let all = || ALL.iter().flat_map(|some| some.iter());
    match &call.arguments[1..] {
        [] => {
            call.reply.array(all().count());
            all().for_each(|command| described(call, command));
        }
        [word] if is(word, "COUNT") => call.reply.int(all().count() as i64),
        [word, ..] if is(word, "DOCS") => call.reply.map(0),
        [word, names @ ..] if is(word, "INFO") => {
            call.reply.array(names.len());
            for name in names {
                match super::find(name) {
                    Some(command) => described(call, command),
                    None => call.reply.null_array(),
                }
            }
        }
        [word] if is(word, "LIST") => {
            call.reply.array(all().count());
            all().for_each(|command| call.reply.bulk(command.name.to_ascii_lowercase().as_bytes()));
        }
        _ => return Err(SYNTAX.into()),
    }
    Ok(())
}

fn config(call: &mut Call<'_, '_>) -> Answer {
    let config = &call.turn.shared.config;
    let all = [
        ("maxclients", config.connections_max.to_string()),
        ("proto-max-bulk-len", config.argument_bytes_max.to_string()),
        ("databases", crate::shared::DATABASES.to_string()),
        ("appendonly", "yes".into()),
        ("save", String::new()),
        ("maxmemory", "0".into()),
        ("timeout", "0".into()),
        ("notify-keyspace-events", call.turn.shared.events.shown()),
    ];
    match &call.arguments[1..] {
        [word, patterns @ ..] if is(word, "GET") && !patterns.is_empty() => {
            if patterns.len() > PATTERNS_MAX {
                return Err(format!("ERR CONFIG GET takes at most {PATTERNS_MAX} patterns").into());
            }
            let lower = |pattern: &&[u8]| glob::checked(pattern).map(<[u8]>::to_ascii_lowercase);
            let patterns = patterns.iter().map(lower).collect::<Result<Vec<_>, _>>()?;
            let is_asked =
                |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let found: Vec<_> = all.iter().filter(|(name, _)| is_asked(name)).collect();
            call.reply.map(found.len());
            for (name, value) in found {
                call.reply.bulk(name.as_bytes());
                call.reply.bulk(value.as_bytes());
            }
        }
        [word] if is(word, "RESETSTAT") => call.reply.ok(),
        [word, name, letters] if is(word, "SET") && is(name, "notify-keyspace-events") => {
            let letters = String::from_utf8_lossy(letters);
            let shared = call.turn.shared;
            shared.events.set(&letters).map_err(|text| format!("ERR {text}"))?;
            if !shared.events.tell_of_expiry() {
                // What is written from now on is not noted, and would make it wrong.
                shared.expiries.forget(None);
            }
            call.reply.ok();
        }
        [word, ..] if is(word, "SET") => {
            return Err("ERR CONFIG SET is not supported: options are given to `forebay serve`".into());
        }
        _ => return Err(SYNTAX.into()),
    }
    Ok(())
}

/// All keys are counted, if some were written since, by a thread that has nobody wait but who asked.
fn dbsize(call: &mut Call<'_, '_>) -> Answer {
    call.turn.write_out()?;
    let (shared, database, now) = (call.turn.shared, call.client.database, call.turn.now);
    let (table, counts) = (shared.table(database)?, std::sync::Arc::clone(&shared.key_counts));
    if call.turn.is_in_transaction() {
        call.reply.int(super::keys::count_in_transaction(&table)? as i64);
        return Ok(());
    }
    let count = move || counts.of(database, now, || table.count());
    call.later(0, move |reply, _| {
        reply.int(count()? as i64);
        Ok(())
    })
}

fn takes_modes(call: &Call<'_, '_>) -> Answer {
    match &call.arguments[1..] {
        [] => Ok(()),
        [mode] if is(mode, "SYNC") || is(mode, "ASYNC") => Ok(()),
        _ => Err(SYNTAX.into()),
    }
}

fn flush(call: &mut Call<'_, '_>, database: Option<usize>) -> Answer {
    takes_modes(call)?;
    // What waits would come back. A watched key that was there is found missing; of one that was not, nothing has changed.
    call.turn.write_out()?;
    let flushed = call.turn.shared.flush(database);
    // Where that failed some may be gone.
    call.turn.forget(database);
    flushed?;
    call.reply.ok();
    Ok(())
}

fn flushdb(call: &mut Call<'_, '_>) -> Answer {
    let database = call.client.database;
    flush(call, Some(database))
}

fn flushall(call: &mut Call<'_, '_>) -> Answer {
    flush(call, None)
}

fn time(call: &mut Call<'_, '_>) -> Answer {
    let now = call.turn.now;
    call.reply.array(2);
    call.reply.bulk((now / 1000).to_string().as_bytes());
    call.reply.bulk((now % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

/// What it is in truth.
fn fb_info(call: &mut Call<'_, '_>) -> Answer {
    call.reply.map(2);
    call.reply.bulk(b"server");
    call.reply.bulk(b"forebay");
    call.reply.bulk(b"version");
    call.reply.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    Ok(())
}
