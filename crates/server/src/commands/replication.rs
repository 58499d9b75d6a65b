//! Who follows whom: what a server that follows refuses, what it tells of that, and how it is promoted.

use std::time::Duration;

use super::{Answer, Call, Command, NOT_AN_INTEGER, SYNTAX, Use, integer, is};
use crate::replication::FB_REPLICATE;
use crate::shared::Shared;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "ROLE", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: role },
    Command { name: "REPLICAOF", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: replica_of },
    Command { name: "SLAVEOF", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: replica_of },
    Command { name: FB_REPLICATE, arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: replicate },
];

/// So long a promotion may take before who asked is told to look again.
const PROMOTION_MAX: Duration = Duration::from_secs(30);
const PROMOTION_LOOK: Duration = Duration::from_millis(10);

/// What `INFO` tells.
pub(super) fn info(shared: &Shared) -> String {
    let (following, position) = (&shared.following, shared.database.last_sequence());
    let mut lines = Vec::new();
    match following.source.as_ref().filter(|_| following.is_on()) {
        None => lines.push("role:master".into()),
        Some(source) => {
            let link = following.link();
            let heard = link.heard_at.map_or(-1, |at| at.elapsed().as_secs() as i64);
            let lag = following.lag_milliseconds(shared.database.unix_milliseconds());
            lines.extend([
                "role:slave".into(),
                format!("master_host:{}", source.host),
                format!("master_port:{}", source.port),
                format!("master_link_status:{}", if link.is_up { "up" } else { "down" }),
                format!("master_last_io_seconds_ago:{heard}"),
                "master_sync_in_progress:0".into(),
                format!("master_link_error:{}", one_line(&link.error)),
                format!("slave_read_repl_offset:{position}"),
                format!("slave_repl_offset:{position}"),
                format!("slave_lag_milliseconds:{}", lag.map_or(-1, u64::cast_signed)),
                "slave_priority:100".into(),
                "slave_read_only:1".into(),
            ]);
        }
    }
    let followers = shared.followers.told();
    lines.push(format!("connected_slaves:{}", followers.len()));
    for (number, one) in followers.iter().enumerate() {
        let (ip, port) = address_of(one.address);
        let behind = position.saturating_sub(one.position);
        lines.push(format!(
            "slave{number}:ip={ip},port={port},state=online,offset={},records_behind={behind}",
            one.position
        ));
    }
    lines.push(format!("master_repl_offset:{position}"));
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}

fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn address_of(address: Option<std::net::SocketAddr>) -> (String, u16) {
    address.map_or_else(
        || ("unix".into(), 0),
        |address| (address.ip().to_canonical().to_string(), address.port()),
    )
}

fn role(call: &mut Call<'_, '_>) -> Answer {
    let (shared, reply) = (call.turn.shared, &mut *call.reply);
    let position = shared.database.last_sequence().cast_signed();
    if let Some(source) = shared.following.source.as_ref().filter(|_| shared.following.is_on()) {
        reply.array(5);
        reply.bulk(b"slave");
        reply.bulk(source.host.as_bytes());
        reply.int(i64::from(source.port));
        reply.bulk(if shared.following.link().is_up { b"connected" } else { b"connect" });
        reply.int(position);
        return Ok(());
    }
    let followers = shared.followers.told();
    reply.array(3);
    reply.bulk(b"master");
    reply.int(position);
    reply.array(followers.len());
    for one in followers {
        let (ip, port) = address_of(one.address);
        reply.array(3);
        [ip, port.to_string(), one.position.to_string()].iter().for_each(|text| reply.bulk(text.as_bytes()));
    }
    Ok(())
}

/// `REPLICAOF NO ONE`: a server that follows becomes one of its own. Nothing else can be asked while it runs.
fn replica_of(call: &mut Call<'_, '_>) -> Answer {
    let [_, no, one] = call.arguments else { return Err(SYNTAX.into()) };
    if !(is(no, "NO") && is(one, "ONE")) {
        return Err("ERR whom a server follows is given when it starts: stop it, and start `forebay serve COPY --follow \
                    HOST:PORT` with a new directory, or with a checkpoint of the source"
            .into());
    }
    let shared = call.turn.shared;
    if !shared.following.is_on() {
        call.reply.ok();
        return Ok(());
    }
    let following = std::sync::Arc::clone(&shared.following);
    call.later(0, move |reply, slot| {
        for _ in 0..PROMOTION_MAX.as_millis() / PROMOTION_LOOK.as_millis() {
            match following.promote() {
                Some(Ok(())) => {
                    reply.ok();
                    return Ok(());
                }
                Some(Err(error)) => {
                    return Err(format!(
                        "ERR it follows no more, and could not be promoted: {error}; stop it, and open the directory by \
                         `forebay serve` without --follow"
                    )
                    .into());
                }
                None => std::thread::sleep(PROMOTION_LOOK),
            }
            slot.check()?;
        }
        Err("ERR the promotion goes on; ask ROLE whether it is done".into())
    })
}

/// `FB.REPLICATE position`: behind the answer the connection is a stream of changes, and no command is read any more.
fn replicate(call: &mut Call<'_, '_>) -> Answer {
    let position = u64::try_from(integer(call.arguments[1])?).map_err(|_| NOT_AN_INTEGER)?;
    if call.turn.is_in_transaction() {
        return Err("ERR FB.REPLICATE cannot stand in a transaction".into());
    }
    if !call.client.may_have(FB_REPLICATE) {
        let text = "NOPERM a follower gets all keys, and this user may read some alone: FB.REPLICATE needs `~*` or `%R~*`";
        return Err(text.into());
    }
    call.client.follower = Some(call.turn.shared.followers.let_in(position)?);
    call.reply.ok();
    Ok(())
}
