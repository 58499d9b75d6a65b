//! Commits and lookups that fail: who is told, and what a connection is good for after that.

use std::io::Write;
use std::sync::Arc;

use forebay::env::Env;
use forebay::{Database, Options};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_server::Config;

use crate::client::{Client, Got, Running, encode};

/// A server whose files fail as they are told.
struct Faulty {
    server: Running,
    files: Arc<FaultyFs>,
}

impl Faulty {
    fn new() -> Self {
        let files = FaultyFs::new(MemoryFs::new());
        let env = Env::simulated(files.clone(), 1);
        let database = Database::open("/db", Options::default().env(env)).expect("it opens");
        Self { server: Running::of(database, Config::default()).failing(), files }
    }

    fn log_fails(&self) {
        self.files.rule("any *.log all io-error").expect("a rule");
    }
}

fn send(client: &mut Client, lines: &[&str]) {
    let words = |line: &&str| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    let all: Vec<u8> = lines.iter().flat_map(words).collect();
    client.socket.write_all(&all).expect("it is there");
}

fn is_error(got: &Got) -> bool {
    matches!(got, Got::Error(_))
}

/// What looks at all keys commits what was written before it in the turn. When that failed, the turn had nothing left to
/// commit at its end, and the writes were acknowledged.
#[test]
fn a_commit_that_fails_amid_a_turn_is_told_to_all_who_wrote() {
    for looks in ["DBSIZE", "SCAN 0", "KEYS *", "RANDOMKEY", "FLUSHDB"] {
        let faulty = Faulty::new();
        let mut client = faulty.server.client();
        assert_eq!(client.ask("SET before 1"), Got::ok());
        faulty.log_fails();
        send(&mut client, &["SET lost 1", looks, "GET before"]);
        assert!(is_error(&client.read()), "{looks} has a write before it that is lost");
        assert!(is_error(&client.read()), "{looks} cannot look");
    }
}

/// `SELECT`, `MULTI` and `HELLO` of a turn that failed have happened, though the client was told an error.
#[test]
fn a_turn_that_failed_ends_its_connections() {
    let faulty = Faulty::new();
    let (mut client, mut reader) = (faulty.server.client(), faulty.server.client());
    assert_eq!(client.ask("SET kept 1"), Got::ok());
    assert_eq!(reader.ask("PING"), Got::Simple("PONG".into()));
    faulty.log_fails();
    send(&mut client, &["SELECT 1", "SET lost 1"]);
    assert!(is_error(&client.read()));
    assert!(is_error(&client.read()));
    assert!(client.is_closed());
    // Who had nothing in that turn goes on.
    assert_eq!(reader.ask("GET kept"), Got::bulk("1"));
}

/// A table that cannot be opened is no reason to refuse the requests of others, nor those that do not need it.
#[test]
fn a_database_that_cannot_be_opened_fails_who_asks_for_it_only() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let database = Database::open("/db", Options::default().env(env)).expect("it opens");
    // One of the library's: it does not let keys expire.
    database.table("3").open().expect("it is made");
    let server = Running::of(database, Config::default());
    let mut client = server.client();
    send(
        &mut client,
        &["SELECT 3", "GET a", "PING", "SELECT 0", "SET a 1", "COPY a a DB 3 REPLACE", "GET a"],
    );
    assert_eq!(client.read(), Got::ok());
    assert!(is_error(&client.read()));
    assert_eq!(client.read(), Got::Simple("PONG".into()));
    assert_eq!([client.read(), client.read()], [Got::ok(), Got::ok()]);
    assert!(is_error(&client.read()));
    assert_eq!(client.read(), Got::bulk("1"));
}

