//! Walks that go far: by a thread, with the answers that they have where they are short.

use forebay_server::Config;

use crate::client::{Client, Got, Running};

const COUNT: i64 = 20_000;

/// A large sorted set: the score of a member is its number.
fn filled(client: &mut Client) {
    for part in 0..COUNT / 1000 {
        let pairs = (part * 1000..(part + 1) * 1000).map(|number| format!("{number} m{number}"));
        let line = format!("ZADD z {}", pairs.collect::<Vec<_>>().join(" "));
        assert_eq!(client.ask(&line), Got::Int(1000));
    }
}

/// Behind writes of the same pipeline, and before others of it.
#[test]
fn far_ranks_and_counts_are_right() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let mut client = server.client();
    filled(&mut client);
    for rank in [0, 1, 4000, 4095, 4096, 9999, 10_000, COUNT - 4097, COUNT - 1] {
        let lines = [
            "ZADD z -1 first".to_string(),
            format!("ZRANK z m{rank}"),
            format!("ZREVRANK z m{rank} WITHSCORE"),
            format!("ZCOUNT z -inf {rank}"),
            format!("ZRANGE z {} {}", rank + 1, rank + 1),
            format!("ZRANGE z -inf +inf BYSCORE LIMIT {} 1", rank + 1),
            format!("ZREVRANGE z {rank} {rank} WITHSCORES"),
            "ZREM z first".to_string(),
        ];
        let turned = COUNT - rank;
        let score = rank.to_string();
        let member = || Got::Array(vec![Got::bulk(&format!("m{rank}"))]);
        let expected = [
            Got::Int(1),
            Got::Int(rank + 1),
            Got::Array(vec![Got::Int(turned - 1), Got::bulk(&score)]),
            Got::Int(rank + 2),
            member(),
            member(),
            Got::Array(vec![Got::bulk(&format!("m{}", turned - 1)), Got::bulk(&(turned - 1).to_string())]),
            Got::Int(1),
        ];
        assert_eq!(client.ask_all(&lines), expected, "of rank {rank}");
    }
    assert_eq!(client.ask("ZLEXCOUNT z - +"), Got::Int(COUNT));
    assert_eq!(client.ask("ZCOUNT z (5 (2"), Got::Int(0));
}

/// In a transaction they are of the same batch, and take as long as they take.
#[test]
fn a_transaction_walks_by_itself() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    filled(&mut client);
    for line in ["MULTI", "ZADD z -1 first", "ZRANK z m9999", "ZCOUNT z 0 inf", "ZRANGE z 10000 10000"] {
        client.ask(line);
    }
    let member = Got::Array(vec![Got::bulk("m9999")]);
    assert_eq!(client.ask("EXEC"), Got::Array(vec![Got::Int(1), Got::Int(10_000), Got::Int(COUNT), member]));
    for line in ["MULTI", "DBSIZE", "KEYS z*"] {
        client.ask(line);
    }
    assert_eq!(client.ask("EXEC"), Got::Array(vec![Got::Int(1), Got::Array(vec![Got::bulk("z")])]));
}

/// A thread looks at them, behind what was written before in the same pipeline.
#[test]
fn keys_are_named_behind_what_was_written() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let mut client = server.client();
    let lines = ["SET a 1", "KEYS *", "SET b 1", "KEYS ?", "DEL a", "KEYS a"].map(String::from);
    let all = client.ask_all(&lines);
    assert_eq!(all[1], Got::Array(vec![Got::bulk("a")]));
    assert!(matches!(&all[3], Got::Array(found) if found.len() == 2), "{all:?}");
    assert_eq!(all[5], Got::Array(Vec::new()));
}
