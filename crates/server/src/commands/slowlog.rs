//! `SLOWLOG`: requests that took long.

use super::{Answer, Call, Command, NOT_AN_INTEGER, Refusal, SYNTAX, Use, integer, is};

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "SLOWLOG", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: slowlog }];

/// So many are told by default.
const COUNT: i64 = 10;

fn slowlog(call: &mut Call<'_, '_>) -> Answer {
    let (log, reply) = (&call.turn.shared.slow, &mut *call.reply);
    let count = match &call.arguments[1..] {
        [word] if is(word, "LEN") => {
            reply.int(log.len() as i64);
            return Ok(());
        }
        [word] if is(word, "RESET") => {
            log.clear();
            reply.ok();
            return Ok(());
        }
        [word] if is(word, "GET") => COUNT,
        [word, count] if is(word, "GET") => integer(count)?,
        [word, ..] if is(word, "GET") => return Err(SYNTAX.into()),
        [word, ..] => {
            let word = String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned();
            return Err(format!("ERR unknown subcommand '{word}'. Try SLOWLOG GET, LEN or RESET.").into());
        }
        [] => return Err(SYNTAX.into()),
    };
    let count = match count {
        -1 => usize::MAX,
        count => usize::try_from(count).map_err(|_| Refusal::from(NOT_AN_INTEGER))?,
    };
    let all = log.last(count);
    reply.array(all.len());
    for slow in all {
        reply.array(6);
        reply.int(slow.id.cast_signed());
        reply.int((slow.at_milliseconds / 1000).cast_signed());
        reply.int(slow.microseconds.cast_signed());
        reply.array(slow.request.shown.len());
        slow.request.shown.iter().for_each(|argument| reply.bulk(argument.as_bytes()));
        // Whose it was is not kept.
        reply.bulk(b"");
        reply.bulk(b"");
    }
    Ok(())
}
