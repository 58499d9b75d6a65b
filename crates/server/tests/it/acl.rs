//! Users: who comes in, and what each may do.

use std::path::PathBuf;

use forebay_server::{Config, Server};

use crate::client::{Client, Got, Running};

fn client(server: &Running, user: &str, password: &str) -> Client {
    let mut client = server.client();
    assert_eq!(client.ask(&format!("AUTH {user} {password}")), Got::ok());
    client
}

fn is_refused(got: Got, code: &str) -> bool {
    matches!(got, Got::Error(text) if text.split(' ').next() == Some(code))
}

#[test]
fn a_user_may_do_what_its_rules_say() {
    let server = Running::new(Config::default());
    let mut admin = server.client();
    assert_eq!(admin.ask("ACL WHOAMI"), Got::bulk("default"));
    let rules = "on >secret ~app:* %R~shared:* &news:* +@all -@dangerous +config|get";
    assert_eq!(admin.ask(&format!("ACL SETUSER bob {rules}")), Got::ok());
    let mut bob = client(&server, "bob", "secret");
    assert_eq!(bob.ask("ACL WHOAMI"), Got::bulk("bob"));
    assert_eq!(bob.ask("SET app:1 x"), Got::ok());
    assert_eq!(bob.ask("GET app:1"), Got::bulk("x"));
    assert_eq!(bob.ask("GET shared:1"), Got::Null);
    assert_eq!(bob.ask("EXISTS shared:1"), Got::Int(0));
    for line in [
        "SET shared:1 x",
        "SET other x",
        "GET other",
        "EXISTS other",
        "MSET app:1 x other y",
        "RENAME app:1 other",
        "RENAME other app:1",
        "COPY app:1 shared:1",
        "ZUNIONSTORE app:2 2 app:3 other",
        "ZUNIONSTORE other 1 app:3",
        "ZINTERCARD 2 app:1 other",
        "GETDEL shared:1",
        "WATCH other",
        "FLUSHALL",
        "KEYS *",
        "CONFIG RESETSTAT",
        "ACL SETUSER bob +@all",
        "FB.ROLLBACK now",
        "FB.STATS",
        "AGG.CREATE other KEY a:int64 FUNCTIONS count",
        "AGG.GET other 1",
        "AGG.INFO other",
        "AGG.DROP app:1",
    ] {
        let got = bob.ask(line);
        assert!(is_refused(got.clone(), "NOPERM"), "{line}: {got:?}");
    }
    assert!(matches!(bob.ask("CONFIG GET maxclients"), Got::Array(_)));
    assert_eq!(bob.ask("COPY shared:1 app:5"), Got::Int(0));
    let Got::Array(notes) = admin.ask("ACL LOG") else { panic!("notes") };
    // The same once more is counted, not listed.
    assert_eq!(notes.len(), 9);
}

#[test]
fn a_transaction_is_held_to_the_rules_of_its_moment() {
    let server = Running::new(Config::default());
    let mut admin = server.client();
    assert_eq!(admin.ask("ACL SETUSER bob on nopass ~* +@all"), Got::ok());
    let mut bob = client(&server, "bob", "any");
    assert_eq!(bob.ask("MULTI"), Got::ok());
    assert_eq!(bob.ask("SET a 1"), Got::Simple("QUEUED".into()));
    assert_eq!(admin.ask("ACL SETUSER bob -set"), Got::ok());
    let Got::Array(done) = bob.ask("EXEC") else { panic!("it is done") };
    assert!(is_refused(done[0].clone(), "NOPERM"));
    assert_eq!(admin.ask("EXISTS a"), Got::Int(0));
    assert_eq!(bob.ask("MULTI"), Got::ok());
    assert!(is_refused(bob.ask("SET a 1"), "NOPERM"));
    assert!(is_refused(bob.ask("EXEC"), "EXECABORT"));
}

#[test]
fn rights_and_users_that_are_taken_away_are_gone_at_once() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let mut admin = server.client();
    assert_eq!(admin.ask("ACL SETUSER bob on >a ~* +@all"), Got::ok());
    let mut connections: Vec<Client> = (0..4).map(|_| client(&server, "bob", "a")).collect();
    assert_eq!(admin.ask("ACL SETUSER bob -get"), Got::ok());
    for connection in &mut connections {
        assert!(is_refused(connection.ask("GET a"), "NOPERM"));
    }
    assert_eq!(admin.ask("ACL DELUSER bob nobody"), Got::Int(1));
    // Another user of that name is not the one that they were.
    assert_eq!(admin.ask("ACL SETUSER bob on >a ~* +@all"), Got::ok());
    assert!(is_refused(connections[0].ask("PING"), "NOAUTH"));
    for connection in &mut connections {
        assert!(connection.is_closed(), "also one that asks nothing");
    }
    assert!(is_refused(admin.ask("ACL DELUSER default"), "ERR"));
    assert_eq!(admin.ask("ACL SETUSER bob off"), Got::ok());
    assert!(is_refused(server.client().ask("AUTH bob a"), "WRONGPASS"));
}

#[test]
fn a_rule_that_is_wrong_changes_nothing() {
    let server = Running::new(Config::default());
    let mut admin = server.client();
    assert_eq!(admin.ask("ACL SETUSER bob on ~a +get"), Got::ok());
    let before = admin.ask("ACL LIST");
    for rule in
        ["foo", "+nope", "-@nope", "#12", "<none", "%X~a", "%~", "+get|no", "~", "+", "(~a)", "+select|0"]
    {
        let got = admin.ask(&format!("ACL SETUSER bob off +set {rule}"));
        assert!(rule == "~" || is_refused(got, "ERR"), "{rule}");
        if rule == "~" {
            assert_eq!(admin.ask("ACL SETUSER bob reset on ~a +get"), Got::ok());
        }
    }
    assert_eq!(admin.ask("ACL LIST"), before);
    assert!(is_refused(admin.ask_bytes(&[b"ACL", b"SETUSER", b"b b"]), "ERR"));
    assert!(
        is_refused(admin.ask_bytes(&[b"ACL", b"SETUSER", b"bob", b"~a b"]), "ERR"),
        "it would be two words of the file"
    );
    assert!(is_refused(admin.ask_bytes(&[b"ACL", b"SETUSER", b"bob", b"~a\non"]), "ERR"));
}

