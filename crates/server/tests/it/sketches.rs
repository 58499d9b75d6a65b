//! Sketches: their errors, their bounds, and that they are values like others.

use forebay_server::Config;

use crate::client::{Client, Got, Running};

fn ask_many(client: &mut Client, begin: &[&str], items: impl Iterator<Item = String>) -> Got {
    let items: Vec<String> = items.collect();
    let words = begin.iter().map(|word| word.as_bytes()).chain(items.iter().map(|item| item.as_bytes()));
    client.ask_bytes(&words.collect::<Vec<_>>())
}

fn number(got: Got) -> i64 {
    match got {
        Got::Int(number) => number,
        other => panic!("{other:?} is no number"),
    }
}

fn refused(got: Got, part: &str) {
    assert!(matches!(&got, Got::Error(text) if text.contains(part)), "{got:?} is no error with `{part}`");
}

#[test]
fn distinct_elements_are_counted_within_the_error() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("PFADD few a b c a"), Got::Int(1));
    assert_eq!([client.ask("PFADD few a b"), client.ask("PFCOUNT few")], [Got::Int(0), Got::Int(3)]);
    assert_eq!([client.ask("PFADD none"), client.ask("PFADD none")], [Got::Int(1), Got::Int(0)]);
    assert_eq!([client.ask("PFCOUNT none"), client.ask("PFCOUNT missing")], [Got::Int(0), Got::Int(0)]);
    for part in 0..10 {
        let items = |key: usize| {
            (part * 2000 + key * 10_000..(part + 1) * 2000 + key * 10_000).map(|one| one.to_string())
        };
        ask_many(&mut client, &["PFADD", "one"], items(0));
        ask_many(&mut client, &["PFADD", "other"], items(1));
    }
    for (line, distinct) in
        [("PFCOUNT one", 20_000), ("PFCOUNT other few", 20_003), ("PFCOUNT one other", 30_000)]
    {
        let count = number(client.ask(line));
        assert!((count - distinct).abs() * 1000 < distinct * 30, "{line} is about {distinct}, not {count}");
    }
    let both = client.ask("PFCOUNT one other");
    assert_eq!(client.ask("PFMERGE one other"), Got::ok());
    assert_eq!(client.ask("PFCOUNT one"), both);
    assert_eq!(client.ask("TYPE one"), Got::Simple("hyperloglog".into()));
    client.ask("SET text 1");
    refused(client.ask("PFADD text a"), "WRONGTYPE");
    refused(client.ask("GET one"), "WRONGTYPE");
    assert_eq!([client.ask("EXPIRE few 100"), client.ask("PFADD few new")], [Got::Int(1), Got::Int(1)]);
    assert!(number(client.ask("TTL few")) > 0, "it keeps its time");
    assert_eq!([client.ask("RENAME one two"), client.ask("COPY two three")], [Got::ok(), Got::Int(1)]);
    assert_eq!(client.ask("PFCOUNT three"), client.ask("PFCOUNT two"));
}

#[test]
fn filters_forget_nobody_and_take_few_for_others() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("BF.RESERVE f 0.01 1000"), Got::ok());
    refused(client.ask("BF.RESERVE f 0.01 1000"), "item exists");
    // Three times as many as foreseen: other filters come behind.
    let added = ask_many(&mut client, &["BF.MADD", "f"], (0..3000).map(|one| format!("in{one}")));
    assert!(matches!(&added, Got::Array(all) if all.iter().filter(|one| **one == Got::Int(0)).count() < 60));
    let there = ask_many(&mut client, &["BF.MEXISTS", "f"], (0..3000).map(|one| format!("in{one}")));
    assert!(matches!(&there, Got::Array(all) if all.iter().all(|one| *one == Got::Int(1))));
    let others = ask_many(&mut client, &["BF.MEXISTS", "f"], (0..10_000).map(|one| format!("out{one}")));
    let Got::Array(others) = others else { panic!("answers") };
    let wrong = others.iter().filter(|one| **one == Got::Int(1)).count();
    assert!(wrong < 250, "{wrong} of 10,000");
    assert_eq!([client.ask("BF.ADD new a"), client.ask("BF.ADD new a")], [Got::Int(1), Got::Int(0)]);
    assert_eq!(
        [client.ask("BF.EXISTS new b"), client.ask("BF.EXISTS missing b")],
        [Got::Int(0), Got::Int(0)]
    );
    assert_eq!(client.ask("BF.RESERVE small 0.1 2 NONSCALING"), Got::ok());
    refused(client.ask("BF.MADD small a b c d e f"), "filter is full");
    assert_eq!(client.ask("BF.EXISTS small a"), Got::Int(0), "all, or none");
    refused(client.ask("BF.RESERVE huge 0.0001 100000000"), "at most");
    refused(client.ask("BF.RESERVE huge 0 1"), "error rate");
}

