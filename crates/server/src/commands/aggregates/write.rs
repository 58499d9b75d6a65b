//! Rows and states in.

use arrow_schema::Schema;
use forebay::limits::VALUE_BYTES_MAX;
use forebay::{Batch, Durability, Error};
use forebay_aggregate::arrow::{Form, PartialSchema};
use forebay_groups::put_states;

use super::groups::Groups;
use super::store::{Adding, Store};
use super::{Answer, Call, Refusal, SYNTAX, found, integer, ipc, is};
use crate::commands::NOT_AN_INTEGER;
use crate::jobs::Slot;

/// Beyond this what a turn has added is written out before it adds more.
const ADDED_BYTES_MAX: usize = 64 << 20;
/// What the states of a stream, or of a merge, may take, as they are one commit.
const MERGE_BYTES_MAX: usize = 256 << 20;
/// After about so many bytes more it is looked at what they take.
const LOOK_BYTES: usize = 1 << 20;
const ENTRY_BYTES: usize = 32;

/// Adds rows to what the turn writes; those of windows at once, as a window may be over by then. Returns how many there are.
fn add_rows(
    call: &mut Call<'_, '_>,
    groups: &Groups,
    values: &[&[u8]],
    metadata: Option<&[u8]>,
) -> Result<usize, Refusal> {
    let rows = groups.rows(values)?;
    let mut gathering = groups.gathering_declared()?;
    gathering.add(&rows)?;
    call.turn.worked(values.iter().map(|value| value.len()).sum());
    match &groups.store {
        Store::Plain(aggregator) => {
            if call.turn.added().encoded_bytes() > ADDED_BYTES_MAX {
                if call.turn.is_in_transaction() {
                    return Err("ERR the transaction adds too much; divide it".into());
                }
                call.turn.write_out()?;
            }
            if metadata.is_some() {
                // What could fail does before any row is there.
                aggregator.put_metadata(&mut Batch::new(), b"")?;
            }
            put_states(aggregator, &mut gathering.states, call.turn.added())?;
            if let Some(metadata) = metadata {
                aggregator.put_metadata(call.turn.added(), metadata)?;
            }
        }
        Store::Windows(..) => {
            check_alone(call)?;
            let mut adding = groups.store.adding();
            gathering.give(&mut adding)?;
            commit_in_turn(call, adding, metadata)?;
        }
    }
    groups.keep(gathering);
    Ok(rows.num_rows())
}

fn check_metadata(metadata: &[u8]) -> Answer {
    match metadata.len() {
        ..=VALUE_BYTES_MAX => Ok(()),
        more => Err(format!("ERR metadata has at most {VALUE_BYTES_MAX} bytes, not {more}").into()),
    }
}

/// What windows get is a commit of its own.
fn check_alone(call: &Call<'_, '_>) -> Answer {
    match call.turn.is_in_transaction() {
        true => {
            Err("ERR rows of windows are committed by themselves, and cannot stand in a transaction".into())
        }
        false => Ok(()),
    }
}

/// The turn waits for the disk, if it has to.
fn commit_in_turn(call: &mut Call<'_, '_>, adding: Adding<'_>, metadata: Option<&[u8]>) -> Answer {
    let durability = call.client.durability.min(Durability::Os);
    adding.commit(&call.turn.shared.database, durability, metadata)?;
    call.turn.added();
    Ok(())
}

/// `AGG.ADD name value … [value …]`: rows, of a value for each column.
pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let count = add_rows(call, &groups, &call.arguments[2..], None)?;
    call.reply.int(count as i64);
    Ok(())
}

/// `AGG.COMMIT name metadata [ADD value … | LOAD stream]`: rows, and bytes of the caller's that are read back, both or
/// neither.
pub(super) fn commit(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let metadata = call.arguments[2];
    check_metadata(metadata)?;
    let count = match &call.arguments[3..] {
        [] => {
            match &groups.store {
                Store::Plain(aggregator) => aggregator.put_metadata(call.turn.added(), metadata)?,
                Store::Windows(..) => {
                    check_alone(call)?;
                    commit_in_turn(call, groups.store.adding(), Some(metadata))?;
                }
            }
            0
        }
        [word, values @ ..] if is(word, "ADD") => add_rows(call, &groups, values, Some(metadata))?,
        [word, stream] if is(word, "LOAD") => return begin_load(call, stream, Some(metadata.to_vec())),
        _ => return Err(SYNTAX.into()),
    };
    call.reply.int(count as i64);
    Ok(())
}

/// `AGG.LOAD name stream`: rows, or states that another aggregator of the same groups gave, all of them or none.
pub(super) fn load(call: &mut Call<'_, '_>) -> Answer {
    begin_load(call, call.arguments[2], None)
}

