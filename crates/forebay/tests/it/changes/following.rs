//! Followers: whatever becomes of the source, of the stream, or of the follower, it has a beginning of what the source has,
//! each commit once, and goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay::{Applied, Change, ChangeBatch, Database, Error, Follower, Options, Result, StreamEnd};
use forebay_env::fs::CrashFs;
use forebay_env::{Env, Rng};
use forebay_testkit::Suffix;

use super::world::{World, assert_same};

const COPY: &str = "/copy";

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A follower of a world, on a disk of its own that may lose power.
struct Copy {
    fs: Arc<CrashFs>,
    env: Env,
    open: Option<Follower>,
}

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).keep_changes(1 << 30).env(env.clone())
}

fn open(env: &Env) -> Result<Follower> {
    Ok(Follower::open(COPY, options(env))?.merge_rule(Suffix))
}

impl Copy {
    fn new(seed: u64) -> Self {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let open = Some(open(&env).unwrap());
        Self { fs, env, open }
    }

    fn follower(&mut self) -> &mut Follower {
        self.open.as_mut().unwrap()
    }

    /// Loses power. What was durable must be there.
    fn crash(&mut self, seed: u64) {
        let durable = self.follower().database().durable_sequence();
        self.fs = self.fs.power_cycle();
        self.env.jobs.abandon();
        self.open = None;
        self.env = Env::simulated(self.fs.clone(), seed);
        self.open = Some(open(&self.env).unwrap());
        assert!(self.follower().position() >= durable);
    }
}

/// A stream of one round, or of several.
fn stream(world: &World, since: u64, rounds: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One that is dropped has no end.
    let mut stream = world.db().stream_changes(since, &mut bytes)?;
    for _ in 0..rounds {
        stream.advance()?;
    }
    stream.finish()?;
    Ok(bytes)
}

fn without_spare(batches: &[ChangeBatch]) -> Vec<ChangeBatch> {
    let others = |change: &&Change| &*change.table != "spare";
    let changes = |batch: &ChangeBatch| batch.changes.iter().filter(others).cloned().collect();
    let plain = |batch: &ChangeBatch| ChangeBatch { changes: changes(batch), ..batch.clone() };
    batches.iter().map(plain).collect()
}

/// All that a table shows, as bytes.
fn contents(db: &Database) -> BTreeMap<String, Entries> {
    let mut all = BTreeMap::new();
    for (name, _) in db.tables() {
        // What expires is compared by the feed: time goes otherwise elsewhere.
        let entries = match &*name {
            "brief" => continue,
            "hits" => {
                let hits = db.aggregator("hits", forebay::aggregate::functions::Count).open().unwrap();
                hits.iter()
                    .unwrap()
                    .map(Result::unwrap)
                    .map(|(key, count)| (key, count.to_le_bytes().to_vec()))
                    .collect()
            }
            "texts" => {
                let texts = db.table("texts").merge_rule(Suffix).open().unwrap();
                texts.iter().unwrap().map(Result::unwrap).collect()
            }
            _ => db.table(&name).open().unwrap().iter().unwrap().map(Result::unwrap).collect(),
        };
        all.insert(name, entries);
    }
    all.values_mut().for_each(|entries: &mut Entries| entries.sort());
    all
}

/// The follower has what was committed up to its position: whole batches, each with its numbers.
fn assert_beginning(world: &World, follower: &Follower) {
    let position = follower.position();
    let fed: Vec<ChangeBatch> = follower.database().changes(0).unwrap().map(Result::unwrap).collect();
    let count = world.model.partition_point(|batch| batch.last_sequence <= position);
    assert_eq!(
        count.checked_sub(1).map_or(0, |last| world.model[last].last_sequence),
        position,
        "batches are whole"
    );
    assert_same(&without_spare(&fed), &without_spare(&world.model[..count]));
}

/// It has all of it.
fn assert_same_as(world: &World, follower: &Follower) {
    assert_eq!(follower.position(), world.db().last_sequence());
    let fed: Vec<ChangeBatch> = follower.database().changes(0).unwrap().map(Result::unwrap).collect();
    assert_same(&fed, &world.model);
    assert_eq!(contents(follower.database()), contents(world.db()));
}

