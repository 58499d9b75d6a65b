//! A server that follows another one: it has what that has, refuses writes, goes on behind cuts and crashes, and is
//! promoted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Follower, Options};
use forebay_server::{Config, Server, Source};

use crate::client::{Client, Got, Running};

/// Files in memory, and the machine's clock: what follows is told each second that its source is there.
fn files() -> Env {
    Env { fs: MemoryFs::new(), ..Env::real() }
}

fn options(env: &Env) -> Options {
    Options::default().keep_changes(256 << 20).env(env.clone())
}

fn source(env: &Env) -> Running {
    Running::of(
        Database::open("/db", options(env)).expect("it opens"),
        Config { loops: 2, ..Config::default() },
    )
}

fn config(of: SocketAddr) -> Config {
    let source = Source { host: of.ip().to_string(), port: of.port(), user: None, password: None, tls: None };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Config { listen, loops: 2, source: Some(source), ..Config::default() }
}

fn follower(env: &Env, of: SocketAddr) -> Running {
    let follower = Follower::open("/copy", options(env)).expect("it opens");
    Running::from_server(Server::follow(follower, config(of)).expect("it listens"))
}

fn error_of(got: Got) -> String {
    match got {
        Got::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

fn text(got: Got) -> String {
    match got {
        Got::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    }
}

/// A number or a word of `INFO`.
fn info(client: &mut Client, field: &str) -> String {
    let all = text(client.ask("INFO replication"));
    assert!(!all.contains("used_memory"), "one section was asked for: {all}");
    let line = all.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("INFO has {field}: {all}")).into()
}

fn comes_to(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the follower has all that the source has.
fn catch_up(source: &mut Client, follower: &mut Client) {
    let position = |client: &mut Client| info(client, "master_repl_offset").parse::<u64>().expect("a number");
    // The source's sweeper may write on meanwhile: that changes nothing that commands tell.
    let wanted = position(source);
    comes_to("the follower comes to what the source has", || position(follower) >= wanted);
}

/// All that a server has, as its commands tell it.
fn contents(client: &mut Client) -> Vec<(String, String, Got)> {
    let mut all = Vec::new();
    for database in [0, 1] {
        assert_eq!(client.ask(&format!("SELECT {database}")), Got::ok());
        let Got::Array(keys) = client.ask("KEYS *") else { panic!("keys come") };
        for key in keys.into_iter().map(text) {
            let kind = match client.ask(&format!("TYPE {key}")) {
                Got::Simple(kind) => kind,
                other => panic!("{other:?}"),
            };
            let asked = match &kind[..] {
                "string" => format!("GET {key}"),
                "hash" => format!("HGETALL {key}"),
                "set" => format!("SMEMBERS {key}"),
                "zset" => format!("ZRANGE {key} 0 -1 WITHSCORES"),
                "list" => format!("LRANGE {key} 0 -1"),
                other => panic!("{other}"),
            };
            all.push((format!("{database} {key}"), kind, client.ask(&asked)));
        }
    }
    assert_eq!(client.ask("SELECT 0"), Got::ok());
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % below
    }

    /// A command that writes, or drops much.
    fn command(&mut self) -> String {
        let (key, name, number) = (self.below(20), self.below(30), self.below(1000));
        match self.below(18) {
            0..3 => format!("SET s{key} {number}"),
            3 => format!("INCRBY n{key} {number}"),
            4 => format!("DEL s{key} h{key} l{key}"),
            5..7 => format!("HSET h{key} f{name} {number}"),
            7 => format!("HDEL h{key} f{name}"),
            8 => format!("SADD e{key} m{name} m{number}"),
            9 => format!("SREM e{key} m{name}"),
            10 => format!("ZADD z{key} {number} m{name}"),
            11 => format!("ZREM z{key} m{name}"),
            12 => format!("RPUSH l{key} {number} {name}"),
            13 => format!("LPOP l{key}"),
            14 => format!("SET h{key} {number}"),
            15 => format!("RENAME e{key} e{name}"),
            16 => format!("SELECT {}", self.below(2)),
            _ => match self.below(20) {
                0 => "FLUSHDB".into(),
                1 => format!("SUNIONSTORE e{key} e{name} e{}", self.below(20)),
                _ => format!("APPEND s{key} {number}"),
            },
        }
    }

    fn commands(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.command()).collect()
    }
}

