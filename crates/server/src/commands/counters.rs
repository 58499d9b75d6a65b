//! Numbers that are kept as texts.

use super::{Answer, Call, Command, Refusal, Use, integer, strings};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "INCR", arity: 2, keys: (1, 1, 1), uses: Use::Changes, run: incr },
    Command { name: "DECR", arity: 2, keys: (1, 1, 1), uses: Use::Changes, run: decr },
    Command { name: "INCRBY", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: incrby },
    Command { name: "DECRBY", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: decrby },
    Command { name: "INCRBYFLOAT", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: incrbyfloat },
];

fn incr(call: &mut Call<'_, '_>) -> Answer {
    add(call, 1)
}

fn decr(call: &mut Call<'_, '_>) -> Answer {
    add(call, -1)
}

fn incrby(call: &mut Call<'_, '_>) -> Answer {
    let more = integer(call.arguments[2])?;
    add(call, more)
}

fn decrby(call: &mut Call<'_, '_>) -> Answer {
    let less = integer(call.arguments[2])?;
    add(call, less.checked_neg().ok_or("ERR decrement would overflow")?)
}

fn add(call: &mut Call<'_, '_>, more: i64) -> Answer {
    let key = call.arguments[1];
    let sum = strings::number_of(call, key)?.checked_add(more);
    let sum = sum.ok_or("ERR increment or decrement would overflow")?;
    let expiry = call.expiry(key)?;
    strings::write(call, key, sum.to_string().as_bytes(), expiry)?;
    call.reply.int(sum);
    Ok(())
}

/// A number with a point. Spaces around it are none.
pub(super) fn float(text: &[u8]) -> Result<f64, Refusal> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    parsed.filter(|number| !number.is_nan()).ok_or("ERR value is not a valid float".into())
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let old = match call.string(key)? {
        None => 0.0,
        Some(text) => float(text)?,
    };
    let sum = old + float(call.arguments[2])?;
    if !sum.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let expiry = call.expiry(key)?;
    let text = shown(sum);
    strings::write(call, key, text.as_bytes(), expiry)?;
    call.reply.bulk(text.as_bytes());
    Ok(())
}

/// With at most seventeen digits behind the point, and no more than it takes.
pub(super) fn shown(number: f64) -> String {
    let text = format!("{number:.17}");
    let shortest = format!("{number}");
    if shortest.len() <= text.len() {
        shortest
    } else {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    }
}
