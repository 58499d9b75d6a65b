//! `COMMAND`: what there is to be asked, for clients and for people.

use super::{
    Answer, COUNTED, COUNTED_BEHIND_ONE, Call, Command, Refusal, STORED, SYNTAX, Use, all_commands, find, is,
};
use crate::{acl, glob};

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "COMMAND", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: command }];

/// The flags and keys that clients ask for.
fn described(call: &mut Call<'_, '_>, command: &Command) {
    let reply = &mut *call.reply;
    // As of commands that say which keys there are, clients have to ask for those.
    let is_open = [COUNTED, COUNTED_BEHIND_ONE, STORED].contains(&command.keys.1);
    let (first, last, step) = if is_open { (0, 0, 0) } else { command.keys };
    let mut flags = vec![match command.uses {
        _ if command.writes() => "write",
        Use::Nothing => "fast",
        _ => "readonly",
    }];
    flags.extend(is_open.then_some("movablekeys"));
    let categories = acl::categories_of(command.name);
    flags.extend(["admin", "blocking", "pubsub"].into_iter().filter(|flag| categories.contains(flag)));
    reply.array(7);
    reply.bulk(command.name.to_ascii_lowercase().as_bytes());
    reply.int(command.arity as i64);
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    [first as i64, last as i64, step as i64].into_iter().for_each(|number| reply.int(number));
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
}

/// What is known of a command besides, in words: which part of the server it is of.
fn documented(call: &mut Call<'_, '_>, command: &Command) {
    let name = command.name.to_ascii_lowercase();
    let own = ["fb.", "agg."].iter().any(|begin| name.starts_with(begin));
    let categories = acl::categories_of(command.name);
    let of = [
        "string",
        "hash",
        "set",
        "sortedset",
        "list",
        "hyperloglog",
        "bitmap",
        "pubsub",
        "transaction",
        "connection",
    ];
    let group = of.into_iter().find(|group| categories.contains(group)).unwrap_or("generic");
    let group = match group {
        "sortedset" => "sorted-set",
        "transaction" => "transactions",
        group => group,
    };
    let of = if own { "Forebay's own, docs/guide/server.md" } else { "as in Redis" };
    call.reply.bulk(name.as_bytes());
    call.reply.map(2);
    for (field, text) in [("summary", of), ("group", group)] {
        call.reply.bulk(field.as_bytes());
        call.reply.bulk(text.as_bytes());
    }
}

/// Names of commands, all of them or those of a kind.
fn list(call: &mut Call<'_, '_>, words: &[&[u8]]) -> Answer {
    let names = || all_commands().map(|command| command.name.to_ascii_lowercase());
    let found: Vec<String> = match words {
        [] => names().collect(),
        [word, by, what] if is(word, "FILTERBY") && is(by, "ACLCAT") => {
            let category = String::from_utf8_lossy(what).to_ascii_lowercase();
            names().filter(|name| acl::categories_of(name).contains(&&category[..])).collect()
        }
        [word, by, pattern] if is(word, "FILTERBY") && is(by, "PATTERN") => {
            let pattern = glob::checked(pattern)?.to_ascii_lowercase();
            names().filter(|name| glob::matches(&pattern, name.as_bytes())).collect()
        }
        [word, by, _] if is(word, "FILTERBY") && is(by, "MODULE") => Vec::new(),
        _ => return Err(SYNTAX.into()),
    };
    call.reply.array(found.len());
    found.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

/// The keys of a request.
fn keys(call: &mut Call<'_, '_>, asked: &[&[u8]], with_flags: bool) -> Answer {
    let command = find(asked[0]).ok_or("ERR Invalid command specified")?;
    if !command.takes(asked.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    let keys: Vec<&[u8]> = command.keys_of(asked).collect();
    if keys.is_empty() {
        return Err("ERR The command has no key arguments".into());
    }
    call.reply.array(keys.len());
    for key in keys {
        if with_flags {
            call.reply.array(2);
        }
        call.reply.bulk(key);
        if with_flags {
            call.reply.set(1);
            call.reply.simple(if command.writes() { "RW" } else { "RO" });
        }
    }
    Ok(())
}

fn named(names: &[&[u8]]) -> Vec<Option<&'static Command>> {
    match names {
        [] => all_commands().map(Some).collect(),
        names => names.iter().map(|name| find(name)).collect(),
    }
}

/// So many are asked for by name.
const NAMES_MAX: usize = 1000;

fn command(call: &mut Call<'_, '_>) -> Answer {
    let few = |names: &[&[u8]]| match names.len() > NAMES_MAX {
        true => Err(Refusal::from(format!("ERR COMMAND takes at most {NAMES_MAX} names"))),
        false => Ok(()),
    };
    match &call.arguments[1..] {
        [] => {
            call.reply.array(all_commands().count());
            all_commands().for_each(|command| described(call, command));
        }
        [word] if is(word, "COUNT") => call.reply.int(all_commands().count() as i64),
        [word, names @ ..] if is(word, "DOCS") => {
            few(names)?;
            let found: Vec<_> = named(names).into_iter().flatten().collect();
            call.reply.map(found.len());
            found.into_iter().for_each(|command| documented(call, command));
        }
        [word, names @ ..] if is(word, "INFO") => {
            few(names)?;
            let found = named(names);
            call.reply.array(found.len());
            for command in found {
                match command {
                    Some(command) => described(call, command),
                    None => call.reply.null_array(),
                }
            }
        }
        [word, words @ ..] if is(word, "LIST") => return list(call, words),
        [word, asked @ ..] if is(word, "GETKEYS") && !asked.is_empty() => return keys(call, asked, false),
        [word, asked @ ..] if is(word, "GETKEYSANDFLAGS") && !asked.is_empty() => {
            return keys(call, asked, true);
        }
        _ => return Err(SYNTAX.into()),
    }
    Ok(())
}
