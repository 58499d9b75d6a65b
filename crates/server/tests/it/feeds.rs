//! `FB.CHANGES FOLLOW`: each commit once and in order, whoever reads slowly, and an end that says why.

use forebay::{Database, Options};
use forebay_server::Config;

use crate::client::{Client, Got, Running};

fn error_of(got: Got) -> String {
    match got {
        Got::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

fn change(parts: &[&str]) -> Got {
    Got::Array(parts.iter().map(|part| Got::bulk(part)).collect())
}

/// The next message: the number of its last record, and its changes.
fn next(client: &mut Client) -> (i64, Vec<Got>) {
    match client.read() {
        Got::Array(message) => match &message[..] {
            [word, Got::Int(last), Got::Array(changes)] if *word == Got::bulk("fb.changes") => {
                (*last, changes.clone())
            }
            _ => panic!("{message:?} tells no commit"),
        },
        other => panic!("{other:?} is no message"),
    }
}

/// The message that nothing more comes.
fn end(client: &mut Client) -> (i64, String) {
    match client.read() {
        Got::Array(message) => match &message[..] {
            [word, Got::Int(last), Got::Bulk(text)] if *word == Got::bulk("fb.changes.end") => {
                (*last, String::from_utf8_lossy(text).into_owned())
            }
            _ => panic!("{message:?} is no end"),
        },
        other => panic!("{other:?} is no message"),
    }
}

#[test]
fn commits_come_once_and_in_order_and_then_as_they_are_made() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (writer, old, new) = (&mut server.client(), &mut server.client(), &mut server.client());
    for line in ["SET a 1", "DEL a", "MSET b 2 c 3"] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
    }
    new.ask("HELLO 3");
    assert_eq!(old.ask("FB.CHANGES FOLLOW 0"), Got::Int(0));
    assert_eq!(new.ask("FB.CHANGES FOLLOW 0"), Got::Int(0));
    for number in 0..300 {
        assert_eq!(writer.ask(&format!("SET k{number} v{number}")), Got::ok());
    }
    for client in [&mut *old, &mut *new] {
        assert_eq!(next(client).1, [change(&["0", "put", "a", "s1"])]);
        assert_eq!(next(client).1, [change(&["0", "delete", "a"])]);
        let (mut last, both) = next(client);
        assert_eq!(both.len(), 2);
        for number in 0..300 {
            let (sequence, changes) = next(client);
            assert!(sequence > last, "{sequence} comes behind {last}");
            last = sequence;
            assert_eq!(changes, [change(&["0", "put", &format!("k{number}"), &format!("sv{number}")])]);
        }
        // What was told last is where another connection goes on.
        assert_eq!(client.ask("FB.CHANGES STOP"), Got::Int(last));
        assert!(error_of(client.ask("FB.CHANGES STOP")).contains("follows no changes"));
        assert_eq!(client.ask("FB.CHANGES FOLLOW $ TABLE 1"), Got::Int(last));
    }
    for line in ["SET zero 0", "SELECT 1", "SET one 1"] {
        assert_eq!(writer.ask(line), Got::ok());
    }
    let (_, changes) = next(old);
    assert_eq!(changes, [change(&["1", "put", "one", "s1"])]);
    assert_eq!(next(new).1, changes);
    // In version 3 all else goes on meanwhile.
    assert_eq!(new.ask("GET zero"), Got::bulk("0"));
    assert!(error_of(old.ask("GET zero")).contains("only (P|S)SUBSCRIBE"));
    assert_eq!(old.ask("RESET"), Got::Simple("RESET".into()));
    assert_eq!(old.ask("GET zero"), Got::bulk("0"));
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    client.ask("HELLO 3");
    assert_eq!(client.ask("SET k v"), Got::ok());
    for (line, told) in [
        ("FB.CHANGES FOLLOW", "syntax error"),
        ("FB.CHANGES FOLLOW x", "not an integer"),
        ("FB.CHANGES FOLLOW -1", "not an integer"),
        ("FB.CHANGES FOLLOW 0 TABLE", "syntax error"),
        ("FB.CHANGES FOLLOW 1000000", "changes after 1000000"),
    ] {
        assert!(error_of(client.ask(line)).contains(told), "{line}");
    }
    assert_eq!(client.ask("MULTI"), Got::ok());
    assert_eq!(client.ask("FB.CHANGES FOLLOW 0"), Got::Simple("QUEUED".into()));
    let Got::Array(done) = client.ask("EXEC") else { panic!("it is done") };
    assert!(error_of(done[0].clone()).contains("transaction"));
    let mut all: Vec<Client> = (0..64).map(|_| server.client()).collect();
    assert!(all.iter_mut().all(|one| one.ask("FB.CHANGES FOLLOW $") == Got::Int(1)));
    assert!(error_of(client.ask("FB.CHANGES FOLLOW 0")).contains("64 connections"));
    drop(all);
    let has_room = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        client.ask("FB.CHANGES FOLLOW $") == Got::Int(1)
    });
    assert!(has_room, "those who have gone have left room");
    assert!(error_of(client.ask("FB.CHANGES FOLLOW 0")).contains("already"));
}

