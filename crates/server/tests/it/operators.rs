//! What operators ask: who is there, that others end or wait, and how keys are kept.

use std::io::Write;
use std::time::Duration;

use forebay_server::Config;

use crate::client::{Client, Got, Running, encode};
use crate::commands::check;

fn send(client: &mut Client, line: &str) {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    client.socket.write_all(&encode(&words)).expect("it is there");
}

fn text(got: Got) -> String {
    match got {
        Got::Bulk(bytes) => String::from_utf8(bytes).expect("a text"),
        other => panic!("{other:?} is no text"),
    }
}

/// The value of a field in a line on a client.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let pair = line.split_whitespace().find_map(|pair| pair.split_once('=').filter(|pair| pair.0 == name));
    pair.unwrap_or_else(|| panic!("no {name} in {line}")).1
}

fn id(client: &mut Client) -> i64 {
    match client.ask("CLIENT ID") {
        Got::Int(id) => id,
        other => panic!("{other:?}"),
    }
}

/// The line on a client, once that is as wanted: each tells of itself behind its round.
fn line_of(watcher: &mut Client, id: i64, is_wanted: impl Fn(&str) -> bool) -> String {
    for _ in 0..2000 {
        let line = text(watcher.ask(&format!("CLIENT LIST ID {id}")));
        if is_wanted(&line) {
            return line;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{}", text(watcher.ask("CLIENT LIST")));
}

#[test]
fn each_client_has_a_line() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (mut watcher, mut client) = (server.client(), server.client());
    for line in ["CLIENT SETNAME me", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1.2", "SELECT 3"]
    {
        assert_eq!(client.ask(line), Got::ok(), "{line}");
    }
    let number = id(&mut client);
    let line =
        line_of(&mut watcher, number, |line| field(line, "cmd") == "client" && field(line, "db") == "3");
    let shown = ["name", "db", "user", "cmd", "resp", "lib-name", "lib-ver", "flags", "multi"];
    let shown = shown.map(|name| field(&line, name));
    assert_eq!(shown, ["me", "3", "default", "client", "2", "lib", "1.2", "N", "-1"]);
    assert_eq!(field(&line, "addr"), client.socket.local_addr().expect("it has one").to_string());
    assert_eq!(field(&line, "laddr"), server.address.to_string());
    client.ask("MULTI");
    client.ask("GET a");
    line_of(&mut watcher, number, |line| field(line, "multi") == "1" && field(line, "flags") == "x");
    client.ask("DISCARD");
    client.ask("SUBSCRIBE c d");
    line_of(&mut watcher, number, |line| field(line, "sub") == "2" && field(line, "flags") == "P");
    assert_eq!(text(watcher.ask("CLIENT LIST")).lines().count(), 2);
    assert_eq!(text(watcher.ask("CLIENT LIST TYPE pubsub")).lines().count(), 1);
    assert_eq!(field(&text(watcher.ask("CLIENT INFO")), "id"), id(&mut watcher).to_string());
    drop(client);
    line_of(&mut watcher, number, str::is_empty);
    check(
        &mut watcher,
        &[
            ("CLIENT LIST ID 0", "!ERR"),
            ("CLIENT LIST TYPE x", "!ERR"),
            ("CLIENT SETINFO LIB-NAME a\nb", "!ERR"),
            ("CLIENT SETINFO x y", "!ERR"),
            ("CLIENT NONE", "!ERR"),
            ("CLIENT GETREDIR", "-1"),
            ("CLIENT TRACKING ON", "!ERR"),
        ],
    );
}

#[test]
fn clients_are_ended_by_what_they_are() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let mut watcher = server.client();
    let own = watcher.socket.local_addr().expect("it has one").to_string();
    let ended = |watcher: &mut Client, line: &dyn Fn(&Client, i64) -> String, expected: Got| {
        let mut client = server.client();
        let number = id(&mut client);
        let line = line(&client, number);
        assert_eq!(watcher.ask(&line), expected, "{line}");
        assert!(client.is_closed(), "{line}");
    };
    let address = |client: &Client| client.socket.local_addr().expect("it has one").to_string();
    ended(&mut watcher, &|_, id| format!("CLIENT KILL ID {id}"), Got::Int(1));
    ended(&mut watcher, &|client, _| format!("CLIENT KILL {}", address(client)), Got::ok());
    ended(&mut watcher, &|client, _| format!("CLIENT KILL ADDR {}", address(client)), Got::Int(1));
    ended(&mut watcher, &|_, _| "CLIENT KILL USER default".into(), Got::Int(1));
    ended(&mut watcher, &|_, _| format!("CLIENT KILL LADDR {} TYPE normal", server.address), Got::Int(1));
    // One that waits for others goes too, and lets the next one take.
    let mut blocked = server.client();
    let number = id(&mut blocked);
    send(&mut blocked, "BLPOP q 0");
    line_of(&mut watcher, number, |line| field(line, "flags") == "b");
    assert_eq!(watcher.ask(&format!("CLIENT KILL ID {number}")), Got::Int(1));
    assert!(blocked.is_closed());
    assert_eq!([watcher.ask("RPUSH q v"), watcher.ask("LLEN q")], [Got::Int(1), Got::Int(1)]);
    check(
        &mut watcher,
        &[
            ("CLIENT KILL 1.2.3.4:5", "!ERR"),
            ("CLIENT KILL ID x", "!ERR"),
            ("CLIENT KILL USER nobody", "!ERR"),
            ("CLIENT KILL TYPE master", "0"),
            ("CLIENT KILL ID 1 MAXAGE", "!ERR"),
            ("CLIENT KILL USER default MAXAGE 1000000", "0"),
        ],
    );
    assert_eq!(watcher.ask(&format!("CLIENT KILL ADDR {own}")), Got::Int(0), "itself it spares");
    assert_eq!(watcher.ask(&format!("CLIENT KILL ADDR {own} SKIPME no")), Got::Int(1));
    assert!(watcher.is_closed());
}

#[test]
fn who_waits_is_woken_by_others() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (mut watcher, mut client) = (server.client(), server.client());
    let number = id(&mut client);
    for (line, told) in [("", Got::Null), (" TIMEOUT", Got::Null), (" ERROR", Got::Error(String::new()))] {
        send(&mut client, "BLPOP q 0");
        line_of(&mut watcher, number, |line| field(line, "flags") == "b");
        assert_eq!(watcher.ask(&format!("CLIENT UNBLOCK {number}{line}")), Got::Int(1));
        match (client.read(), told) {
            (Got::Error(text), Got::Error(_)) => assert!(text.starts_with("UNBLOCKED"), "{text}"),
            (got, told) => assert_eq!(got, told),
        }
        assert_eq!(client.ask("PING"), Got::Simple("PONG".into()));
    }
    line_of(&mut watcher, number, |line| field(line, "flags") == "N");
    check(
        &mut watcher,
        &[
            (format!("CLIENT UNBLOCK {number}").as_str(), "0"),
            ("CLIENT UNBLOCK 12345", "0"),
            ("CLIENT UNBLOCK x", "!ERR"),
            ("CLIENT UNBLOCK 1 SOON", "!ERR"),
        ],
    );
}

