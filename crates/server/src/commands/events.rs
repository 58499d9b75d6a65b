//! What is told of keys that commands have written: `__keyspace@0__:key` gets the event, `__keyevent@0__:event` the key.
//! Events go out as messages do, behind the commit. Who asks for none pays a load and a branch a write.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Call, Command, blocking, containers, is};
use crate::pushes::Kind;
use crate::shared::Shared;
use crate::turn::{Plan, Turn};

/// What may be asked for, each by a letter; the last ones never come, as there is nothing of the kind.
const LETTERS: &[u8] = b"KEg$lshzxetd";
/// Which of them `A` stands for.
const ALL: &[u8] = b"g$lshzxetd";

/// Which events somebody asked for: a bit for each letter.
#[derive(Debug, Default)]
pub(crate) struct Events(AtomicU32);

fn bit(letter: u8) -> u32 {
    LETTERS.iter().position(|one| *one == letter).map_or(0, |at| 1 << at)
}

impl Events {
    /// Asks for those that letters name.
    pub(crate) fn set(&self, letters: &str) -> Result<(), String> {
        let mut bits = 0;
        for letter in letters.bytes() {
            bits |= match letter {
                b'A' => ALL.iter().map(|letter| bit(*letter)).sum(),
                letter if LETTERS.contains(&letter) => bit(letter),
                letter => {
                    return Err(format!(
                        "events have the letters {} and A for all behind the first two, not `{}`",
                        String::from_utf8_lossy(LETTERS),
                        letter.escape_ascii()
                    ));
                }
            };
        }
        self.0.store(bits, Ordering::Relaxed);
        Ok(())
    }

    /// The letters.
    pub(super) fn shown(&self) -> String {
        let all: u32 = ALL.iter().map(|letter| bit(*letter)).sum();
        let bits = self.0.load(Ordering::Relaxed);
        let (kinds, places) = (bits & all, bits & !all);
        let letters = |bits: u32| LETTERS.iter().filter(move |letter| bit(**letter) & bits != 0);
        let kinds: Vec<&u8> = if kinds == all { vec![&b'A'] } else { letters(kinds).collect() };
        kinds.into_iter().chain(letters(places)).map(|letter| char::from(*letter)).collect()
    }

    /// Whether there are any, in some place.
    pub(crate) fn are_on(&self) -> bool {
        let places = bit(b'K') | bit(b'E');
        let bits = self.0.load(Ordering::Relaxed);
        bits & places != 0 && bits & !places != 0
    }

    /// Whether somebody is to be told of keys whose time is over.
    pub(crate) fn tell_of_expiry(&self) -> bool {
        self.has(b'x') && self.are_on()
    }

    fn has(&self, letter: u8) -> bool {
        self.0.load(Ordering::Relaxed) & bit(letter) != 0
    }
}

/// What a command's event is called, with the letter of its kind.
const NAMES: &[(&str, u8, &str)] = &[
    ("APPEND", b'$', "append"),
    ("BITOP", b'$', "set"),
    ("COPY", b'g', "copy_to"),
    ("DECR", b'$', "incrby"),
    ("DECRBY", b'$', "incrby"),
    ("DEL", b'g', "del"),
    ("EXPIRE", b'g', "expire"),
    ("EXPIREAT", b'g', "expire"),
    ("GETDEL", b'g', "del"),
    ("GETSET", b'$', "set"),
    ("HMSET", b'h', "hset"),
    ("HSETNX", b'h', "hset"),
    ("INCR", b'$', "incrby"),
    ("LPUSHX", b'l', "lpush"),
    ("MSET", b'$', "set"),
    ("MSETNX", b'$', "set"),
    ("PFMERGE", b'$', "pfadd"),
    ("PEXPIRE", b'g', "expire"),
    ("PEXPIREAT", b'g', "expire"),
    ("PERSIST", b'g', "persist"),
    ("PSETEX", b'$', "set"),
    ("RPUSHX", b'l', "rpush"),
    ("SET", b'$', "set"),
    ("SETBIT", b'$', "setbit"),
    ("SETEX", b'$', "set"),
    ("SETNX", b'$', "set"),
    ("SETRANGE", b'$', "setrange"),
    ("UNLINK", b'g', "del"),
    ("ZINCRBY", b'z', "zincr"),
];

/// Commands that put what they have found in the place of what a key held.
const REPLACE: [&str; 6] = ["BITOP", "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE", "GETEX", "ZRANGESTORE"];

/// One event of one key.
struct Event<'e> {
    letter: u8,
    name: &'e str,
    database: usize,
    key: &'e [u8],
}

/// Tells of keys whose time is over. The sweeper asks for that.
pub(crate) fn tell_expired(shared: &Shared) {
    if shared.events.tell_of_expiry() {
        let mut turn = Turn::begin(shared, &mut Plan::default());
        for (database, key) in shared.expiries.take(turn.now) {
            tell(&mut turn, &Event { letter: b'x', name: "expired", database, key: &key });
            if turn.outgoing.is_part() {
                drop(std::mem::replace(&mut turn, Turn::begin(shared, &mut Plan::default())).finish());
            }
        }
        // It has written nothing.
        drop(turn.finish());
    }
}

