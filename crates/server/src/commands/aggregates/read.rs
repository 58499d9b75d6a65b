//! Answers out.

use std::sync::Arc;

use arrow_array::RecordBatch;
use forebay::aggregate::Aggregate as _;
use forebay_aggregate::arrow::PartialBatches;

use super::groups::Groups;
use super::store::Slices;
use super::top::Top;
use super::{Answer, Call, Refusal, SYNTAX, found, integer, ipc, is};
use crate::commands::NOT_AN_INTEGER;
use crate::jobs::Slot;

/// The most groups of one `AGG.TOP`.
const TOP_MAX: i64 = 10_000;
/// The most that are looked up at a time.
const GET_GROUPS: usize = 1024;
/// Groups of one `AGG.RESULT`: by default, and at most.
const RESULT_GROUPS: i64 = 8192;
const RESULT_GROUPS_MAX: i64 = 65_536;
/// Once the groups of a reply take so much, no more are added to it.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// So many groups are looked at before it is known how large they are.
const FIRST_GROUPS: usize = 16;

/// `AGG.METADATA name`: what came with the last commit.
pub(super) fn metadata(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    call.turn.write_out()?;
    call.reply.bulk_or_null(groups.store.metadata()?.as_deref());
    Ok(())
}

/// `AGG.GET name value …`: what a group answers.
pub(super) fn get(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let key = groups.key(&call.arguments[2..])?;
    call.turn.write_out()?;
    let answers = groups.store.answer(&key)?;
    let begin = call.reply.bytes.len();
    groups.answer(call.reply, answers.as_deref());
    check_reply(call, begin)
}

/// An error in place of a reply that is too long.
fn check_reply(call: &mut Call<'_, '_>, begin: usize) -> Answer {
    let bytes_max = call.turn.shared.config.reply_bytes_max();
    if call.reply.bytes.len() - begin <= bytes_max {
        return Ok(());
    }
    call.reply.bytes.truncate(begin);
    Err(format!("ERR the answers are longer than {bytes_max} bytes; ask for fewer groups").into())
}

/// `AGG.MGET name value … [value …]`: the same of several groups, as of one moment.
pub(super) fn mget(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let (values, width) = (&call.arguments[2..], groups.asked.keys.len());
    if width == 0 || values.len() % width != 0 {
        // Tells what a key has.
        groups.key(&[])?;
        return Err(SYNTAX.into());
    }
    let keys = values.chunks(width).map(|key| groups.key(key)).collect::<Result<Vec<_>, _>>()?;
    call.turn.write_out()?;
    let shared = call.turn.shared;
    let (snapshot, bytes_max) = (shared.database.snapshot(), shared.config.reply_bytes_max());
    let (begin, mut done) = (call.reply.bytes.len(), 0);
    call.reply.array(keys.len());
    while done < keys.len() {
        let bytes = call.reply.bytes.len() - begin;
        let room = room(bytes_max, bytes, done).min(keys.len() - done).min(GET_GROUPS);
        let found = groups.store.answers(&snapshot, &keys[done..done + room]).inspect_err(|_| {
            call.reply.bytes.truncate(begin);
        })?;
        for answers in &found {
            groups.answer(call.reply, answers.as_deref());
            check_reply(call, begin)?;
        }
        done += room;
    }
    Ok(())
}

/// For how many groups more there is room, if they are as large as those so far.
fn room(bytes_max: usize, bytes: usize, count: usize) -> usize {
    match count {
        0 => FIRST_GROUPS,
        count => bytes_max.saturating_sub(bytes) / (bytes / count).max(1) + 1,
    }
}

/// `AGG.TOP name count [BY answer]`: the groups with the greatest answers, the greatest first.
pub(super) fn top(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let count = integer(call.arguments[2])?;
    if !(1..=TOP_MAX).contains(&count) {
        return Err(format!("ERR count is to be from 1 to {TOP_MAX}").into());
    }
    let place = match &call.arguments[3..] {
        [] => groups.asked.names[0].1,
        [word, name] if is(word, "BY") => {
            let known = groups.asked.names.iter().find(|(known, _)| known.as_bytes() == *name);
            known.ok_or_else(|| no_answer(&groups, name))?.1
        }
        _ => return Err(SYNTAX.into()),
    };
    call.turn.write_out()?;
    let snapshot = call.turn.shared.database.snapshot();
    call.later(0, move |reply, slot| {
        let mut top = Top::new(place, count as usize);
        let mut walk = groups.store.walk(&snapshot)?;
        while let Some((key, state)) = walk.next()? {
            let answers = groups.schema.function().finish(&state)?;
            top.add(key, &answers)?;
            slot.check()?;
        }
        let keys = top.finish();
        reply.array(keys.len());
        let mut done = 0;
        while done < keys.len() {
            slot.check()?;
            let room = room(REPLY_BYTES_MAX, reply.bytes.len(), done).min(keys.len() - done).min(GET_GROUPS);
            let some = &keys[done..done + room];
            for (key, answers) in some.iter().zip(groups.store.answers(&snapshot, some)?) {
                let answers = answers.ok_or_else(|| forebay::Error::bug("a group of a snapshot is gone"))?;
                groups.row(reply, key, &answers);
                if reply.bytes.len() > REPLY_BYTES_MAX {
                    let told = "ERR the answers of so many groups are too long for a reply; ask for fewer";
                    return Err(told.into());
                }
            }
            done += room;
        }
        Ok(())
    })
}