/// One who may read some keys alone saw all of them by the feed.
#[test]
fn only_who_may_read_all_keys_is_told() {
    let server = Running::new(Config::default());
    let (admin, bob) = (&mut server.client(), &mut server.client());
    assert_eq!(admin.ask("ACL SETUSER bob on >secret ~app:* +@all"), Got::ok());
    assert_eq!(bob.ask("AUTH bob secret"), Got::ok());
    for line in ["FB.CHANGES 0", "FB.CHANGES FOLLOW 0"] {
        assert!(error_of(bob.ask(line)).starts_with("NOPERM"), "{line}");
    }
    assert_eq!(admin.ask("ACL SETUSER bob resetkeys %R~*"), Got::ok());
    assert_eq!(bob.ask("FB.CHANGES FOLLOW 0"), Got::Int(0));
    // Where that is taken away again, the connection goes.
    assert_eq!(admin.ask("ACL SETUSER bob resetkeys ~app:*"), Got::ok());
    assert!(bob.is_closed());
}

/// One that reads nothing keeps nobody from writing, and is told all once it reads.
#[test]
fn who_reads_slowly_holds_little_and_loses_nothing() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (writer, slow) = (&mut server.client(), &mut server.client());
    assert_eq!(slow.ask("FB.CHANGES FOLLOW 0"), Got::Int(0));
    let value = "v".repeat(64 << 10);
    for number in 0..600 {
        assert_eq!(writer.ask(&format!("SET k{} {value}", number % 50)), Got::ok());
    }
    let stats = match writer.ask("FB.STATS") {
        Got::Bulk(text) => serde_json::from_slice::<serde_json::Value>(&text).expect("it is JSON"),
        other => panic!("{other:?}"),
    };
    let held = stats["server"]["buffers_bytes"].as_u64().expect("a number");
    assert!(held < 8 << 20, "{held} bytes wait");
    let mut last = 0;
    for number in 0..600 {
        let (sequence, changes) = next(slow);
        assert!(sequence > last);
        last = sequence;
        let key = format!("k{}", number % 50);
        assert_eq!(changes, [change(&["0", "put", &key, &format!("s{value}")])]);
    }
}

#[test]
fn a_rollback_ends_it_and_tells_so() {
    let server = Running::new(Config::default());
    let (writer, client) = (&mut server.client(), &mut server.client());
    client.ask("HELLO 3");
    assert_eq!(writer.ask("SET k old"), Got::ok());
    assert!(matches!(writer.ask("FB.SAVEPOINT CREATE before"), Got::Int(_)));
    assert!(matches!(client.ask("FB.CHANGES FOLLOW $"), Got::Int(_)));
    assert_eq!(writer.ask("SET k new"), Got::ok());
    let (last, changes) = next(client);
    assert_eq!(changes, [change(&["0", "put", "k", "snew"])]);
    assert_eq!(writer.ask("FB.ROLLBACK before"), Got::ok());
    let (told, text) = end(client);
    assert_eq!(told, last);
    assert!(text.starts_with("GONE ") && text.contains("rollback"), "{text}");
    // The connection goes on, and may follow anew.
    assert_eq!(client.ask("GET k"), Got::bulk("old"));
    assert!(matches!(client.ask("FB.CHANGES FOLLOW $"), Got::Int(_)));
}

#[test]
fn what_the_log_has_no_more_and_what_is_too_long_end_it() {
    let env = Running::files();
    let options = Options::default().memory_limit(4 << 20).env(env.clone());
    let database = Database::open("/db", options).expect("it opens");
    let server = Running::of(database, Config { buffers_bytes_max: 8 << 20, ..Config::default() });
    let (writer, client) = (&mut server.client(), &mut server.client());
    let value = "v".repeat(512 << 10);
    for number in 0..100 {
        assert_eq!(writer.ask(&format!("SET k{number} {value}")), Got::ok());
    }
    assert_eq!(client.ask("FB.CHANGES FOLLOW 1"), Got::Int(1));
    let (_, text) = end(client);
    assert!(text.starts_with("GONE "), "{text}");
    assert!(matches!(client.ask("FB.CHANGES FOLLOW $"), Got::Int(_)));
    let long = "v".repeat(3 << 20);
    assert_eq!(writer.ask(&format!("SET long {long}")), Got::ok());
    let (last, text) = end(client);
    assert!(text.contains("the next commit has") && text.contains(&format!("from {}", last + 1)), "{text}");
}
