//! Texts as rows of bits, of which the first is the highest of the first byte.

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, strings};

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
    if text.len() <= byte {
        text.resize(byte + 1, 0);
    }
    let old = text[byte] & bit != 0;
    if value {
        text[byte] |= bit;
    } else {
        text[byte] &= !bit;
    }
    strings::write(call, key, &text, expiry)?;
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

/// Bits of a text in order.
fn bits(text: &[u8], range: std::ops::Range<usize>) -> impl Iterator<Item = (usize, bool)> {
    range.map(|at| (at, text[at / 8] & 0x80 >> (at % 8) != 0))
}

fn bitcount(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let range = match &arguments[2..] {
        [] => None,
        [from, to, words @ ..] => Some((integer(from)?, integer(to)?, is_of_bits(words)?)),
        _ => return Err(SYNTAX.into()),
    };
    let text = call.string(arguments[1])?.unwrap_or_default();
    let ones = |text: &[u8]| text.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>();
    let count = match range {
        None => ones(text),
        Some((from, to, false)) => ones(&text[strings::span(from, to, text.len())]),
        Some((from, to, true)) => {
            bits(text, strings::span(from, to, 8 * text.len())).filter(|(_, is_set)| *is_set).count() as i64
        }
    };
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
    let Some(text) = call.string(arguments[1])?.map(<[u8]>::to_vec) else {
        call.reply.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let unit = if of_bits { 1 } else { 8 };
    let span = strings::span(from, to.unwrap_or(-1), text.len() * 8 / unit);
    let found = bits(&text, span.start * unit..span.end * unit).find(|(_, is_set)| *is_set == wanted);
    call.reply.int(match found {
        Some((at, _)) => at as i64,
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
    let mut texts = Vec::with_capacity(sources.len());
    for key in sources {
        texts.push(call.string(key)?.unwrap_or_default().to_vec());
    }
    let length = texts.iter().map(Vec::len).max().unwrap_or(0);
    texts.iter_mut().for_each(|text| text.resize(length, 0));
    let mut merged = texts.swap_remove(0);
    if texts.is_empty() && is(name, "NOT") {
        merged.iter_mut().for_each(|byte| *byte = merge(*byte, 0));
    }
    for text in &texts {
        merged.iter_mut().zip(text).for_each(|(byte, other)| *byte = merge(*byte, *other));
    }
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