/// Random histories, streamed in pieces that are cut anywhere; source and follower lose power now and then.
#[test]
fn a_follower_has_a_beginning_of_its_source_whatever_happens() {
    let mut told = BTreeMap::<&str, u32>::new();
    for seed in 0..40 {
        let mut world = World::new(seed, 1 << 30, false);
        let (mut copy, mut rng) = (Copy::new(seed + 1000), Rng::new(seed));
        for _ in 0..14 {
            let batches = 1 + world.rng.index(25);
            world.commit_some(batches);
            let steps = world.rng.index(120);
            world.env.jobs.step_some(steps);
            match rng.below(8) {
                0 => world.db().flush().unwrap(),
                1 => world.reopen(),
                2 => world.drop_spare().unwrap(),
                3 => {
                    world.crash();
                    *told.entry("source crashed").or_default() += 1;
                }
                _ => {}
            }
            // It may begin with what the follower has.
            let position = copy.follower().position();
            let known: Vec<u64> = world.model.iter().map(|batch| batch.last_sequence).collect();
            let known: Vec<u64> = known.into_iter().filter(|last| *last < position).collect();
            let since =
                if known.is_empty() || rng.chance(60) { position } else { known[rng.index(known.len())] };
            let mut bytes = stream(&world, since, 1 + rng.index(2)).unwrap();
            if rng.chance(50) {
                bytes.truncate(rng.index(bytes.len() + 1));
            }
            if rng.chance(40) {
                copy.fs.crash_at(copy.fs.operations() + 1 + rng.below(60));
            }
            let outcome = copy.follower().apply(&bytes[..]);
            if copy.fs.is_off() {
                copy.crash(rng.next_u64());
                *told.entry("follower crashed").or_default() += 1;
                assert_beginning(&world, copy.follower());
                continue;
            }
            copy.fs.crash_at(u64::MAX);
            let steps = rng.index(60);
            copy.env.jobs.step_some(steps);
            match outcome.unwrap() {
                Applied { end: StreamEnd::Finished, position, .. } => {
                    assert_eq!(position, world.db().last_sequence(), "seed {seed}");
                    assert_same_as(&world, copy.follower());
                    *told.entry("finished").or_default() += 1;
                }
                Applied { end, .. } => {
                    assert_eq!(end, StreamEnd::CutOff);
                    assert_beginning(&world, copy.follower());
                    *told.entry("cut off").or_default() += 1;
                }
            }
        }
        let bytes = stream(&world, 0, 1).unwrap();
        copy.follower().apply(&bytes[..]).unwrap();
        assert_same_as(&world, copy.follower());
        let report = copy.follower().database().verify(&mut |_, _| ()).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "seed {seed}");
        copy.open.take().unwrap().close().unwrap();
        copy.open = Some(open(&copy.env).unwrap());
        assert_same_as(&world, copy.follower());
    }
    assert!(told.len() == 4 && told.values().all(|&times| times > 20), "{told:?}");
}

/// It begins as a checkpoint, in the middle of what the log keeps, and what was before is not asked for.
#[test]
fn a_checkpoint_of_the_source_follows_it() {
    let mut world = World::new(3, 20_000, false);
    world.commit_some(300);
    world.db().checkpoint("/copy").unwrap();
    let at = world.db().last_sequence();
    world.commit_some(40);
    world.drop_spare().unwrap();
    world.commit_some(10);
    let mut follower = open(&world.env).unwrap();
    assert_eq!(follower.position(), at);
    let bytes = stream(&world, at, 1).unwrap();
    let applied = follower.apply(&bytes[..]).unwrap();
    assert_eq!((applied.position, applied.batches), (world.db().last_sequence(), 50));
    assert_eq!(contents(follower.database()), contents(world.db()));
    // What is in it already is passed over.
    let again = follower.apply(&bytes[..]).unwrap();
    assert_eq!((again.position, again.batches), (applied.position, 0));
    assert_eq!(contents(follower.database()), contents(world.db()));
}

