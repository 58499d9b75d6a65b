//! Keys, whatever they hold.

use forebay::Table;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, strings};
use crate::glob;
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

/// Names are looked at without their values for so many at a time.
const KEYS_AT_A_TIME: usize = 1000;

fn keys(call: &mut Call<'_, '_>) -> Answer {
    let (table, pattern) = (table_of(call)?, call.arguments[1]);
    let (mut found, mut position) = (Vec::new(), Some(0));
    while let Some(from) = position {
        let scanned = table.scan_from(from, KEYS_AT_A_TIME)?;
        found.extend(
            scanned.entries.into_iter().map(|(key, _)| key).filter(|key| glob::matches(pattern, key)),
        );
        position = scanned.next;
    }
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// The most that one call looks at.
const COUNT_MAX: i64 = 100_000;

fn scan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = std::str::from_utf8(call.arguments[1]).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let (mut pattern, mut count, mut of_type, mut rest) = (None, 10, None, &call.arguments[2..]);
    loop {
        rest = match rest {
            [] => break,
            [word, asked, behind @ ..] if is(word, "MATCH") => {
                pattern = Some(*asked);
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
    let scanned = table_of(call)?.scan_from(cursor, count.min(COUNT_MAX) as usize)?;
    let is_asked = |(key, stored): &(Vec<u8>, Vec<u8>)| {
        pattern.is_none_or(|pattern| glob::matches(pattern, key))
            && of_type.as_ref().is_none_or(|asked| {
                Type::of(stored).is_some_and(|found| found.name().as_bytes() == asked.as_slice())
            })
    };
    let found: Vec<_> = scanned.entries.into_iter().filter(is_asked).collect();
    call.reply.array(2);
    call.reply.bulk(scanned.next.unwrap_or(0).to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|(key, _)| call.reply.bulk(key));
    Ok(())
}

/// A key behind a place among the hashes that nobody chose.
fn random_key(call: &mut Call<'_, '_>) -> Answer {
    let table = table_of(call)?;
    let place = rapidhash::v3::rapidhash_v3(&(call.turn.now, call.client.id).0.to_le_bytes());
    let mut found = table.scan_from(place, 1)?.entries;
    if found.is_empty() {
        found = table.scan_from(0, 1)?.entries;
    }
    call.reply.bulk_or_null(found.first().map(|(key, _)| &key[..]));
    Ok(())
}