fn begin_load(call: &mut Call<'_, '_>, stream: &[u8], metadata: Option<Vec<u8>>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let (database, durability) = (call.turn.shared.database.clone(), call.client.durability);
    let (moment, stream) = (call.turn.shared.rollbacks.now(), stream.to_vec());
    call.later(stream.len(), move |reply, slot| {
        let mut adding = groups.store.adding();
        let count = read_in(&groups, &stream, &mut adding, slot)?;
        moment.write(|| adding.commit(&database, durability, metadata.as_deref()))?;
        reply.int(count as i64);
        Ok(())
    })
}

/// Whether these are states, and no rows.
fn has_states(schema: &Schema) -> bool {
    PartialSchema::of(schema).is_ok()
}

/// Takes the rows of a stream. Returns how many there are.
fn read_in(groups: &Groups, stream: &[u8], adding: &mut Adding<'_>, slot: &Slot) -> Result<usize, Refusal> {
    let (mut batches, mut count) = (ipc::Batches::open(stream)?, 0);
    let schema = batches.schema();
    if has_states(&schema) {
        let partial = PartialSchema::of(&schema)?;
        groups.asked.agrees(&partial)?;
        groups.schema.check(partial.schema())?;
        let mut bound = Bound { source: "the stream", unlooked: 0 };
        while let Some(states) = batches.next()? {
            slot.check()?;
            groups.schema.read(&states, Form::Exact, &mut |key, state| {
                adding.add_of_few_windows(key, state)?;
                bound.added(adding, key, state)
            })?;
            count += states.num_rows();
        }
        return Ok(count);
    }
    let mut gathering = groups.gathering(&schema)?;
    while let Some(rows) = batches.next()? {
        slot.check()?;
        gathering.add(&rows)?;
        count += rows.num_rows();
    }
    gathering.give(adding)?;
    Ok(count)
}

/// `AGG.MERGE target source`: adds the groups of another aggregator, as they are now, all of them or none.
pub(super) fn merge(call: &mut Call<'_, '_>) -> Answer {
    let [target, source] = [found(call, call.arguments[1])?, found(call, call.arguments[2])?];
    if target.name == source.name {
        return Err("ERR an aggregator is not merged with itself".into());
    }
    target.asked.agrees(&source.schema)?;
    target.schema.check(source.schema.schema())?;
    call.turn.write_out()?;
    // A rollback behind this is seen, whichever of both the snapshot has.
    let moment = call.turn.shared.rollbacks.now();
    let database = call.turn.shared.database.clone();
    let (snapshot, durability) = (database.snapshot(), call.client.durability);
    call.later(0, move |reply, slot| {
        let (mut adding, mut count) = (target.store.adding(), 0);
        let mut bound = Bound { source: &source.name, unlooked: 0 };
        let mut walk = source.store.walk(&snapshot)?;
        while let Some((key, state)) = walk.next()? {
            slot.check()?;
            adding.add(&key, &state)?;
            bound.added(&adding, &key, &state)?;
            count += 1;
        }
        moment.write(|| adding.commit(&database, durability, None))?;
        reply.int(count);
        Ok(())
    })
}

/// That states from somewhere are not too much for one commit. Each window is asked for what it takes, so not for each state.
struct Bound<'n> {
    source: &'n str,
    /// About what came since they were asked.
    unlooked: usize,
}

impl Bound<'_> {
    fn added(&mut self, adding: &Adding<'_>, key: &[u8], state: &[u8]) -> forebay::Result<()> {
        self.unlooked += key.len() + state.len() + ENTRY_BYTES;
        if self.unlooked < LOOK_BYTES {
            return Ok(());
        }
        self.unlooked = 0;
        match adding.bytes() {
            ..=MERGE_BYTES_MAX => Ok(()),
            _ => Err(Error::invalid(format!(
                "the groups of {} take more than {MERGE_BYTES_MAX} bytes, too much for one commit: take them in parts by \
                 AGG.RESULT with STATES, and give them to AGG.LOAD one by one",
                self.source
            ))),
        }
    }
}

/// `AGG.EXPIRE name milliseconds`: makes it that time since 1970, and drops the windows that are no longer kept. Returns how
/// many.
pub(super) fn expire(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let now = u64::try_from(integer(call.arguments[2])?).map_err(|_| NOT_AN_INTEGER)?;
    let Store::Windows(windows, _) = &groups.store else {
        return Err(format!("ERR `{}` has no windows", groups.name).into());
    };
    let windows = windows.clone();
    call.turn.write_out()?;
    let moment = call.turn.shared.rollbacks.now();
    call.later(0, move |reply, _| {
        reply.int(moment.write(|| windows.expire(now))?.dropped as i64);
        Ok(())
    })
}
