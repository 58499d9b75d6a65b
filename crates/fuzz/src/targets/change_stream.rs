//! Change streams: damaged, they are refused, and what was applied before is a beginning of the source; resealed, whatever
//! comes of them is calm.

use std::collections::BTreeMap;

use forebay::aggregate::functions::Count;
use forebay::{Batch, ChangeBatch, Database, Durability, Error, Follower, Layout, Options, StreamEnd};
use forebay_base::checksum::checksum;
use forebay_base::wire::u32_at;
use forebay_env::{Env, Rng};

use crate::damage::{damage, damage_in_place};
use crate::draws;

const MAGIC_BYTES: usize = 8;
const HEAD_BYTES: usize = 16;

pub(crate) fn fuzz(rng: &mut Rng) {
    let (stream, told) = written(rng);
    let whole = applied(rng, &stream);
    assert!(
        matches!(whole.0, Ok(StreamEnd::Finished)) && whole.1 == told,
        "a follower has what its source has"
    );
    for _ in 0..6 {
        let mut bad = stream.clone();
        damage(rng, &mut bad);
        let (outcome, has) = applied(rng, &bad);
        assert!(told.starts_with(&has), "damage is taken for commits");
        match outcome {
            Ok(_) | Err(Error::Corruption { .. } | Error::NewerFormat { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        let mut bad = stream.clone();
        damage_in_place(rng, &mut bad[MAGIC_BYTES..]);
        reseal(&mut bad);
        let _ = applied(rng, &bad);
    }
}

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).keep_changes(1 << 20).env(env.clone())
}

/// A stream of a few commits of all kinds, in rounds, and what it tells.
fn written(rng: &mut Rng) -> (Vec<u8>, Vec<ChangeBatch>) {
    let env = Env::memory(rng.next_u64());
    let db = Database::open("/source", options(&env)).expect("memory can be written");
    let hashed = db.table("hashed").open().expect("it is new");
    let ordered = db.table("ordered").layout(Layout::leveling(3)).open_ordered().expect("it is new");
    let hits = db.aggregator("hits", Count).open().expect("it is new");
    let mut stream = db.stream_changes(0, Vec::new()).expect("nothing is gone");
    for _ in 0..1 + rng.below(3) {
        for _ in 0..rng.below(6) {
            let mut batch = Batch::new();
            for _ in 0..1 + rng.below(4) {
                let (key, value) = (draws::key(rng, 20), vec![7; rng.index(60)]);
                match rng.below(5) {
                    0 => batch.put(&hashed, &key, &value),
                    1 => batch.put(&ordered, &key, &value),
                    2 => batch.delete(&hashed, &key),
                    3 => batch.delete_range(&ordered, &key[..]..),
                    _ => batch.add(&hits, &key, ()),
                }
            }
            db.commit(batch, Durability::Memory).expect("memory can be written");
        }
        stream.advance().expect("nothing is gone");
    }
    let told = db.changes(0).expect("nothing is gone").map(|batch| batch.expect("it is sound"));
    let told = told.collect();
    (stream.finish().expect("memory can be written"), told)
}

/// What comes of a stream, and what the follower has then.
fn applied(rng: &mut Rng, stream: &[u8]) -> (Result<StreamEnd, Error>, Vec<ChangeBatch>) {
    let env = Env::memory(rng.next_u64());
    let mut follower = Follower::open("/copy", options(&env)).expect("it is new");
    let outcome = follower.apply(stream).map(|applied| applied.end);
    let db = follower.database();
    let has = db.changes(0).map(|changes| changes.map_while(Result::ok).collect()).unwrap_or_default();
    let shown: BTreeMap<_, _> = db.tables().into_iter().collect();
    for name in shown.keys() {
        if let Ok(table) = db.table(name).open() {
            let _ = table.iter().map(|entries| entries.map_while(Result::ok).count());
        }
    }
    (outcome, has)
}

/// Has each message tell the sums that it has now, as far as lengths lead.
fn reseal(stream: &mut [u8]) {
    let seed = u64::from_le_bytes(*b"FBCHANGE");
    let mut at = MAGIC_BYTES;
    while at + HEAD_BYTES <= stream.len() {
        let body_bytes = u32_at(stream, at + 8) as usize;
        let Some(end) = (at + HEAD_BYTES).checked_add(body_bytes).filter(|end| *end <= stream.len()) else {
            break;
        };
        stream[at + 13..at + HEAD_BYTES].fill(0);
        let body = checksum(seed, at as u64, &stream[at + HEAD_BYTES..end]);
        stream[at + 4..at + 8].copy_from_slice(&body.to_le_bytes());
        let head = checksum(seed, at as u64, &stream[at + 4..at + HEAD_BYTES]);
        stream[at..at + 4].copy_from_slice(&head.to_le_bytes());
        at = end;
    }
}
