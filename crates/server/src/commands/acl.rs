//! Users: who they are, and what they may do.

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, find, integer, is, shown};
use crate::acl::{self, Denied, Note};

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "ACL", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: acl }];

const NOTES_SHOWN: usize = 10;
const GENERATED_BITS: i64 = 256;
const GENERATED_BITS_MAX: u64 = 4096;

const HELP: [&str; 15] = [
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]: categories, or the commands of one",
    "DELUSER <username> [<username> ...]: deletes users, and closes their connections",
    "DRYRUN <username> <command> [<arg> ...]: whether a user may do it",
    "GENPASS [<bits>]: a password that nobody foresees",
    "GETUSER <username>: what a user may do",
    "HELP: this",
    "LIST: all users, as the file has them",
    "LOAD: reads the file of users again",
    "LOG [<count> | RESET]: what was refused",
    "SAVE: writes the file of users",
    "SETUSER <username> <rule> [<rule> ...]: makes a user, or changes it",
    "USERS: names",
    "WHOAMI: the user of this connection",
    "Rules: on off nopass >password <password #hash !hash ~keys %R~keys %W~keys &channels +command -command +@category",
];

fn acl(call: &mut Call<'_, '_>) -> Answer {
    let shared = call.turn.shared;
    match &call.arguments[1..] {
        [word] if is(word, "WHOAMI") => call.reply.bulk(&call.client.user.name),
        [word] if is(word, "HELP") => {
            call.reply.array(HELP.len());
            HELP.iter().for_each(|line| call.reply.simple(line));
        }
        [word, rest @ ..] if is(word, "CAT") && rest.len() < 2 => return categories(call, rest),
        [word] if is(word, "USERS") || is(word, "LIST") => {
            let users = shared.acl.all();
            call.reply.array(users.len());
            for user in users {
                call.reply.bulk(&if is(word, "LIST") { user.shown() } else { user.name.clone() });
            }
        }
        [word, name] if is(word, "GETUSER") => get_user(call, name),
        [word, name, rules @ ..] if is(word, "SETUSER") => {
            if !acl::is_name(name) {
                return Err("ERR Usernames can't contain spaces or null characters".into());
            }
            shared.acl.set(name, rules).map_err(Refusal::from)?;
            call.reply.ok();
        }
        [word, names @ ..] if is(word, "DELUSER") && !names.is_empty() => {
            if names.contains(&&b"default"[..]) {
                return Err("ERR The 'default' user cannot be removed".into());
            }
            let deleted = names.iter().filter(|name| shared.acl.delete(name)).count();
            call.reply.int(deleted as i64);
        }
        [word] if is(word, "LOAD") => {
            shared
                .acl
                .load()
                .map_err(|reason| Refusal::from(format!("ERR {reason}; all users stay as they are")))?;
            call.reply.ok();
        }
        [word] if is(word, "SAVE") => {
            let acl = std::sync::Arc::clone(&shared.acl);
            // It waits for the disk.
            return call.later(0, move |reply, _| {
                acl.save().map_err(|reason| Refusal::from(format!("ERR {reason}")))?;
                reply.ok();
                Ok(())
            });
        }
        [word, bits @ ..] if is(word, "GENPASS") && bits.len() < 2 => return generate(call, bits.first()),
        [word, rest @ ..] if is(word, "LOG") && rest.len() < 2 => return log(call, rest.first()),
        [word, name, asked @ ..] if is(word, "DRYRUN") && !asked.is_empty() => {
            return dry_run(call, name, asked);
        }
        [word, ..] => {
            let word = shown(word);
            return Err(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try ACL HELP."
            )
            .into());
        }
        [] => return Err(SYNTAX.into()),
    }
    Ok(())
}