#[test]
fn a_follower_has_what_its_source_has_and_refuses_writes() {
    for seed in [1, 20_261_127] {
        println!("seed {seed}");
        let mut draws = Draws(seed);
        let source = source(&files());
        let writer = &mut source.client();
        writer.ask_all(&draws.commands(300));
        let follower = follower(&files(), source.address);
        let reader = &mut follower.client();
        for _ in 0..10 {
            writer.ask_all(&draws.commands(100));
            // Nothing that is read meanwhile fails.
            for line in ["KEYS *", "HGETALL h1", "SMEMBERS e1", "ZRANGE z1 0 -1", "LRANGE l1 0 -1"] {
                let got = reader.ask(line);
                let is_right = match &got {
                    Got::Error(text) => text.starts_with("WRONGTYPE"),
                    _ => true,
                };
                assert!(is_right, "{line}: {got:?}");
            }
        }
        catch_up(writer, reader);
        let asked = contents(writer);
        assert!(asked.len() > 20, "there is something to compare");
        assert_eq!(contents(reader), asked);
        comes_to("the numbers of keys are the same", || reader.ask("DBSIZE") == writer.ask("DBSIZE"));
    }
}

#[test]
fn tables_that_are_not_there_yet_are_empty_and_come() {
    let source = source(&files());
    let follower = follower(&files(), source.address);
    let (writer, reader) = (&mut source.client(), &mut follower.client());
    for (line, empty) in [
        ("GET k", Got::Null),
        ("HGETALL h", Got::Array(Vec::new())),
        ("DBSIZE", Got::Int(0)),
        ("KEYS *", Got::Array(Vec::new())),
        ("AGG.LIST", Got::Array(Vec::new())),
    ] {
        assert_eq!(reader.ask(line), empty, "{line}");
    }
    for line in ["SET k v", "HSET h f v", "AGG.CREATE hits KEY page FUNCTIONS count", "AGG.ADD hits /"] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
    }
    catch_up(writer, reader);
    assert_eq!(reader.ask("GET k"), Got::bulk("v"));
    assert_eq!(reader.ask("HGET h f"), Got::bulk("v"));
    comes_to("the aggregator comes", || reader.ask("AGG.LIST") == Got::Array(vec![Got::bulk("hits")]));
    let counted = Got::Array(vec![Got::bulk("count"), Got::Int(1)]);
    assert_eq!(reader.ask("AGG.GET hits /"), counted);
    assert_eq!(reader.ask("WATCH k"), Got::ok());
    for line in ["FLUSHALL", "AGG.DROP hits", "SET k new", "HSET h f new"] {
        assert!(!matches!(writer.ask(line), Got::Error(_)), "{line}");
    }
    catch_up(writer, reader);
    assert_eq!(reader.ask("GET k"), Got::bulk("new"));
    assert_eq!(reader.ask("HGETALL h"), Got::Array(vec![Got::bulk("f"), Got::bulk("new")]));
    comes_to("the aggregator goes", || reader.ask("AGG.LIST") == Got::Array(Vec::new()));
    assert!(error_of(reader.ask("AGG.GET hits /")).contains("no aggregator"));
    // What is watched was written by the source.
    assert_eq!(reader.ask("MULTI"), Got::ok());
    assert_eq!(reader.ask("GET k"), Got::Simple("QUEUED".into()));
    assert_eq!(reader.ask("EXEC"), Got::Null);
}