fn tell(turn: &mut Turn<'_>, event: &Event<'_>) {
    let shared = turn.shared;
    if !shared.events.has(event.letter) || shared.hub.is_silent() {
        return;
    }
    // A name that nobody can listen to goes to nobody, nor does what is too much for one turn.
    if shared.events.has(b'K') {
        let name = [format!("__keyspace@{}__:", event.database).as_bytes(), event.key].concat();
        drop(turn.publish(Kind::Channel, &name, event.name.as_bytes()));
    }
    if shared.events.has(b'E') {
        let name = format!("__keyevent@{}__:{}", event.database, event.name);
        drop(turn.publish(Kind::Channel, name.as_bytes(), event.key));
    }
}

/// The event of a command with its key; most are called as the command.
fn name_of(command: &Command, arguments: &[&[u8]]) -> (u8, String) {
    if let Some((_, letter, name)) = NAMES.iter().find(|one| one.0 == command.name) {
        return (*letter, (*name).to_string());
    }
    let has = |word: &str| arguments.iter().skip(2).any(|argument| is(argument, word));
    // A key, or a member, may be called as a word is.
    let is_option = |word: &&&[u8]| ["NX", "XX", "GT", "LT", "CH", "INCR"].iter().any(|one| is(word, one));
    let increments = || arguments.iter().skip(2).take_while(is_option).any(|word| is(word, "INCR"));
    let blocks = blocking::COMMANDS.iter().any(|one| one.name == command.name);
    let is_end = |word: &str| {
        let counted = containers::counted_of(&arguments[usize::from(blocks)..]);
        counted.is_ok_and(|(_, words)| words.first().is_some_and(|end| is(end, word)))
    };
    let name = match command.name {
        "ZADD" if increments() => "zincr".into(),
        "GETEX" if has("PERSIST") => return (b'g', "persist".into()),
        "GETEX" => return (b'g', "expire".into()),
        "LMPOP" | "BLMPOP" => if is_end("LEFT") { "lpop" } else { "rpop" }.into(),
        "ZMPOP" | "BZMPOP" => if is_end("MIN") { "zpopmin" } else { "zpopmax" }.into(),
        name => name[usize::from(blocks)..].to_ascii_lowercase(),
    };
    let letter = match name.as_bytes() {
        [b'z', ..] => b'z',
        [b'h', ..] => b'h',
        [b'l', ..] | [b'r', b'p', ..] => b'l',
        [b's', ..] => b's',
        [b'p', b'f', ..] | [b'i', ..] => b'$',
        _ => b'g',
    };
    (letter, name)
}

/// The events of two keys of which one gets what the other gave, in the order of Redis.
fn moved(command: &Command, arguments: &[&[u8]]) -> Option<[(u8, &'static str, usize); 2]> {
    let end = |at: usize, left, right| {
        if arguments.get(at).is_some_and(|end| is(end, "LEFT")) { left } else { right }
    };
    Some(match command.name {
        "RENAME" | "RENAMENX" => [(b'g', "rename_from", 1), (b'g', "rename_to", 2)],
        "SMOVE" => [(b's', "srem", 1), (b's', "sadd", 2)],
        "LMOVE" | "BLMOVE" => [(b'l', end(4, "lpush", "rpush"), 2), (b'l', end(3, "lpop", "rpop"), 1)],
        "RPOPLPUSH" | "BRPOPLPUSH" => [(b'l', "lpush", 2), (b'l', "rpop", 1)],
        _ => return None,
    })
}

/// Tells of the keys that a command has written.
pub(super) fn tell_all(command: &Command, call: &mut Call<'_, '_>) {
    let mut touched = call.turn.take_touched();
    if !command.name.starts_with("MSET") {
        // A command may write a key in several steps.
        touched.dedup();
    }
    let (arguments, database) = (call.arguments, call.client.database);
    let turn = &mut *call.turn;
    if let Some(both) = moved(command, arguments) {
        for (letter, name, at) in both {
            let key = arguments[at];
            if !touched.iter().any(|one| one.1 == key) {
                continue;
            }
            tell(turn, &Event { letter, name, database, key });
            if !name.starts_with("rename") && matches!(turn.get(database, key), Ok(None)) {
                tell(turn, &Event { letter: b'g', name: "del", database, key });
            }
        }
        return;
    }
    let (letter, name) = name_of(command, arguments);
    for (database, key) in &touched {
        // What was just written is known.
        let Ok(stored) = turn.get(*database, key) else { continue };
        let (is_there, expires) = (stored.is_some(), stored.is_some_and(|stored| stored.expiry.is_some()));
        let event = |letter, name| Event { letter, name, database: *database, key };
        let is_replaced = REPLACE.contains(&command.name) || command.name.ends_with("STORE");
        let is_of_elements = b"lshz".contains(&letter) && !is_replaced;
        if is_there || is_of_elements {
            tell(turn, &event(letter, &name));
        }
        if !is_there {
            tell(turn, &event(b'g', "del"));
        } else if expires && sets_expiry(command, arguments) {
            tell(turn, &event(b'g', "expire"));
        }
    }
}

/// Whether a command sets a text together with its time.
fn sets_expiry(command: &Command, arguments: &[&[u8]]) -> bool {
    match command.name {
        "SETEX" | "PSETEX" => true,
        "SET" => arguments
            .iter()
            .skip(3)
            .any(|word| ["EX", "PX", "EXAT", "PXAT"].iter().any(|unit| is(word, unit))),
        _ => false,
    }
}
