//! What concerns the server.

use super::keys::flushed_is_empty;
use super::{Answer, Call, Command, SYNTAX, Use, is};
use crate::pushes::Kind;

/// What clients take it for: they leave out what an older one would not know.
pub(super) const REDIS_VERSION: &str = "7.2.4";

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "INFO", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: info },
    Command { name: "DBSIZE", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: dbsize },
    Command { name: "FLUSHDB", arity: -1, keys: (0, 0, 0), uses: Use::Whole, run: flushdb },
    Command { name: "FLUSHALL", arity: -1, keys: (0, 0, 0), uses: Use::Whole, run: flushall },
    Command { name: "TIME", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: time },
    Command { name: "FB.INFO", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: fb_info },
];

/// The sections that are asked for, or all.
fn info(call: &mut Call<'_, '_>) -> Answer {
    use std::sync::atomic::Ordering::Relaxed;
    let shared = call.turn.shared;
    let asked = &call.arguments[1..];
    let is_all = |word: &&[u8]| ["ALL", "EVERYTHING", "DEFAULT"].iter().any(|all| is(word, all));
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|word| is(word, name) || is_all(word));
    let mut text = String::new();
    let mut tell = |name: &str, lines: &dyn Fn() -> String| {
        if wants(name) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            text += &format!("{gap}# {name}\r\n{}", lines());
        }
    };
    tell("Server", &|| {
        format!(
            "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nforebay_version:{}\r\narch_bits:64\r\n\
             process_id:{}\r\nuptime_in_seconds:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            shared.uptime_seconds()
        )
    });
    tell("Clients", &|| {
        format!(
            "connected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\n",
            shared.connections.load(Relaxed),
            shared.config.connections_max,
            shared.blocked.load(Relaxed)
        )
    });
    tell("Memory", &|| format!("used_memory:{}\r\n", shared.database.stats().memory.total));
    tell("Persistence", &|| "loading:0\r\naof_enabled:1\r\n".into());
    tell("Stats", &|| {
        format!(
            "total_connections_received:{}\r\ntotal_commands_processed:{}\r\npubsub_channels:{}\r\n\
             pubsub_patterns:{}\r\n",
            shared.accepted.load(Relaxed),
            shared.commands.load(Relaxed),
            shared.hub.count_of(Kind::Channel),
            shared.hub.count_of(Kind::Pattern)
        )
    });
    tell("Replication", &|| super::replication::info(shared));
    tell("Cluster", &|| "cluster_enabled:0\r\n".into());
    tell("Keyspace", &String::new);
    call.reply.verbatim(&text);
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
    // What is written from here on is not in the table, if that is dropped.
    let writes = counts.writes(database);
    let count = move || counts.of(database, now, writes, || flushed_is_empty(table.count()));
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
