//! Commands, as Redis answers them.

use forebay_server::Config;

use crate::client::{Client, Got, Running};

/// Asks line after line. What is expected stands as `redis-cli` shows it, in short.
pub(crate) fn check(client: &mut Client, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        assert_eq!(shown(&client.ask(line)), *expected, "{line}");
    }
}

fn shown(got: &Got) -> String {
    match got {
        Got::Simple(text) => text.clone(),
        Got::Error(text) => format!("!{}", text.split(' ').next().unwrap_or_default()),
        Got::Int(number) => number.to_string(),
        Got::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Got::Null => "nil".into(),
        Got::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(" ")),
    }
}

#[test]
fn texts() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("SET a 1", "OK"),
            ("SET a 2 NX", "nil"),
            ("SET b 2 XX", "nil"),
            ("SET a 3 XX GET", "\"1\""),
            ("SET a 4 NX GET", "\"3\""),
            ("GET a", "\"3\""),
            ("SET a 5 EX 0", "!ERR"),
            ("SET a 5 EX 10 PX 10", "!ERR"),
            ("SET a 5 NX XX", "!ERR"),
            ("SET a 5 EX 100", "OK"),
            ("TTL a", "100"),
            ("SET a 6 KEEPTTL", "OK"),
            ("TTL a", "100"),
            ("SET a 6", "OK"),
            ("TTL a", "-1"),
            ("SETNX a 7", "0"),
            ("SETNX n 7", "1"),
            ("SETEX e 10 v", "OK"),
            ("PSETEX e 0 v", "!ERR"),
            ("GETSET a 8", "\"6\""),
            ("GETDEL a", "\"8\""),
            ("GETDEL a", "nil"),
            ("GETEX e PERSIST", "\"v\""),
            ("TTL e", "-1"),
            ("MSET x 1 y 2 x 3", "OK"),
            ("MGET x y nothing", "[\"3\" \"2\" nil]"),
            ("MSET x", "!ERR"),
            ("MSETNX y 1 z 2", "0"),
            ("GET z", "nil"),
            ("MSETNX z 1 w 2", "1"),
            ("APPEND z 23", "3"),
            ("STRLEN z", "3"),
            ("GETRANGE z 1 -1", "\"23\""),
            ("GETRANGE z -100 100", "\"123\""),
            ("GETRANGE z 2 1", "\"\""),
            ("SETRANGE z 5 x", "6"),
            ("GET z", "\"123\\x00\\x00x\""),
            ("SETRANGE z -1 x", "!ERR"),
        ],
    );
}

#[test]
fn numbers() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("INCR n", "1"),
            ("INCRBY n 41", "42"),
            ("DECR n", "41"),
            ("DECRBY n 50", "-9"),
            ("SET big 9223372036854775807", "OK"),
            ("INCR big", "!ERR"),
            ("DECRBY n -9223372036854775808", "!ERR"),
            ("SET t 01", "OK"),
            ("INCR t", "!ERR"),
            ("INCRBYFLOAT f 10.5", "\"10.5\""),
            ("INCRBYFLOAT f 0.5", "\"11\""),
            ("INCRBYFLOAT f nothing", "!ERR"),
            ("SET e 1 EX 100", "OK"),
            ("INCR e", "2"),
            ("TTL e", "100"),
        ],
    );
}

#[test]
fn keys_and_their_time() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("SET a 1", "OK"),
            ("EXISTS a a b", "2"),
            ("TYPE a", "string"),
            ("TYPE b", "none"),
            ("RENAME b c", "!ERR"),
            ("RENAME a c", "OK"),
            ("SET d 2", "OK"),
            ("RENAMENX c d", "0"),
            ("RENAMENX c e", "1"),
            ("COPY e d", "0"),
            ("COPY e d REPLACE", "1"),
            ("GET d", "\"1\""),
            ("COPY e e DB 1", "1"),
            ("SELECT 1", "OK"),
            ("GET e", "\"1\""),
            ("DBSIZE", "1"),
            ("FLUSHDB", "OK"),
            ("DBSIZE", "0"),
            ("SELECT 0", "OK"),
            ("SELECT 16", "!ERR"),
            ("DBSIZE", "2"),
            ("EXPIRE e 100", "1"),
            ("EXPIRE e 200 NX", "0"),
            ("EXPIRE e 50 GT", "0"),
            ("EXPIRE e 50 LT", "1"),
            ("EXPIRE e 60 GT LT", "!ERR"),
            ("TTL e", "50"),
            ("PERSIST e", "1"),
            ("PERSIST e", "0"),
            ("EXPIRE e 50 GT", "0"),
            ("PEXPIREAT e 4000000000000", "1"),
            ("PEXPIRETIME e", "4000000000000"),
            ("EXPIRE e -1", "1"),
            ("EXISTS e", "0"),
            ("TTL e", "-2"),
            ("DEL d d x", "1"),
            ("RANDOMKEY", "nil"),
            ("SET one 1", "OK"),
            ("RANDOMKEY", "\"one\""),
            ("FLUSHALL", "OK"),
            ("EXISTS one", "0"),
        ],
    );
}

