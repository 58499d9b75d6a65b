//! Segments of the log: frames and batches, written by the log and read back as after a crash, strictly and to save
//! what is left.

use std::path::Path;
use std::sync::Arc;

use forebay_base::{Order, Range};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, FileSystem, Rng};
use forebay_store::buffer::{ArenaPool, Sorting, TableRows};
use forebay_store::log::batch::{Payload, Records};
use forebay_store::log::frame::{Header, Secret};
use forebay_store::log::recover::{Bounds, LogFiles, Reading, Recovered, recover};
use forebay_store::log::{Appended, Durability, Frames, Log, PreparedSegment, Refill, SegmentFile, Writes};
use forebay_store::names;

use crate::damage::{DIR, assert_named, bytes_of, damage, damage_in_place};
use crate::draws::{self, one_of};

const SEGMENT_BYTES: usize = 16 << 10;
const TABLES: u64 = 3;

/// A log, and what was written to it: the first record and the payload of each batch.
struct Written {
    fs: Arc<MemoryFs>,
    /// By which the log is written and read: where it is encrypted, another one.
    shown: Arc<dyn FileSystem>,
    secret: Secret,
    pool: Arc<ArenaPool>,
    segments: Vec<u64>,
    batches: Vec<(u64, Vec<u8>)>,
    durable: u64,
}

pub(crate) fn fuzz(rng: &mut Rng) {
    let written = write(rng);
    let (strict, seen) = read(&written, Reading::Strict);
    strict.expect("it is intact");
    assert!(written.batches.starts_with(&seen) && written.durable <= last_of(&written, &seen));
    let files: Vec<_> = written.segments.iter().map(|&id| names::log(Path::new(DIR), id)).collect();
    for _ in 0..20 {
        let path = &files[rng.index(files.len())];
        let intact = bytes_of(&written.fs, path);
        let mut bytes = intact.clone();
        damage(rng, &mut bytes);
        written.fs.replace_file(path, bytes);
        let (strict, seen) = read(&written, Reading::Strict);
        assert!(written.batches.starts_with(&seen), "batches that nobody wrote, or a hole among them");
        match strict {
            Ok(_) => {
                assert!(written.durable <= last_of(&written, &seen), "what was durable is lost unnoticed")
            }
            Err(error) => assert_named(&error),
        }
        let (saved, seen) = read(&written, Reading::Salvage);
        saved.expect("nothing is an error to who saves what is left");
        assert!(seen.is_sorted() && seen.iter().all(|batch| written.batches.contains(batch)));
        written.fs.replace_file(path, intact);
    }
    for _ in 0..20 {
        let at = rng.index(files.len());
        let intact = bytes_of(&written.fs, &files[at]);
        if let Some(bytes) = reseal(rng, &written, written.segments[at], &intact) {
            written.fs.replace_file(&files[at], bytes);
            let _ = (read(&written, Reading::Strict), read(&written, Reading::Salvage));
            written.fs.replace_file(&files[at], intact);
        }
    }
}

fn write(rng: &mut Rng) -> Written {
    let fs = MemoryFs::new();
    let shown = draws::shown(rng, &fs);
    let dir = Path::new(DIR);
    fs.create_dir_all(dir).expect("memory takes it");
    let pool = ArenaPool::new(SEGMENT_BYTES, 4);
    let mut segments = vec![1 + rng.below(100)];
    let prepare = |id, bytes| {
        let Ok(file) = SegmentFile::prepare(&*shown, dir, id, SEGMENT_BYTES as u64, None) else {
            panic!("memory takes it")
        };
        PreparedSegment::new(file, &pool, bytes).expect("memory takes it")
    };
    let secret = Secret(rng.next_u64());
    let log = Log::new(prepare(segments[0], 0), 0, Writes::Always, secret, Arc::default());
    let mut batches = Vec::new();
    while segments.len() < 4 {
        let payload = batch(rng);
        let durability = one_of(rng, &[Durability::Memory, Durability::Os, Durability::Disk]);
        let commit = || {
            log.commit(&payload, payload.sum(secret), log.epoch(), None, durability).expect("memory takes it")
        };
        match commit() {
            Appended::Done(last) => {
                batches.push((last + 1 - u64::from(payload.records()), payload.bytes().to_vec()));
            }
            Appended::Stale | Appended::Conflict(_) => unreachable!("nothing changed"),
            Appended::Full(segment) => {
                let next = segment + 1 + rng.below(3);
                log.rotate(segment, prepare(next, payload.bytes().len() + 96), |_| ())
                    .expect("memory takes it");
                segments.push(next);
            }
        }
    }
    let durable = log.durable_sequence();
    Written { fs: fs.clone(), shown: Arc::clone(&shown), secret, pool, segments, batches, durable }
}

