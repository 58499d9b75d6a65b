//! How much of the log is kept, what that costs, and what becomes of it where it is damaged.

use std::path::Path;
use std::time::Duration;

use forebay::{ChangeBatch, Database, Durability, Error, Options};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, Env, FileSystem};

use super::world::{DIR, World, assert_same};

const BUFFER_BYTES: u64 = 4 << 10;

/// No more than was asked for, and no less than that but for a segment; over restarts, and on disk.
#[test]
fn as_much_is_kept_as_was_asked_for() {
    for (seed, keep) in [(1, 0), (2, 1), (3, 3 * BUFFER_BYTES), (4, 50_000), (5, 1 << 30)] {
        let mut world = World::new(seed, keep, true);
        for round in 0..10 {
            world.commit_some(300);
            if round % 2 == 0 {
                world.db().flush().unwrap();
            } else {
                world.reopen();
            }
            let gone = world.check();
            let stats = world.db().stats();
            assert!(stats.kept_log_bytes <= keep, "keep {keep}: {}", stats.kept_log_bytes);
            let files = world.log_files();
            let on_disk: usize = files.values().sum();
            // Besides: buffers, one that is ready, one to be used again.
            let most = keep + 5 * BUFFER_BYTES;
            assert!(on_disk as u64 <= most, "keep {keep}: {files:?}");
            if gone > 0 {
                assert!(stats.kept_log_bytes + BUFFER_BYTES >= keep, "keep {keep}: {}", stats.kept_log_bytes);
            }
        }
        assert_eq!(world.check() > 0, keep < 1 << 30, "keep {keep}");
    }
}

/// A segment that was flushed early takes no more than it holds, so that many of them fit.
#[test]
fn what_a_segment_does_not_use_is_given_back() {
    let mut world = World::new(15, 40_000, true);
    for _ in 0..40 {
        world.commit_some(1);
        world.db().flush().unwrap();
    }
    let files = world.log_files();
    let on_disk: usize = files.values().sum();
    assert!(files.len() > 30 && on_disk < 30_000, "{files:?}");
    assert_eq!(world.check(), 0);
}

/// While a reader of another process is there no file is cut. After the next opening each segment counted as long as its
/// file, and changes went that were to be kept.
#[test]
fn what_a_reader_kept_from_being_given_back_takes_no_changes_along() {
    let mut world = World::new(18, 40_000, true);
    let other = Env::simulated(world.fs.clone(), 19);
    let reader = Database::open(DIR, world.options().env(other).read_only(true)).unwrap();
    for _ in 0..40 {
        world.commit_some(1);
        world.db().flush().unwrap();
    }
    let on_disk = |world: &World| world.log_files().values().sum::<usize>();
    let kept = world.db().stats().kept_log_bytes;
    assert!(kept < 20_000 && on_disk(&world) > 100_000, "{kept} of {}", on_disk(&world));
    world.reopen();
    assert_eq!((world.check(), world.db().stats().kept_log_bytes), (0, kept));
    assert!(on_disk(&world) > 100_000, "{}", on_disk(&world));
    // It goes at the next close.
    reader.close().unwrap();
    world.reopen();
    assert_eq!((world.check(), world.db().stats().kept_log_bytes), (0, kept));
    assert!(on_disk(&world) < 30_000, "{}", on_disk(&world));
}

#[test]
fn the_next_open_removes_what_is_too_much_and_no_more() {
    let mut world = World::new(9, 1 << 30, true);
    world.commit_some(600);
    world.db().flush().unwrap();
    let all = world.db().stats().kept_log_bytes;
    for keep in [1 << 30, all, all / 2, all / 2, 2 * all, all / 4, 0] {
        world.keep = keep;
        world.reopen();
        let kept = world.db().stats().kept_log_bytes;
        assert!(kept <= keep && (keep == 0) == (kept == 0), "{keep}: {kept}");
        assert_eq!(world.check() == 0, keep >= all && kept == all, "{keep}: {kept}");
        let on_disk: usize = world.log_files().values().sum();
        assert!(on_disk as u64 <= kept + 3 * BUFFER_BYTES, "{keep}: {on_disk}");
    }
}

/// What the database keeps for changes costs an open a look at where each segment begins.
#[test]
fn opening_reads_none_of_what_is_kept() {
    let mut world = World::new(10, 1 << 30, true);
    world.commit_some(1500);
    world.db().flush().unwrap();
    world.close();
    let lengths: Vec<u64> = world.log_files().into_values().map(|bytes| bytes as u64).collect();
    let (segments, bytes) = (lengths.len() as u64, lengths.iter().sum::<u64>());
    world.traced.reset_counts();
    world.open().unwrap();
    let read = world.traced.counts_of("log").read_bytes;
    assert!(segments > 20 && read <= segments * 32, "{read} bytes of {bytes} in {segments} segments");
    assert_eq!(world.check(), 0);
}

