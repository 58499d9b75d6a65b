//! What concerns a connection alone.

use forebay::Durability;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, pubsub, shown, transactions};
use crate::shared::DATABASES;

const NAME_BYTES_MAX: usize = 1024;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "PING", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: ping },
    Command { name: "ECHO", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: echo },
    Command { name: "QUIT", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: quit },
    Command { name: "RESET", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: reset },
    Command { name: "SELECT", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: select },
    Command { name: "AUTH", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: auth },
    Command { name: "HELLO", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: hello },
    Command { name: "FB.DURABILITY", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: durability },
];

/// Whether a command needs no password.
pub(crate) fn is_open(name: &str) -> bool {
    ["AUTH", "HELLO", "QUIT", "RESET"].contains(&name)
}

fn ping(call: &mut Call<'_, '_>) -> Answer {
    match call.arguments {
        [_] | [_, _] if pubsub::is_confined(call) => {
            call.reply.array(2);
            call.reply.bulk(b"pong");
            call.reply.bulk(call.arguments.get(1).copied().unwrap_or_default());
        }
        [_] => call.reply.simple("PONG"),
        [_, text] => call.reply.bulk(text),
        _ => return Err("ERR wrong number of arguments for 'ping' command".into()),
    }
    Ok(())
}

fn echo(call: &mut Call<'_, '_>) -> Answer {
    call.reply.bulk(call.arguments[1]);
    Ok(())
}

fn quit(call: &mut Call<'_, '_>) -> Answer {
    call.client.is_leaving = true;
    call.reply.ok();
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Answer {
    transactions::reset(call);
    pubsub::reset(call);
    call.client.reset(call.turn.shared);
    call.reply.version = 2;
    call.reply.simple("RESET");
    Ok(())
}

fn select(call: &mut Call<'_, '_>) -> Answer {
    let number = integer(call.arguments[1]).map_err(|_| Refusal::from("ERR invalid DB index"))?;
    let number = usize::try_from(number).ok().filter(|number| *number < DATABASES);
    call.client.database = number.ok_or("ERR DB index is out of range")?;
    call.reply.ok();
    Ok(())
}

/// Makes the connection one of a user, by the command of this name.
fn log_in(call: &mut Call<'_, '_>, command: &str, name: &[u8], password: &[u8]) -> Answer {
    if call.client.log_in(call.turn.shared, name, password) {
        return Ok(());
    }
    super::acl::note(call, "auth", command.as_bytes(), name);
    Err("WRONGPASS invalid username-password pair or user is disabled.".into())
}

fn auth(call: &mut Call<'_, '_>) -> Answer {
    match call.arguments {
        [_, _] if call.turn.shared.acl.default_user().has_nopass => {
            let text = "ERR AUTH <password> called without any password configured for the default user. Are you sure \
                        your configuration is correct?";
            return Err(text.into());
        }
        [_, password] => log_in(call, "AUTH", b"default", password)?,
        [_, user, password] => log_in(call, "AUTH", user, password)?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply.ok();
    Ok(())
}

fn hello(call: &mut Call<'_, '_>) -> Answer {
    let mut version = call.reply.version;
    let mut rest = &call.arguments[1..];
    if let [asked, behind @ ..] = rest {
        version = match integer(asked) {
            Ok(2) => 2,
            Ok(3) => 3,
            Ok(_) => return Err("NOPROTO unsupported protocol version".into()),
            Err(_) => return Err("ERR Protocol version is not an integer or out of range".into()),
        };
        rest = behind;
    }
    let mut name = None;
    loop {
        rest = match rest {
            [] => break,
            [word, user, password, behind @ ..] if is(word, "AUTH") => {
                log_in(call, "HELLO", user, password)?;
                behind
            }
            [word, asked, behind @ ..] if is(word, "SETNAME") => {
                name = Some(checked_name(asked)?);
                behind
            }
            [word, ..] => {
                let word = shown(word);
                return Err(format!("ERR Syntax error in HELLO option '{word}'").into());
            }
        };
    }
    if !call.client.is_known {
        let text = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                    <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                    the same time";
        return Err(text.into());
    }
    if let Some(name) = name {
        call.client.name = name;
    }
    let id = call.client.id as i64;
    let reply = &mut *call.reply;
    reply.version = version;
    reply.map(7);
    for (field, text) in [("server", "redis"), ("version", super::server::REDIS_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (field, number) in [("proto", i64::from(version)), ("id", id)] {
        reply.bulk(field.as_bytes());
        reply.int(number);
    }
    let role = if call.turn.shared.following.is_on() { "replica" } else { "master" };
    let reply = &mut *call.reply;
    for (field, text) in [("mode", "standalone"), ("role", role)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

pub(super) fn checked_name(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("ERR a client's name has at most {NAME_BYTES_MAX} bytes").into());
    }
    match name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        true => Ok(name.to_vec()),
        false => Err("ERR Client names cannot contain spaces, newlines or special characters.".into()),
    }
}

/// What the replies of this connection's writes say to have survived: asked, or told.
fn durability(call: &mut Call<'_, '_>) -> Answer {
    match call.arguments {
        [_] => {
            let shown = match call.client.durability {
                Durability::Memory => "memory",
                Durability::Os => "os",
                Durability::Disk => "disk",
            };
            call.reply.bulk(shown.as_bytes());
        }
        [_, asked] => {
            let asked = String::from_utf8_lossy(asked).to_ascii_lowercase();
            call.client.durability = asked.parse()?;
            call.reply.ok();
        }
        _ => return Err(SYNTAX.into()),
    }
    Ok(())
}