fn batch(rng: &mut Rng) -> Payload {
    let mut payload = Payload::default();
    for _ in 0..=rng.below(12) {
        let (table, key, (kind, value)) =
            (1 + rng.below(TABLES) as u32, draws::key(rng, 60), draws::change(rng));
        match rng.chance(5) {
            true => payload.delete_range(table, draws::range(rng, Order::Lexical, 60)),
            false => {
                payload.push(table, Order::Lexical, &forebay_base::Record { kind, key: &key, value: &value })
            }
        }
    }
    payload
}

/// The last record of the batches that were seen.
fn last_of(written: &Written, seen: &[(u64, Vec<u8>)]) -> u64 {
    written.batches.get(seen.len()).map_or(u64::MAX, |(first, _)| first - 1)
}

/// Reads the log back, and looks at all of it as a write buffer.
fn read(written: &Written, reading: Reading) -> (forebay_base::Result<Recovered>, Vec<(u64, Vec<u8>)>) {
    let Written { shown, secret, pool, segments, durable, .. } = written;
    let jobs = Env::memory(0).jobs;
    let files = LogFiles { fs: &**shown, dir: Path::new(DIR), secret: *secret, jobs: &jobs };
    let bounds = Bounds { before: 0, flushed: (0, 0), known_durable: *durable, reading };
    let mut seen = Vec::new();
    let mut refill = Refill::new(1, SEGMENT_BYTES, *secret, pool);
    let recovered = recover(&files, segments, &bounds, &mut |frame| {
        seen.push((frame.header.sequence, frame.payload.to_vec()));
        refill.push(frame, pool)
    });
    let buffer = refill.finish(pool);
    for table in 1..=TABLES as u32 {
        let rows = TableRows { table, order: Order::Lexical, rule: None };
        buffer.find(&rows, 0, b"", usize::MAX, |_| true);
        buffer.cursors(&rows, &Range::all(), usize::MAX);
    }
    for notes in buffer.take_notes(|_| Some(Order::Lexical)) {
        let mut sorting = Sorting::new(&buffer, notes, Order::Lexical);
        while sorting.step().is_none() {}
    }
    (recovered, seen)
}

/// Damages a frame, and makes its checksums match. `None` where the segment has none.
fn reseal(rng: &mut Rng, written: &Written, segment: u64, intact: &[u8]) -> Option<Vec<u8>> {
    let path = names::log(Path::new(DIR), segment);
    let mut frames = Frames::in_file(&*written.shown, &path, written.secret, segment).expect("it is there");
    let mut found = Vec::new();
    while let Some(header) = frames.header().expect("it is read") {
        found.push((frames.place(), header));
        frames.pass(&header);
    }
    let (at, mut header) = *found.get(rng.index(found.len()))?;
    let mut payload = header.payload(written.secret, &intact[at..])?.to_vec();
    if rng.chance(60) {
        damage(rng, &mut payload);
    } else {
        let mut fields = header.encode(written.secret, segment, at);
        damage_in_place(rng, &mut fields[12..]);
        let word = |at: usize| forebay_base::wire::u64_at(&fields, at);
        (header.records, header.sequence, header.watermark) = (word(8) as u32, word(16), word(24));
    }
    let _ = Records::new(&payload).count();
    header.payload_sum = written.secret.payload_sum(&payload);
    header.payload_bytes = payload.len() as u32;
    let mut bytes = intact[..at].to_vec();
    bytes.extend(Header::encode(&header, written.secret, segment, at));
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(intact.get(bytes.len()..).unwrap_or_default());
    Some(bytes)
}
