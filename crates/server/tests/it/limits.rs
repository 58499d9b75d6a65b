//! What one connection may have the server hold and do, and who pays for it.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use forebay_server::Config;

use crate::client::{Got, Running, encode};

fn with_password() -> Config {
    Config { password: Some("open sesame".into()), ..Config::default() }
}

fn pong() -> Got {
    Got::Simple("PONG".into())
}

/// Each line was refused in a round of its own, and all that the stranger had sent was moved in each.
#[test]
fn a_stranger_is_refused_a_few_times_only() {
    let server = Running::new(with_password());
    let mut stranger = server.client();
    let mut writer = stranger.socket.try_clone().expect("it is a socket");
    // The server may close the connection amid it.
    let writing = std::thread::spawn(move || drop(writer.write_all(&b"PING\r\n".repeat(1 << 16))));
    let answers = (0..1000).take_while(|_| stranger.has_line()).count();
    assert!(answers < 100, "{answers} refusals");
    writing.join().expect("it writes");
}

#[test]
fn a_stranger_has_little_time_and_room() {
    let server = Running::new(Config { silence_seconds_max: 0, ..with_password() });
    let mut known = server.client();
    assert_eq!(known.ask_bytes(&[b"AUTH", b"open sesame"]), Got::ok());
    let (mut silent, mut long) = (server.client(), server.client());
    long.socket.write_all(&encode(&[b"AUTH", &[b'x'; 5000]])).expect("it is there");
    assert_eq!(long.read(), Got::Error("ERR Protocol error: invalid bulk length".into()));
    assert!(silent.is_closed());
    assert_eq!(known.ask("PING"), pong());
}

/// Data and the end of a connection may come as one event.
#[test]
fn the_end_of_a_connection_is_seen_with_its_last_bytes() {
    let server = Running::new(Config { connections_max: 4, ..Config::default() });
    for _ in 0..20 {
        let mut client = server.client_within(200);
        client.socket.write_all(b"PING\r\n").expect("it is there");
        client.socket.shutdown(Shutdown::Write).expect("it is there");
        assert_eq!(client.read(), pong());
        assert!(client.is_closed());
    }
    for _ in 0..20 {
        let mut gone = TcpStream::connect(server.address).expect("it listens");
        // It may be one too many for a moment.
        let _ = gone.write_all(b"G");
        drop(gone);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.client_within(200).ask("PING"), pong());
}

/// What is sent ahead waits in the client's machine, not here.
#[test]
fn a_deep_pipeline_is_read_as_it_is_answered() {
    let server = Running::new(Config { buffers_bytes_max: 3 << 20, ..Config::default() });
    let mut client = server.client();
    let mut writer = client.socket.try_clone().expect("it is a socket");
    let one = encode(&[b"SET", b"key", &[b'x'; 400]]);
    let writing = std::thread::spawn(move || writer.write_all(&one.repeat(20_000)).expect("it is read"));
    for _ in 0..20_000 {
        assert_eq!(client.read(), Got::ok());
    }
    writing.join().expect("it writes");
}

/// A few bytes that ask for more than all replies may have are refused, and the connection goes on.
#[test]
fn a_request_is_answered_within_what_replies_may_have() {
    let server = Running::new(Config { buffers_bytes_max: 16 << 20, ..Config::default() });
    let mut client = server.client();
    let long = vec![b'x'; 1 << 20];
    assert_eq!(client.ask_bytes(&[b"SET", b"long", &long]), Got::ok());
    let many: Vec<&[u8]> =
        std::iter::once(&b"MGET"[..]).chain(std::iter::repeat_n(&b"long"[..], 100)).collect();
    assert!(matches!(client.ask_bytes(&many), Got::Error(text) if text.contains("ask for fewer keys")));
    assert_eq!(client.ask("MULTI"), Got::ok());
    for _ in 0..20 {
        assert_eq!(client.ask("GET long"), Got::Simple("QUEUED".into()));
    }
    let Got::Array(all) = client.ask("EXEC") else { panic!("all replies") };
    let given = all.iter().filter(|got| **got == Got::Bulk(long.clone())).count();
    assert!((4..6).contains(&given), "{given} of 20 MiB");
    assert!(matches!(&all[19], Got::Error(text) if text.contains("replies of this transaction")));
    assert_eq!(client.ask("PING"), pong());
}

/// Replies that waited counted against each command behind them, and as those of a transaction.
#[test]
fn each_command_of_a_pipeline_has_room_for_its_reply() {
    let server = Running::new(Config { buffers_bytes_max: 1 << 20, ..Config::default() });
    let mut client = server.client();
    let long = vec![b'x'; 60_000];
    assert_eq!(client.ask_bytes(&[b"SET", b"long", &long]), Got::ok());
    assert_eq!(client.ask_bytes(&[b"RPUSH", b"l", &long, &long]), Got::Int(2));
    assert_eq!(client.ask_bytes(&[b"RPUSH", b"l", &long, &long]), Got::Int(4));
    let lines = [
        "GET long",
        "GET long",
        "LRANGE l 0 -1",
        "GET long",
        "GET long",
        "MULTI",
        "LRANGE l 0 -1",
        "EXEC",
        "LRANGE l 0 -1",
    ];
    let all = client.ask_all(&lines.map(String::from));
    let refused: Vec<&Got> = all.iter().filter(|got| matches!(got, Got::Error(_))).collect();
    assert_eq!(refused, Vec::<&Got>::new());
    let (one, whole) = (Got::Bulk(long.clone()), Got::Array(vec![Got::Bulk(long); 4]));
    assert!(all[0] == one && all[2] == whole && all[8] == whole, "each has its own reply");
    assert!(all[7] == Got::Array(vec![whole]), "and the transaction has its own");
}

