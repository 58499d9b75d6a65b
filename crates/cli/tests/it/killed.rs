//! `kill -9` of a load at any moment: what it acknowledged is there.
//!
//! 1. A load reads random keys from a pipe, and tells how many are acknowledged.
//! 2. At a moment drawn from the seed it is killed.
//! 3. The keys it had acknowledged are looked up, and the next load goes on with the same database, so that
//!    what one kill leaves is what the next recovers from.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::Duration;

use crate::tool::Folder;

/// Databases, side by side.
const DATABASES: u64 = 2;
/// Kills of each.
const KILLS: u64 = 25;

/// A generator that needs no more than to differ from seed to seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    std::thread::scope(|scope| {
        for database in 0..DATABASES {
            scope.spawn(move || kill_many_times(database));
        }
    });
}

fn kill_many_times(seed: u64) {
    let folder = Folder::new(&format!("killed-{seed}"));
    let mut random = Random(seed);
    let mut before: Vec<u64> = Vec::new();
    for round in 0..KILLS {
        let key_seed = seed << 32 | round;
        let moment = Duration::from_micros(random.next() % 900_000);
        let acknowledged = load_and_kill(&folder, key_seed, moment);
        assert_present(&folder, key_seed, acknowledged);
        before.push(acknowledged);
    }
    for (round, acknowledged) in before.iter().enumerate() {
        assert_present(&folder, seed << 32 | round as u64, *acknowledged);
    }
    assert!(before.iter().sum::<u64>() > 0, "no kill came behind a report");
    folder.ok("verify db");
}

/// Feeds a load, kills it at the moment, and gives the last number it acknowledged.
fn load_and_kill(folder: &Folder, key_seed: u64, moment: Duration) -> u64 {
    let words = "load db t - --format fixed:8,8 --batch 100 --memory 16M --json";
    let arguments: Vec<&str> = words.split(' ').collect();
    let mut child = folder.command(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = child.stdout.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut keys = Random(key_seed);
            loop {
                let mut chunk = Vec::new();
                for _ in 0..1000 {
                    let key = keys.next();
                    chunk.extend_from_slice(&key.to_be_bytes());
                    chunk.extend_from_slice(&(!key).to_be_bytes());
                }
                // The pipe breaks when the load is killed.
                if input.write_all(&chunk).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let reports = scope.spawn(move || {
            let mut acknowledged = 0;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The last line may be cut short.
                if let Ok(report) = serde_json::from_str::<serde_json::Value>(&line) {
                    acknowledged = report["acknowledged"].as_u64().unwrap();
                }
            }
            acknowledged
        });
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        reports.join().unwrap()
    })
}

/// Looks up the first `count` keys of a seed.
fn assert_present(folder: &Folder, key_seed: u64, count: u64) {
    if count == 0 {
        return;
    }
    let mut child = folder
        .command(&["get", "db", "t", "-", "--hex", "--memory", "16M"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = child.stdin.take().unwrap();
    let mut answers = String::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut keys = Random(key_seed);
            let text: String = (0..count).map(|_| format!("{:016x}\n", keys.next())).collect();
            ask.write_all(text.as_bytes()).unwrap();
        });
        child.stdout.take().unwrap().read_to_string(&mut answers).unwrap();
    });
    assert!(child.wait().unwrap().success(), "an acknowledged record is missing");
    let mut keys = Random(key_seed);
    for (number, answer) in answers.lines().enumerate() {
        assert_eq!(answer, format!("{:016x}", !keys.next()), "the value of record {number}");
    }
    assert_eq!(answers.lines().count() as u64, count);
}
