//! Keys, whatever they hold.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use forebay::{ReadOptions, Table};

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, strings};
use crate::glob;
use crate::held::Held;
use crate::resp::Reply;
use crate::value::{Header, Type};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "DEL", arity: -2, keys: (1, -1, 1), uses: Use::Changes, run: del },
    Command { name: "UNLINK", arity: -2, keys: (1, -1, 1), uses: Use::Changes, run: del },
    Command { name: "EXISTS", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: exists },
    Command { name: "TOUCH", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: exists },
    Command { name: "TYPE", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: type_of },
    Command { name: "RENAME", arity: 3, keys: (1, 2, 1), uses: Use::Changes, run: rename },
    Command { name: "RENAMENX", arity: 3, keys: (1, 2, 1), uses: Use::Changes, run: rename },
    Command { name: "COPY", arity: -3, keys: (1, 2, 1), uses: Use::Changes, run: copy },
    Command { name: "KEYS", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: keys },
    Command { name: "SCAN", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: scan },
    Command { name: "RANDOMKEY", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: random_key },
];

fn del(call: &mut Call<'_, '_>) -> Answer {
    let mut deleted = 0;
    for key in &call.arguments[1..] {
        if call.stored(key)?.is_some() {
            call.delete(key);
            deleted += 1;
        }
    }
    call.reply.int(deleted);
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Answer {
    let mut found = 0;
    for key in &call.arguments[1..] {
        found += i64::from(call.stored(key)?.is_some());
    }
    call.reply.int(found);
    Ok(())
}

fn type_of(call: &mut Call<'_, '_>) -> Answer {
    let name = match call.stored(call.arguments[1])? {
        None => "none",
        Some(stored) => Type::of(&stored.bytes).map_or("unknown", Type::name),
    };
    call.reply.simple(name);
    Ok(())
}

fn rename(call: &mut Call<'_, '_>) -> Answer {
    let (database, from, to) = (call.client.database, call.arguments[1], call.arguments[2]);
    let is_careful = is(call.arguments[0], "RENAMENX");
    let stored = call.stored(from)?.cloned().ok_or("ERR no such key")?;
    strings::checked_key(call, to)?;
    let moves = !is_careful || call.stored(to)?.is_none();
    if moves && from != to {
        call.turn.rename(database, from, to, stored);
    }
    match is_careful {
        true => call.reply.int(i64::from(moves)),
        false => call.reply.ok(),
    }
    Ok(())
}

fn copy(call: &mut Call<'_, '_>) -> Answer {
    let (mut database, from, to) = (call.client.database, call.arguments[1], call.arguments[2]);
    let (mut replaces, mut rest) = (false, &call.arguments[3..]);
    loop {
        rest = match rest {
            [] => break,
            [word, behind @ ..] if is(word, "REPLACE") => {
                replaces = true;
                behind
            }
            [word, number, behind @ ..] if is(word, "DB") => {
                let number = usize::try_from(integer(number)?).ok();
                let number = number.filter(|number| *number < crate::shared::DATABASES);
                database = number.ok_or("ERR DB index is out of range")?;
                behind
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    if database == call.client.database && from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    strings::checked_key(call, to)?;
    // One that cannot be opened is no target, and is not left to the turn's commit.
    call.turn.shared.table(database)?;
    let stored = call.stored(from)?.cloned();
    let is_free = replaces || call.turn.get(database, to)?.is_none();
    let Some(mut stored) = stored.filter(|_| is_free) else {
        call.reply.int(0);
        return Ok(());
    };
    if let Some(header) = Header::of(&stored.bytes) {
        stored.bytes = call.copied(&header, database)?.encode();
    }
    call.turn.set(database, to, Some(stored));
    call.reply.int(1);
    Ok(())
}

/// The table of the connection's database, with all that was written so far.
fn table_of(call: &mut Call<'_, '_>) -> Result<Table, Refusal> {
    call.turn.write_out()?;
    Ok(call.turn.shared.table(call.client.database)?)
}

/// Keys that a transaction looks at, at most: its loop answers nobody else meanwhile.
const KEYS_OF_TRANSACTION_MAX: u64 = 1 << 20;
/// A thread looks so often whether somebody still waits, and counts what the names take.
const KEYS_BETWEEN_LOOKS: u64 = 1024;

/// How many keys there are, for a transaction.
pub(super) fn count_in_transaction(table: &Table) -> Result<u64, Refusal> {
    let mut count = 0;
    see_from(table, keys_only(), 0, |_, _| {
        count += 1;
        if count > KEYS_OF_TRANSACTION_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if count > KEYS_OF_TRANSACTION_MAX { Err(too_many()) } else { Ok(count) }
}

fn too_many() -> Refusal {
    format!("ERR a transaction looks at {KEYS_OF_TRANSACTION_MAX} keys at most; ask outside of one").into()
}

/// A database that another connection has flushed since has no keys.
pub(super) fn flushed_is_empty<T: Default>(looked: forebay::Result<T>) -> forebay::Result<T> {
    match looked {
        Err(forebay::Error::NotFound(_)) => Ok(T::default()),
        looked => looked,
    }
}

/// Shows `see` keys with what they hold, from a position on, until it has enough. Returns where to go on, if there is more.
fn see_from(
    table: &Table,
    reading: ReadOptions,
    position: u64,
    see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> forebay::Result<Option<u64>> {
    flushed_is_empty(table.with(reading).see_from(position, see))
}

/// Where nobody looks at values, none that stands apart is read.
fn keys_only() -> ReadOptions {
    ReadOptions::default().keys_only(true)
}

/// The names that a pattern fits. `look` is asked now and then, with what the names take.
fn names(
    table: &Table,
    pattern: &[u8],
    bytes_max: usize,
    mut look: impl FnMut(u64, usize) -> Answer,
) -> Result<(Reply, usize), Refusal> {
    let (mut names, mut count, mut seen, mut looked) = (Reply::default(), 0, 0, Ok(()));
    see_from(table, keys_only(), 0, |key, _| {
        if glob::matches(pattern, key) {
            names.bulk(key);
            count += 1;
        }
        seen += 1;
        if seen % KEYS_BETWEEN_LOOKS == 0 {
            looked = look(seen, names.bytes.capacity());
        }
        let is_over = looked.is_err() || names.bytes.len() > bytes_max;
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    looked?;
    match names.bytes.len() > bytes_max {
        true => Err(format!("ERR the names are longer than {bytes_max} bytes; use SCAN").into()),
        false => Ok((names, count)),
    }
}

/// A thread looks at all keys, and nobody waits but who asked.
fn keys(call: &mut Call<'_, '_>) -> Answer {
    let (pattern, bytes_max) = (glob::checked(call.arguments[1])?.to_vec(), super::reply_bytes_max(call));
    let table = table_of(call)?;
    let show = |reply: &mut Reply, (mut names, count): (Reply, usize)| {
        reply.array(count);
        reply.bytes.append(&mut names.bytes);
    };
    if call.turn.is_in_transaction() {
        let look = |seen, _| if seen > KEYS_OF_TRANSACTION_MAX { Err(too_many()) } else { Ok(()) };
        show(call.reply, names(&table, &pattern, bytes_max, look)?);
        return Ok(());
    }
    let sum = std::sync::Arc::clone(&call.turn.shared.buffers_bytes);
    call.later(pattern.len(), move |reply, slot| {
        let mut held = Held::new(0, &sum);
        let look = |_, bytes| {
            held = Held::new(bytes, &sum);
            slot.check()
        };
        show(reply, names(&table, &pattern, bytes_max, look)?);
        Ok(())
    })
}

/// The most that one call looks at, and that its names take.
const COUNT_MAX: i64 = 100_000;
const NAMES_BYTES_MAX: usize = 16 << 20;

fn scan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = std::str::from_utf8(call.arguments[1]).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let (mut pattern, mut count, mut of_type, mut rest) = (None, 10, None, &call.arguments[2..]);
    loop {
        rest = match rest {
            [] => break,
            [word, asked, behind @ ..] if is(word, "MATCH") => {
                pattern = Some(glob::checked(asked)?);
                behind
            }
            [word, asked, behind @ ..] if is(word, "COUNT") => {
                count = integer(asked)?;
                if count < 1 {
                    return Err(SYNTAX.into());
                }
                behind
            }
            [word, asked, behind @ ..] if is(word, "TYPE") => {
                of_type = Some(asked.to_ascii_lowercase());
                behind
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    let is_asked = |key: &[u8], stored: &[u8]| {
        pattern.is_none_or(|pattern| glob::matches(pattern, key))
            && of_type.as_ref().is_none_or(|asked| {
                Type::of(stored).is_some_and(|found| found.name().as_bytes() == asked.as_slice())
            })
    };
    let (mut names, mut found, mut left) = (Reply::default(), 0, count.min(COUNT_MAX));
    let reading = if of_type.is_some() { ReadOptions::default() } else { keys_only() };
    let next = see_from(&table_of(call)?, reading, cursor, |key, stored| {
        if is_asked(key, stored) {
            names.bulk(key);
            found += 1;
        }
        left -= 1;
        let is_enough = left <= 0 || names.bytes.len() > NAMES_BYTES_MAX;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    call.reply.array(2);
    call.reply.bulk(next.unwrap_or(0).to_string().as_bytes());
    call.reply.array(found);
    call.reply.bytes.append(&mut names.bytes);
    Ok(())
}

/// A key behind a place among the hashes that nobody chose.
fn random_key(call: &mut Call<'_, '_>) -> Answer {
    let table = table_of(call)?;
    let asked = call.turn.shared.commands.load(Ordering::Relaxed);
    let place = [call.turn.now, call.client.id, asked].map(u64::to_le_bytes).concat();
    let mut found = None;
    for from in [rapidhash::v3::rapidhash_v3(&place), 0] {
        if found.is_none() {
            see_from(&table, keys_only(), from, |key, _| {
                found.get_or_insert_with(|| key.to_vec());
                ControlFlow::Break(())
            })?;
        }
    }
    call.reply.bulk_or_null(found.as_deref());
    Ok(())
}

#[cfg(test)]
mod tests {
    use forebay::env::{Env, fs::MemoryFs};
    use forebay::{Database, Options};

    use super::*;

    /// Who looks holds no locks: another loop may drop the table before it is looked into. `SCAN` and `RANDOMKEY` told an
    /// error then.
    #[test]
    fn a_database_that_is_flushed_meanwhile_has_no_keys() {
        let options = Options::default().env(Env::simulated(MemoryFs::new(), 1));
        let database = Database::open("/db", options).expect("it opens");
        let table = database.table("0").open().expect("it is made");
        table.put("key", "value").expect("it is written");
        database.drop_table("0").expect("it is dropped");
        let next = see_from(&table, keys_only(), 0, |_, _| panic!("it has no keys"));
        assert_eq!(next.expect("that is no error"), None);
    }
}