/// Each byte of a stream, flipped: nothing of the commit that it is in is applied, and a sound stream goes on from there.
#[test]
fn damage_to_a_stream_is_named_and_nothing_of_it_is_applied() {
    let mut world = World::new(8, 1 << 30, true);
    world.commit_some(6);
    let bytes = stream(&world, 0, 1).unwrap();
    assert!(bytes.len() < 6000, "{}", bytes.len());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let env = Env::memory(at as u64);
        let mut follower = open(&env).unwrap();
        let error = follower.apply(&damaged[..]).unwrap_err();
        let Error::Corruption { offset, .. } = &error else { panic!("byte {at}: {error}") };
        assert!(*offset <= at as u64, "byte {at}: {error}");
        assert_beginning(&world, &follower);
        if at % 50 == 0 {
            follower.apply(&bytes[..]).unwrap();
            assert_same_as(&world, &follower);
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_is_applied_as_far_as_it_is_whole() {
    let mut world = World::new(9, 1 << 30, true);
    world.commit_some(8);
    let bytes = stream(&world, 0, 1).unwrap();
    let mut positions = Vec::new();
    for end in (0..bytes.len()).step_by(11) {
        let env = Env::memory(end as u64);
        let mut follower = open(&env).unwrap();
        let applied = follower.apply(&bytes[..end]).unwrap();
        assert_eq!(applied.position, follower.position());
        // Behind the last commit its mark may stand.
        let is_all = applied.position == world.db().last_sequence();
        assert!(applied.end == StreamEnd::CutOff || applied.end == StreamEnd::Finished && is_all);
        assert_beginning(&world, &follower);
        positions.push(applied.position);
        follower.apply(&bytes[..]).unwrap();
        assert_same_as(&world, &follower);
    }
    assert!(positions.is_sorted() && positions.last() > positions.first());
}

/// Rounds of which one brings nothing but a table's end, over one stream.
#[test]
fn tables_come_and_go_with_the_round_that_tells_of_them() {
    let mut world = World::new(10, 1 << 30, true);
    world.commit_some(20);
    let mut bytes = Vec::new();
    let mut stream = world.db().stream_changes(0, &mut bytes).unwrap();
    stream.advance().unwrap();
    let length = stream.position();
    world.db().drop_table("hashed").unwrap();
    assert_eq!(stream.advance().unwrap(), length);
    world.db().table("hashed").open().unwrap().put("after", "1").unwrap();
    stream.advance().unwrap();
    stream.finish().unwrap();
    let env = Env::memory(1);
    let mut follower = open(&env).unwrap();
    follower.apply(&bytes[..]).unwrap();
    let hashed = follower.database().table("hashed").open().unwrap();
    assert_eq!(hashed.iter().unwrap().count(), 1);
    assert_eq!(contents(follower.database()), contents(world.db()));
    // It was dropped twice, and made twice, and its first records come back by no round of before.
    follower.apply(&bytes[..]).unwrap();
    assert_eq!(contents(follower.database()), contents(world.db()));
    drop(hashed);
    drop(follower);
    let again = open(&env).unwrap();
    assert_eq!(contents(again.database()), contents(world.db()));
}

/// A table that had no order got one, and then ranges of it were deleted.
#[test]
fn a_table_gets_the_order_that_its_source_has_got() {
    let world = World::new(11, 1 << 30, true);
    let table = world.db().table("hashed").open().unwrap();
    for number in 0..50u8 {
        table.put([number], [number]).unwrap();
    }
    let env = Env::memory(1);
    let mut follower = open(&env).unwrap();
    let bytes = stream(&world, 0, 1).unwrap();
    follower.apply(&bytes[..]).unwrap();
    table.set_layout(forebay::Layout::leveling(3)).unwrap();
    let ordered = world.db().table("hashed").open_ordered().unwrap();
    ordered.delete_range([10]..[40]).unwrap();
    let bytes = stream(&world, follower.position(), 1).unwrap();
    follower.apply(&bytes[..]).unwrap();
    let copy = follower.database().table("hashed").open_ordered().unwrap();
    assert_eq!(copy.iter().unwrap().count(), 20);
    assert_eq!(contents(follower.database()), contents(world.db()));
}

/// Within one round a table got an order, lost a range, and has no order again: as the round ends it has none.
#[test]
fn a_range_is_deleted_of_a_table_that_has_no_order_by_the_end_of_the_round() {
    let world = World::new(12, 1 << 30, true);
    let table = world.db().table("hashed").open().unwrap();
    for number in 0..50u8 {
        table.put([number], [number]).unwrap();
    }
    table.set_layout(forebay::Layout::leveling(3)).unwrap();
    let ordered = world.db().table("hashed").open_ordered().unwrap();
    ordered.delete_range([10]..[40]).unwrap();
    table.set_layout(forebay::Layout::wb_tree()).unwrap();
    table.put([20], [1]).unwrap();
    let env = Env::memory(1);
    let mut follower = open(&env).unwrap();
    let bytes = stream(&world, 0, 1).unwrap();
    follower.apply(&bytes[..]).unwrap();
    assert_eq!(follower.database().table("hashed").open().unwrap().iter().unwrap().count(), 21);
    assert_eq!(contents(follower.database()), contents(world.db()));
}