/// Whatever is retired meanwhile, the iterator gives all that was there when it was asked for; then that goes, too.
#[test]
fn a_reader_keeps_what_it_is_to_read() {
    let mut world = World::new(11, 40_000, true);
    world.commit_some(900);
    let gone = world.check();
    assert!(gone > 0);
    let expected = world.model[gone..].to_vec();
    let mut readers: Vec<_> = (0..3).map(|_| world.db().changes(0).unwrap()).collect();
    let mut seen: Vec<Vec<ChangeBatch>> = vec![Vec::new(); 3];
    // One waits before the first batch, one stands in a segment, one ends early.
    seen[1].extend(readers[1].by_ref().take(30).map(Result::unwrap));
    drop(readers.pop());
    for _ in 0..4 {
        world.commit_some(900);
        world.db().flush().unwrap();
        seen[0].extend(readers[0].by_ref().take(7).map(Result::unwrap));
    }
    assert!(world.check() > gone + 500);
    let held = world.log_files().len();
    for (reader, seen) in readers.iter_mut().zip(&mut seen) {
        seen.extend(reader.map(Result::unwrap));
        assert_same(seen, &expected);
        assert!(reader.next().is_none());
    }
    // Files go one after the other, with a rest between.
    for _ in 0..100 {
        world.env.jobs.advance(Duration::from_secs(1));
        world.env.jobs.step_some(100);
    }
    let left = world.log_files();
    assert!(left.len() + 5 < held, "{held}: {left:?}");
    let on_disk: usize = left.values().sum();
    assert!(on_disk as u64 <= world.keep + 5 * BUFFER_BYTES, "{left:?}");
}

#[test]
fn a_reader_of_a_closed_database_is_told_so() {
    let mut world = World::new(12, 1 << 30, true);
    world.commit_some(300);
    world.db().flush().unwrap();
    let mut changes = world.db().changes(0).unwrap();
    assert!(changes.next().unwrap().is_ok());
    world.close();
    let error = changes.find_map(Result::err).unwrap();
    assert!(error.to_string().contains("closed"), "{error}");
    assert!(changes.next().is_none());
}

/// It was in the midst of a segment whose file somebody else wrote to by then, and told of damage.
#[test]
fn a_reader_of_a_closed_database_is_not_told_of_damage() {
    let env = Env::memory(17);
    let options = Options::default().memory_limit(64 << 20).write_buffer(4 << 20).keep_changes(1 << 30);
    let db = Database::open(DIR, options.env(env.clone())).unwrap();
    let table = db.table("t").open().unwrap();
    // More than is read at a time.
    (0..4_u8).for_each(|key| table.put([key], vec![key; 700 << 10]).unwrap());
    db.flush().unwrap();
    let mut changes = db.changes(0).unwrap();
    changes.next().unwrap().unwrap();
    drop(table);
    db.close().unwrap();
    for name in env.fs.list(Path::new(DIR)).unwrap().iter().filter(|name| name.ends_with(".log")) {
        // As whoever makes a new segment of one that nobody needs any more.
        let file = env.fs.open(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        file.write_at(0, &vec![0; file.len().unwrap() as usize]).unwrap();
    }
    let error = changes.find_map(Result::err).unwrap();
    assert!(error.to_string().contains("closed"), "{error}");
    assert!(changes.next().is_none());
}

/// Opens the files in memory, one of them changed, and gives what there is of the feed, and the error that ends it.
fn damaged(world: &World, change: &dyn Fn(&dyn FileSystem)) -> (Vec<ChangeBatch>, Option<Error>) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    for (path, bytes) in world.fs.snapshot_files() {
        fs.create(&path, Access::Buffered).unwrap().write_at(0, &bytes).unwrap();
    }
    change(&*fs);
    let db = Database::open(DIR, world.options().env(Env::simulated(fs, 1))).unwrap();
    let last = world.model.last().unwrap().last_sequence;
    // What is newer is not concerned.
    let newer = db.changes(last - 40).unwrap().map(Result::unwrap);
    assert!(newer.eq(world.after(last - 40).iter().cloned()));
    let mut changes = db.changes(0).unwrap();
    let (mut batches, mut error) = (Vec::new(), None);
    for outcome in changes.by_ref() {
        assert!(error.is_none());
        match outcome {
            Ok(batch) => batches.push(batch),
            Err(reason) => error = Some(reason),
        }
    }
    let report = db.verify(&mut |_, _| ()).unwrap();
    let said = error.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(report.problems, said);
    (batches, error)
}

