//! Headers and elements, as they stand in the tables: they agree at any moment, also in what a crash leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Layout, Options, PrefixFilter};
use forebay_server::Config;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::client::Running;
use crate::container_model::{Model, command, step};

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// What is wrong between the tables of database 0. `docs/format/server.md` says what is right.
pub(crate) fn faults(database: &Database) -> Vec<String> {
    let headers = database.table("0").time_to_live(std::time::Duration::MAX).open().expect("it opens");
    let elements = database.table("0.elements").layout(Layout::wb_tree_ordered());
    let elements = elements.prefix_filter(PrefixFilter::Bytes(8)).open_ordered().expect("it opens");
    let (mut of, mut faults) = (BTreeMap::<u64, Vec<(Vec<u8>, Vec<u8>)>>::new(), Vec::new());
    for entry in elements.iter().expect("it is read") {
        let (key, value) = entry.expect("it is read");
        of.entry(u64::from_be_bytes(key[..8].try_into().expect("a number"))).or_default().push((key, value));
    }
    for entry in headers.iter().expect("it is read") {
        let (key, stored) = entry.expect("it is read");
        if stored[0] == b's' {
            continue;
        }
        let (id, count, first) =
            (number(&stored[1..9]), number(&stored[9..17]), number(&stored[17..25]) as i64);
        let found = of.remove(&id).unwrap_or_default();
        let parts = |part: u8| found.iter().filter(move |(key, _)| key[8] == part);
        let mut check = |is_right: bool, what: &str| {
            if !is_right {
                faults.push(format!("{} of {}: {what}", stored[0] as char, key.escape_ascii()));
            }
        };
        check(count > 0, "no elements");
        check(parts(0).map(|(_, owner)| owner).eq([&key]), "its owner is another key");
        if stored[0] == b'l' {
            let places: Vec<u64> =
                parts(3).map(|(key, _)| u64::from_be_bytes(key[9..].try_into().expect("a place"))).collect();
            let start = first as u64 ^ 1 << 63;
            check(places.iter().copied().eq(start..start + count), "its places have a gap");
            continue;
        }
        check(parts(1).count() as u64 == count, "its count differs");
        if stored[0] == b'z' {
            let sortable = |score: f64| {
                let bits = score.to_bits();
                if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
            };
            let named = parts(1).map(|(key, score)| {
                (sortable(f64::from_le_bytes(score[..].try_into().expect("a score"))), key[13..].to_vec())
            });
            let scored = parts(2).map(|(key, _)| {
                (u64::from_be_bytes(key[9..17].try_into().expect("a score")), key[17..].to_vec())
            });
            check(named.collect::<BTreeSet<_>>() == scored.collect(), "names and scores differ");
        }
    }
    faults
}

/// Copies of the files that are taken while clients write: in each, whatever was under way, headers and elements agree.
#[test]
fn a_crash_parts_no_header_from_its_elements() {
    let files = MemoryFs::new();
    let open = |files| Database::open("/db", Options::default().env(Env::simulated(files, 1)));
    let server =
        Running::of(open(files.clone()).expect("it opens"), Config { loops: 2, ..Config::default() });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        for _ in 0..3 {
            let mut client = server.client();
            scope.spawn(move || {
                let (mut runner, mut model) = (TestRunner::deterministic(), Model::default());
                let commands = prop::collection::vec(command(), 50);
                while !is_over.load(Ordering::Relaxed) {
                    for command in commands.new_tree(&mut runner).expect("they are drawn").current() {
                        client.ask(&step(&mut model, &command).0);
                    }
                }
            });
        }
        let mut client = server.client();
        let mut found = Vec::new();
        for _ in 0..30 {
            for count in 0..100 {
                client.ask(&format!("HINCRBY counts {count} 1"));
            }
            let left = open(files.deep_clone());
            found.extend(left.map_or_else(|error| vec![error.to_string()], |left| faults(&left)));
        }
        // Whatever was found, the others end.
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(found, Vec::<String>::new());
    });
}