/// Else many guesses would wait as one.
#[test]
fn passwords_are_not_given_in_transactions() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    for line in ["AUTH default any", "HELLO 3 AUTH default any"] {
        assert_eq!(client.ask("MULTI"), Got::ok());
        assert_eq!(client.ask(line), Got::Error("ERR Command not allowed inside a transaction".into()));
        assert!(is_refused(client.ask("EXEC"), "EXECABORT"));
    }
}

#[test]
fn who_loses_a_channel_is_told_nothing_more() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let mut admin = server.client();
    assert_eq!(admin.ask("ACL SETUSER bob on nopass &* +@all"), Got::ok());
    let mut listeners = ["SUBSCRIBE news", "PSUBSCRIBE n*", "SSUBSCRIBE news"].map(|line| {
        let mut bob = client(&server, "bob", "any");
        assert!(matches!(bob.ask(line), Got::Array(_)));
        bob
    });
    let mut other = client(&server, "bob", "any");
    assert!(matches!(other.ask("SUBSCRIBE old"), Got::Array(_)));
    assert_eq!(admin.ask("ACL SETUSER bob resetchannels &old"), Got::ok());
    assert!(listeners.iter_mut().all(Client::is_closed));
    assert_eq!(admin.ask("PUBLISH old x"), Got::Int(1));
    assert!(matches!(other.read(), Got::Array(_)));
}

/// They tell what others ask, and which keys.
#[test]
fn what_the_server_does_is_for_admins() {
    let server = Running::new(Config::default());
    assert_eq!(server.client().ask("ACL SETUSER bob on nopass ~b* +@all -@admin"), Got::ok());
    let mut bob = client(&server, "bob", "any");
    for line in ["FB.STATS", "FB.INFO", "SLOWLOG GET"] {
        assert!(is_refused(bob.ask(line), "NOPERM"), "{line}");
    }
}

struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("forebay-users-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("it is written");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn users_are_read_from_a_file_and_written_to_it() {
    let hash = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
    let text =
        format!("# users\nuser default off\n\nuser ann on #{hash} ~* &* +@all\nuser bob on >b ~b* +get\n");
    let file = File::new("file", &text);
    let config = || Config { acl_file: Some(file.0.clone()), ..Config::default() };
    let server = Running::new(config());
    assert!(is_refused(server.client().ask("GET a"), "NOAUTH"), "the default user is off");
    let mut ann = client(&server, "ann", "password");
    assert_eq!(ann.ask("ACL SETUSER carl on >c ~c +set"), Got::ok());
    let Got::Array(listed) = ann.ask("ACL LIST") else { panic!("lines") };
    assert_eq!(ann.ask("ACL SAVE"), Got::ok());
    let again = Running::new(config());
    let mut carl = client(&again, "carl", "c");
    assert_eq!(carl.ask("SET c 1"), Got::ok());
    assert_eq!(client(&again, "ann", "password").ask("ACL LIST"), Got::Array(listed));
    std::fs::write(&file.0, "user default off\nuser ann on #12\n").expect("it is written");
    let told = ann.ask("ACL LOAD");
    assert!(
        matches!(&told, Got::Error(text) if text.contains("line 2") && text.contains("64 characters")),
        "{told:?}"
    );
    assert_eq!(ann.ask("ACL WHOAMI"), Got::bulk("ann"), "all stay");
    std::fs::write(&file.0, format!("user ann on #{hash} +@all\n")).expect("it is written");
    assert_eq!(ann.ask("ACL LOAD"), Got::ok());
    assert!(is_refused(ann.ask("GET a"), "NOPERM"), "it has no keys any more");
    assert_eq!(ann.ask("ACL USERS"), Got::Array(vec![Got::bulk("ann"), Got::bulk("default")]));
    let broken = Server::bind(
        Running::open(&Running::files()),
        Config { acl_file: Some("/nowhere".into()), ..config() },
    );
    assert!(broken.map(drop).expect_err("there is none").to_string().contains("/nowhere"));
}

/// The answer to a password waits once some were wrong, whether it is right or not, and nobody else does.
#[test]
fn who_guesses_waits() {
    let server = Running::new(Config { password: Some("right".into()), ..Config::default() });
    let mut known = client(&server, "default", "right");
    let begin = std::time::Instant::now();
    let mut guesser = server.client();
    for _ in 0..2 {
        assert!(is_refused(guesser.ask("AUTH wrong"), "WRONGPASS"));
        assert_eq!(known.ask("PING"), Got::Simple("PONG".into()));
    }
    // Seconds of the server are counted, which may have begun before: one of one and one of two.
    assert!(begin.elapsed().as_millis() >= 1000);
    let Got::Array(notes) = known.ask("ACL LOG") else { panic!("notes") };
    let Got::Array(note) = &notes[0] else { panic!("a note") };
    assert!(note.contains(&Got::bulk("auth")) && note.contains(&Got::Int(2)), "{note:?}");
    assert_eq!(known.ask("ACL LOG RESET"), Got::ok());
    assert_eq!(known.ask("ACL LOG"), Got::Array(Vec::new()));
}