#[test]
fn whoever_writes_to_a_follower_is_told_that_it_is_one() {
    let source = source(&files());
    let follower = follower(&files(), source.address);
    let (writer, reader) = (&mut source.client(), &mut follower.client());
    assert_eq!(writer.ask("SET k v"), Got::ok());
    catch_up(writer, reader);
    for line in [
        "SET k w",
        "DEL k",
        "INCR n",
        "HSET h f v",
        "BLPOP l 1",
        "FLUSHALL",
        "EXPIRE k 10",
        "GETDEL k",
        "PFADD p a",
        "AGG.CREATE a FUNCTIONS count",
        "AGG.LOAD a x",
        "AGG.EXPIRE a 1",
        "FB.ROLLBACK x",
    ] {
        assert_eq!(
            error_of(reader.ask(line)),
            "READONLY You can't write against a read only replica.",
            "{line}"
        );
    }
    assert_eq!(reader.ask("MULTI"), Got::ok());
    assert!(error_of(reader.ask("SET k w")).starts_with("READONLY"));
    assert!(error_of(reader.ask("EXEC")).starts_with("EXECABORT"));
    assert_eq!(reader.ask("GET k"), Got::bulk("v"));
    assert_eq!(reader.ask("PUBLISH news x"), Got::Int(0));
    assert!(error_of(reader.ask("REPLICAOF 127.0.0.1 6379")).contains("--follow"));
    assert!(error_of(writer.ask("REPLICAOF 127.0.0.1 6379")).contains("--follow"));
    assert_eq!(writer.ask("REPLICAOF NO ONE"), Got::ok());
    // What both tell of each other.
    assert_eq!(info(reader, "role"), "slave");
    assert_eq!(info(reader, "master_port"), source.address.port().to_string());
    comes_to("the link is up", || info(reader, "master_link_status") == "up");
    assert_eq!((info(writer, "role"), info(writer, "connected_slaves")), ("master".into(), "1".into()));
    comes_to("the source tells how far it is", || info(writer, "slave0").contains("records_behind=0"));
    let Got::Array(role) = reader.ask("ROLE") else { panic!("a role comes") };
    assert_eq!((&role[0], &role[3]), (&Got::bulk("slave"), &Got::bulk("connected")));
    let Got::Array(role) = writer.ask("ROLE") else { panic!("a role comes") };
    assert!(role[0] == Got::bulk("master") && matches!(&role[2], Got::Array(all) if all.len() == 1));
    let stats = text(reader.ask("FB.STATS"));
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("it is JSON");
    comes_to("the lag is told", || {
        let lag = info(reader, "slave_lag_milliseconds").parse::<i64>().expect("a number");
        (0..10_000).contains(&lag)
    });
    assert!(stats["server"]["follows"]["is_up"].is_boolean(), "{stats}");
}

#[test]
fn a_promoted_follower_takes_writes_and_gives_no_number_again() {
    let source = source(&files());
    let env = files();
    let follower = follower(&env, source.address);
    let (writer, reader, other) = (&mut source.client(), &mut follower.client(), &mut follower.client());
    for number in 0..50 {
        assert_eq!(writer.ask(&format!("HSET h{number} f {number}")), Got::Int(1));
    }
    catch_up(writer, reader);
    drop(source);
    comes_to("the link is down", || info(reader, "master_link_status") == "down");
    assert_eq!(reader.ask("REPLICAOF NO ONE"), Got::ok());
    assert_eq!(info(reader, "role"), "master");
    // New containers are none of those that came by the source.
    for number in 50..100 {
        assert_eq!(other.ask(&format!("HSET h{number} f {number}")), Got::Int(1));
    }
    assert_eq!(other.ask("DEL h70"), Got::Int(1));
    for number in (0..100).filter(|number| *number != 70) {
        assert_eq!(reader.ask(&format!("HGET h{number} f")), Got::bulk(&number.to_string()));
    }
    assert_eq!(other.ask("REPLICAOF NO ONE"), Got::ok());
    drop(follower);
    // It is a database from then on, also behind a restart, and follows no more.
    assert!(Follower::open("/copy", options(&env)).is_err());
    let again = Running::of(Database::open("/copy", options(&env)).expect("it opens"), Config::default());
    assert_eq!(again.client().ask("HGET h99 f"), Got::bulk("99"));
}

