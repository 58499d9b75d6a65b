//! What keys take and how they are kept, and waiting for what was written.

use forebay::Durability;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, shown};
use crate::elements;
use crate::value::{Header, Type};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "MEMORY", arity: -2, keys: (2, 2, 1), uses: Use::Reads, run: memory },
    Command { name: "OBJECT", arity: -2, keys: (2, 2, 1), uses: Use::Reads, run: object },
    Command { name: "WAIT", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: wait },
    Command { name: "WAITAOF", arity: 4, keys: (0, 0, 0), uses: Use::Nothing, run: wait_for_disk },
    Command { name: "DEBUG", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: debug },
];

/// What a record takes besides its key and value, about.
const RECORD_BYTES: u64 = 16;

/// What a key takes on the disk, about: nothing of it need be in memory.
fn usage(call: &mut Call<'_, '_>, key: &[u8]) -> Result<Option<u64>, Refusal> {
    let Some(stored) = call.stored(key)? else { return Ok(None) };
    let own = RECORD_BYTES + (key.len() + stored.bytes.len()) as u64;
    let Some(header) = Header::of(&stored.bytes) else { return Ok(Some(own)) };
    // What the turn has not written yet is left out.
    let range = elements::all(header.id);
    let of_elements = call.turn.shared.elements(call.client.database)?.approximate(range)?;
    Ok(Some(own + of_elements.bytes.max(header.count * RECORD_BYTES)))
}

fn memory(call: &mut Call<'_, '_>) -> Answer {
    match &call.arguments[1..] {
        [word, key] if is(word, "USAGE") => {
            let usage = usage(call, key)?;
            tell(call, usage);
        }
        [word, key, samples, count] if is(word, "USAGE") && is(samples, "SAMPLES") => {
            integer(count)?;
            let usage = usage(call, key)?;
            tell(call, usage);
        }
        [word] if is(word, "HELP") => {
            call.reply.array(1);
            call.reply
                .simple("MEMORY USAGE <key> [SAMPLES <count>]: about how many bytes a key takes on the disk");
        }
        [word, ..] => {
            return Err(
                format!("ERR unknown subcommand '{}'. Try MEMORY USAGE, or FB.STATS.", shown(word)).into()
            );
        }
        [] => return Err(SYNTAX.into()),
    }
    Ok(())
}

fn tell(call: &mut Call<'_, '_>, number: Option<u64>) {
    match number {
        Some(number) => call.reply.int(number.cast_signed()),
        None => call.reply.null(),
    }
}

/// Texts and containers of more have another name, as in Redis.
const SHORT_BYTES: usize = 44;
const SMALL_COUNT: u64 = 128;

/// The name that Redis has for what is kept of this kind and size. Here it is kept in one way.
fn encoding(stored: &[u8]) -> &'static str {
    let is_small = Header::of(stored).is_some_and(|header| header.count <= SMALL_COUNT);
    match Type::of(stored) {
        Some(Type::String) => match &stored[1..] {
            text if text.len() <= 20 && integer(text).is_ok() => "int",
            text if text.len() <= SHORT_BYTES => "embstr",
            _ => "raw",
        },
        Some(Type::Hash | Type::Set | Type::SortedSet) if is_small => "listpack",
        Some(Type::Hash | Type::Set) => "hashtable",
        Some(Type::SortedSet) => "skiplist",
        Some(Type::List) if is_small => "listpack",
        Some(Type::List) => "quicklist",
        _ => "raw",
    }
}

const OBJECT_HELP: [&str; 5] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>: what Redis would call the way in which values of its kind and size are kept",
    "FREQ, IDLETIME <key>: are refused, as nothing is evicted, and nobody counts how often or when keys are read",
    "HELP: this",
    "REFCOUNT <key>: 1",
];

fn object(call: &mut Call<'_, '_>) -> Answer {
    match &call.arguments[1..] {
        [word] if is(word, "HELP") => {
            call.reply.array(OBJECT_HELP.len());
            OBJECT_HELP.iter().for_each(|line| call.reply.simple(line));
        }
        [word, key] if is(word, "ENCODING") => {
            let found = call.stored(key)?.map(|stored| encoding(&stored.bytes));
            call.reply.bulk_or_null(found.map(str::as_bytes));
        }
        [word, key] if is(word, "REFCOUNT") => {
            let found = call.stored(key)?.map(|_| 1);
            tell(call, found);
        }
        [word, _] if is(word, "IDLETIME") || is(word, "FREQ") => {
            return Err(
                "ERR nobody counts when, or how often, keys are read; FB.STATS tells hottest keys".into()
            );
        }
        [word, ..] => {
            return Err(format!(
                "ERR unknown subcommand or wrong number of arguments for '{}'. Try OBJECT HELP.",
                shown(word)
            )
            .into());
        }
        [] => return Err(SYNTAX.into()),
    }
    Ok(())
}

fn count(argument: &[u8]) -> Result<u64, Refusal> {
    u64::try_from(integer(argument)?).map_err(|_| super::NOT_AN_INTEGER.into())
}

/// Nobody follows by this protocol, so nobody is waited for.
fn wait(call: &mut Call<'_, '_>) -> Answer {
    count(call.arguments[1])?;
    timeout(call.arguments[2])?;
    call.reply.int(0);
    Ok(())
}

fn timeout(argument: &[u8]) -> Answer {
    let milliseconds = integer(argument).map_err(|_| "ERR timeout is not an integer or out of range")?;
    if milliseconds < 0 { Err("ERR timeout is negative".into()) } else { Ok(()) }
}

/// The reply goes out once all that was written before is on the disk: a sync is not given up once it has begun.
fn wait_for_disk(call: &mut Call<'_, '_>) -> Answer {
    let local = count(call.arguments[1])?;
    count(call.arguments[2])?;
    timeout(call.arguments[3])?;
    if local > 1 {
        return Err("ERR WAITAOF takes 0 or 1 for this server".into());
    }
    if local == 1 {
        call.turn.note_durability(Durability::Disk);
    }
    call.reply.array(2);
    call.reply.int(local as i64);
    call.reply.int(0);
    Ok(())
}

fn debug(_: &mut Call<'_, '_>) -> Answer {
    Err("ERR DEBUG is not there: what it would change, or look into, is another engine's; FB.STATS tells of this one".into())
}
