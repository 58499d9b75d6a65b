//! How many members come before one.

use super::super::{Answer, Call, Refusal, SYNTAX, is, numbers, wrong_arity};
use super::members::score;
use super::walks::{self, Steps};
use crate::elements;
use crate::resp::Reply;
use crate::turn::Way;
use crate::value::{Header, Type};

/// How many keys of members are before one, if few steps tell. Walks from both ends at once, so as far as from the nearer.
fn rank_of(call: &Call<'_, '_>, header: &Header, key: &[u8]) -> Result<Option<u64>, Refusal> {
    let mut forward = call.walk(elements::scores(header.id), Way::Forward)?;
    let mut backward = call.walk(elements::scores(header.id), Way::Backward)?;
    let step = || Ok([forward.next().transpose()?, backward.next().transpose()?]);
    walks::rank(step, header.count, key, &walks::steps(call))
}

/// What is asked of a rank.
#[derive(Clone, Copy)]
struct Asked {
    is_reverse: bool,
    with_score: bool,
    count: u64,
}

fn tell(reply: &mut Reply, asked: Asked, found: Option<(u64, f64)>) {
    let turned = |rank| if asked.is_reverse { asked.count - 1 - rank } else { rank };
    match (found, asked.with_score) {
        (Some((rank, _)), false) => reply.int(turned(rank) as i64),
        (Some((rank, score)), true) => {
            reply.array(2);
            reply.int(turned(rank) as i64);
            reply.double(&numbers::shown(score));
        }
        (None, false) => reply.null(),
        (None, true) => reply.null_array(),
    }
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
    let mut asked = Asked { is_reverse, with_score, count: 0 };
    let header = call.container(call.arguments[1], Type::SortedSet)?;
    let score = header.map(|header| score(call, &header, member)).transpose()?.flatten();
    let (Some(header), Some(score)) = (header, score) else {
        tell(call.reply, asked, None);
        return Ok(());
    };
    asked.count = header.count;
    let key = elements::scored(header.id, score, member);
    if let Some(rank) = rank_of(call, &header, &key)? {
        tell(call.reply, asked, Some((rank, score)));
        return Ok(());
    }
    walks::note(call);
    walks::later(call, &elements::scores(header.id), move |mut scan, reply, slot| {
        let step = || Ok(walks::both_ends(&mut scan)?);
        let rank = walks::rank(step, asked.count, &key, &Steps::WhileAwaited(slot))?;
        tell(reply, asked, rank.map(|rank| (rank, score)));
        Ok(())
    })
}
