//! Containers that are too large to be shown at once.

use forebay_server::Config;

use crate::agreement::faults;
use crate::client::{Got, Running};
use crate::commands::check;

/// Each field that stays comes once by its scan; what is too long for one reply is refused, and nothing else suffers.
#[test]
fn large_ones_are_seen_in_pieces() {
    let server = Running::new(Config { buffers_bytes_max: 400_000, ..Config::default() });
    let mut client = server.client();
    for number in 0..3000 {
        client.ask(&format!("HSET h field:{number} {number}"));
        client.ask(&format!("RPUSH l {number}"));
    }
    let (mut cursor, mut seen) = ("0".to_string(), Vec::new());
    loop {
        let Got::Array(answer) = client.ask(&format!("HSCAN h {cursor} COUNT 70")) else { panic!("two") };
        let [Got::Bulk(next), Got::Array(found)] = &answer[..] else { panic!("a cursor and fields") };
        seen.extend(found.chunks(2).map(|pair| format!("{:?}", pair[0])));
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen.len(), 3000);
    seen.dedup();
    assert_eq!(seen.len(), 3000);
    let Got::Array(some) = client.ask("HRANDFIELD h 50") else { panic!("fields") };
    assert_eq!(
        some.iter().map(|one| format!("{one:?}")).collect::<std::collections::BTreeSet<_>>().len(),
        50
    );
    check(
        &mut client,
        &[
            ("HGETALL h", "!ERR"),
            ("HLEN h", "3000"),
            ("HRANDFIELD h -9223372036854775807", "!ERR"),
            ("SUNIONSTORE d h", "!WRONGTYPE"),
            ("COPY h d", "!ERR"),
            ("LRANGE l 0 -1", "!ERR"),
            ("LINDEX l 1500", "\"1500\""),
            ("LTRIM l 1400 1402", "OK"),
            ("LRANGE l 0 -1", "[\"1400\" \"1401\" \"1402\"]"),
            ("RPUSH l x", "4"),
            ("LPUSH l y", "5"),
            ("LRANGE l 0 -1", "[\"y\" \"1400\" \"1401\" \"1402\" \"x\"]"),
            ("DEL h l", "2"),
            ("HGETALL h", "[]"),
        ],
    );
    let long = vec![b'x'; 70_000];
    let Got::Error(told) = client.ask_bytes(&[b"HSET", b"h", &long, b"v"]) else { panic!("it is too long") };
    assert!(told.contains("70000 bytes"), "{told}");
}

/// What was looked up ahead ended the turn before its first request, and the next one, and all others.
#[test]
fn what_is_looked_up_ahead_leaves_room_for_the_request() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let long = vec![b'v'; 17 << 20];
    assert_eq!(client.ask_bytes(&[b"HSET", b"h", b"f", &long]), Got::Int(1));
    assert_eq!(client.ask("HSTRLEN h f"), Got::Int(long.len() as i64));
    assert!(matches!(client.ask("HGET h f"), Got::Bulk(got) if got == long));
    assert_eq!(client.ask_bytes(&[b"SET", b"k", &long[..9000]]), Got::ok());
    let names: Vec<String> = (0..1000).map(|number| format!("f{number}")).collect();
    assert!(
        matches!(client.ask(&format!("HMGET k {}", names.join(" "))), Got::Error(text) if text.contains("WRONGTYPE"))
    );
    assert_eq!(client.ask("HDEL h f"), Got::Int(1));
}

/// A transaction read as much as there was.
#[test]
fn a_transaction_reads_so_much() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let long = vec![b'v'; 15 << 20];
    for number in 0..8 {
        assert_eq!(client.ask_bytes(&[b"HSET", b"h", format!("f{number}").as_bytes(), &long]), Got::Int(1));
    }
    assert_eq!(client.ask("MULTI"), Got::ok());
    for number in 0..8 {
        assert_eq!(client.ask(&format!("HSTRLEN h f{number}")), Got::Simple("QUEUED".into()));
    }
    let Got::Array(answers) = client.ask("EXEC") else { panic!("answers") };
    assert_eq!(answers[0], Got::Int(long.len() as i64));
    assert!(
        matches!(&answers[7], Got::Error(text) if text.contains("read or written too much")),
        "{:?}",
        answers[7]
    );
}

/// What a transaction cuts off is in the table until its end: its copies had that, too, outside of their places.
#[test]
fn a_copy_has_nothing_that_its_transaction_has_cut_off() {
    let files = Running::files();
    {
        let server = Running::of(Running::open(&files), Config::default());
        let client = &mut server.client();
        let values: Vec<String> = (0..5000).map(|number| number.to_string()).collect();
        assert_eq!(client.ask(&format!("RPUSH l {}", values.join(" "))), Got::Int(5000));
        check(
            client,
            &[
                ("MULTI", "OK"),
                ("LTRIM l 2000 2002", "QUEUED"),
                ("RPUSH l x", "QUEUED"),
                ("COPY l copy", "QUEUED"),
                ("LPUSH copy y", "QUEUED"),
                ("EXEC", "[OK 4 1 5]"),
                ("LRANGE l 0 -1", "[\"2000\" \"2001\" \"2002\" \"x\"]"),
                ("LRANGE copy 0 -1", "[\"y\" \"2000\" \"2001\" \"2002\" \"x\"]"),
            ],
        );
    }
    assert_eq!(faults(&Running::open(&files)), Vec::<String>::new());
}

/// They were gathered to be counted, and refused where a reply has no room for them.
#[test]
fn what_large_sets_have_in_common_is_counted() {
    let server = Running::new(Config { buffers_bytes_max: 400_000, ..Config::default() });
    let client = &mut server.client();
    for part in 0..6 {
        let names: Vec<String> = (part * 500..(part + 1) * 500).map(|number| format!("m{number}")).collect();
        assert_eq!(client.ask(&format!("SADD a {}", names.join(" "))), Got::Int(500));
        assert_eq!(client.ask(&format!("SADD b {}", names.join(" "))), Got::Int(500));
        assert_eq!(client.ask(&format!("ZADD z 0 {}", names.join(" 0 "))), Got::Int(500));
    }
    check(
        client,
        &[
            ("SADD b other", "1"),
            ("SINTER a b", "!ERR"),
            ("SINTERCARD 2 a b", "3000"),
            ("SINTERCARD 2 b a LIMIT 2900", "2900"),
            ("SINTERCARD 2 a none", "0"),
            ("ZINTER 2 a z", "!ERR"),
            ("ZINTERCARD 2 b z", "3000"),
            ("ZINTERCARD 2 a z LIMIT 2900", "2900"),
            ("ZINTERCARD 2 z none", "0"),
        ],
    );
}
