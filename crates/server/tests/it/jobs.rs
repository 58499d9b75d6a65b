//! Commands that take long, and what happens meanwhile.

use std::io::Write;
use std::net::TcpStream;

use forebay_server::Config;

use crate::client::{Got, Running, encode};

/// What a merge has read of the database as it was before a rollback was written behind it.
#[test]
fn a_merge_writes_nothing_behind_a_rollback() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (client, other) = (&mut server.client(), &mut server.client());
    for name in ["source", "target"] {
        assert_eq!(client.ask(&format!("AGG.CREATE {name} KEY k FUNCTIONS count")), Got::ok());
    }
    assert!(matches!(client.ask("FB.SAVEPOINT CREATE before"), Got::Int(1..)));
    let names: Vec<String> = (0..20_000).map(|number| format!("k{number}")).collect();
    for _ in 0..3 {
        assert_eq!(client.ask(&format!("AGG.ADD source {}", names.join(" "))), Got::Int(20_000));
        client.socket.write_all(&encode(&[b"AGG.MERGE", b"target", b"source"])).expect("it is there");
        // It has begun, or not: either way nothing of it is to stay.
        assert_eq!(other.ask("FB.ROLLBACK before"), Got::ok());
        match client.read() {
            Got::Error(told) => assert!(told.contains("rolled back meanwhile"), "{told}"),
            merged => assert!(matches!(merged, Got::Int(_)), "{merged:?}"),
        }
        assert_eq!(client.ask("AGG.TOP source 1"), Got::Array(Vec::new()));
        assert_eq!(client.ask("AGG.TOP target 1"), Got::Array(Vec::new()));
    }
}

/// Keys of a count that is remembered are those that there are.
#[test]
fn keys_are_counted_anew_when_some_were_written() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (client, other) = (&mut server.client(), &mut server.client());
    for number in 0..50 {
        assert_eq!(other.ask(&format!("SET k{number} v")), Got::ok());
        assert_eq!(
            [client.ask("DBSIZE"), client.ask("DBSIZE")],
            [Got::Int(number + 1), Got::Int(number + 1)]
        );
    }
    assert!(matches!(client.ask("FB.SAVEPOINT CREATE full"), Got::Int(1..)));
    assert_eq!(other.ask("DEL k1 k2"), Got::Int(2));
    assert_eq!(client.ask("DBSIZE"), Got::Int(48));
    assert_eq!([other.ask("FLUSHDB"), client.ask("DBSIZE")], [Got::ok(), Got::Int(0)]);
    assert_eq!([other.ask("FB.ROLLBACK full"), client.ask("DBSIZE")], [Got::ok(), Got::Int(50)]);
    assert_eq!([client.ask("SELECT 1"), client.ask("DBSIZE")], [Got::ok(), Got::Int(0)]);
}

/// A commit that is too long for a reply is not read in again and again: who asks is told how to go on.
#[test]
fn a_commit_that_no_reply_can_have_is_passed() {
    let server = Running::new(Config { buffers_bytes_max: 1 << 20, ..Config::default() });
    let client = &mut server.client();
    assert_eq!(client.ask("SET a 1"), Got::ok());
    let lines: Vec<String> = std::iter::once("MULTI".to_string())
        .chain((0..5).map(|number| format!("SETRANGE k{number} 60000 x")))
        .chain(["EXEC".to_string()])
        .collect();
    assert!(!client.ask_all(&lines).iter().any(|got| matches!(got, Got::Error(_))));
    assert_eq!(client.ask("SET b 2"), Got::ok());
    let Got::Array(all) = client.ask("FB.CHANGES 0") else { panic!("changes come") };
    let [Got::Array(first)] = &all[..] else { panic!("{all:?}") };
    let Got::Int(number) = first[0] else { panic!("{first:?}") };
    let Got::Error(told) = client.ask(&format!("FB.CHANGES {number}")) else { panic!("it is too long") };
    let behind = told.split("from ").nth(1).and_then(|rest| rest.split(',').next()).expect("a number");
    let Got::Array(all) = client.ask(&format!("FB.CHANGES {behind}")) else { panic!("changes come") };
    assert_eq!(all.len(), 1);
}

/// A thread of somebody who looks kept the database open behind the server's end.
#[test]
fn who_looks_does_not_keep_a_server_that_ends() {
    let files = Running::files();
    let metrics = Some(([127, 0, 0, 1], 0).into());
    for _ in 0..3 {
        let server = Running::of(Running::open(&files), Config { metrics, ..Config::default() });
        let address = server.metrics.expect("it listens");
        let mut slow = TcpStream::connect(address).expect("it listens");
        slow.write_all(b"GET /stats.json HTTP/1.1\r\n").expect("it is there");
        // Those that came before are taken before.
        let mut other = TcpStream::connect(address).expect("it listens");
        other.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is there");
        std::io::Read::read_to_end(&mut other, &mut Vec::new()).expect("an answer comes");
        drop(server);
        Running::open(&files).close().expect("it is closed in order");
    }
}
