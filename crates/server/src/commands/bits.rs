//! Texts as rows of bits, of which the first is the highest of the first byte.

use std::ops::Range;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, strings};

/// What `BITOP` merges at most: it takes its time.
const SOURCES_BYTES_MAX: usize = 1 << 30;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "SETBIT", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: setbit },
    Command { name: "GETBIT", arity: 3, keys: (1, 1, 1), uses: Use::Reads, run: getbit },
    Command { name: "BITCOUNT", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: bitcount },
    Command { name: "BITPOS", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: bitpos },
    Command { name: "BITOP", arity: -4, keys: (2, -1, 1), uses: Use::Changes, run: bitop },
];

/// Where a bit is: its byte, and what it is there.
fn place(call: &Call<'_, '_>, offset: &[u8]) -> Result<(usize, u8), Refusal> {
    let bits_max = 8 * call.turn.shared.config.argument_bytes_max as i64;
    let offset = integer(offset).ok().filter(|offset| (0..bits_max).contains(offset));
    let offset = offset.ok_or("ERR bit offset is not an integer or out of range")?;
    Ok((offset as usize / 8, 0x80 >> (offset % 8)))
}

fn setbit(call: &mut Call<'_, '_>) -> Answer {
    let (key, (byte, bit)) = (call.arguments[1], place(call, call.arguments[2])?);
    let value = match call.arguments[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    let mut text = call.string(key)?.unwrap_or_default().to_vec();
    let expiry = call.expiry(key)?;
    let is_longer = text.len() <= byte;
    if is_longer {
        text.resize(byte + 1, 0);
    }
    let old = text[byte] & bit != 0;
    if value {
        text[byte] |= bit;
    } else {
        text[byte] &= !bit;
    }
    if is_longer || old != value {
        strings::write(call, key, &text, expiry)?;
    }
    call.reply.int(i64::from(old));
    Ok(())
}

fn getbit(call: &mut Call<'_, '_>) -> Answer {
    let (byte, bit) = place(call, call.arguments[2])?;
    let text = call.string(call.arguments[1])?.unwrap_or_default();
    let is_set = text.get(byte).is_some_and(|found| found & bit != 0);
    call.reply.int(i64::from(is_set));
    Ok(())
}

/// Whether the words behind a range say that it is of bits.
fn is_of_bits(words: &[&[u8]]) -> Result<bool, Refusal> {
    match words {
        [] => Ok(false),
        [word] if is(word, "BYTE") => Ok(false),
        [word] if is(word, "BIT") => Ok(true),
        _ => Err(SYNTAX.into()),
    }
}

fn bit(text: &[u8], at: usize) -> bool {
    text[at / 8] & 0x80 >> (at % 8) != 0
}

/// The first bit of a range that is as wanted: by whole bytes, where none in them is.
fn first(text: &[u8], range: Range<usize>, wanted: bool) -> Option<usize> {
    let others = if wanted { 0 } else { 0xFF };
    let mut at = range.start;
    while at < range.end {
        if text[at / 8] == others {
            at = (at / 8 + 1) * 8;
        } else if bit(text, at) == wanted {
            return Some(at);
        } else {
            at += 1;
        }
    }
    None
}

/// How many bits of a range are set: by whole bytes, but for its ends.
fn ones(text: &[u8], range: Range<usize>) -> i64 {
    let (from, to) = (range.start.next_multiple_of(8).min(range.end), range.end / 8 * 8);
    let single = |range: Range<usize>| range.filter(|at| bit(text, *at)).count() as i64;
    let whole = text.get(from / 8..to / 8).unwrap_or_default();
    let whole: i64 = whole.iter().map(|byte| i64::from(byte.count_ones())).sum();
    single(range.start..from) + whole + single(to.max(from)..range.end)
}

fn bitcount(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let range = match &arguments[2..] {
        [] => None,
        [from, to, words @ ..] => Some((integer(from)?, integer(to)?, is_of_bits(words)?)),
        _ => return Err(SYNTAX.into()),
    };
    let text = call.string(arguments[1])?.unwrap_or_default();
    let range = match range {
        None => 0..8 * text.len(),
        Some((from, to, false)) => {
            let bytes = strings::span(from, to, text.len());
            8 * bytes.start..8 * bytes.end
        }
        Some((from, to, true)) => strings::span(from, to, 8 * text.len()),
    };
    let count = ones(text, range);
    call.reply.int(count);
    Ok(())
}

fn bitpos(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let wanted = match arguments[2] {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    let (from, to, words) = match &arguments[3..] {
        [] => (0, None, &[][..]),
        [from] => (integer(from)?, None, &[][..]),
        [from, to, words @ ..] => (integer(from)?, Some(integer(to)?), words),
    };
    let of_bits = is_of_bits(words)?;
    let Call { client, turn, reply, .. } = call;
    let Some(text) = super::string(turn, client.database, arguments[1])? else {
        reply.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let unit = if of_bits { 1 } else { 8 };
    let span = strings::span(from, to.unwrap_or(-1), text.len() * 8 / unit);
    reply.int(match first(text, span.start * unit..span.end * unit, wanted) {
        Some(at) => at as i64,
        // Behind a text without an end there are zeros.
        None if !wanted && to.is_none() && !span.is_empty() => 8 * text.len() as i64,
        None => -1,
    });
    Ok(())
}

fn bitop(call: &mut Call<'_, '_>) -> Answer {
    let (name, target, sources) = (call.arguments[1], call.arguments[2], &call.arguments[3..]);
    let merge: fn(u8, u8) -> u8 = match name {
        name if is(name, "AND") => |one, other| one & other,
        name if is(name, "OR") => |one, other| one | other,
        name if is(name, "XOR") => |one, other| one ^ other,
        name if is(name, "NOT") && sources.len() == 1 => |one, _| !one,
        name if is(name, "NOT") => {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        _ => return Err(SYNTAX.into()),
    };
    let (mut merged, mut read_bytes) = (Vec::new(), 0);
    for (number, key) in sources.iter().enumerate() {
        let text = call.string(key)?.unwrap_or_default();
        read_bytes += text.len();
        if number == 0 {
            merged = text.to_vec();
        } else {
            merged.resize(merged.len().max(text.len()), 0);
            let (both, behind) = merged.split_at_mut(text.len());
            both.iter_mut().zip(text).for_each(|(byte, other)| *byte = merge(*byte, *other));
            behind.iter_mut().for_each(|byte| *byte = merge(*byte, 0));
        }
        if read_bytes > SOURCES_BYTES_MAX {
            return Err(format!("ERR BITOP reads more than {SOURCES_BYTES_MAX} bytes; merge in steps").into());
        }
    }
    if is(name, "NOT") {
        merged.iter_mut().for_each(|byte| *byte = merge(*byte, 0));
    }
    let length = merged.len();
    if merged.is_empty() {
        if call.stored(target)?.is_some() {
            call.delete(target);
        }
    } else {
        strings::write(call, target, &merged, None)?;
    }
    call.reply.int(length as i64);
    Ok(())
}
