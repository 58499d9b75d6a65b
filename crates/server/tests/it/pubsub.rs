//! Channels: who is told what, in which order, and what it costs those who do not listen.

use std::io::Write;

use forebay_server::Config;

use crate::client::{Client, Got, Running, encode};

fn told(words: &[&str]) -> Got {
    Got::Array(words.iter().map(|word| Got::bulk(word)).collect())
}

fn counted(word: &str, name: &str, count: i64) -> Got {
    Got::Array(vec![Got::bulk(word), Got::bulk(name), Got::Int(count)])
}

fn error_of(got: Got) -> String {
    match got {
        Got::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

/// Over several loops, so that most messages go from one to another.
fn server() -> Running {
    Running::new(Config { loops: 3, ..Config::default() })
}

#[test]
fn messages_come_by_name_and_pattern_in_the_order_of_one_publisher() {
    let server = server();
    let mut listeners: Vec<Client> = (0..7).map(|_| server.client()).collect();
    for listener in &mut listeners {
        assert_eq!(listener.ask("SUBSCRIBE news"), counted("subscribe", "news", 1));
        assert_eq!(listener.ask("PSUBSCRIBE n?ws"), counted("psubscribe", "n?ws", 2));
        assert_eq!(listener.ask("SSUBSCRIBE news"), counted("ssubscribe", "news", 1));
    }
    let mut publisher = server.client();
    assert_eq!(publisher.ask("PUBLISH none x"), Got::Int(0));
    assert_eq!(publisher.ask("SPUBLISH news shard"), Got::Int(7));
    let lines: Vec<String> = (0..500).map(|number| format!("PUBLISH news {number}")).collect();
    assert!(publisher.ask_all(&lines).iter().all(|got| *got == Got::Int(14)));
    for listener in &mut listeners {
        assert_eq!(listener.read(), told(&["smessage", "news", "shard"]));
        for number in 0..500 {
            let number = number.to_string();
            assert_eq!(listener.read(), told(&["message", "news", &number]));
            assert_eq!(listener.read(), told(&["pmessage", "n?ws", "news", &number]));
        }
        assert_eq!(listener.ask("UNSUBSCRIBE"), counted("unsubscribe", "news", 1));
        assert_eq!(listener.ask("PUNSUBSCRIBE"), counted("punsubscribe", "n?ws", 0));
    }
    assert_eq!(publisher.ask("PUBSUB CHANNELS"), Got::Array(Vec::new()));
    assert_eq!(publisher.ask("PUBSUB SHARDNUMSUB news"), Got::Array(vec![Got::bulk("news"), Got::Int(7)]));
    drop(listeners);
    let gone = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        publisher.ask("PUBLISH news x") == Got::Int(0) && publisher.ask("SPUBLISH news x") == Got::Int(0)
    });
    assert!(gone, "who has gone listens no more");
}

#[test]
fn what_may_be_asked_while_messages_come() {
    let server = server();
    let (mut old, mut new) = (server.client(), server.client());
    assert_eq!(old.ask("UNSUBSCRIBE"), Got::Array(vec![Got::bulk("unsubscribe"), Got::Null, Got::Int(0)]));
    assert_eq!(old.ask("SUBSCRIBE a"), counted("subscribe", "a", 1));
    assert!(error_of(old.ask("GET a")).starts_with("ERR Can't execute 'get'"));
    assert_eq!(old.ask("PING"), told(&["pong", ""]));
    assert_eq!(old.ask("PING hello"), told(&["pong", "hello"]));
    assert_eq!(old.ask("RESET"), Got::Simple("RESET".into()));
    assert_eq!(old.ask("PING"), Got::Simple("PONG".into()));
    new.ask("HELLO 3");
    assert_eq!(new.ask("SUBSCRIBE a"), counted("subscribe", "a", 1));
    assert_eq!(new.ask("SET k 1"), Got::ok());
    // A message behind the reply of the command that caused it.
    assert_eq!(new.ask("PUBLISH a x"), Got::Int(1));
    assert_eq!(new.read(), told(&["message", "a", "x"]));
    assert_eq!(new.ask("PUBSUB NUMSUB a b"), {
        Got::Array(vec![Got::bulk("a"), Got::Int(1), Got::bulk("b"), Got::Int(0)])
    });
    assert_eq!(new.ask("PSUBSCRIBE a* b*"), counted("psubscribe", "a*", 2));
    assert_eq!(new.read(), counted("psubscribe", "b*", 3));
    assert_eq!(new.ask("PUBSUB NUMPAT"), Got::Int(2));
    assert_eq!(new.ask("MULTI"), Got::ok());
    assert_eq!(new.ask("SUBSCRIBE c"), Got::Simple("QUEUED".into()));
    assert!(matches!(new.ask("EXEC"), Got::Array(all) if matches!(all[0], Got::Error(_))));
}

/// What was published stands behind what was written: whoever is told of it finds it.
#[test]
fn a_transaction_publishes_when_it_is_committed() {
    let server = server();
    let (mut listener, mut writer) = (server.client(), server.client());
    listener.ask("HELLO 3");
    assert_eq!(listener.ask("SUBSCRIBE done"), counted("subscribe", "done", 1));
    for line in ["MULTI", "PUBLISH done 1", "SET k 1", "DISCARD", "MULTI", "PUBLISH done 2", "SET k 2"] {
        writer.ask(line);
    }
    assert_eq!(writer.ask("EXEC"), Got::Array(vec![Got::Int(1), Got::ok()]));
    assert_eq!(listener.read(), told(&["message", "done", "2"]));
    assert_eq!(listener.ask("GET k"), Got::bulk("2"));
}