/// Values are looked up ahead within a bound; those that do not fit are there all the same.
#[test]
fn large_values_are_answered_one_after_the_other() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let value = |number: u8| vec![number; 1 << 20];
    for number in 0..12 {
        assert_eq!(client.ask_bytes(&[b"SET", &[b'k', number], &value(number)]), Got::ok());
    }
    let asked: Vec<u8> = (0..12).rev().flat_map(|number| encode(&[b"GET", &[b'k', number]])).collect();
    client.socket.write_all(&asked).expect("it is there");
    for number in (0..12).rev() {
        assert!(client.read() == Got::Bulk(value(number)), "the value of {number}");
    }
    let keys: Vec<Vec<u8>> = (0..12).map(|number| vec![b'k', number]).collect();
    let exists: Vec<&[u8]> = std::iter::once(&b"EXISTS"[..]).chain(keys.iter().map(|key| &key[..])).collect();
    assert_eq!(client.ask_bytes(&exists), Got::Int(12));
}

/// A page in a browser on this machine can send lines, and what it sends behind the first ones was done.
#[test]
fn a_page_in_a_browser_is_no_client() {
    let server = Running::new(Config::default());
    assert_eq!(server.client().ask("SET key 1"), Got::ok());
    let mut page = server.client();
    let request = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\nFLUSHALL\r\n";
    page.socket.write_all(request).expect("it is there");
    assert_eq!(page.read(), Got::Error("ERR Protocol error: this is no server of web pages".into()));
    assert!(page.is_closed());
    assert_eq!(server.client().ask("GET key"), Got::bulk("1"));
}

#[test]
fn patterns_names_and_what_is_watched_have_bounds() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    let long = vec![b'*'; 1025];
    for words in [&[&b"KEYS"[..], &long][..], &[b"SCAN", b"0", b"MATCH", &long], &[b"CONFIG", b"GET", &long]]
    {
        assert!(matches!(client.ask_bytes(words), Got::Error(text) if text.contains("at most 1024 bytes")));
    }
    let name = client.ask_bytes(&[b"CLIENT", b"SETNAME", &[b'x'; 1025]]);
    assert!(matches!(name, Got::Error(text) if text.contains("at most 1024 bytes")));
    let keys: Vec<Vec<u8>> =
        (0..80_u32).map(|key| [vec![b'x'; 60_000], key.to_be_bytes().into()].concat()).collect();
    let watch: Vec<&[u8]> = std::iter::once(&b"WATCH"[..]).chain(keys.iter().map(|key| &key[..])).collect();
    assert!(matches!(client.ask_bytes(&watch), Got::Error(text) if text.contains("too many keys")));
    // An error is short, whatever it tells of.
    let long = vec![b'x'; 100_000];
    for words in [&[&b"CLIENT"[..], &long][..], &[b"HELLO", b"3", &long], &[b"EXPIRE", b"k", b"1", &long]] {
        assert!(matches!(client.ask_bytes(words), Got::Error(text) if text.len() < 300));
    }
}

/// Each write that is in the database has been answered, though nobody waited for that.
#[test]
fn a_server_that_stops_answers_what_it_has_done() {
    for _ in 0..3 {
        let (first, open) =
            (Running::files(), |files: &_| Running::of(Running::open(files), Config::default()));
        let server = open(&first);
        let mut client = server.client();
        client.socket.write_all(&encode(&[b"INCR", b"count"]).repeat(20_000)).expect("it is read");
        assert_eq!(client.read(), Got::Int(1));
        let stopper = server.stopper.clone();
        let stopping = std::thread::spawn(move || drop(server));
        let mut answers = 1;
        while client.has_line() {
            answers += 1;
        }
        stopping.join().expect("it stops");
        // Closed in order, though somebody could still stop it: else it could not be opened.
        let again = open(&first);
        drop(stopper);
        assert_eq!(again.client().ask("GET count"), Got::bulk(&answers.to_string()));
    }
}

/// They took all places, for a minute each, and nobody else came in.
#[test]
fn strangers_give_way_where_all_places_are_taken() {
    let config = Config { password: Some("secret".into()), connections_max: 3, ..Config::default() };
    let server = Running::new(config);
    let mut known = server.client();
    assert_eq!(known.ask("AUTH secret"), Got::ok());
    let mut strangers = [server.client(), server.client()];
    // Before their second is over others are refused.
    let mut came = (0..1000).filter_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut client = server.client();
        let told = client.try_all(&["AUTH secret".into()])?;
        (told == [Got::ok()]).then_some(client)
    });
    let mut client = came.next().expect("there is room");
    assert!(strangers[0].is_closed(), "the oldest has gone");
    assert_eq!([known.ask("PING"), client.ask("PING")], [0; 2].map(|_| Got::Simple("PONG".into())));
}

#[test]
fn arguments_that_no_value_has_room_for_are_refused_at_the_start() {
    let bind = |argument_bytes_max: usize| {
        let config = Config { argument_bytes_max, listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        forebay_server::Server::bind(Running::open(&Running::files()), config)
    };
    assert!(bind(255 << 20).is_ok());
    assert!(bind((255 << 20) + 1).err().expect("too long").to_string().contains("255M"));
}