fn categories(call: &mut Call<'_, '_>, asked: &[&[u8]]) -> Answer {
    let names = match asked {
        [name] => {
            let name = String::from_utf8_lossy(name);
            acl::commands_of(&name)
                .ok_or_else(|| format!("ERR Unknown category '{}'", shown(name.as_bytes())))?
        }
        _ => acl::categories().to_vec(),
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn get_user(call: &mut Call<'_, '_>, name: &[u8]) {
    let Some(user) = call.turn.shared.acl.find(name) else { return call.reply.null() };
    let told = acl::told(&user);
    let reply = &mut *call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(told.flags.len());
    told.flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(told.passwords.len());
    told.passwords.iter().for_each(|hash| reply.bulk(hash.as_bytes()));
    for (name, rules) in &told.rules {
        reply.bulk(name.as_bytes());
        reply.bulk(rules);
    }
    reply.bulk(b"selectors");
    reply.array(0);
}

/// A password in hexadecimal digits.
fn generate(call: &mut Call<'_, '_>, bits: Option<&&[u8]>) -> Answer {
    let bits = bits.map_or(Ok(GENERATED_BITS), |bits| integer(bits))?;
    let bits = u64::try_from(bits).unwrap_or(0);
    if !(1..=GENERATED_BITS_MAX).contains(&bits) {
        return Err("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
                    4096"
            .into());
    }
    let digits = bits.div_ceil(4) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    let filled = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| Refusal::from("ERR the machine has no random numbers"))?;
    call.reply.bulk(&acl::hex(&bytes).as_bytes()[..digits]);
    Ok(())
}

fn log(call: &mut Call<'_, '_>, asked: Option<&&[u8]>) -> Answer {
    let shared = call.turn.shared;
    let mut log = shared.acl.log.lock();
    let count = match asked {
        Some(word) if is(word, "RESET") => {
            log.clear();
            call.reply.ok();
            return Ok(());
        }
        Some(count) => usize::try_from(integer(count)?.max(0)).unwrap_or(0),
        None => NOTES_SHOWN,
    };
    let now = shared.uptime_seconds();
    let notes = log.newest(count);
    let reply = &mut *call.reply;
    reply.array(notes.len());
    for noted in notes {
        let note = &noted.note;
        reply.map(9);
        let texts: [(&str, &[u8]); 5] = [
            ("reason", note.reason.as_bytes()),
            ("context", note.context.as_bytes()),
            ("object", &note.object),
            ("username", &note.user),
            ("client-info", note.client.as_bytes()),
        ];
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double(&now.saturating_sub(noted.since).to_string());
        let silent_seconds = now.saturating_sub(noted.last);
        let numbers =
            [("count", noted.count), ("entry-id", noted.number), ("seconds-since-last", silent_seconds)];
        for (name, number) in numbers {
            reply.bulk(name.as_bytes());
            reply.int(number.cast_signed());
        }
    }
    Ok(())
}

fn dry_run(call: &mut Call<'_, '_>, name: &[u8], asked: &[&[u8]]) -> Answer {
    let user = call.turn.shared.acl.find(name);
    let user = user.ok_or_else(|| format!("ERR User '{}' not found", shown(name)))?;
    let command = find(asked[0]).ok_or_else(|| format!("ERR Command '{}' not found", shown(asked[0])))?;
    if !command.takes(asked.len()) {
        return Err(super::wrong_arity(&command.name.to_ascii_lowercase()));
    }
    match user.denied(command, asked) {
        None => call.reply.ok(),
        Some(Denied::Command(name)) => {
            call.reply.bulk(format!("This user has no permissions to run the '{name}' command").as_bytes());
        }
        Some(Denied::Key(key)) => {
            call.reply.bulk(&[b"This user has no permissions to access the '", key, b"' key"].concat());
        }
        Some(Denied::Channel(channel)) => {
            let text = [b"This user has no permissions to access the '", channel, b"' channel"].concat();
            call.reply.bulk(&text);
        }
    }
    Ok(())
}

/// Refuses what the user of a connection must not do, and notes it.
pub(super) fn checked(call: &mut Call<'_, '_>, command: &Command) -> Answer {
    if !call.client.is_still_there(call.turn.shared) {
        return Err(
            "NOAUTH the user of this connection was deleted, or may not listen to what it listens to".into(),
        );
    }
    // Each argument may be held against each pattern.
    call.turn.worked(call.client.user.patterns().saturating_mul(call.arguments.len()));
    let Some(denied) = call.client.user.denied(command, call.arguments) else { return Ok(()) };
    let (reason, object, text) = match &denied {
        Denied::Command(name) => {
            let text = format!("NOPERM this user has no permissions to run the '{name}' command");
            ("command", name.as_bytes(), text)
        }
        Denied::Key(key) => {
            let text = "NOPERM this user has no permissions to access one of the keys used as arguments";
            ("key", *key, text.into())
        }
        Denied::Channel(channel) => {
            let text = "NOPERM this user has no permissions to access one of the channels used as arguments";
            ("channel", *channel, text.into())
        }
    };
    note(call, reason, object, &call.client.user.name);
    Err(text.into())
}

pub(super) fn note(call: &Call<'_, '_>, reason: &'static str, object: &[u8], user: &[u8]) {
    let shared = call.turn.shared;
    let context = if call.turn.is_in_transaction() { "multi" } else { "toplevel" };
    let [object, user] = [object, user].map(Note::cut);
    let note = Note { reason, context, object, user, client: call.client.shown() };
    shared.acl.log.lock().note(note, shared.uptime_seconds());
}