/// Any byte of what is kept, or a file of it: the feed ends there, with file and offset, and all else goes on.
#[test]
fn damage_to_what_is_kept_is_named_and_harms_nothing_else() {
    let mut world = World::new(13, 1 << 30, true);
    world.commit_some(400);
    world.db().flush().unwrap();
    world.commit_some(30);
    world.close();
    let files: Vec<(String, usize)> = world.log_files().into_iter().collect();
    assert!(files.len() > 8);
    assert_same(&damaged(&world, &|_| ()).0, &world.model);
    for (number, (name, bytes)) in files[..4].iter().enumerate() {
        let path = Path::new(name);
        for at in [0, 5, 33, bytes / 2, bytes - 1] {
            let flip = |fs: &dyn FileSystem| {
                let file = fs.open(path, Access::Buffered).unwrap();
                let mut byte = [0];
                file.read_at(at as u64, &mut byte).unwrap();
                file.write_at(at as u64, &[!byte[0]]).unwrap();
            };
            let (batches, error) = damaged(&world, &flip);
            assert!(world.model.starts_with(&batches), "byte {at} of {name}");
            let Some(Error::Corruption { file, offset, .. }) = error else {
                panic!("byte {at} of {name}: {error:?}")
            };
            assert_eq!(file, path);
            // The frame that the byte is in.
            assert!(offset <= at as u64 && at as u64 - offset < 1500, "byte {at} of {name}: {offset}");
        }
        let cut = |fs: &dyn FileSystem| fs.open(path, Access::Buffered).unwrap().set_len(0).unwrap();
        for harm in [&cut as &dyn Fn(&dyn FileSystem), &|fs: &dyn FileSystem| fs.remove(path).unwrap()] {
            let (batches, error) = damaged(&world, harm);
            if error.is_none() {
                // Where the oldest is missing nothing tells that it was there.
                assert!(number == 0 && world.model.ends_with(&batches));
            } else {
                assert!(
                    error.is_some_and(|error| error.is_corruption()) && world.model.starts_with(&batches)
                );
            }
        }
    }
}

/// Where the sector cannot be read in which a segment begins, or the file not be opened, the database did not open.
#[test]
fn a_kept_segment_that_cannot_be_read_keeps_nobody_from_opening() {
    let mut world = World::new(20, 1 << 30, true);
    world.commit_some(400);
    world.db().flush().unwrap();
    world.close();
    let oldest = world.log_files().into_keys().next().unwrap();
    let oldest = oldest.strip_prefix("/db/").unwrap();
    let last = world.model.last().unwrap().last_sequence;
    let fs = FaultyFs::new(world.fs.clone());
    for operation in ["read", "open"] {
        fs.rule(&format!("{operation} {oldest} all io-error")).unwrap();
        let db = Database::open(DIR, world.options().env(Env::simulated(fs.clone(), 21))).unwrap();
        let error = db.changes(0).unwrap().find_map(Result::err).unwrap();
        assert!(error.to_string().contains(oldest), "{operation}: {error}");
        let newer = db.changes(last - 40).unwrap().map(Result::unwrap);
        assert!(newer.eq(world.after(last - 40).iter().cloned()), "{operation}");
        // It can be read again by the time that what was reserved is given back.
        fs.clear();
        db.close().unwrap();
    }
    world.open().unwrap();
    assert_eq!(world.check(), 0);
}

/// Nothing follows it that could tell, but the number up to which the log is flushed.
#[test]
fn damage_to_the_last_segment_is_seen_where_no_write_follows() {
    let mut world = World::new(16, 1 << 30, true);
    world.commit_some(100);
    world.db().flush().unwrap();
    let files = world.log_files();
    // The active one is empty.
    let (last, bytes) = files.iter().rfind(|(_, bytes)| **bytes % BUFFER_BYTES as usize != 0).unwrap();
    let file = world.fs.open(Path::new(last), Access::Buffered).unwrap();
    file.set_len(*bytes as u64 - 8).unwrap();
    let error = world.feed(0).unwrap_err();
    let Error::Corruption { file, offset, .. } = error else { panic!("{error}") };
    assert!(file == Path::new(last) && offset < *bytes as u64, "{}: {offset}", file.display());
}

/// A write that is in the process alone is among the changes at once, as it is for every reader.
#[test]
fn what_is_not_written_yet_is_there_already() {
    let world = World::new(14, 0, true);
    let table = world.db().table("hashed").open().unwrap();
    let mut batch = forebay::Batch::new();
    batch.put(&table, b"k", b"v");
    let number = world.db().commit(batch, Durability::Memory).unwrap();
    assert!(world.db().durable_sequence() < number);
    assert_eq!(world.feed(0).unwrap().last().unwrap().last_sequence, number);
}
