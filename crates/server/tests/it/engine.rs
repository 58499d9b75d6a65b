//! What the engine has and Redis has not.

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Options};
use forebay_server::Config;

use crate::client::{Client, Got, Running};

fn text(got: &Got) -> String {
    match got {
        Got::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    }
}

fn refused(client: &mut Client, line: &str, told: &str) {
    match client.ask(line) {
        Got::Error(text) => assert!(text.contains(told), "{line}: {text}"),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn numbers_and_layouts_of_tables() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    assert_eq!(client.ask("SET k v"), Got::ok());
    let stats: serde_json::Value = serde_json::from_str(&text(&client.ask("FB.STATS"))).expect("it is JSON");
    assert_eq!((stats["user_records"].as_u64(), stats["tables"][0]["name"].as_str()), (Some(1), Some("0")));
    assert!(stats["server"]["commands"].is_u64() && stats["slow"].is_array(), "{stats}");
    refused(client, "FB.STATS nothing", "there is no table `nothing`");
    refused(client, "FB.STATS 0 0", "syntax error");
    assert_eq!(client.ask("AGG.CREATE hits KEY page FUNCTIONS count"), Got::ok());
    let stats: serde_json::Value =
        serde_json::from_str(&text(&client.ask("FB.STATS hits"))).expect("it is JSON");
    assert_eq!((stats["tables"].as_array().map(Vec::len), stats.get("server")), (Some(1), None));
    assert_eq!(client.ask("FB.LAYOUT 0"), Got::bulk("wb-tree"));
    refused(client, "FB.LAYOUT 0 leveling", "needs its order");
    refused(client, "FB.LAYOUT 0 pile", "pile");
    assert_eq!(client.ask("FB.LAYOUT 0 wb-tree"), Got::ok());
    assert_eq!(client.ask("GET k"), Got::bulk("v"));
}

#[test]
fn a_rollback_undoes_all_that_was_written_since() {
    let server = Running::new(Config { loops: 2, ..Config::default() });
    let (client, other) = (&mut server.client(), &mut server.client());
    for line in ["SET k old", "AGG.CREATE hits KEY page FUNCTIONS count", "AGG.COMMIT hits one ADD /"] {
        assert!(!matches!(client.ask(line), Got::Error(_)), "{line}");
    }
    assert!(matches!(client.ask("FB.SAVEPOINT CREATE before"), Got::Int(1..)));
    refused(client, "FB.SAVEPOINT CREATE before", "before");
    for line in [
        "SET k new",
        "SELECT 3",
        "SET here v",
        "AGG.COMMIT hits two ADD /",
        "AGG.CREATE later FUNCTIONS count",
    ] {
        assert!(!matches!(other.ask(line), Got::Error(_)), "{line}");
    }
    assert_eq!(client.ask("WATCH k"), Got::ok());
    assert_eq!(client.ask("MULTI"), Got::ok());
    assert_eq!(client.ask("GET k"), Got::Simple("QUEUED".into()));
    assert_eq!(other.ask("FB.ROLLBACK before"), Got::ok());
    assert_eq!(client.ask("EXEC"), Got::Null);
    assert_eq!(client.ask("GET k"), Got::bulk("old"));
    assert_eq!(other.ask("GET here"), Got::Null);
    assert_eq!(other.ask("SET here again"), Got::ok());
    assert_eq!(client.ask("AGG.METADATA hits"), Got::bulk("one"));
    assert_eq!(client.ask("AGG.GET hits /"), Got::Array(vec![Got::bulk("count"), Got::Int(1)]));
    assert_eq!(client.ask("AGG.LIST"), Got::Array(vec![Got::bulk("hits")]));
    let Got::Array(all) = client.ask("FB.SAVEPOINT LIST") else { panic!("a list comes") };
    assert_eq!(all.len(), 1);
    assert_eq!(client.ask("FB.SAVEPOINT DROP before"), Got::ok());
    refused(client, "FB.ROLLBACK before", "before");
    refused(client, "FB.SAVEPOINT MAKE x", "syntax error");
}

#[test]
fn checkpoints_are_made_in_their_folder_alone() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let open = |path: &str| Database::open(path, Options::default().env(env.clone())).expect("it opens");
    let server =
        Running::of(open("/db"), Config { checkpoints: Some("/copies".into()), ..Config::default() });
    let client = &mut server.client();
    assert_eq!(client.ask("SET k v"), Got::ok());
    for name in ["../copy", "/copy", "a/b", ".", "..", ".x", "a b"] {
        let got = client.ask_bytes(&[b"FB.CHECKPOINT", name.as_bytes()]);
        assert!(matches!(&got, Got::Error(told) if told.contains("a checkpoint's name")), "{name}: {got:?}");
    }
    let Got::Array(made) = client.ask("FB.CHECKPOINT first") else { panic!("it is made") };
    assert_eq!(made[0], Got::bulk("last_sequence"));
    refused(client, "FB.CHECKPOINT first", "first");
    assert_eq!(client.ask("SET k later"), Got::ok());
    let copy = Running::of(open("/copies/first"), Config::default());
    assert_eq!(copy.client().ask("GET k"), Got::bulk("v"));
    let without = Running::new(Config::default());
    refused(&mut without.client(), "FB.CHECKPOINT first", "--checkpoints");
}

