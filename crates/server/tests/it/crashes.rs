//! Power that goes at any write of the database: what was acknowledged as durable is there, nothing is there by half, and
//! headers agree with elements. `FOREBAY_CRASHES=1000 FOREBAY_SEED=7 cargo test -p forebay-server --test it crashes` runs more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forebay::env::Env;
use forebay::{Database, Durability, Options};
use forebay_env::fs::CrashFs;
use forebay_server::Config;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config as Draws, RngAlgorithm, TestRng, TestRunner};

use crate::agreement::faults;
use crate::client::{Client, Got, Running};
use crate::container_model::{Command, Model, Value, command, step};

fn told(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().map_or(usual, |text| text.parse().expect("a number"))
}

fn number<T: std::str::FromStr>(got: &Got) -> T {
    let Got::Bulk(text) = got else { panic!("{got:?} is no text") };
    let text = String::from_utf8_lossy(text);
    text.trim_start_matches('f').parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn array(got: Got) -> Vec<Got> {
    match got {
        Got::Array(all) => all,
        other => panic!("{other:?} is no array"),
    }
}

/// What a server has.
fn all_of(client: &mut Client) -> Model {
    let mut model = Model::new();
    for key in 0..5 {
        let Got::Simple(kind) = client.ask(&format!("TYPE k{key}")) else { panic!("a type") };
        let value = match &kind[..] {
            "none" => continue,
            "string" => Value::Text,
            "hash" => {
                let all = array(client.ask(&format!("HGETALL k{key}")));
                Value::Hash(
                    all.chunks(2)
                        .map(|pair| (number(&pair[0]), number(&pair[1])))
                        .collect::<BTreeMap<_, _>>(),
                )
            }
            "set" => {
                let all = array(client.ask(&format!("SMEMBERS k{key}")));
                Value::Set(all.iter().map(number).collect::<BTreeSet<_>>())
            }
            "zset" => {
                let all = array(client.ask(&format!("ZRANGE k{key} 0 -1 WITHSCORES")));
                Value::Sorted(
                    all.chunks(2)
                        .map(|pair| (number(&pair[0]), number(&pair[1])))
                        .collect::<BTreeMap<_, _>>(),
                )
            }
            _ => {
                let all = array(client.ask(&format!("LRANGE k{key} 0 -1")));
                Value::List(all.iter().map(number).collect::<VecDeque<_>>())
            }
        };
        model.insert(key, value);
    }
    model
}

/// Some lines that are sent at once, and what is there behind each as far as that may be left alone.
struct Part {
    lines: Vec<String>,
    expected: Vec<Got>,
    states: Vec<Model>,
}

/// The next part: a pipeline, or a transaction, of which a crash leaves all or nothing.
fn part(model: &mut Model, commands: Vec<Command>, is_transaction: bool) -> Part {
    // A transaction cannot look at all keys behind its own writes.
    let commands =
        commands.into_iter().filter(|command| !is_transaction || !matches!(command, Command::Keys));
    let (mut lines, mut expected, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for command in commands {
        let (line, got) = step(model, &command);
        lines.push(line);
        expected.push(got);
        states.push(model.clone());
    }
    if is_transaction {
        let replies = std::mem::take(&mut expected);
        expected =
            [vec![Got::ok()], vec![Got::Simple("QUEUED".into()); lines.len()], vec![Got::Array(replies)]]
                .concat();
        states = vec![model.clone()];
        lines.insert(0, "MULTI".into());
        lines.push("EXEC".into());
    }
    Part { lines, expected, states }
}

/// Sends parts until the power is gone. Returns what may be there then: what was acknowledged last, and what comes behind it.
fn until_the_power_goes(
    client: &mut Client,
    runner: &mut TestRunner,
    files: &CrashFs,
    mut model: Model,
) -> Vec<Model> {
    let mut left = vec![model.clone()];
    let drawn = (prop::collection::vec(command(), 1..12), prop::bool::weighted(0.3));
    // More than any crash waits for.
    for _ in 0..10_000 {
        let (commands, is_transaction) = drawn.new_tree(runner).expect("it is drawn").current();
        let part = part(&mut model, commands, is_transaction);
        let Some(replies) = client.try_all(&part.lines) else {
            left.extend(part.states);
            return left;
        };
        let right = replies.iter().zip(&part.expected).take_while(|(got, expected)| got == expected).count();
        if right < part.expected.len() {
            assert!(
                files.is_off(),
                "{:?} is answered by {replies:?}, and not {:?}",
                part.lines,
                part.expected
            );
            // Of a pipeline some were acknowledged.
            let is_whole = part.states.len() != part.expected.len();
            left = if right > 0 && !is_whole {
                part.states[right - 1..].to_vec()
            } else {
                [left, part.states].concat()
            };
            return left;
        }
        left = part.states.last().cloned().into_iter().collect();
        if left.is_empty() {
            left.push(model.clone());
        }
    }
    panic!("the power did not go")
}

/// One history: two crashes, and what each has left.
fn history(seed: u64) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(Draws::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let open = |files: &std::sync::Arc<CrashFs>| {
        let options = Options::default().memory_limit(16 << 20);
        Database::open("/db", options.env(Env::simulated(files.clone(), seed)))
    };
    let config = || Config { durability: Durability::Disk, ..Config::default() };
    let mut files = CrashFs::new(seed);
    let mut model = Model::new();
    for _ in 0..2 {
        let database = open(&files).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let server = Running::of(database, config()).failing();
        let mut client = server.client();
        let waits = (1..400u64).new_tree(&mut runner).expect("it is drawn").current();
        files.crash_at(files.operations() + waits);
        let left = until_the_power_goes(&mut client, &mut runner, &files, model.clone());
        drop((client, server));
        files = files.power_cycle();
        let database = open(&files).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(faults(&database), Vec::<String>::new(), "seed {seed}");
        let server = Running::of(database, config());
        model = all_of(&mut server.client());
        assert!(left.contains(&model), "seed {seed}: {model:?} is there, and not one of {left:?}");
    }
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_any_write() {
    let first = told("FOREBAY_SEED", 1);
    (first..first + told("FOREBAY_CRASHES", 12)).for_each(history);
}