#[test]
fn a_pause_has_commands_wait_and_nothing_is_lost() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (mut watcher, mut client) = (server.client(), server.client());
    assert_eq!(watcher.ask("CLIENT PAUSE 100000 WRITE"), Got::ok());
    assert_eq!(client.ask("GET a"), Got::Null, "reads go on");
    send(&mut client, "SET a 1");
    send(&mut client, "GET a");
    assert_eq!(watcher.ask("EXISTS a"), Got::Int(0));
    let mut other = server.client();
    send(&mut other, "AGG.MERGE none other");
    assert_eq!(watcher.ask("EXISTS a"), Got::Int(0));
    other.socket.set_nonblocking(true).expect("it can be set");
    assert!(other.socket.peek(&mut [0]).is_err(), "what names no keys and writes waits, too");
    other.socket.set_nonblocking(false).expect("it can be set");
    assert_eq!(watcher.ask("CLIENT UNPAUSE"), Got::ok());
    assert_eq!([client.read(), client.read()], [Got::ok(), Got::bulk("1")]);
    assert!(matches!(other.read(), Got::Error(_)));
    assert_eq!(watcher.ask("CLIENT PAUSE 50"), Got::ok());
    assert_eq!(
        [watcher.ask("GET a"), client.ask("SET a 2")],
        [Got::bulk("1"), Got::ok()],
        "it ends by itself"
    );
    check(&mut watcher, &[("CLIENT PAUSE x", "!ERR"), ("CLIENT PAUSE 1 SOME", "!ERR")]);
}

