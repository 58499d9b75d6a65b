//! Random commands on several connections and loops, held against a map; and what a server that was stopped has.

use std::collections::BTreeMap;

use forebay_server::Config;
use proptest::prelude::*;

use crate::client::{Got, Running};

#[derive(Clone, Debug)]
enum Command {
    Set(u8, u8),
    Get(u8),
    Del(u8, u8),
    Append(u8, u8),
    Incr(u8),
    Rename(u8, u8),
    Mget(u8, u8),
    Flush,
}

fn command() -> impl Strategy<Value = Command> {
    let key = || 0..6u8;
    prop_oneof![
        4 => (key(), 0..50u8).prop_map(|(key, value)| Command::Set(key, value)),
        4 => key().prop_map(Command::Get),
        2 => (key(), key()).prop_map(|(key, other)| Command::Del(key, other)),
        2 => (key(), 0..10u8).prop_map(|(key, more)| Command::Append(key, more)),
        3 => key().prop_map(Command::Incr),
        1 => (key(), key()).prop_map(|(from, to)| Command::Rename(from, to)),
        2 => (key(), key()).prop_map(|(key, other)| Command::Mget(key, other)),
        1 => Just(Command::Flush),
    ]
}

type Model = BTreeMap<u8, String>;

/// What is asked, and what the model answers.
fn step(model: &mut Model, command: &Command) -> (String, Got) {
    let bulk = |text: Option<&String>| text.map_or(Got::Null, |text| Got::bulk(text));
    match *command {
        Command::Set(key, value) => {
            model.insert(key, value.to_string());
            (format!("SET k{key} {value}"), Got::ok())
        }
        Command::Get(key) => (format!("GET k{key}"), bulk(model.get(&key))),
        Command::Del(key, other) => {
            let deleted = [key, other].iter().filter(|key| model.remove(key).is_some()).count();
            (format!("DEL k{key} k{other}"), Got::Int(deleted as i64))
        }
        Command::Append(key, more) => {
            let text = model.entry(key).or_default();
            *text += &more.to_string();
            (format!("APPEND k{key} {more}"), Got::Int(text.len() as i64))
        }
        Command::Incr(key) => {
            let text = model.get(&key).cloned().unwrap_or("0".into());
            let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            let answer = match number.and_then(|number| number.checked_add(1)) {
                Some(number) => {
                    model.insert(key, number.to_string());
                    Got::Int(number)
                }
                None if number.is_some() => Got::Error("ERR increment or decrement would overflow".into()),
                None => Got::Error("ERR value is not an integer or out of range".into()),
            };
            (format!("INCR k{key}"), answer)
        }
        Command::Rename(from, to) => {
            let answer = match model.remove(&from) {
                Some(text) => {
                    model.insert(to, text);
                    Got::ok()
                }
                None => Got::Error("ERR no such key".into()),
            };
            (format!("RENAME k{from} k{to}"), answer)
        }
        Command::Mget(key, other) => {
            let found = [key, other].iter().map(|key| bulk(model.get(key))).collect();
            (format!("MGET k{key} k{other}"), Got::Array(found))
        }
        Command::Flush => {
            model.clear();
            ("FLUSHDB".into(), Got::ok())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn equals_a_map(loops in 1..4usize, commands in prop::collection::vec((0..3usize, command()), 1..120)) {
        let server = Running::new(Config { loops, ..Config::default() });
        let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
        let mut model = Model::new();
        for (client, command) in &commands {
            let (line, expected) = step(&mut model, command);
            prop_assert_eq!(clients[*client].ask(&line), expected, "{}", line);
        }
    }
}

/// Counters that several connections on several loops add to, and moves of keys in both directions: nothing is lost, and
/// no two turns wait for each other.
#[test]
fn loops_do_not_lose_each_others_writes() {
    let server = Running::new(Config { loops: 3, ..Config::default() });
    let rounds = 300;
    std::thread::scope(|scope| {
        for number in 0..6 {
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..rounds {
                    client.ask("INCR hot");
                    let (one, other) = if number % 2 == 0 { ("a", "b") } else { ("b", "a") };
                    client.ask(&format!("MSET {one} {number} {other} {number}"));
                    let Got::Array(pair) = client.ask("MGET a b") else { panic!("two") };
                    assert_eq!(pair[0], pair[1], "both were written at once");
                }
            });
        }
    });
    assert_eq!(server.client().ask("GET hot"), Got::bulk(&(6 * rounds).to_string()));
}

#[test]
fn what_was_answered_is_there_after_a_restart() {
    use forebay::env::{Env, fs::MemoryFs};
    use forebay::{Database, Options};
    let env = Env::simulated(MemoryFs::new(), 1);
    let open = || Database::open("/db", Options::default().env(env.clone())).expect("it opens");
    {
        let server = Running::of(open(), Config::default());
        let mut client = server.client();
        assert_eq!(client.ask("SET kept value EX 1000"), Got::ok());
        assert_eq!(client.ask("SET gone value"), Got::ok());
        assert_eq!(client.ask("DEL gone"), Got::Int(1));
    }
    let server = Running::of(open(), Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("MGET kept gone"), Got::Array(vec![Got::bulk("value"), Got::Null]));
    assert!(matches!(client.ask("TTL kept"), Got::Int(left) if left > 0));
}