/// One that takes nothing is closed at its bound; who publishes, and who listens, go on.
#[test]
fn who_does_not_listen_to_its_messages_is_closed() {
    let server = Running::new(Config { buffers_bytes_max: 32 << 20, loops: 2, ..Config::default() });
    let (mut slow, mut fast, mut publisher) = (server.client(), server.client(), server.client());
    for listener in [&mut slow, &mut fast] {
        assert_eq!(listener.ask("SUBSCRIBE flood"), counted("subscribe", "flood", 1));
    }
    let text = vec![b'x'; 100_000];
    let mut heard = 0;
    let closed = (0..1000).any(|_| {
        let got = publisher.ask_bytes(&[b"PUBLISH", b"flood", &text]);
        assert!(matches!(fast.read(), Got::Array(words) if words[2] == Got::Bulk(text.clone())));
        heard += 1;
        got == Got::Int(1)
    });
    assert!(closed, "the slow one is closed; {heard} messages were published");
    assert_eq!(publisher.ask("PUBLISH flood end"), Got::Int(1));
    assert_eq!(fast.read(), told(&["message", "flood", "end"]));
}

#[test]
fn names_and_patterns_have_bounds() {
    let server = server();
    let mut client = server.client();
    client.ask("HELLO 3");
    let long = vec![b'*'; 1025];
    for word in [&b"SUBSCRIBE"[..], b"PSUBSCRIBE", b"SSUBSCRIBE"] {
        assert!(error_of(client.ask_bytes(&[word, &long])).contains("at most 1024 bytes"));
    }
    assert!(error_of(client.ask_bytes(&[b"PUBLISH", &long, b"x"])).contains("at most 1024 bytes"));
    assert!(error_of(client.ask_bytes(&[b"PUBSUB", b"CHANNELS", &long])).contains("at most 1024 bytes"));
    let name = |kind: u8, number: u32| [vec![kind; 1000], number.to_be_bytes().into()].concat();
    let many = |word: &'static [u8], kind, count| {
        let names: Vec<Vec<u8>> = (0..count).map(|number| name(kind, number)).collect();
        encode(&std::iter::once(word).chain(names.iter().map(Vec::as_slice)).collect::<Vec<_>>())
    };
    client.socket.write_all(&many(b"SUBSCRIBE", b'a', 2000)).expect("it is there");
    assert!(error_of(client.read()).contains("too many names"));
    client.socket.write_all(&many(b"PSUBSCRIBE", b'b', 300)).expect("it is there");
    assert!(error_of(client.read()).contains("too many patterns"));
    assert_eq!(client.ask("SUBSCRIBE a"), counted("subscribe", "a", 1));
}

/// It would be taken for the next reply.
#[test]
fn nothing_comes_behind_the_reply_of_who_listens_no_more() {
    let server = server();
    let mut client = server.client();
    client.ask("HELLO 3");
    for (leave, replies) in
        [("UNSUBSCRIBE a", counted("unsubscribe", "a", 0)), ("RESET", Got::Simple("RESET".into()))]
    {
        assert_eq!(client.ask("SUBSCRIBE a"), counted("subscribe", "a", 1));
        let lines = ["PUBLISH a x", leave, "ECHO b"].map(String::from);
        assert_eq!(client.ask_all(&lines), [Got::Int(1), replies, Got::bulk("b")]);
        assert_eq!(client.ask("PING"), Got::Simple("PONG".into()));
        assert_eq!(client.ask("SUBSCRIBE a a b"), counted("subscribe", "a", 1));
        assert_eq!(
            [client.read(), client.read()],
            [counted("subscribe", "a", 1), counted("subscribe", "b", 2)]
        );
        assert_eq!(server.client().ask("PUBLISH a y"), Got::Int(1));
        let mut read = client.read();
        if let Got::Array(words) = &mut read {
            assert_eq!(words.pop(), Some(Got::bulk("y")), "it listens again");
        }
        assert_eq!(client.ask("UNSUBSCRIBE a none"), counted("unsubscribe", "a", 1));
        assert_eq!(client.read(), counted("unsubscribe", "none", 1));
        assert_eq!(client.ask("UNSUBSCRIBE"), counted("unsubscribe", "b", 0));
        client.ask("HELLO 3");
    }
}

#[test]
fn a_search_for_names_ends() {
    let server = server();
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask("HELLO 3");
        let names: Vec<Vec<u8>> =
            (0..1500).map(|name| format!("{:a<1000}{number}.{name}", "").into()).collect();
        let words = std::iter::once(&b"SUBSCRIBE"[..]).chain(names.iter().map(Vec::as_slice));
        client.socket.write_all(&encode(&words.collect::<Vec<_>>())).expect("it is there");
        (0..names.len()).for_each(|_| drop(client.read()));
    }
    let mut asker = server.client();
    let slow = "*".to_string() + &"a".repeat(500) + "c";
    assert!(error_of(asker.ask(&format!("PUBSUB CHANNELS {slow}"))).contains("too many channels"));
    assert!(matches!(asker.ask("PUBSUB CHANNELS *.7"), Got::Array(names) if names.len() == 3));
}