/// Goes between, and cuts each connection once so many bytes have passed, drawn from a seed.
fn cutting(to: Arc<AtomicU64>, seed: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    let mut draws = Draws(seed);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let port = to.load(Ordering::SeqCst) as u16;
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let left = draws.below(20_000) as usize + 1;
            let (mut from, mut into) =
                (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut from, &mut into));
            std::thread::spawn(move || {
                let (mut from, mut into, mut left) = (server, client, left);
                let mut bytes = [0; 512];
                while let Ok(read @ 1..) = from.read(&mut bytes) {
                    let taken = read.min(left);
                    left -= taken;
                    if into.write_all(&bytes[..taken]).is_err() || left == 0 {
                        break;
                    }
                }
                let _ = (from.shutdown(std::net::Shutdown::Both), into.shutdown(std::net::Shutdown::Both));
            });
        }
    });
    address
}

#[test]
fn cuts_at_any_byte_and_restarts_of_both_lose_nothing() {
    let seed = 7;
    println!("seed {seed}");
    let (mut draws, source_files, copy_files) = (Draws(seed), files(), files());
    let port = Arc::new(AtomicU64::new(0));
    let between = cutting(Arc::clone(&port), seed);
    let mut running = source(&source_files);
    port.store(running.address.port().into(), Ordering::SeqCst);
    let mut copy = follower(&copy_files, between);
    for round in 0..6 {
        let writer = &mut running.client();
        for _ in 0..5 {
            writer.ask_all(&draws.commands(200));
        }
        match round {
            1 | 4 => {
                drop(copy);
                copy = follower(&copy_files, between);
            }
            2 => {
                drop(running);
                running = source(&source_files);
                port.store(running.address.port().into(), Ordering::SeqCst);
            }
            _ => {}
        }
        let (writer, reader) = (&mut running.client(), &mut copy.client());
        catch_up(writer, reader);
        assert_eq!(contents(reader), contents(writer), "round {round}");
    }
}

#[test]
fn who_may_not_replicate_and_what_cannot_be_followed_is_told() {
    let running = source(&files());
    let (admin, bob) = (&mut running.client(), &mut running.client());
    assert_eq!(admin.ask("ACL SETUSER bob on >secret ~app:* +@all"), Got::ok());
    assert_eq!(bob.ask("AUTH bob secret"), Got::ok());
    assert!(error_of(bob.ask("FB.REPLICATE 0")).starts_with("NOPERM"));
    assert!(error_of(admin.ask("FB.REPLICATE x")).contains("not an integer"));
    assert_eq!(admin.ask("SET k v"), Got::ok());
    // A server that has another history refuses, and goes on to answer who reads.
    let (env, other) = (files(), source(&files()));
    let copy = follower(&env, other.address);
    assert_eq!(other.client().ask("SET other v"), Got::ok());
    catch_up(&mut other.client(), &mut copy.client());
    drop(copy);
    let copy = follower(&env, running.address);
    let reader = &mut copy.client();
    comes_to("what is wrong is told", || {
        info(reader, "master_link_error").contains("follower is a copy of")
            && info(reader, "master_link_status") == "down"
    });
    assert_eq!(reader.ask("GET other"), Got::bulk("v"));
    // Sixteen follow at most.
    let mut all: Vec<Client> = (0..17).map(|_| running.client()).collect();
    let answers: Vec<Got> = all.iter_mut().map(|one| one.ask("FB.REPLICATE 0")).collect();
    let refused = answers.iter().filter(|got| matches!(got, Got::Error(_))).count();
    assert!((1..=2).contains(&refused), "{answers:?}");
}