#[test]
fn changes_come_commit_by_commit_and_go_on_behind_a_number() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    for line in ["SET a 1", "DEL a", "MSET b 2 c 3"] {
        assert!(!matches!(client.ask(line), Got::Error(_)), "{line}");
    }
    let Got::Array(first) = client.ask("FB.CHANGES 0 COUNT 1") else { panic!("changes come") };
    let change = |parts: &[&str]| Got::Array(parts.iter().map(|part| Got::bulk(part)).collect());
    let [Got::Array(commit)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(commit[1], Got::Array(vec![change(&["0", "put", "a", "s1"])]));
    let Got::Int(number) = commit[0] else { panic!("{commit:?}") };
    let Got::Array(rest) = client.ask(&format!("FB.CHANGES {number}")) else { panic!("changes come") };
    assert_eq!(rest.len(), 2);
    let [Got::Array(deleted), Got::Array(both)] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!(deleted[1], Got::Array(vec![change(&["0", "delete", "a"])]));
    let Got::Array(puts) = &both[1] else { panic!("{both:?}") };
    assert_eq!(puts.len(), 2);
    let Got::Int(last) = both[0] else { panic!("{both:?}") };
    assert_eq!(client.ask(&format!("FB.CHANGES {last}")), Got::Array(Vec::new()));
    refused(client, "FB.CHANGES 1000000", "changes after 1000000");
    refused(client, "FB.CHANGES x", "not an integer");
    refused(client, "FB.CHANGES 0 COUNT 0", "COUNT is to be");
}

/// New containers took the numbers of those that a rollback had brought back.
#[test]
fn containers_are_none_of_those_that_a_rollback_brings_back() {
    let files = Running::files();
    {
        let server = Running::of(Running::open(&files), Config::default());
        let client = &mut server.client();
        assert_eq!(client.ask("HSET a f v"), Got::Int(1));
        assert!(matches!(client.ask("FB.SAVEPOINT CREATE before"), Got::Int(1..)));
        assert_eq!(client.ask("FLUSHDB"), Got::ok());
    }
    let server = Running::of(Running::open(&files), Config::default());
    let client = &mut server.client();
    assert_eq!(client.ask("FB.ROLLBACK before"), Got::ok());
    assert_eq!(client.ask("HSET b g w"), Got::Int(1));
    assert_eq!(client.ask("HGETALL a"), Got::Array(vec![Got::bulk("f"), Got::bulk("v")]));
    assert_eq!(client.ask("DEL b"), Got::Int(1));
    assert_eq!(client.ask("HGET a f"), Got::bulk("v"));
}
