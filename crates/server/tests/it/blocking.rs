//! Commands that wait: who gets what, in which order, and that nothing is lost.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_server::Config;

use crate::client::{Client, Got, Running, encode};

fn server(loops: usize) -> Running {
    Running::new(Config { loops, ..Config::default() })
}

fn told(words: &[&str]) -> Got {
    Got::Array(words.iter().map(|word| Got::bulk(word)).collect())
}

fn send(client: &mut Client, line: &str) {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    client.socket.write_all(&encode(&words)).expect("it is there");
}

/// Clients that wait, each once the one before it stands in the row.
fn waiting(server: &Running, count: usize, line: &str) -> Vec<Client> {
    let mut watcher = server.client();
    let mut blocked = || match watcher.ask("INFO") {
        Got::Bulk(text) => {
            let text = String::from_utf8(text).expect("a text");
            let count = text.split("blocked_clients:").nth(1).and_then(|rest| rest.lines().next());
            count.and_then(|count| count.parse::<usize>().ok()).expect("a count")
        }
        other => panic!("{other:?}"),
    };
    let one = |_| {
        let (mut client, before) = (server.client(), blocked());
        send(&mut client, line);
        while blocked() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        client
    };
    (0..count).map(one).collect()
}

#[test]
fn what_is_there_comes_at_once_and_nothing_in_time() {
    let server = server(1);
    let mut client = server.client();
    for line in ["RPUSH a 1 2 3", "ZADD z 1 x 2 y 3 w"] {
        assert_eq!(client.ask(line), Got::Int(3));
    }
    assert_eq!(client.ask("BLPOP none a 0"), told(&["a", "1"]));
    assert_eq!(client.ask("BRPOP a none 0"), told(&["a", "3"]));
    assert_eq!(client.ask("BLMOVE a b LEFT LEFT 0"), Got::bulk("2"));
    assert_eq!(client.ask("BRPOPLPUSH b c 0"), Got::bulk("2"));
    assert_eq!(client.ask("BLMPOP 0 2 a c LEFT"), Got::Array(vec![Got::bulk("c"), told(&["2"])]));
    assert_eq!(client.ask("BZPOPMIN z 0"), told(&["z", "x", "1"]));
    assert_eq!(client.ask("BZPOPMAX none z 0"), told(&["z", "w", "3"]));
    assert_eq!(
        client.ask("BZMPOP 0 1 z MIN"),
        Got::Array(vec![Got::bulk("z"), Got::Array(vec![told(&["y", "2"])])])
    );
    for line in ["BLPOP a 0.02", "BZPOPMAX z 0.02", "BLMOVE a b LEFT LEFT 0.02", "BLMPOP 0.02 1 a LEFT"] {
        assert_eq!(client.ask(line), Got::Null, "{line}");
    }
    // What stands behind it waits for it.
    let lines = ["BLPOP a 0.02", "RPUSH a 1", "BLPOP a 0.02", "PING"].map(String::from);
    let pong = Got::Simple("PONG".into());
    assert_eq!(client.ask_all(&lines), [Got::Null, Got::Int(1), told(&["a", "1"]), pong]);
    for line in ["MULTI", "BLPOP a 0", "BLMOVE a b LEFT LEFT 0", "RPUSH a 1", "BRPOP a 0"] {
        client.ask(line);
    }
    assert_eq!(client.ask("EXEC"), Got::Array(vec![Got::Null, Got::Null, Got::Int(1), told(&["a", "1"])]));
    for (line, error) in [
        ("BLPOP a -1", "ERR timeout is negative"),
        ("BLPOP a x", "ERR timeout is not a float or out of range"),
        ("BLPOP a 1e300", "ERR timeout is out of range"),
        ("BLMPOP 0 1 a MIDDLE", "ERR syntax error"),
        ("BLMOVE a b LEFT UP 0", "ERR syntax error"),
        ("BZMPOP 0 0 a MIN", "ERR numkeys should be greater than 0"),
    ] {
        assert_eq!(client.ask(line), Got::Error(error.into()), "{line}");
    }
    client.ask("SET text 1");
    assert!(matches!(client.ask("BLPOP text 0"), Got::Error(text) if text.starts_with("WRONGTYPE")));
}

#[test]
fn who_waited_first_takes_first_on_all_loops() {
    let server = server(3);
    let mut writer = server.client();
    let mut all = waiting(&server, 7, "BLPOP q r 0");
    // One command gives to several, each the next.
    assert_eq!(writer.ask("RPUSH q 0 1 2"), Got::Int(3));
    assert_eq!(writer.ask("MULTI"), Got::ok());
    for line in ["RPUSH r 3", "RPUSH r 4"] {
        writer.ask(line);
    }
    assert_eq!(writer.ask("EXEC"), Got::Array(vec![Got::Int(1), Got::Int(2)]));
    for (number, client) in all.iter_mut().take(3).enumerate() {
        assert_eq!(client.read(), told(&["q", &number.to_string()]));
    }
    for (number, client) in all.iter_mut().enumerate().take(5).skip(3) {
        assert_eq!(client.read(), told(&["r", &number.to_string()]));
    }
    // By a list that is renamed, and by one that another waiter moves.
    writer.ask("RPUSH other 5");
    assert_eq!(writer.ask("RENAME other q"), Got::ok());
    assert_eq!(all[5].read(), told(&["q", "5"]));
    let mut mover = waiting(&server, 1, "BLMOVE from r LEFT RIGHT 0").remove(0);
    // A key of another type is no trouble of who waits.
    writer.ask("SET from text");
    writer.ask("DEL from");
    assert_eq!(writer.ask("RPUSH from 6"), Got::Int(1));
    assert_eq!(mover.read(), Got::bulk("6"));
    assert_eq!(all[6].read(), told(&["r", "6"]));
    assert_eq!(writer.ask("EXISTS q r from"), Got::Int(0));
}

