//! Events of keys: what is told of which command.

use forebay_server::Config;

use crate::client::{Client, Got, Running};

/// The events that came to a client of version 3 up to now, as `key event`.
fn heard(listener: &mut Client, writer: &mut Client) -> Vec<String> {
    writer.ask("PUBLISH __keyspace@0__:end end");
    let mut heard = Vec::new();
    loop {
        let Got::Array(words) = listener.read() else { panic!("a message") };
        let [Got::Bulk(_), Got::Bulk(_), Got::Bulk(name), Got::Bulk(event)] = &words[..] else {
            panic!("{words:?} is no message of a pattern")
        };
        let (name, event) = (String::from_utf8_lossy(name), String::from_utf8_lossy(event));
        let key = name.split_once("__:").expect("a key").1;
        if key == "end" {
            return heard;
        }
        heard.push(format!("{key} {event}"));
    }
}

#[test]
fn events_have_the_names_of_redis() {
    let files = Running::files();
    let config = Config { loops: 2, events: "KA".into(), ..Config::default() };
    let server = Running::of(Running::open(&files), config);
    let (mut listener, mut writer) = (server.client(), server.client());
    listener.ask("PSUBSCRIBE __keyspace@0__:*");
    for (line, expected) in [
        ("SET a 1", &["a set"][..]),
        ("SET a 1 EX 100", &["a set", "a expire"]),
        ("INCR a", &["a incrby"]),
        ("GET a", &[]),
        ("MSET a 1 b 2 a 3", &["a set", "b set", "a set"]),
        ("EXPIRE a 100", &["a expire"]),
        ("PERSIST a", &["a persist"]),
        ("PERSIST a", &[]),
        ("RENAME a c", &["a rename_from", "c rename_to"]),
        ("COPY c d", &["d copy_to"]),
        ("DEL c d none", &["c del", "d del"]),
        ("EXPIRE b -1", &["b del"]),
        ("RPUSH l 1 2", &["l rpush"]),
        ("LMOVE l m LEFT RIGHT", &["m rpush", "l lpop"]),
        ("LPOP l", &["l lpop", "l del"]),
        ("HSET h f 1", &["h hset"]),
        ("HDEL h none", &[]),
        ("HDEL h f", &["h hdel", "h del"]),
        ("SADD s 1 2", &["s sadd"]),
        ("SADD s 1", &[]),
        ("SMOVE s t 1", &["s srem", "t sadd"]),
        ("SINTERSTORE u s t", &[]),
        ("SUNIONSTORE u s t", &["u sunionstore"]),
        ("SINTERSTORE u s t", &["u del"]),
        ("ZADD z 1 a", &["z zadd"]),
        ("ZADD z INCR 1 a", &["z zincr"]),
        ("ZPOPMIN z", &["z zpopmin", "z del"]),
        ("SET never 1 PX 1", &["never set", "never expire"]),
        ("DEL never", &["never del"]),
        ("SET over 1 PX 1", &["over set", "over expire"]),
    ] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
        assert_eq!(heard(&mut listener, &mut writer), expected, "{line}");
    }
    files.jobs.advance(std::time::Duration::from_millis(5));
    assert_eq!(writer.ask("GET over"), Got::Null);
    let told = ["pmessage", "__keyspace@0__:*", "__keyspace@0__:over", "expired"].map(Got::bulk);
    assert_eq!(listener.read(), Got::Array(told.to_vec()), "within a moment, and once");
    for line in ["MULTI", "SET a 1", "DEL a", "EXEC"] {
        writer.ask(line);
    }
    assert_eq!(heard(&mut listener, &mut writer), ["a set", "a del"]);
}

#[test]
fn events_are_asked_for_by_letters() {
    let server = Running::new(Config::default());
    let (mut listener, mut writer) = (server.client(), server.client());
    let name = "notify-keyspace-events";
    let asked = |writer: &mut Client| writer.ask(&format!("CONFIG GET {name}"));
    assert_eq!(asked(&mut writer), Got::Array(vec![Got::bulk(name), Got::bulk("")]));
    assert_eq!(listener.ask("SUBSCRIBE __keyevent@0__:set __keyspace@0__:a"), {
        Got::Array(vec![Got::bulk("subscribe"), Got::bulk("__keyevent@0__:set"), Got::Int(1)])
    });
    assert!(matches!(listener.read(), Got::Array(_)));
    assert_eq!(writer.ask("SET a 1"), Got::ok());
    assert!(matches!(writer.ask(&format!("CONFIG SET {name} Kq")), Got::Error(text) if text.contains("`q`")));
    assert_eq!(writer.ask(&format!("CONFIG SET {name} E$g")), Got::ok());
    assert_eq!(asked(&mut writer), Got::Array(vec![Got::bulk(name), Got::bulk("g$E")]));
    assert_eq!(writer.ask("SET b 1"), Got::ok());
    let event = ["message", "__keyevent@0__:set", "b"].map(Got::bulk);
    assert_eq!(listener.read(), Got::Array(event.to_vec()));
    assert_eq!(writer.ask(&format!("CONFIG SET {name} AKE")), Got::ok());
    assert_eq!(asked(&mut writer), Got::Array(vec![Got::bulk(name), Got::bulk("AKE")]));
}

#[test]
fn a_name_is_no_word_of_its_command() {
    let files = Running::files();
    let server =
        Running::of(Running::open(&files), Config { loops: 2, events: "KA".into(), ..Config::default() });
    let (mut listener, mut writer) = (server.client(), server.client());
    listener.ask("PSUBSCRIBE __keyspace@0__:*");
    for (line, expected) in [
        ("BF.ADD f a", &["f bf.add"][..]),
        ("PFADD p a", &["p pfadd"]),
        ("PFMERGE q p", &["q pfadd"]),
        ("RPUSH LEFT 1 2 3 4", &["LEFT rpush"]),
        ("LMPOP 1 LEFT RIGHT", &["LEFT rpop"]),
        ("BLMPOP 0 2 none LEFT LEFT", &["LEFT lpop"]),
        ("BLPOP LEFT 0", &["LEFT lpop"]),
        ("ZADD MIN 1 INCR 2 b 3 c", &["MIN zadd"]),
        ("ZADD MIN XX INCR 1 INCR", &["MIN zincr"]),
        ("ZMPOP 1 MIN MAX", &["MIN zpopmax"]),
        ("BZMPOP 0 1 MIN MIN", &["MIN zpopmin"]),
        ("BZPOPMAX MIN 0", &["MIN zpopmax", "MIN del"]),
    ] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
        assert_eq!(heard(&mut listener, &mut writer), expected, "{line}");
    }
}

/// What was written while nobody asked is not known: no key is said to be over that may live.
#[test]
fn keys_that_live_are_not_told_to_be_over() {
    let files = Running::files();
    let server = Running::of(Running::open(&files), Config { events: "Ex".into(), ..Config::default() });
    let (mut listener, mut writer) = (server.client(), server.client());
    listener.ask("SUBSCRIBE __keyevent@0__:expired");
    for line in [
        "SET lives 1 PX 1500",
        "CONFIG SET notify-keyspace-events KEg",
        "PERSIST lives",
        "CONFIG SET notify-keyspace-events Ex",
        "SET over 1 PX 2000",
    ] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
    }
    files.jobs.advance(std::time::Duration::from_secs(3));
    assert_eq!(
        listener.read(),
        Got::Array(["message", "__keyevent@0__:expired", "over"].map(Got::bulk).to_vec())
    );
    assert_eq!(writer.ask("GET lives"), Got::bulk("1"));
}