fn no_answer(groups: &Groups, name: &[u8]) -> Refusal {
    let names: Vec<&str> = groups.asked.names.iter().map(|(name, _)| &name[..]).collect();
    let name = String::from_utf8_lossy(&name[..name.len().min(64)]);
    format!("ERR there is no answer `{name}`; there are: {}", names.join(", ")).into()
}

/// What an `AGG.RESULT` asks for.
struct Slice {
    cursor: Vec<u8>,
    count: usize,
    is_of_states: bool,
}

impl Slice {
    fn parse(arguments: &[&[u8]]) -> Result<Self, Refusal> {
        let mut slice = Self { cursor: Vec::new(), count: RESULT_GROUPS as usize, is_of_states: false };
        let mut rest = arguments;
        loop {
            rest = match rest {
                [] => return Ok(slice),
                [word, behind @ ..] if is(word, "STATES") => {
                    slice.is_of_states = true;
                    behind
                }
                [word, cursor, behind @ ..] if is(word, "CURSOR") => {
                    slice.cursor = cursor.to_vec();
                    behind
                }
                [word, count, behind @ ..] if is(word, "COUNT") => {
                    let count = integer(count)?;
                    if count < 1 {
                        return Err(NOT_AN_INTEGER.into());
                    }
                    slice.count = count.min(RESULT_GROUPS_MAX) as usize;
                    behind
                }
                _ => return Err(SYNTAX.into()),
            };
        }
    }
}

/// `AGG.RESULT name [CURSOR cursor] [COUNT count] [STATES]`: some groups as a stream of Arrow's, and where it goes on, 0 at
/// the end.
pub(super) fn result(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let slice = Slice::parse(&call.arguments[2..])?;
    call.turn.write_out()?;
    let snapshot = call.turn.shared.database.snapshot();
    let mut slices = groups.store.walk_from(&snapshot, &slice.cursor)?;
    call.later(0, move |reply, slot| {
        let batches = batches(&groups, &mut slices, &slice, slot)?;
        let schema = if slice.is_of_states {
            Arc::clone(groups.schema.schema())
        } else {
            groups.asked.answers(&groups.schema, |_| None)
        };
        let batches = batches.into_iter().map(|batch| match slice.is_of_states {
            true => Ok(batch),
            false => groups
                .asked
                .named_batch::<forebay::Error>(&schema, &batch, |_, column| Ok(Arc::clone(column))),
        });
        let batches = batches.collect::<forebay::Result<Vec<_>>>()?;
        let stream = ipc::write(&schema, &batches)?;
        reply.array(2);
        reply.bulk(slices.cursor().as_deref().unwrap_or("0").as_bytes());
        reply.bulk(&stream);
        Ok(())
    })
}

/// The record batches of a slice.
fn batches(
    groups: &Groups,
    slices: &mut Slices,
    slice: &Slice,
    slot: &Slot,
) -> Result<Vec<RecordBatch>, Refusal> {
    let made = match slice.is_of_states {
        true => PartialBatches::new(&groups.schema),
        false => PartialBatches::of_answers(&groups.schema),
    };
    let (mut made, mut all) = (made.rows_max(RESULT_GROUPS_MAX as usize), Vec::new());
    let (mut bytes, mut count) = (0, 0);
    while count < slice.count && bytes < REPLY_BYTES_MAX {
        slot.check()?;
        let room = room(REPLY_BYTES_MAX, bytes, count);
        let some = slices.next(room.min(slice.count - count).min(RESULT_GROUPS as usize))?;
        for (key, state) in &some {
            bytes += key.len() + state.len();
            all.extend(made.push(key, state)?);
        }
        count += some.len();
        if slices.cursor().is_none() {
            break;
        }
    }
    all.extend(made.finish()?);
    Ok(all)
}