/// In one batch with what follows: so it cannot be asked behind writes.
#[test]
fn what_looks_at_all_keys_is_refused_behind_writes_of_its_transaction() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    for looks in ["DBSIZE", "KEYS *", "SCAN 0", "RANDOMKEY", "FLUSHDB", "FLUSHALL"] {
        send(&mut client, &["MULTI", "SET a 1", looks, "SET b 1", "EXEC"]);
        assert_eq!(client.read(), Got::ok());
        (0..3).for_each(|_| assert_eq!(client.read(), Got::Simple("QUEUED".into())));
        let Got::Array(all) = client.read() else { panic!("{looks}: it is done") };
        assert!(
            matches!(&all[..], [one, looked, other] if *one == Got::ok() && is_error(looked) && *other == Got::ok())
        );
    }
    send(&mut client, &["MULTI", "DBSIZE", "SET b 2", "EXEC", "DBSIZE"]);
    (0..3).for_each(|_| drop(client.read()));
    assert_eq!(client.read(), Got::Array(vec![Got::Int(2), Got::ok()]));
    assert_eq!(client.read(), Got::Int(2));
}

/// At `disk` the log is synced before the reply; at `os` it is not waited for.
#[test]
fn a_reply_at_disk_waits_for_the_sync() {
    let faulty = Faulty::new();
    let (mut client, mut careful) = (faulty.server.client(), faulty.server.client());
    assert_eq!(careful.ask("FB.DURABILITY disk"), Got::ok());
    assert_eq!(careful.ask("SET a 1"), Got::ok());
    faulty.files.rule("sync *.log all io-error").expect("a rule");
    assert_eq!(client.ask("SET b 1"), Got::ok());
    assert!(is_error(&careful.ask("SET c 1")));
    assert!(careful.is_closed());
}

/// Where all replies before those that wait for a sync were sent, and there are none that wait: what comes next found
/// the end of replies that were gone, and the server ended.
#[test]
fn who_wants_no_replies_may_go_on_while_a_sync_is_waited_for() {
    let server = Running::new(Config::default());
    let mut careful = server.client();
    assert_eq!(careful.ask("FB.DURABILITY disk"), Got::ok());
    for round in 0..200 {
        send(&mut careful, &["DBSIZE", "CLIENT REPLY OFF", "SET k v"]);
        assert_eq!(careful.read(), Got::Int(i64::from(round > 0)));
        send(&mut careful, &["PING"]);
        send(&mut careful, &["CLIENT REPLY ON"]);
        assert_eq!(careful.read(), Got::ok());
    }
}

/// A key that cannot be read is the trouble of who asks for it.
#[test]
fn a_lookup_that_fails_fails_who_asks_for_it_only() {
    let files = FaultyFs::new(MemoryFs::new());
    let open = || Running::open(&Env::simulated(files.clone(), 1));
    let database = open();
    let table = database.table("0").time_to_live(std::time::Duration::MAX).open().expect("it opens");
    table.put("damaged", "s1").expect("it is put");
    database.flush().expect("it is flushed");
    database.close().expect("it closes");
    let server = Running::of(open(), Config::default()).failing();
    let mut client = server.client();
    files.rule("read *.list all io-error").expect("a rule");
    send(
        &mut client,
        &["PING", "GET damaged", "SET b 1", "GET b", "MGET b damaged", "MULTI", "GET damaged", "EXEC"],
    );
    assert_eq!(client.read(), Got::Simple("PONG".into()));
    assert!(is_error(&client.read()));
    assert_eq!([client.read(), client.read()], [Got::ok(), Got::bulk("1")]);
    assert!(is_error(&client.read()), "a key that cannot be read is not one that is not there");
    assert_eq!([client.read(), client.read()], [Got::ok(), Got::Simple("QUEUED".into())]);
    assert!(matches!(client.read(), Got::Array(all) if is_error(&all[0])));
}

/// What a turn has published goes nowhere if its commit fails.
#[test]
fn a_turn_that_fails_publishes_nothing() {
    let faulty = Faulty::new();
    let (mut listener, mut writer) = (faulty.server.client(), faulty.server.client());
    send(&mut listener, &["HELLO 3", "SUBSCRIBE done"]);
    (0..2).for_each(|_| drop(listener.read()));
    assert_eq!(writer.ask("PUBLISH done 1"), Got::Int(1));
    assert!(matches!(listener.read(), Got::Array(_)));
    faulty.log_fails();
    send(&mut writer, &["PUBLISH done 2", "SET k 1"]);
    assert!(is_error(&writer.read()));
    assert!(is_error(&writer.read()));
    assert_eq!(listener.ask("PING"), Got::Simple("PONG".into()));
}
