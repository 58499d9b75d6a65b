//! How many keys a table has, exactly. Where no entry expires, and nothing of the table is in write buffers, its lists may
//! tell; and what was counted is remembered for as long as the table's version is the same. Else parts of the table are
//! walked side by side, without values. A transaction that counts has read all of the table, however the number is
//! known.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Error, Range, Result, planted};
use forebay_env::sync::Mutex;
use forebay_layouts::known_keys;
use forebay_store::WriteBuffer;

use crate::read::{Cursor, parts};
use crate::versions::{TableState, Versions, View};

/// For each thread this many parts: some take longer than others.
const PARTS_PER_THREAD: usize = 4;

/// The number of keys that a view has of a table. Who asks counts, and as many threads beside as there are cores more.
pub(crate) fn count(versions: &Arc<Versions>, view: &View, id: u32) -> Result<u64> {
    let table = view.table(id)?;
    if let Some(own) = &view.own {
        own.reads.note_range(table, Range::all())?;
    }
    let is_lasting = is_lasting(view, table);
    if is_lasting && let Some(keys) = table.space.counted.of(&table.version) {
        return Ok(keys);
    }
    let known = if is_lasting { known_keys(&*table.version) } else { None };
    let keys = known.map_or_else(|| count_parts(versions, view, id), Ok)?;
    if is_lasting {
        table.space.counted.note(&table.version, keys);
    }
    Ok(keys)
}

/// Whether what is counted stays so for as long as the table's version does.
fn is_lasting(view: &View, table: &TableState) -> bool {
    let holds_some = |(buffer, limit): (&Arc<WriteBuffer>, usize)| {
        let deletes = buffer.range_deletes(limit);
        deletes.iter().any(|delete| delete.table == table.id)
            || buffer.cursors(&table.rows(), &Range::all(), limit).iter().any(|cursor| cursor.extent().0 > 0)
    };
    table.options.time_to_live.is_none()
        && (planted::is("count-remembered-too-long") || !view.buffers().any(holds_some))
}

/// What is left to be counted, and what came of the rest.
struct Work {
    versions: Arc<Versions>,
    view: View,
    table: u32,
    rest: Vec<Range>,
    /// How many parts are to be counted yet, those that somebody is at included.
    open: usize,
    keys: Result<u64>,
}

fn count_parts(versions: &Arc<Versions>, view: &View, table: u32) -> Result<u64> {
    let jobs = &versions.context.env.jobs;
    // Under a stepper all is done at once.
    let threads = if jobs.is_stepper() { 1 } else { jobs.parallelism() };
    let rest = parts(versions, view, table, threads * PARTS_PER_THREAD)?;
    let threads = threads.min(rest.len());
    let (versions, view, open) = (Arc::clone(versions), view.clone(), rest.len());
    let work = Arc::new(Mutex::new(Work { versions, view, table, rest, open, keys: Ok(0) }));
    let beside: Vec<_> = (1..threads)
        .map(|_| {
            let work = Arc::clone(&work);
            jobs.fork("forebay-count", move || take_part(&work))
        })
        .collect();
    take_part(&work);
    // Where a thread could not be started, others have done its part.
    beside.into_iter().for_each(forebay_env::Handle::join);
    let mut work = work.lock();
    debug_assert!(work.rest.is_empty(), "nothing is left");
    match std::mem::replace(&mut work.keys, Ok(0)) {
        Ok(_) if work.open > 0 => Err(Error::bug("a thread that counted keys has ended before its time")),
        keys => keys,
    }
}

/// Counts part after part, until none is left.
fn take_part(work: &Mutex<Work>) {
    loop {
        let (versions, view, table, range) = {
            let mut work = work.lock();
            let Some(range) = work.rest.pop() else { return };
            (Arc::clone(&work.versions), work.view.clone(), work.table, range)
        };
        let counted = count_range(&versions, view, table, range);
        let mut work = work.lock();
        debug_assert!(work.open > work.rest.len(), "the part that was counted was open");
        work.open -= 1;
        let all = std::mem::replace(&mut work.keys, Ok(0));
        work.keys = all.and_then(|all| counted.map(|keys| all + keys));
        if work.keys.is_err() {
            let left = std::mem::take(&mut work.rest);
            work.open -= left.len();
        }
    }
}

fn count_range(versions: &Arc<Versions>, view: View, table: u32, range: Range) -> Result<u64> {
    let mut cursor = Cursor::new(versions, view, table, range, Direction::Forward)?.of_keys();
    let mut keys = 0;
    loop {
        cursor.next()?;
        if !cursor.has_key() {
            return Ok(keys);
        }
        keys += 1;
    }
}
