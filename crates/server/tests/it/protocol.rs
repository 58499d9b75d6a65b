//! Connections: versions of the protocol, passwords, limits, pipelines, the end.

use std::io::Write;

use forebay_server::Config;

use crate::client::{Got, Running, encode};

#[test]
fn what_clients_say_first_is_answered() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let Got::Array(hello) = client.ask("HELLO 3") else { panic!("a map") };
    assert_eq!(hello.len(), 14);
    assert!(hello.windows(2).any(|pair| pair == [Got::bulk("proto"), Got::Int(3)]));
    assert_eq!(client.ask("GET nothing"), Got::Null);
    assert_eq!(client.ask("CLIENT SETINFO LIB-NAME test"), Got::ok());
    assert_eq!(client.ask("CLIENT SETNAME me"), Got::ok());
    assert_eq!(client.ask("CLIENT GETNAME"), Got::bulk("me"));
    assert!(matches!(client.ask("CLIENT MAINT_NOTIFICATIONS ON"), Got::Error(_)));
    assert_eq!(client.ask("CONFIG GET save"), Got::Array(vec![Got::bulk("save"), Got::bulk("")]));
    let Got::Bulk(info) = client.ask("INFO") else { panic!("a text") };
    assert!(String::from_utf8_lossy(&info).contains("redis_version:7."));
    let Got::Array(commands) = client.ask("COMMAND") else { panic!("an array") };
    assert_eq!(client.ask("COMMAND COUNT"), Got::Int(commands.len() as i64));
    assert_eq!(client.ask("HELLO 4"), Got::Error("NOPROTO unsupported protocol version".into()));
    assert_eq!(client.ask("RESET"), Got::Simple("RESET".into()));
    assert_eq!(client.ask("PING"), Got::Simple("PONG".into()));
    assert!(
        matches!(client.ask("NOSUCH a b"), Got::Error(text) if text.starts_with("ERR unknown command 'NOSUCH'"))
    );
    assert_eq!(client.ask("GET"), Got::Error("ERR wrong number of arguments for 'get' command".into()));
    assert_eq!(client.ask("QUIT"), Got::ok());
    assert!(client.is_closed());
}

#[test]
fn without_the_password_nothing_is_told() {
    let server = Running::new(Config { password: Some("open sesame".into()), ..Config::default() });
    let mut client = server.client();
    assert_eq!(client.ask("GET key"), Got::Error("NOAUTH Authentication required.".into()));
    let wrong = Got::Error("WRONGPASS invalid username-password pair or user is disabled.".into());
    assert_eq!(client.ask("AUTH closed"), wrong);
    assert_eq!(client.ask_bytes(&[b"AUTH", b"somebody", b"open sesame"]), wrong);
    assert_eq!(client.ask_bytes(&[b"AUTH", b"open sesame"]), Got::ok());
    assert_eq!(client.ask("SET key value"), Got::ok());
    // Lines beyond what one may have who is not known.
    let mut stranger = server.client();
    stranger.socket.write_all(b"*11\r\n").expect("it is there");
    assert_eq!(stranger.read(), Got::Error("ERR Protocol error: invalid multibulk length".into()));
    assert!(stranger.is_closed());
    // All in one packet: what comes behind the password is measured by what holds then.
    let mut quick = server.client();
    let long = vec![b'x'; 20 << 10];
    let mut all = encode(&[b"AUTH", b"open sesame"]);
    all.extend(encode(&[b"SET", b"long", &long]));
    quick.socket.write_all(&all).expect("it is there");
    assert_eq!([quick.read(), quick.read()], [Got::ok(), Got::ok()]);
}

#[test]
fn it_listens_beyond_this_machine_with_a_password_only() {
    use forebay::env::{Env, fs::MemoryFs};
    let database =
        forebay::Database::open("/db", forebay::Options::default().env(Env::simulated(MemoryFs::new(), 1)));
    let config = Config { listen: ([0, 0, 0, 0], 0).into(), ..Config::default() };
    let refused =
        forebay_server::Server::bind(database.expect("it opens"), config).err().expect("it is refused");
    assert!(refused.to_string().contains("needs a password"), "{refused}");
}

/// Thousands of requests in one write: each reply in its place, however many turns it takes.
#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let mut sent = Vec::new();
    for number in 0..5000 {
        sent.extend(encode(&[b"SET", b"last", number.to_string().as_bytes()]));
        sent.extend(encode(&[b"GET", b"last"]));
        sent.extend(encode(&[b"INCR", b"count"]));
    }
    let mut writer = client.socket.try_clone().expect("it is a socket");
    let writing = std::thread::spawn(move || writer.write_all(&sent).expect("it is there"));
    for number in 0..5000 {
        assert_eq!(client.read(), Got::ok());
        assert_eq!(client.read(), Got::bulk(&number.to_string()));
        assert_eq!(client.read(), Got::Int(number + 1));
    }
    writing.join().expect("it writes");
}

/// One that asks for much and reads nothing waits, and keeps no more than its share meanwhile; others are answered.
#[test]
fn who_reads_nothing_is_asked_no_more() {
    let server = Running::new(Config { buffers_bytes_max: 64 << 20, ..Config::default() });
    let mut client = server.client();
    let long = vec![b'x'; 1 << 20];
    assert_eq!(client.ask_bytes(&[b"SET", b"long", &long]), Got::ok());
    let mut greedy = server.client();
    let asked: Vec<u8> = (0..100).flat_map(|_| encode(&[b"GET", b"long"])).collect();
    greedy.socket.write_all(&asked).expect("it is there");
    assert_eq!(client.ask("PING"), Got::Simple("PONG".into()));
    for _ in 0..100 {
        assert_eq!(greedy.read(), Got::Bulk(long.clone()));
    }
}

#[test]
fn durability_is_asked_by_connection() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("FB.DURABILITY"), Got::bulk("os"));
    assert_eq!(client.ask("FB.DURABILITY disk"), Got::ok());
    assert_eq!(client.ask("FB.DURABILITY"), Got::bulk("disk"));
    assert_eq!(client.ask("SET key value"), Got::ok());
    assert!(
        matches!(client.ask("FB.DURABILITY tape"), Got::Error(text) if text.contains("use memory, os or disk"))
    );
    assert_eq!(server.client().ask("FB.DURABILITY"), Got::bulk("os"));
}
