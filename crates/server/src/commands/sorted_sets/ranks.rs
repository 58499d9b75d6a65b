//! How many members come before one.

use super::super::{Answer, Call, Refusal, SYNTAX, is, numbers, wrong_arity};
use super::members::score;
use crate::elements;
use crate::turn::Way;
use crate::value::{Header, Type};

/// How many keys of members are before one. Walks from both ends at once, so as far as from the nearer.
fn rank_of(call: &Call<'_, '_>, header: &Header, key: &[u8]) -> Result<Option<u64>, Refusal> {
    let mut forward = call.walk(elements::scores(header.id), Way::Forward)?;
    let mut backward = call.walk(elements::scores(header.id), Way::Backward)?;
    for steps in 0..header.count {
        let [front, back] = [forward.next().transpose()?, backward.next().transpose()?];
        if front.is_some_and(|(found, _)| found == key) {
            return Ok(Some(steps));
        }
        if back.is_some_and(|(found, _)| found == key) {
            return Ok(Some(header.count - 1 - steps));
        }
    }
    Ok(None)
}

/// Also `ZREVRANK`.
pub(super) fn zrank(call: &mut Call<'_, '_>) -> Answer {
    let (member, is_reverse) = (call.arguments[2], is(call.arguments[0], "ZREVRANK"));
    let with_score = match &call.arguments[3..] {
        [] => false,
        [word] if is(word, "WITHSCORE") => true,
        [_] => return Err(SYNTAX.into()),
        _ => return Err(wrong_arity(if is_reverse { "zrevrank" } else { "zrank" })),
    };
    let mut found = None;
    if let Some(header) = call.container(call.arguments[1], Type::SortedSet)?
        && let Some(score) = score(call, &header, member)?
    {
        let rank = rank_of(call, &header, &elements::scored(header.id, score, member))?;
        found = rank
            .map(|rank| if is_reverse { header.count - 1 - rank } else { rank })
            .map(|rank| (rank, score));
    }
    match (found, with_score) {
        (Some((rank, _)), false) => call.reply.int(rank as i64),
        (Some((rank, score)), true) => {
            call.reply.array(2);
            call.reply.int(rank as i64);
            call.reply.double(&numbers::shown(score));
        }
        (None, false) => call.reply.null(),
        (None, true) => call.reply.null_array(),
    }
    Ok(())
}