#[test]
fn every_key_comes_once_by_scan() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    for number in 0..500 {
        client.ask(&format!("SET key:{number} {number}"));
    }
    let (mut cursor, mut seen) = ("0".to_string(), Vec::new());
    loop {
        let Got::Array(answer) = client.ask(&format!("SCAN {cursor} COUNT 37 MATCH key:*")) else {
            panic!("two")
        };
        let [Got::Bulk(next), Got::Array(keys)] = &answer[..] else { panic!("a cursor and keys") };
        seen.extend(keys.iter().map(shown));
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen.len(), 500);
    seen.dedup();
    assert_eq!(seen.len(), 500);
    let Got::Array(some) = client.ask("KEYS key:4?") else { panic!("keys") };
    assert_eq!(some.len(), 10);
    check(
        &mut client,
        &[("SCAN x", "!ERR"), ("SCAN 0 COUNT 0", "!ERR"), ("SCAN 0 TYPE hash COUNT 1000", "[\"0\" []]")],
    );
}

#[test]
fn rows_of_bits() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("SETBIT b 7 1", "0"),
            ("SETBIT b 7 1", "1"),
            ("GETBIT b 7", "1"),
            ("GETBIT b 100", "0"),
            ("SETBIT b 16 1", "0"),
            ("STRLEN b", "3"),
            ("BITCOUNT b", "2"),
            ("BITCOUNT b 1 -1", "1"),
            ("BITCOUNT b 5 16 BIT", "2"),
            ("BITPOS b 1", "7"),
            ("BITPOS b 1 1", "16"),
            ("BITPOS b 0", "0"),
            ("BITPOS nothing 0", "0"),
            ("BITPOS nothing 1", "-1"),
            ("SET f \u{7f}", "OK"),
            ("SET x foobar", "OK"),
            ("SET y abcdef", "OK"),
            ("BITOP AND z x y", "6"),
            ("GET z", "\"`bc`ab\""),
            ("BITOP NOT z x y", "!ERR"),
            ("BITOP OR z nothing", "0"),
            ("EXISTS z", "0"),
            ("SETBIT b -1 1", "!ERR"),
        ],
    );
}

#[test]
fn what_is_watched_ends_a_transaction() {
    let server = Running::new(Config::default());
    let (mut one, mut other) = (server.client(), server.client());
    check(
        &mut one,
        &[("SET k 1", "OK"), ("WATCH k", "OK"), ("MULTI", "OK"), ("INCR k", "QUEUED"), ("WATCH k", "!ERR")],
    );
    check(&mut other, &[("SET k 5", "OK")]);
    check(&mut one, &[("EXEC", "nil"), ("GET k", "\"5\""), ("EXEC", "!ERR"), ("DISCARD", "!ERR")]);
    // Watched no more.
    check(&mut one, &[("MULTI", "OK"), ("INCR k", "QUEUED"), ("GET k", "QUEUED"), ("EXEC", "[6 \"6\"]")]);
    check(&mut one, &[("WATCH k", "OK"), ("UNWATCH", "OK"), ("MULTI", "OK"), ("INCR k", "QUEUED")]);
    check(&mut other, &[("DEL k", "1"), ("FLUSHALL", "OK")]);
    check(&mut one, &[("EXEC", "[1]")]);
    // Watched, and all is dropped.
    check(&mut one, &[("WATCH k", "OK"), ("MULTI", "OK"), ("PING", "QUEUED")]);
    check(&mut other, &[("FLUSHDB", "OK")]);
    check(&mut one, &[("EXEC", "nil")]);
    // One that was not there is not there as before.
    check(&mut one, &[("WATCH nothing", "OK"), ("MULTI", "OK"), ("PING", "QUEUED")]);
    check(&mut other, &[("FLUSHDB", "OK")]);
    check(&mut one, &[("EXEC", "[PONG]")]);
    // One that is refused spoils all; one that fails, itself only.
    check(&mut one, &[("MULTI", "OK"), ("NOSUCH", "!ERR"), ("PING", "QUEUED"), ("EXEC", "!EXECABORT")]);
    check(
        &mut one,
        &[
            ("SET t text", "OK"),
            ("MULTI", "OK"),
            ("INCR t", "QUEUED"),
            ("SET u 1", "QUEUED"),
            ("EXEC", "[!ERR OK]"),
        ],
    );
    check(&mut one, &[("MULTI", "OK"), ("SET u 2", "QUEUED"), ("DISCARD", "OK"), ("GET u", "\"1\"")]);
}