#[test]
fn who_wants_no_replies_gets_none() {
    let server = Running::new(Config::default());
    let (mut watcher, mut client) = (server.client(), server.client());
    let number = id(&mut client);
    // Also to what comes later: a job's, an element's, and that there was none.
    let lines = ["CLIENT REPLY OFF", "SET a 1", "DBSIZE", "KEYS *", "NONE", "BLPOP none 0.01", "LPUSH q 1"];
    for line in lines.into_iter().chain(["BLPOP q 0", "BLPOP late 0", "CLIENT REPLY ON"]) {
        send(&mut client, line);
    }
    line_of(&mut watcher, number, |line| field(line, "flags") == "b" && field(line, "cmd") == "blpop");
    while watcher.ask("LLEN q") != Got::Int(0) {}
    assert_eq!(watcher.ask("LPUSH late 1"), Got::Int(1));
    assert_eq!(client.read(), Got::ok());
    for line in ["CLIENT REPLY SKIP", "SET a 2", "GET a"] {
        send(&mut client, line);
    }
    assert_eq!(client.read(), Got::bulk("2"));
    // Each SKIP is for what follows it, and behind OFF it changes nothing.
    let lines = [
        "CLIENT REPLY SKIP",
        "CLIENT REPLY SKIP",
        "GET a",
        "CLIENT REPLY OFF",
        "CLIENT REPLY SKIP",
        "GET a",
        "GET a",
    ];
    for line in lines.into_iter().chain(["CLIENT REPLY ON", "STRLEN a"]) {
        send(&mut client, line);
    }
    assert_eq!([client.read(), client.read()], [Got::ok(), Got::Int(1)]);
}

#[test]
fn keys_are_looked_into() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    client.ask("SET int 12");
    client.ask("SET short abc");
    client.ask(&format!("SET long {}", "x".repeat(100)));
    for number in 0..200 {
        client.ask(&format!("RPUSH l {number}"));
        client.ask(&format!("SADD s {number}"));
        client.ask(&format!("ZADD z {number} {number}"));
    }
    client.ask("HSET h a 1");
    check(
        &mut client,
        &[
            ("OBJECT ENCODING int", "\"int\""),
            ("OBJECT ENCODING short", "\"embstr\""),
            ("OBJECT ENCODING long", "\"raw\""),
            ("OBJECT ENCODING l", "\"quicklist\""),
            ("OBJECT ENCODING s", "\"hashtable\""),
            ("OBJECT ENCODING z", "\"skiplist\""),
            ("OBJECT ENCODING h", "\"listpack\""),
            ("OBJECT ENCODING none", "nil"),
            ("OBJECT REFCOUNT h", "1"),
            ("OBJECT IDLETIME h", "!ERR"),
            ("OBJECT FREQ h", "!ERR"),
            ("OBJECT NONE h", "!ERR"),
            ("MEMORY USAGE none", "nil"),
            ("MEMORY USAGE h SAMPLES x", "!ERR"),
            ("MEMORY DOCTOR", "!ERR"),
            ("DEBUG SLEEP 1", "!ERR"),
            ("WAIT 0 10", "0"),
            ("WAITAOF 1 0 0", "[1 0]"),
            ("WAITAOF 0 0 0", "[0 0]"),
            ("WAITAOF 2 0 0", "!ERR"),
            ("WAITAOF 1 0 -1", "!ERR"),
        ],
    );
    let usages = ["int", "long", "z"].map(|key| match client.ask(&format!("MEMORY USAGE {key}")) {
        Got::Int(bytes) => bytes,
        other => panic!("{other:?}"),
    });
    assert!(usages[0] > 0 && usages[1] > usages[0] + 90 && usages[2] > 200 * 20, "{usages:?}");
}