#[test]
fn counts_are_never_too_low() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("CMS.INITBYPROB c 0.01 0.01"), Got::ok());
    refused(client.ask("CMS.INITBYDIM c 10 10"), "already exists");
    refused(client.ask("CMS.INITBYDIM huge 4000000000 4000000000"), "at most");
    refused(client.ask("CMS.INCRBY missing a 1"), "does not exist");
    for item in 0..1000 {
        assert!(matches!(client.ask(&format!("CMS.INCRBY c item{item} {}", item + 1)), Got::Array(_)));
    }
    let Got::Array(counts) =
        ask_many(&mut client, &["CMS.QUERY", "c"], (0..1000).map(|item| format!("item{item}")))
    else {
        panic!("counts")
    };
    let all = 1000 * 1001 / 2;
    let over: Vec<i64> =
        counts.into_iter().enumerate().map(|(item, got)| number(got) - item as i64 - 1).collect();
    assert!(over.iter().all(|over| *over >= 0));
    assert!(
        over.iter().filter(|over| **over * 100 > all).count() < 20,
        "one of a hundred is more than 1 % too high"
    );
    for line in [
        "CMS.INITBYDIM d 200 7",
        "CMS.INITBYDIM e 200 7",
        "CMS.INITBYDIM sum 200 7",
        "CMS.INITBYDIM other 9 9",
    ] {
        assert_eq!(client.ask(line), Got::ok());
    }
    client.ask("CMS.INCRBY d a 5 b 1");
    client.ask("CMS.INCRBY e a 2");
    assert_eq!(client.ask("CMS.MERGE sum 2 d e WEIGHTS 1 10"), Got::ok());
    assert_eq!(
        client.ask("CMS.QUERY sum a b none"),
        Got::Array(vec![Got::Int(25), Got::Int(1), Got::Int(0)])
    );
    refused(client.ask("CMS.MERGE sum 1 other"), "not equal");
    refused(client.ask("CMS.INCRBY d a -1"), "Cannot parse");
}

#[test]
fn the_most_frequent_stay() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("TOPK.RESERVE t 3"), Got::ok());
    refused(client.ask("TOPK.RESERVE t 3"), "already exists");
    refused(client.ask("TOPK.RESERVE huge 100000"), "at most");
    refused(client.ask("TOPK.ADD missing a"), "does not exist");
    let none = |count| Got::Array(vec![Got::Null; count]);
    assert_eq!(client.ask("TOPK.ADD t a b c"), none(3));
    assert_eq!(client.ask("TOPK.INCRBY t a 10 b 9 c 2"), none(3));
    assert_eq!(
        client.ask("TOPK.INCRBY t d 5"),
        Got::Array(vec![Got::bulk("c")]),
        "it drives another one away"
    );
    for number in 0..300 {
        client.ask(&format!("TOPK.ADD t rare{number}"));
        client.ask("TOPK.INCRBY t a 2 b 2 d 2");
    }
    let Got::Array(best) = client.ask("TOPK.LIST t WITHCOUNT") else { panic!("a list") };
    assert_eq!(
        best,
        ["a", "b", "d"]
            .map(Got::bulk)
            .into_iter()
            .zip([611, 610, 605].map(Got::Int))
            .flat_map(|(item, count)| [item, count])
            .collect::<Vec<_>>()
    );
    assert_eq!(client.ask("TOPK.QUERY t a rare1 none"), Got::Array([1, 0, 0].map(Got::Int).to_vec()));
    refused(client.ask("TOPK.INCRBY t a 0"), "increment");
}

/// A key is a key: what has no sketch is refused, whatever its bytes are.
#[test]
fn sketches_are_refused_what_is_none() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    client.ask("RPUSH list 1");
    for line in ["PFCOUNT list", "BF.ADD list a", "CMS.QUERY list a", "TOPK.LIST list", "BF.INFO list"] {
        refused(client.ask(line), "WRONGTYPE");
    }
    client.ask("BF.ADD f a");
    client.ask("CMS.INITBYDIM c 3 3");
    client.ask("TOPK.RESERVE t 1");
    for line in ["LPUSH f 1", "HGET c f", "PFADD t a", "GET f"] {
        refused(client.ask(line), "WRONGTYPE");
    }
    // Also where the turn has looked at it already.
    let lines =
        ["BF.ADD f b", "CMS.INCRBY f a 1", "PFADD f a", "BF.EXISTS f b", "CMS.QUERY c a", "BF.ADD c a"];
    let all = client.ask_all(&lines.map(String::from));
    let (refusals, answers): (Vec<_>, Vec<_>) = all.into_iter().partition(|got| matches!(got, Got::Error(_)));
    assert_eq!(answers, [Got::Int(1), Got::Int(1), Got::Array(vec![Got::Int(0)])]);
    refusals.into_iter().for_each(|got| refused(got, "WRONGTYPE"));
    for (key, name) in [("f", "MBbloom--"), ("c", "CMSk-TYPE"), ("t", "TopK-TYPE")] {
        assert_eq!(client.ask(&format!("TYPE {key}")), Got::Simple(name.into()));
    }
    assert_eq!(client.ask("DEL f c t"), Got::Int(3));
}

