//! What can be looked at.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Options};
use forebay_server::{Config, Server, Watchers};

use crate::client::{Got, Running};

const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn watched() -> Running {
    Running::new(Config { metrics: Some(ANYWHERE), slow_microseconds: 0, ..Config::default() })
}

/// Sends bytes, and reads all that comes.
fn sent(server: &Running, bytes: &[u8]) -> String {
    let address = server.metrics.expect("it listens for those who look");
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    socket.write_all(bytes).expect("it is there");
    let mut all = Vec::new();
    // One that is refused amid what it sends may be reset.
    let _ = socket.read_to_end(&mut all);
    String::from_utf8(all).expect("it is text")
}

fn got(server: &Running, path: &str) -> String {
    sent(server, format!("GET {path} HTTP/1.1\r\nHost: localhost:1\r\n\r\n").as_bytes())
}

#[test]
fn a_page_numbers_and_health_are_shown() {
    let server = watched();
    let client = &mut server.client();
    assert_eq!(client.ask("SET k secret"), Got::ok());
    assert!(matches!(client.ask("secret k v"), Got::Error(_)));
    assert_eq!(client.ask("AGG.CREATE hits KEY x FUNCTIONS count"), Got::ok());
    let health = got(&server, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok\n"), "{health}");
    let metrics = got(&server, "/metrics?x=1");
    for line in [
        "# TYPE forebay_commands_total counter",
        "forebay_records_written_total ",
        "# HELP forebay_memory_bytes Memory by owner",
        "forebay_memory_bytes{owner=\"page_cache\"} ",
        "forebay_table_disk_bytes{table=\"hits\"} ",
        "forebay_list_bytes_written{cause=\"",
        "forebay_commit_microseconds{quantile=\"0.99\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let stats = got(&server, "/stats.json");
    // What requests say is for those alone who know the password.
    assert!(!stats.contains("secret") && stats.contains("unknown"), "{stats}");
    let stats: serde_json::Value =
        serde_json::from_str(stats.split("\r\n\r\n").nth(1).expect("a body")).expect("it is JSON");
    assert!(stats["server"]["commands"].as_u64() >= Some(2), "{stats}");
    let slow = stats["slow"].as_array().expect("a list");
    let set = slow.iter().find(|one| one["command"] == "SET").expect("nothing is fast enough");
    assert_eq!(set["arguments"], 2);
    let page = got(&server, "/");
    assert!(
        page.contains("Content-Security-Policy: default-src 'none'") && page.contains("<html lang=\"en\">")
    );
    // Nothing is fetched from elsewhere.
    let outside = |word: &str| {
        page.match_indices(word)
            .filter(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"))
            .count()
    };
    assert_eq!((outside("http://"), outside("https://"), outside("src=")), (0, 0, 0));
}

#[test]
fn whatever_is_asked_is_answered_or_refused() {
    let server = watched();
    for (bytes, status) in [
        (&b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], "404"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "421"),
        (b"GET / HTTP/1.1\r\n\r\n", "421"),
        (b"\x00\xff\r\n\r\n", "400"),
        (b"*1\r\n$4\r\nPING\r\n\r\n", "400"),
    ] {
        let got = sent(&server, bytes);
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {got}", bytes.escape_ascii());
    }
    let many = [&b"GET / HTTP/1.1\r\n"[..], &b"X: y\r\n".repeat(100), b"\r\n"].concat();
    assert!(sent(&server, &many).starts_with("HTTP/1.1 400 "));
    // One that never ends is cut off.
    assert_eq!(sent(&server, &[b'a'; 16 << 10]), "");
    assert!(got(&server, "/healthz").ends_with("ok\n"));
}

#[test]
fn others_than_this_machine_look_only_where_that_was_said() {
    let open = || {
        Database::open("/db", Options::default().env(Env::simulated(MemoryFs::new(), 1))).expect("it opens")
    };
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let config = Config { listen: ANYWHERE, metrics: Some(anywhere), ..Config::default() };
    let told = Server::bind(open(), config.clone()).err().expect("it is refused").to_string();
    assert!(told.contains("--metrics-for-anyone"), "{told}");
    assert!(Server::bind(open(), Config { watchers: Watchers::Anyone, ..config }).is_ok());
}

#[test]
fn slow_requests_are_told() {
    let server = watched();
    let client = &mut server.client();
    assert_eq!(client.ask("SET k v"), Got::ok());
    let Got::Array(all) = client.ask("SLOWLOG GET 1") else { panic!("a list comes") };
    let Got::Array(parts) = &all[0] else { panic!("{all:?}") };
    assert_eq!(parts[3], Got::Array(vec![Got::bulk("SET"), Got::bulk("k"), Got::bulk("v")]));
    assert_eq!(client.ask("SLOWLOG LEN"), Got::Int(2));
    assert_eq!(client.ask("SLOWLOG RESET"), Got::ok());
    assert!(matches!(client.ask("SLOWLOG GET -1"), Got::Array(_)));
    for line in ["SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG GET 1 2", "SLOWLOG HELP", "SLOWLOG"] {
        assert!(matches!(client.ask(line), Got::Error(_)), "{line}");
    }
}

fn hottest(text: &str) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    all["hottest_keys"][0].clone()
}

/// Keys are what the password guards: by HTTP they are shown where anybody who looks could ask for them.
#[test]
fn hot_keys_are_told_to_those_who_may_read_them() {
    let body =
        |server: &Running| got(server, "/stats.json").split("\r\n\r\n").nth(1).expect("a body").to_string();
    for (password, watchers) in [
        (None, Watchers::ThisMachine),
        (None, Watchers::Anyone),
        (Some("open sesame".to_string()), Watchers::ThisMachine),
    ] {
        let is_open = password.is_none() && watchers == Watchers::ThisMachine;
        let server = Running::new(Config {
            metrics: Some(ANYWHERE),
            password: password.clone(),
            watchers,
            ..Config::default()
        });
        let client = &mut server.client();
        if let Some(password) = &password {
            assert_eq!(client.ask_bytes(&[b"AUTH", password.as_bytes()]), Got::ok());
        }
        let lines: Vec<String> = (0..4000)
            .map(|number| match number % 4 {
                0 => format!("GET other:{number}"),
                _ => "HSET warm f v".to_string(),
            })
            .collect();
        assert_eq!(client.ask_all(&lines).len(), 4000);
        let Got::Bulk(stats) = client.ask("FB.STATS") else { panic!("a text comes") };
        let hot = hottest(&String::from_utf8(stats).expect("it is text"));
        assert_eq!((hot["key"].as_str(), hot["writes"].as_f64()), (Some("warm"), Some(1.0)));
        assert!((0.5..=1.0).contains(&hot["share"].as_f64().expect("a number")), "{hot}");
        let all = body(&server);
        assert_eq!(hottest(&all)["key"].as_str(), is_open.then_some("warm"));
        assert!(is_open || !all.contains("warm"), "{all}");
        // Who comes without a word may no longer do all.
        assert_eq!(client.ask("ACL SETUSER default -flushall"), Got::ok());
        assert!(!body(&server).contains("warm"));
    }
}

/// Nobody makes a key hot that is refused to them.
#[test]
fn keys_that_are_refused_are_not_counted() {
    let server = Running::new(Config::default());
    let (mut admin, mut bob) = (server.client(), server.client());
    assert_eq!(admin.ask("ACL SETUSER bob on nopass ~b* +@all"), Got::ok());
    assert_eq!(bob.ask("AUTH bob any"), Got::ok());
    let lines: Vec<String> = (0..4000).map(|_| "GET others".to_string()).collect();
    assert!(bob.ask_all(&lines).iter().all(|got| matches!(got, Got::Error(_))));
    let Got::Bulk(stats) = admin.ask("FB.STATS") else { panic!("a text comes") };
    assert!(hottest(&String::from_utf8(stats).expect("it is text")).is_null());
}

/// Names that differ in what has to be escaped were one, which Prometheus refuses; and each window was a table to it.
#[test]
fn tables_are_told_apart_and_windows_are_not() {
    let database = Running::open(&Running::files());
    ["a\"b", "a_b"].iter().for_each(|name| drop(database.table(name).open().expect("it is made")));
    let server = Running::of(database, Config { metrics: Some(ANYWHERE), ..Config::default() });
    let client = &mut server.client();
    assert_eq!(client.ask("AGG.CREATE w WINDOW t 1s FUNCTIONS n=count"), Got::ok());
    assert_eq!(client.ask("AGG.ADD w 1000 2000 3000"), Got::Int(3));
    let metrics = got(&server, "/metrics");
    let told = metrics.lines().filter(|line| line.starts_with("forebay_table_records{"));
    let names: Vec<&str> =
        told.filter_map(|line| Some(line.split_once('=')?.1.rsplit_once('}')?.0)).collect();
    assert_eq!(names, ["\"a\\\"b\"", "\"a_b\"", "\"w\"", "\"w.schema\""]);
}
