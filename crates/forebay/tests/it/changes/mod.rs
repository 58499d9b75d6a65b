//! The feed of changes against a list of all that was committed.

mod following;
mod keeping;
mod parted;
mod rolled_back;
mod to_a_moment;
mod told_tables;
mod world;

use forebay::{Database, Error, Layout};

use world::{DIR, World, assert_same};

/// All of it, in order, from everywhere, wherever it lies by then.
#[test]
fn the_feed_is_what_was_committed() {
    for seed in 0..8 {
        let mut world = World::new(seed, 1 << 30, false);
        for round in 0..12 {
            world.commit_some(20);
            world.env.jobs.step_some(world.rng.index(200));
            match (seed + round) % 6 {
                0 => world.db().flush().unwrap(),
                1 => world.reopen(),
                2 => world.drop_spare().unwrap(),
                3 => world.db().wait_until_idle().unwrap(),
                _ => {}
            }
            assert_eq!(world.check(), 0, "seed {seed}");
        }
        let report = world.db().verify(&mut |_, _| ()).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// Whatever is kept, of what was recovered.
#[test]
fn a_power_loss_leaves_a_feed_without_a_gap() {
    let mut gone = 0;
    for seed in 0..60 {
        let keep = [0, 9_000, 1 << 30][seed as usize % 3];
        let mut world = World::new(seed, keep, false);
        for _ in 0..5 {
            let within = 1 + world.rng.below(600);
            world.fs.crash_at(world.fs.operations() + within);
            for _ in 0..60 {
                let steps = world.rng.index(30);
                let outcome = match world.rng.below(30) {
                    0 => world.db().flush(),
                    1 => world.drop_spare(),
                    _ => world.commit(),
                };
                if outcome.is_err() {
                    break;
                }
                world.env.jobs.step_some(steps);
            }
            world.crash();
            gone += world.check();
            let report = world.db().verify(&mut |_, _| ()).unwrap();
            assert!(report.problems.is_empty(), "seed {seed}: {:?}", report.problems);
        }
        // Nothing is lost where all is kept.
        assert!(keep < 1 << 30 || world.check() == 0, "seed {seed}");
    }
    assert!(gone > 1000, "{gone}");
}

#[test]
fn a_database_open_for_reading_has_the_feed() {
    let mut world = World::new(5, 20_000, false);
    world.commit_some(300);
    world.db().flush().unwrap();
    world.commit_some(20);
    let gone = world.check();
    assert!(gone > 0);
    world.close();
    // It is not told to keep anything, and changes nothing.
    let before = world.fs.snapshot_files();
    let db = Database::open(DIR, world.options().keep_changes(0).read_only(true)).unwrap();
    let all: Vec<_> = db.changes(0).unwrap().map(Result::unwrap).collect();
    assert_same(&all, &world.model[gone..]);
    let last = world.model.last().unwrap().last_sequence;
    assert_eq!(db.changes(last).unwrap().count(), 0);
    let ahead = db.changes(last + 1).unwrap_err();
    assert!(matches!(&ahead, Error::Invalid(text) if text.contains(&last.to_string())), "{ahead}");
    assert!(matches!(db.changes(1).unwrap_err(), Error::ChangesGone { since: 1, .. }));
    db.close().unwrap();
    assert_eq!(world.fs.snapshot_files(), before);
}

#[test]
fn whoever_is_ahead_of_the_database_is_told_so() {
    let mut world = World::new(6, 0, true);
    world.commit_some(5);
    let last = world.db().last_sequence();
    assert_eq!(world.feed(last).unwrap(), []);
    let ahead = world.feed(last + 1).unwrap_err().to_string();
    assert!(ahead.contains(&format!("after {}", last + 1)) && ahead.contains(&last.to_string()), "{ahead}");
}

/// A table's order, and what was brought in beside the log, change nothing in the feed.
#[test]
fn other_layouts_and_what_is_ingested_leave_the_feed_as_it_is() {
    let mut world = World::new(7, 1 << 30, false);
    world.commit_some(60);
    for (name, layout) in [("tree", Layout::wb_tree()), ("level", Layout::range_merge())] {
        world.db().table(name).open().unwrap().set_layout(layout).unwrap();
    }
    let table = world.db().table("range").open_ordered().unwrap();
    table.set_layout(Layout::tiering(2)).unwrap();
    let entries = (0..50u8).map(|number| Ok((vec![number], vec![number])));
    table.ingest(entries).unwrap();
    drop(table);
    assert_eq!(world.check(), 0);
}

/// The copy goes on from where the log's use ends; what is kept for changes alone stays behind.
#[test]
fn a_checkpoint_has_the_changes_that_it_needs() {
    let mut world = World::new(8, 1 << 30, true);
    world.commit_some(200);
    world.db().flush().unwrap();
    let flushed = world.db().last_sequence();
    world.commit_some(3);
    world.db().checkpoint("/copy").unwrap();
    let copied = world.db().last_sequence();
    for path in ["/copy", DIR] {
        if path == DIR {
            world.commit_some(200);
            world.close();
        }
        let db = Database::open(path, world.options()).unwrap();
        let all: Vec<_> = db.changes(0).unwrap().map(Result::unwrap).collect();
        let report = db.verify(&mut |_, _| ()).unwrap();
        assert!(report.problems.is_empty(), "{path}: {:?}", report.problems);
        if path == DIR {
            assert_same(&all, &world.model);
            continue;
        }
        let in_copy = world.model.iter().filter(|batch| batch.last_sequence <= copied);
        let expected: Vec<_> = in_copy.filter(|batch| batch.last_sequence > flushed).cloned().collect();
        assert_same(&all, &expected);
        let gone = db.changes(flushed - 1).unwrap_err();
        assert!(matches!(gone, Error::ChangesGone { oldest, .. } if oldest == flushed + 1), "{gone}");
        db.close().unwrap();
    }
}