/// Bytes that no sketch has are refused, and stay as they are.
#[test]
fn damaged_sketches_are_refused() {
    let database = Running::open(&Running::files());
    let table = database.table("0").time_to_live(std::time::Duration::MAX).open().expect("it opens");
    let bloom = |error: f64, capacity: u64, count: u64, hashes: u32| {
        let mut bytes = [&b"b"[..], &error.to_le_bytes(), &2u32.to_le_bytes()].concat();
        bytes.extend([capacity, count].map(u64::to_le_bytes).concat());
        bytes.extend([hashes, 1].map(u32::to_le_bytes).concat());
        [bytes, vec![0]].concat()
    };
    let top = [&b"t"[..], &[1u32, 8, 7].map(u32::to_le_bytes).concat(), &f64::NAN.to_le_bytes()].concat();
    let others = [b"p\x02\x01\x07\x0c\x03\x08\x00\x08".to_vec(), b"pgarbage".to_vec(), top];
    let filters = [
        bloom(0.0, 1, 0, 1),
        bloom(f64::NAN, 1, 0, 1),
        bloom(0.1, 0, 0, 1),
        bloom(0.1, 1, 2, 1),
        bloom(0.1, 1, 0, 0),
        bloom(0.1, 1, 0, 65),
        bloom(0.1, 8, 0, 1),
    ];
    for (number, bytes) in filters.iter().chain(&others).enumerate() {
        table.put(format!("k{number}"), bytes).expect("it is put");
    }
    let server = Running::of(database, Config::default());
    let mut client = server.client();
    for number in 0..6 {
        refused(client.ask(&format!("BF.ADD k{number} a")), "damaged");
    }
    assert_eq!(client.ask("BF.ADD k6 a"), Got::Int(1), "it is sound but for what the others have");
    client.ask("PFADD sound a");
    for line in ["PFADD k7 a", "PFCOUNT k8", "PFCOUNT sound k7", "PFMERGE sound k8", "TOPK.INFO k9"] {
        refused(client.ask(line), "damaged");
    }
    assert_eq!(client.ask("PFCOUNT sound"), Got::Int(1));
}

/// What one command, or one transaction, reads of large sketches is bounded.
#[test]
fn large_sketches_are_not_read_without_end() {
    let server = Running::new(Config { buffers_bytes_max: 64 << 20, ..Config::default() });
    let mut client = server.client();
    assert_eq!(client.ask("CMS.INITBYDIM s 100000 10"), Got::ok());
    assert_eq!(client.ask("CMS.MERGE s 3 s s s"), Got::ok());
    refused(client.ask(&format!("CMS.MERGE s 1000{}", " s".repeat(1000))), "16777216");
    client.ask("MULTI");
    for _ in 0..100 {
        client.ask("CMS.INFO s");
    }
    let Got::Array(all) = client.ask("EXEC") else { panic!("replies") };
    let done = all.iter().filter(|one| matches!(one, Got::Array(_))).count();
    assert!((60..70).contains(&done), "{done} of 4 MB each");
    refused(all[99].clone(), "too much");
}

/// Counters of long items are fewer, and still never too low.
#[test]
fn long_items_have_fewer_counters() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    assert_eq!(client.ask("TOPK.RESERVE t 1000"), Got::ok());
    let long = "x".repeat(1000);
    for part in 0..3 {
        let items = (part * 2000..(part + 1) * 2000).map(|one| format!("{one}{long}"));
        assert!(matches!(ask_many(&mut client, &["TOPK.ADD", "t"], items), Got::Array(_)));
    }
    assert!(matches!(client.ask("TOPK.INCRBY t a 50000 b 40000"), Got::Array(_)));
    let first = number(match client.ask(&format!("TOPK.ADD t 0{long}")) {
        Got::Array(_) => match client.ask(&format!("TOPK.COUNT t 0{long}")) {
            Got::Array(mut all) => all.remove(0),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    assert!(first >= 2, "it came twice, and is told {first}");
    assert!(matches!(client.ask("TOPK.LIST t"), Got::Array(all) if all[..2] == ["a", "b"].map(Got::bulk)));
}
