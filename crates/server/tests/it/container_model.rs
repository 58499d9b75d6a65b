//! Random commands on hashes, sets, sorted sets and lists, held against those of the standard library.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forebay::env::{Env, fs::MemoryFs};
use forebay::{Database, Options};
use forebay_server::Config;
use proptest::prelude::*;

use crate::agreement::faults;
use crate::client::{Got, Running};
use crate::container_steps::{hash_step, int, list_step, set_step, sorted_step};

#[derive(Clone, Debug)]
pub(crate) enum Command {
    Hset(u8, u8, u8),
    Hget(u8, u8),
    Hdel(u8, u8, u8),
    Hincrby(u8, u8),
    Hlen(u8),
    Sadd(u8, u8, u8),
    Srem(u8, u8),
    Scard(u8),
    Sinter(u8, u8),
    Zadd(u8, i8, u8),
    Zrem(u8, u8),
    Zrange(u8, i8, i8),
    Zpopmin(u8),
    Zcount(u8, i8),
    Push(bool, u8, u8),
    Pop(bool, u8),
    Lrange(u8, i8, i8),
    Linsert(u8, u8, u8),
    Lrem(u8, i8, u8),
    Ltrim(u8, i8, i8),
    Del(u8),
    Rename(u8, u8),
    Copy(u8, u8),
    Set(u8),
    Keys,
}

pub(crate) fn command() -> impl Strategy<Value = Command> {
    let (key, name, at) = (|| 0..5u8, || 0..6u8, || -6..6i8);
    prop_oneof![
        4 => (key(), name(), 0..50u8).prop_map(|(key, field, value)| Command::Hset(key, field, value)),
        1 => (key(), name()).prop_map(|(key, field)| Command::Hget(key, field)),
        1 => (key(), name(), name()).prop_map(|(key, field, other)| Command::Hdel(key, field, other)),
        1 => (key(), name()).prop_map(|(key, field)| Command::Hincrby(key, field)),
        1 => key().prop_map(Command::Hlen),
        4 => (key(), name(), name()).prop_map(|(key, member, other)| Command::Sadd(key, member, other)),
        1 => (key(), name()).prop_map(|(key, member)| Command::Srem(key, member)),
        1 => key().prop_map(Command::Scard),
        1 => (key(), key()).prop_map(|(key, other)| Command::Sinter(key, other)),
        4 => (key(), at(), name()).prop_map(|(key, score, member)| Command::Zadd(key, score, member)),
        1 => (key(), name()).prop_map(|(key, member)| Command::Zrem(key, member)),
        2 => (key(), at(), at()).prop_map(|(key, from, to)| Command::Zrange(key, from, to)),
        1 => key().prop_map(Command::Zpopmin),
        1 => (key(), at()).prop_map(|(key, least)| Command::Zcount(key, least)),
        4 => (any::<bool>(), key(), name()).prop_map(|(left, key, value)| Command::Push(left, key, value)),
        1 => (any::<bool>(), key()).prop_map(|(left, key)| Command::Pop(left, key)),
        2 => (key(), at(), at()).prop_map(|(key, from, to)| Command::Lrange(key, from, to)),
        2 => (key(), name(), name()).prop_map(|(key, pivot, value)| Command::Linsert(key, pivot, value)),
        2 => (key(), -2..3i8, name()).prop_map(|(key, count, value)| Command::Lrem(key, count, value)),
        1 => (key(), at(), at()).prop_map(|(key, from, to)| Command::Ltrim(key, from, to)),
        2 => key().prop_map(Command::Del),
        1 => (key(), key()).prop_map(|(from, to)| Command::Rename(from, to)),
        1 => (key(), key()).prop_map(|(from, to)| Command::Copy(from, to)),
        1 => key().prop_map(Command::Set),
        1 => Just(Command::Keys),
    ]
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text,
    Hash(BTreeMap<u8, i64>),
    Set(BTreeSet<u8>),
    Sorted(BTreeMap<u8, i8>),
    List(VecDeque<u8>),
}

pub(crate) type Model = BTreeMap<u8, Value>;

/// What is asked, and what the model answers.
pub(crate) fn step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Hset(..)
        | Command::Hget(..)
        | Command::Hdel(..)
        | Command::Hincrby(..)
        | Command::Hlen(..) => hash_step(model, command),
        Command::Sadd(..) | Command::Srem(..) | Command::Scard(..) | Command::Sinter(..) => {
            set_step(model, command)
        }
        Command::Zadd(..)
        | Command::Zrem(..)
        | Command::Zrange(..)
        | Command::Zpopmin(..)
        | Command::Zcount(..) => sorted_step(model, command),
        Command::Push(..)
        | Command::Pop(..)
        | Command::Lrange(..)
        | Command::Linsert(..)
        | Command::Lrem(..)
        | Command::Ltrim(..) => list_step(model, command),
        _ => key_step(model, command),
    }
}

fn key_step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Del(key) => (format!("DEL k{key}"), int(usize::from(model.remove(key).is_some()))),
        Command::Rename(from, to) => {
            let got = match model.remove(from) {
                Some(value) => {
                    model.insert(*to, value);
                    Got::ok()
                }
                None => Got::Error("ERR no such key".into()),
            };
            (format!("RENAME k{from} k{to}"), got)
        }
        Command::Copy(from, to) => {
            let value = model.get(from).cloned();
            let got = match value {
                _ if from == to => Got::Error("ERR source and destination objects are the same".into()),
                Some(value) => {
                    model.insert(*to, value);
                    Got::Int(1)
                }
                None => Got::Int(0),
            };
            (format!("COPY k{from} k{to} REPLACE"), got)
        }
        Command::Set(key) => {
            model.insert(*key, Value::Text);
            (format!("SET k{key} text"), Got::ok())
        }
        Command::Keys => ("DBSIZE".into(), int(model.len())),
        other => panic!("{other:?} is of a container"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equals_collections(
        loops in 1..3usize,
        size in 1..6usize,
        commands in prop::collection::vec((0..3usize, command()), 1..160),
        others in prop::collection::vec(command(), 1..20),
    ) {
        let env = Env::simulated(MemoryFs::new(), 1);
        let open = || Database::open("/db", Options::default().env(env.clone())).expect("it opens");
        let mut model = Model::new();
        {
            let server = Running::of(open(), Config { loops, ..Config::default() });
            let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
            // Each in a pipeline: a turn sees what it has written.
            for some in commands.chunks(size) {
                let client = &mut clients[some[0].0];
                let (lines, expected): (Vec<_>, Vec<_>) = some.iter().map(|(_, command)| step(&mut model, command)).unzip();
                prop_assert_eq!(client.ask_all(&lines), expected, "{:?}", lines);
            }
        }
        let database = open();
        prop_assert_eq!(faults(&database), Vec::<String>::new());
        let server = Running::of(database, Config::default());
        let mut client = server.client();
        for command in &others {
            let (line, expected) = step(&mut model, command);
            prop_assert_eq!(client.ask(&line), expected, "{}", line);
        }
    }
}
