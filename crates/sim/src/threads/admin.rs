//! Who changes layouts, copies, compacts, takes savepoints and rolls back while others write.

use std::path::PathBuf;
use std::sync::Arc;

use forebay::{Database, Error, Layout, Result, Rewrite};
use forebay_env::Rng;
use forebay_testkit::ordered_layouts;

use super::history::KEYS;
use super::{CUT, Contents, Seen, TABLES, World, check_database, other_order};

/// Acts until the writers are done. Returns how many.
pub(super) fn run(world: &World, rng: &mut Rng) -> u64 {
    // Each seed does some things more often than others.
    let weights: Vec<u64> = (0..9).map(|_| [0, 1, 1, 4][rng.index(4)]).collect();
    let total = weights.iter().sum::<u64>().max(1);
    let (mut acts, mut copies) = (0, 0);
    while !world.is_over() {
        let mut at = rng.below(total);
        let act = weights.iter().position(|&weight| {
            let is_it = at < weight;
            at = at.saturating_sub(weight);
            is_it
        });
        acts += 1;
        let outcome = match act {
            Some(0 | 1) => turn(world, rng),
            Some(2) => {
                let layouts = ordered_layouts();
                world.ordered[rng.index(TABLES - 1)].set_layout(layouts[rng.index(layouts.len())])
            }
            Some(3) if rng.chance(50) => compact_range(world, rng),
            Some(3) if rng.chance(30) => world.table(rng.index(TABLES)).rewrite(Rewrite::All),
            Some(3) => world.table(rng.index(TABLES)).compact(),
            Some(4) => world.db.flush(),
            Some(5) => {
                copies += 1;
                copy(world, copies)
            }
            Some(6) => hold(world, rng),
            Some(7) => keep(world, rng),
            _ => world.db.wait_until_idle(),
        };
        if let Err(error) = outcome {
            panic!("act {act:?}: {error}");
        }
    }
    acts
}

/// The first two tables get the other order, and later their own again. The third loses ranges, which needs its own.
fn turn(world: &World, rng: &mut Rng) -> Result<()> {
    let table = world.table(rng.index(CUT));
    table.set_layout(other_order(table.layout()?, rng))?;
    let _others = world.quiet.read();
    let before = world.history.all_acknowledged();
    let snapshot = world.db.snapshot();
    world.check_whole(Seen::At(&snapshot), &before, "what was sorted anew");
    Ok(())
}

/// Of the table that keeps its order.
fn compact_range(world: &World, rng: &mut Rng) -> Result<()> {
    let mut ends = [0, 1].map(|writer| World::key(writer, rng.index(KEYS)));
    ends.sort_unstable();
    world.ordered[CUT - 1].compact_range(&ends[0][..]..&ends[1][..])
}

/// A copy has what was acknowledged before, and of each writer the states after one batch.
fn copy(world: &World, number: u64) -> Result<()> {
    let dir = PathBuf::from(format!("/copy-{number}"));
    let (before, begun) = {
        let _others = world.quiet.read();
        let before = world.history.all_acknowledged();
        world.db.checkpoint(&dir)?;
        (before, world.history.all_begun())
    };
    let db = Database::open(&dir, world.options.clone())?;
    {
        let _others = world.quiet.read();
        check_database(&db, &world.history, &before, &begun, "a copy");
    }
    // It goes on by itself, and takes nothing from the other.
    let table = db.table("t0").existing(true).open()?;
    for key in 0..300u32 {
        table.put(key.to_be_bytes(), [7; 100])?;
    }
    db.flush()?;
    db.close()?;
    let fs = Arc::clone(&world.env.fs);
    fs.list(&dir)?.iter().try_for_each(|name| fs.remove(&dir.join(name)))
}

/// A snapshot does not change while others write.
fn hold(world: &World, rng: &mut Rng) -> Result<()> {
    let (before, snapshot) = {
        let _others = world.quiet.read();
        let before = world.history.all_acknowledged();
        let snapshot = world.db.snapshot();
        world.check_whole(Seen::At(&snapshot), &before, "a snapshot");
        (before, snapshot)
    };
    let first: Vec<Contents> = (0..TABLES).map(|table| world.contents(table, Seen::At(&snapshot))).collect();
    if rng.chance(50) {
        world.table(rng.index(TABLES)).compact()?;
    }
    for (table, first) in first.iter().enumerate() {
        let again = world.contents(table, Seen::At(&snapshot));
        assert!(again == *first, "a snapshot of after {before:?} has changed in table {table}");
    }
    Ok(())
}

/// A savepoint amid what others write, or one, and perhaps a rollback to it, while nobody else does anything.
fn keep(world: &World, rng: &mut Rng) -> Result<()> {
    if rng.chance(50) {
        return keep_amid(world);
    }
    let kept = {
        let _alone = world.quiet.write();
        savepoint(world, "kept")?.map(|number| {
            world.meeting.note_kept(number);
            world.history.kept()
        })
    };
    let Some(kept) = kept else {
        return world.ordered[rng.index(TABLES - 1)].set_layout(Layout::leveling(4));
    };
    world.db.flush()?;
    let _alone = world.quiet.write();
    if rng.chance(70) {
        world.db.rollback("kept")?;
        world.meeting.note_rollback(world.db.last_sequence());
        world.history.restore(&kept);
        let ends = world.history.all_acknowledged();
        world.check_whole(Seen::Now, &ends, "a rollback");
    }
    world.db.drop_savepoint("kept")
}

/// Takes a savepoint, unless a table keeps records in memory.
fn savepoint(world: &World, name: &str) -> Result<Option<u64>> {
    match world.db.savepoint(name) {
        Err(Error::Invalid(reason)) if reason.contains("keeps records in memory") => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// What is kept while others write is what a snapshot would be.
fn keep_amid(world: &World) -> Result<()> {
    let _others = world.quiet.read();
    let before = world.history.all_acknowledged();
    if savepoint(world, "amid")?.is_some() {
        let kept = world.db.open_savepoint("amid")?;
        world.check_whole(Seen::At(&kept), &before, "a savepoint amid writes");
        world.db.drop_savepoint("amid")?;
    }
    Ok(())
}