#[test]
fn who_goes_away_loses_nothing() {
    let server = server(2);
    let mut writer = server.client();
    let mut all = waiting(&server, 6, "BLPOP q 0");
    all[0].socket.shutdown(Shutdown::Both).expect("it is there");
    drop(all.remove(2));
    assert_eq!(server.client().ask("BRPOP q 0.01"), Got::Null);
    assert_eq!(writer.ask("RPUSH q 1 2 3 4 5"), Got::Int(5));
    for (number, client) in all.iter_mut().skip(1).enumerate() {
        assert_eq!(client.read(), told(&["q", &(number + 1).to_string()]));
    }
    assert_eq!(writer.ask("LRANGE q 0 -1"), told(&["5"]));
}

/// Many who take and give, and leave now and then: each element comes to one of them.
#[test]
fn each_element_comes_to_one() {
    let server = server(3);
    const EACH: usize = 300;
    let is_all_given = AtomicBool::new(false);
    let taken: Vec<String> = std::thread::scope(|threads| {
        let takers: Vec<_> = (0..6)
            .map(|number| {
                let (server, is_all_given) = (&server, &is_all_given);
                threads.spawn(move || {
                    let mut taken = Vec::new();
                    let mut client = server.client();
                    let line =
                        ["BLPOP q r 0.05", "BLMPOP 0.05 2 r q LEFT COUNT 2", "BRPOP q 0.05"][number % 3];
                    loop {
                        let was_all = is_all_given.load(Ordering::SeqCst);
                        match client.ask(line) {
                            Got::Null if was_all => return taken,
                            Got::Null => {}
                            Got::Array(words) => {
                                let flat = words.into_iter().skip(1).flat_map(|word| match word {
                                    Got::Array(all) => all,
                                    one => vec![one],
                                });
                                taken.extend(flat.map(|word| match word {
                                    Got::Bulk(text) => String::from_utf8(text).expect("a text"),
                                    other => panic!("{other:?}"),
                                }));
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        let give = |giver| {
            let server = &server;
            threads.spawn(move || {
                let mut client = server.client();
                for number in 0..EACH {
                    let key = if number % 5 == 0 && giver > 0 { "r" } else { "q" };
                    client.ask(&format!("RPUSH {key} {giver}:{number}"));
                }
            })
        };
        let givers: Vec<_> = (0..3).map(give).collect();
        givers.into_iter().for_each(|giver| giver.join().expect("it gives"));
        is_all_given.store(true, Ordering::SeqCst);
        takers.into_iter().flat_map(|taker| taker.join().expect("it takes")).collect()
    });
    assert_eq!(taken.len(), 3 * EACH, "none is lost or comes twice");
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 3 * EACH);
}

/// Those who wait for another type do not stand before them.
#[test]
fn who_waits_for_a_list_waits_for_no_sorted_set() {
    let server = server(2);
    let mut writer = server.client();
    let mut sorted = waiting(&server, 2, "BZPOPMIN k 0");
    let mut lists = waiting(&server, 2, "BLPOP k 0");
    for number in ["0", "1"] {
        assert_eq!(writer.ask(&format!("RPUSH k {number}")), Got::Int(1));
        assert_eq!(lists.remove(0).read(), told(&["k", number]));
    }
    assert_eq!(writer.ask("ZADD k 1 a 2 b"), Got::Int(2));
    assert_eq!(sorted[0].read(), told(&["k", "a", "1"]));
    assert_eq!(sorted[1].read(), told(&["k", "b", "2"]));
    assert_eq!(writer.ask("EXISTS k"), Got::Int(0));
    let many = "k ".repeat(20_000);
    assert!(
        matches!(writer.ask(&format!("BLPOP {many}0")), Got::Error(text) if text.contains("too many keys"))
    );
}

/// A transaction stands in no row: it takes what it has pushed itself, and who waits takes the rest.
#[test]
fn a_transaction_takes_before_those_who_wait() {
    let server = server(2);
    let mut waiter = waiting(&server, 1, "BLPOP k 0").remove(0);
    let mut client = server.client();
    for line in ["MULTI", "RPUSH k a b", "BLPOP k 0"] {
        client.ask(line);
    }
    assert_eq!(client.ask("EXEC"), Got::Array(vec![Got::Int(2), told(&["k", "a"])]));
    assert_eq!(waiter.read(), told(&["k", "b"]));
}