#[test]
fn what_is_sorted_and_what_texts_have_in_common() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    client.ask("RPUSH l 3 10 1 2 1");
    client.ask("RPUSH e 1 ");
    client.ask("SADD w pear apple fig");
    client.ask("ZADD z 1 5 2 4 3 6");
    client.ask("MSET a ohmytext b mynewtext");
    check(
        &mut client,
        &[
            ("SORT l", r#"["1" "1" "2" "3" "10"]"#),
            ("SORT l DESC LIMIT 1 2", r#"["3" "2"]"#),
            ("SORT l ALPHA", r#"["1" "1" "10" "2" "3"]"#),
            ("SORT l BY nosort", r#"["3" "10" "1" "2" "1"]"#),
            ("SORT l BY nosort DESC LIMIT 0 2", r#"["1" "2"]"#),
            ("SORT_RO w ALPHA DESC", r#"["pear" "fig" "apple"]"#),
            ("SORT w", "!ERR"),
            ("SORT z", r#"["4" "5" "6"]"#),
            ("SORT z BY x DESC", r#"["6" "4" "5"]"#),
            ("SORT l GET # GET #", r#"["1" "1" "1" "1" "2" "2" "3" "3" "10" "10"]"#),
            ("SORT l BY w_*", "!ERR"),
            ("SORT l GET w_*", "!ERR"),
            ("SORT_RO l STORE d", "!ERR"),
            ("SORT l STORE d", "5"),
            ("LRANGE d 0 -1", r#"["1" "1" "2" "3" "10"]"#),
            ("SORT e", "[\"\" \"1\"]"),
            ("SORT none STORE d", "0"),
            ("EXISTS d", "0"),
            ("SORT a", "!WRONGTYPE"),
            ("COMMAND GETKEYS SORT l ALPHA STORE d", r#"["l" "d"]"#),
            ("COMMAND GETKEYS MSET a 1 b 2", r#"["a" "b"]"#),
            ("COMMAND GETKEYS PING", "!ERR"),
            ("COMMAND GETKEYS NONE", "!ERR"),
            ("COMMAND LIST FILTERBY PATTERN tdigest.m*", r#"["tdigest.min" "tdigest.max" "tdigest.merge"]"#),
            ("LCS a b", "\"mytext\""),
            ("LCS a b LEN", "6"),
            ("LCS a b IDX", r#"["matches" [[[4 7] [5 8]] [[2 3] [0 1]]] "len" 6]"#),
            ("LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN", r#"["matches" [[[4 7] [5 8] 4]] "len" 6]"#),
            ("LCS a b LEN IDX", "!ERR"),
            ("LCS a none", "\"\""),
            ("LCS l a", "!ERR"),
        ],
    );
    client.ask(&format!("SET long {}", "x".repeat(10_000)));
    let Got::Error(told) = client.ask("LCS long long") else { panic!("it is too much") };
    assert!(told.contains("at most"), "{told}");
}

#[test]
fn a_server_is_told_while_it_runs() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    check(
        &mut client,
        &[
            ("CONFIG GET slowlog-log-slower-than", r#"["slowlog-log-slower-than" "10000"]"#),
            ("CONFIG SET slowlog-log-slower-than 0 notify-keyspace-events KEA", "OK"),
            ("CONFIG GET slowlog-log*", r#"["slowlog-log-slower-than" "0"]"#),
            ("CONFIG GET tcp-keepalive", r#"["tcp-keepalive" "300"]"#),
            ("CONFIG SET maxmemory 0", "OK"),
            ("CONFIG SET maxmemory 1gb", "!ERR"),
            ("CONFIG SET no-such 1", "!ERR"),
            ("CONFIG SET maxmemory", "!ERR"),
            ("CONFIG REWRITE", "!ERR"),
        ],
    );
    assert!(matches!(client.ask("SLOWLOG LEN"), Got::Int(1..)));
    let Got::Array(found) = client.ask("COMMAND INFO get sort none") else { panic!("three") };
    let [Got::Array(get), Got::Array(_), Got::Null] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&get[0], &get[1], &get[3]), (&Got::bulk("get"), &Got::Int(2), &Got::Int(1)));
    let Got::Array(docs) = client.ask("COMMAND DOCS zadd") else { panic!("a map") };
    assert_eq!(docs[0], Got::bulk("zadd"));
    assert!(matches!(client.ask("COMMAND COUNT"), Got::Int(200..)));
}
