//! Aggregates as a service.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int8Type, Int64Type, TimestampMillisecondType};
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, Int8Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Options};
use forebay_server::Config;
use proptest::prelude::*;

use crate::client::{Client, Got, Running, encode};

/// Asks line after line. What is expected stands as `redis-cli` shows it, in short.
fn check(client: &mut Client, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        assert_eq!(shown(&client.ask(line)), *expected, "{line}");
    }
}

fn shown(got: &Got) -> String {
    match got {
        Got::Simple(text) => text.clone(),
        Got::Error(text) => format!("!{text}"),
        Got::Int(number) => number.to_string(),
        Got::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Got::Null => "nil".into(),
        Got::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(" ")),
    }
}

fn refused(client: &mut Client, line: &str, told: &str) {
    match client.ask(line) {
        Got::Error(text) => assert!(text.contains(told), "{line}: {text}"),
        other => panic!("{line}: {other:?}"),
    }
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("it begins");
    batches.iter().for_each(|batch| writer.write(batch).expect("it is written"));
    writer.into_inner().expect("it ends")
}

fn sales(rows: &[(&str, i64)]) -> RecordBatch {
    let city: ArrayRef = Arc::new(rows.iter().map(|(city, _)| Some(*city)).collect::<StringArray>());
    let sold: ArrayRef = Arc::new(rows.iter().map(|(_, sold)| Some(*sold)).collect::<Int64Array>());
    RecordBatch::try_from_iter([("city", city), ("sold", sold)]).expect("columns are of one length")
}

/// All slices of a result, each of so many groups.
fn result(client: &mut Client, name: &str, count: usize, states: &[&[u8]]) -> Vec<RecordBatch> {
    let (mut cursor, mut all) = (b"0".to_vec(), Vec::new());
    loop {
        let count = count.to_string();
        let asked = [b"AGG.RESULT", name.as_bytes(), b"CURSOR", &cursor, b"COUNT", count.as_bytes()];
        let got = client.ask_bytes(&[&asked[..], states].concat());
        let Got::Array(parts) = got else { panic!("{got:?}") };
        let [Got::Bulk(next), Got::Bulk(stream)] = &parts[..] else { panic!("{parts:?}") };
        let reader = StreamReader::try_new(&stream[..], None).expect("it is a stream");
        all.extend(reader.map(|batch| batch.expect("it is sound")));
        if next == b"0" {
            return all;
        }
        cursor.clone_from(next);
    }
}

const CREATE: &str = "AGG.CREATE sales KEY city COLUMNS sold:int FUNCTIONS n=count total=sum:sold max:sold";

#[test]
fn rows_come_as_arguments_and_answers_by_names() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(
        client,
        &[
            (CREATE, "OK"),
            (CREATE, "OK"),
            ("AGG.LIST", "[\"sales\"]"),
            ("AGG.ADD sales Oslo 3 Bern 5 Oslo -1", "3"),
            ("AGG.ADD sales Rom 5", "1"),
            ("AGG.GET sales Oslo", "[\"n\" 2 \"total\" 2 \"max:sold\" 3]"),
            ("AGG.GET sales Graz", "nil"),
            (
                "AGG.MGET sales Bern Graz Rom",
                "[[\"n\" 1 \"total\" 5 \"max:sold\" 5] nil [\"n\" 1 \"total\" 5 \"max:sold\" 5]]",
            ),
            (
                "AGG.TOP sales 2 BY total",
                "[[\"city\" \"Bern\" \"n\" 1 \"total\" 5 \"max:sold\" 5] [\"city\" \"Rom\" \"n\" 1 \"total\" 5 \"max:sold\" 5]]",
            ),
            ("AGG.TOP sales 1", "[[\"city\" \"Oslo\" \"n\" 2 \"total\" 2 \"max:sold\" 3]]"),
            (
                "AGG.INFO sales",
                "[\"name\" \"sales\" \"window\" \"\" \"key\" [\"city:Utf8\"] \"columns\" [\"city:text\" \"sold:int\"] \
                 \"functions\" [\"n=count\" \"total=sum:sold\" \"max:sold\"]]",
            ),
            ("AGG.DROP sales", "OK"),
            ("AGG.LIST", "[]"),
            (CREATE, "OK"),
            ("AGG.GET sales Oslo", "nil"),
            // Without a key there is one group, and without columns a row has nothing.
            ("AGG.CREATE all FUNCTIONS count", "OK"),
            ("AGG.ADD all", "1"),
            ("AGG.GET all", "[\"count\" 1]"),
        ],
    );
}

#[test]
fn every_type_of_column_comes_back() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(
        client,
        &[
            (
                "AGG.CREATE t KEY d:date p:decimal2 b:bool i:int COLUMNS v:float FUNCTIONS avg:v min:v list:v",
                "OK",
            ),
            ("AGG.ADD t 2024-02-29 1.5 true -7 2.5 2024-02-29 1.50 1 -7 3", "2"),
            (
                "AGG.GET t 2024-02-29 1.50 TRUE -7",
                "[\"avg:v\" \"2.75\" \"min:v\" \"2.5\" \"list:v\" [\"2.5\" \"3\"]]",
            ),
        ],
    );
    refused(client, "AGG.ADD t 2024-02-30 1 true 1 1", "row 1: column `d`: `2024-02-30` is no date");
    refused(client, "AGG.ADD t 2024-02-28 1 true 1 1 2024-02-28 1.555 true 1 1", "row 2: column `p`");
    refused(client, "AGG.GET t today 1 true 1", "column `d`: `today` is no date");
    let mut raw = server.client();
    let asked = [encode(&[b"HELLO", b"3"]), encode(&[b"AGG.TOP", b"t", b"1"])].concat();
    raw.socket.write_all(&asked).expect("it is there");
    // Truths and floats have types of their own in version 3.
    let expected = b"#t\r\n$1\r\ni\r\n:-7\r\n$5\r\navg:v\r\n,2.75\r\n";
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    while !all.windows(expected.len()).any(|some| some == expected) {
        let read = raw.socket.read(&mut chunk).expect("a reply comes");
        assert!(read > 0 && all.len() < 4096, "{}", all.escape_ascii());
        all.extend_from_slice(&chunk[..read]);
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_of_it_done() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(client, &[(CREATE, "OK"), ("SET k v", "OK")]);
    for name in ["0", "15", "0.elements", "a@b", "x.schema", "x.inputs", "ä"] {
        refused(client, &format!("AGG.CREATE {name} FUNCTIONS count"), "ERR an aggregator's name");
    }
    for (line, told) in [
        ("AGG.CREATE x FUNCTIONS", "wrong number of arguments"),
        ("AGG.CREATE x KEY a b", "ERR syntax error: AGG.CREATE"),
        ("AGG.CREATE x a FUNCTIONS count", "ERR syntax error: AGG.CREATE"),
        ("AGG.CREATE x KEY a KEY b FUNCTIONS count", "ERR syntax error: AGG.CREATE"),
        ("AGG.CREATE x KEY a:number FUNCTIONS count", "ERR column `a:number`"),
        ("AGG.CREATE x KEY a a FUNCTIONS count", "a"),
        ("AGG.CREATE x KEY a FUNCTIONS nothing:b", "nothing"),
        ("AGG.CREATE x KEY a FUNCTIONS a=count", "called `a`"),
        ("AGG.CREATE sales KEY city FUNCTIONS count", "is there already"),
        ("AGG.ADD x 1", "there is no aggregator `x`"),
        ("AGG.ADD sales", "a row of `sales` has a value for each of: city, sold"),
        ("AGG.ADD sales Oslo", "a row of `sales`"),
        ("AGG.ADD sales Oslo 1 Bern", "a row of `sales`"),
        ("AGG.ADD sales Oslo 1 Bern x", "row 2: column `sold`: `x` is no int"),
        ("AGG.GET sales", "a key of `sales` has a value for each of: city"),
        ("AGG.GET sales Oslo 1", "a key of `sales`"),
        ("AGG.TOP sales 0", "count is to be from 1"),
        ("AGG.TOP sales x", "not an integer"),
        ("AGG.TOP sales 1 BY nothing", "there is no answer `nothing`; there are: n, total, max:sold"),
        ("AGG.RESULT sales CURSOR x", "invalid cursor"),
        ("AGG.RESULT sales COUNT 0", "not an integer"),
        ("AGG.LOAD sales nothing", "the Arrow stream cannot be read"),
        ("AGG.MERGE sales sales", "not merged with itself"),
        ("AGG.DROP x", "there is no aggregator `x`"),
        ("AGG.COMMIT sales m ADD", "a row of `sales`"),
        ("AGG.COMMIT sales m REMOVE", "syntax error"),
    ] {
        refused(client, line, told);
    }
    check(
        client,
        &[
            ("AGG.LIST", "[\"sales\"]"),
            ("AGG.GET sales Oslo", "nil"),
            ("AGG.METADATA sales", "nil"),
            ("GET k", "\"v\""),
            // A function that takes no text refuses a row, and the others of the command with it.
            ("AGG.CREATE t KEY a FUNCTIONS sum:b", "OK"),
        ],
    );
    refused(client, "AGG.ADD t x 1 y z", "row 2");
    check(
        client,
        &[("AGG.GET t x", "nil"), ("AGG.ADD t x 0.1 x 0.2", "2"), ("AGG.GET t x", "[\"sum:b\" \"0.3\"]")],
    );
}

#[test]
fn a_turn_sees_what_it_has_added_and_what_was_committed_stays() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let open = || Database::open("/db", Options::default().env(env.clone())).expect("it opens");
    let server = Running::of(open(), Config::default());
    let mut client = server.client();
    let lines = [
        CREATE,
        "AGG.ADD sales Oslo 1",
        "AGG.GET sales Oslo",
        "AGG.ADD sales Oslo 2",
        "AGG.TOP sales 1",
        "PING",
        "AGG.COMMIT sales offset-7 ADD Bern 4",
        "AGG.METADATA sales",
        "MULTI",
        "AGG.ADD sales Oslo 10",
        "AGG.COMMIT sales offset-8",
        "AGG.TOP sales 1",
        "EXEC",
    ];
    let all: Vec<u8> = lines
        .iter()
        .flat_map(|line| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect();
    client.socket.write_all(&all).expect("it is there");
    let got: Vec<String> = lines.iter().map(|_| shown(&client.read())).collect();
    assert_eq!(
        got,
        [
            "OK",
            "1",
            "[\"n\" 1 \"total\" 1 \"max:sold\" 1]",
            "1",
            "[[\"city\" \"Oslo\" \"n\" 2 \"total\" 3 \"max:sold\" 2]]",
            "PONG",
            "1",
            "\"offset-7\"",
            "OK",
            "QUEUED",
            "QUEUED",
            "QUEUED",
            "[1 0 !ERR a transaction cannot look at all keys, or drop them, behind its own writes, which are one batch with what \
             follows; ask that first in it, or before MULTI]",
        ]
    );
    drop((client, server));
    let server = Running::of(open(), Config::default());
    check(
        &mut server.client(),
        &[
            ("AGG.METADATA sales", "\"offset-8\""),
            ("AGG.GET sales Oslo", "[\"n\" 3 \"total\" 13 \"max:sold\" 10]"),
            ("AGG.ADD sales Oslo 1", "1"),
            ("AGG.GET sales Oslo", "[\"n\" 4 \"total\" 14 \"max:sold\" 10]"),
        ],
    );
}

#[test]
fn streams_of_arrow_go_in_and_come_out_in_slices() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    let other = CREATE.replace("sales", "other");
    check(client, &[(CREATE, "OK"), (&other, "OK")]);
    let names: Vec<String> = (0..500).map(|number| format!("city {number}")).collect();
    let rows: Vec<(&str, i64)> = names.iter().map(|name| (&name[..], name.len() as i64)).collect();
    let batches = [sales(&rows), sales(&rows[..100])];
    assert_eq!(client.ask_bytes(&[b"AGG.LOAD", b"sales", &stream(&batches)]), Got::Int(600));
    let mut found = BTreeMap::new();
    for batch in result(client, "sales", 64, &[]) {
        let counts = batch.column_by_name("n").expect("it is there").as_primitive::<Int64Type>();
        let totals = batch.column_by_name("total").expect("it is there").as_primitive::<Decimal128Type>();
        for row in 0..batch.num_rows() {
            let city = batch.column(0).as_string::<i32>().value(row).to_string();
            let before = found.insert(city, (counts.value(row), totals.value(row)));
            assert_eq!(before, None, "each group comes once");
        }
    }
    let times = |at: usize| if at < 100 { 2 } else { 1 };
    let expected = names.iter().enumerate();
    let expected =
        expected.map(|(at, name)| (name.clone(), (times(at), i128::from(times(at)) * name.len() as i128)));
    assert_eq!(found, expected.collect());

    // States of one aggregator are added to another, as a stream or at once.
    let states = result(client, "sales", 4096, &[b"STATES"]);
    let metadata = client.ask_bytes(&[b"AGG.COMMIT", b"other", b"all", b"LOAD", &stream(&states)]);
    assert_eq!(metadata, Got::Int(500));
    check(
        client,
        &[
            ("AGG.METADATA other", "\"all\""),
            ("AGG.MERGE other sales", "500"),
            ("AGG.TOP other 1", "[[\"city\" \"city 0\" \"n\" 4 \"total\" 24 \"max:sold\" 6]]"),
        ],
    );
    let dated = "AGG.CREATE dated KEY city COLUMNS sold:int FUNCTIONS n=count";
    check(client, &[(dated, "OK")]);
    refused(client, "AGG.MERGE dated sales", "are asked for");
    let got = client.ask_bytes(&[b"AGG.LOAD", b"dated", &stream(&states)]);
    assert!(matches!(&got, Got::Error(told) if told.contains("are asked for")), "{got:?}");
}

#[test]
fn windows_have_rows_by_time_and_are_dropped_as_a_whole() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let open = || Database::open("/db", Options::default().env(env.clone())).expect("it opens");
    let server = Running::of(open(), Config::default());
    let client = &mut server.client();
    let create = "AGG.CREATE hits WINDOW at 1m RETAIN 2m KEY page FUNCTIONS n=count sum:bytes";
    check(
        client,
        &[
            (create, "OK"),
            (create, "OK"),
            ("AGG.ADD hits 60000 / 10 119999 / 5 120000 / 1", "3"),
            ("AGG.ADD hits 180000 /about 7", "1"),
            ("AGG.COMMIT hits line-9 ADD 240001 / 2", "1"),
            // A group is asked for by any time in its window.
            ("AGG.GET hits 60001 /", "[\"n\" 2 \"sum:bytes\" 15]"),
            ("AGG.MGET hits 120000 / 120000 /about", "[[\"n\" 1 \"sum:bytes\" 1] nil]"),
            ("AGG.TOP hits 1 BY n", "[[\"window\" 60000 \"page\" \"/\" \"n\" 2 \"sum:bytes\" 15]]"),
        ],
    );
    let slices = result(client, "hits", 1, &[]);
    let starts: Vec<i64> = slices
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<TimestampMillisecondType>().values().to_vec())
        .collect();
    assert_eq!(starts, [60_000, 120_000, 180_000, 240_000]);
    for (line, told) in [
        (create.replace("2m", "3m").as_str(), "is there already"),
        ("AGG.ADD hits x / 1", "column `at`: `x` is no time"),
        ("AGG.ADD hits  / 1", "row 1 has no time"),
        ("AGG.EXPIRE hits x", "not an integer"),
        ("AGG.RESULT hits CURSOR 7", "invalid cursor"),
        ("AGG.CREATE x WINDOW at KEY a FUNCTIONS count", "syntax error"),
        ("AGG.CREATE x RETAIN 1m FUNCTIONS count", "syntax error"),
        ("AGG.CREATE x WINDOW at 1fortnight FUNCTIONS count", "1fortnight"),
    ] {
        refused(client, line, told);
    }
    check(
        client,
        &[
            // Kept are the window in which it is now, and those that begin within two minutes before.
            ("AGG.EXPIRE hits 240001", "1"),
            ("AGG.GET hits 60001 /", "nil"),
            ("AGG.GET hits 120001 /", "[\"n\" 1 \"sum:bytes\" 1]"),
            ("MULTI", "OK"),
            ("AGG.ADD hits 240000 / 1", "QUEUED"),
            ("EXEC", "[!ERR rows of windows are committed by themselves, and cannot stand in a transaction]"),
        ],
    );
    refused(client, "AGG.ADD hits 60000 / 10", "row 1 has a time from before 120000");
    drop(server);
    let server = Running::of(open(), Config::default());
    check(
        &mut server.client(),
        &[
            ("AGG.METADATA hits", "\"line-9\""),
            ("AGG.GET hits 240000 /", "[\"n\" 1 \"sum:bytes\" 2]"),
            ("AGG.DROP hits", "OK"),
            ("AGG.LIST", "[]"),
        ],
    );
}

#[test]
fn a_stream_cannot_tell_of_more_rows_than_it_has_bytes_for() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(client, &[("AGG.CREATE all FUNCTIONS count", "OK")]);
    let schema = Arc::new(Schema::new(vec![Field::new("nothing", DataType::Null, true)]));
    let columns: Vec<ArrayRef> = vec![Arc::new(NullArray::new(1 << 40))];
    let options = RecordBatchOptions::new().with_row_count(Some(1 << 40));
    let huge = RecordBatch::try_new_with_options(schema, columns, &options).expect("it is made");
    let got = client.ask_bytes(&[b"AGG.LOAD", b"all", &stream(&[huge])]);
    assert!(matches!(&got, Got::Error(told) if told.contains("more rows than it has bytes for")), "{got:?}");
    check(client, &[("AGG.GET all", "nil")]);
}

/// A dictionary tells of far more than it takes.
#[test]
fn states_of_a_stream_have_a_bound() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(client, &[("AGG.CREATE all COLUMNS c FUNCTIONS any:c", "OK")]);
    let long = vec![b'x'; 1 << 20];
    assert_eq!(client.ask_bytes(&[b"AGG.ADD", b"all", &long]), Got::Int(1));
    let states = result(client, "all", 1, &[b"STATES"]).remove(0);
    let codes = Int8Array::from(vec![0; 300]);
    let coded: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(codes, Arc::clone(states.column(0))));
    let schema = states.schema();
    let field = schema.field(0).clone().with_data_type(coded.data_type().clone());
    let schema = Arc::new(Schema::new_with_metadata(vec![field], schema.metadata().clone()));
    let states = RecordBatch::try_new(schema, vec![coded]).expect("columns fit");
    let got = client.ask_bytes(&[b"AGG.LOAD", b"all", &stream(std::slice::from_ref(&states))]);
    assert!(matches!(&got, Got::Error(told) if told.contains("too much for one commit")), "{got:?}");
    let got = client.ask_bytes(&[b"AGG.LOAD", b"all", &stream(&[states.slice(0, 5)])]);
    assert_eq!(got, Got::Int(5));
}

#[test]
fn replies_have_a_bound_and_many_groups_are_of_one_moment() {
    let server = Running::new(Config { buffers_bytes_max: 4_000_000, ..Config::default() });
    let client = &mut server.client();
    check(client, &[("AGG.CREATE t KEY k COLUMNS c FUNCTIONS any:c", "OK"), ("AGG.ADD t a x b y", "2")]);
    let keys = |count: usize| (0..count).map(|at| ["a", "b", "none"][at % 3]).collect::<Vec<_>>().join(" ");
    let Got::Array(all) = client.ask(&format!("AGG.MGET t {}", keys(3000))) else { panic!("a list comes") };
    assert_eq!(all.len(), 3000);
    for (at, got) in all.iter().enumerate() {
        assert_eq!(shown(got), ["[\"any:c\" \"x\"]", "[\"any:c\" \"y\"]", "nil"][at % 3], "{at}");
    }
    for (name, bytes) in [(&b"long"[..], 100_000), (b"longer", 1_200_000)] {
        assert_eq!(client.ask_bytes(&[b"AGG.ADD", b"t", name, &vec![b'x'; bytes]]), Got::Int(1));
    }
    refused(client, &format!("AGG.MGET t{}", " long".repeat(20)), "longer than 1000000 bytes");
    refused(client, "AGG.GET t longer", "longer than 1000000 bytes");
    check(client, &[("AGG.MGET t b none", "[[\"any:c\" \"y\"] nil]")]);
}

#[test]
fn rows_of_too_many_windows_are_refused() {
    let server = Running::new(Config::default());
    let client = &mut server.client();
    check(client, &[("AGG.CREATE w WINDOW t 1ms FUNCTIONS n=count", "OK")]);
    let times = |count: u32| (1..=count).map(|time| time.to_string()).collect::<Vec<_>>().join(" ");
    refused(client, &format!("AGG.ADD w {}", times(4097)), "more than 4096 windows");
    check(client, &[("AGG.TOP w 1", "[]"), ("AGG.ADD w 1 2 3", "3")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Damaged streams are an error, or rows of what they say; the server goes on.
    #[test]
    fn damaged_streams_break_nothing(seed in prop::collection::vec((0..4096usize, any::<u8>()), 64), cut in 0..4096usize) {
        let server = Running::new(Config::default());
        let client = &mut server.client();
        check(client, &[(CREATE, "OK")]);
        let sound = stream(&[sales(&[("Oslo", 3), ("Bern", 5), ("", -1)]), sales(&[("Rom", 1)])]);
        for (at, byte) in seed {
            let mut damaged = sound.clone();
            let place = at % damaged.len();
            damaged[place] = byte;
            let got = client.ask_bytes(&[b"AGG.LOAD", b"sales", &damaged]);
            prop_assert!(matches!(got, Got::Error(_) | Got::Int(0..=4)), "{:?}", got);
        }
        let cut = &sound[..cut % sound.len()];
        let got = client.ask_bytes(&[b"AGG.LOAD", b"sales", cut]);
        prop_assert!(matches!(got, Got::Error(_) | Got::Int(0..=4)), "{:?}", got);
        prop_assert_eq!(client.ask("PING"), Got::Simple("PONG".into()));
        check(client, &[("AGG.ADD sales x 1", "1")]);
    }

    /// Whatever rows come in whatever commands of several connections: each is there once.
    #[test]
    fn rows_of_several_connections_are_all_there(
        adds in prop::collection::vec((0..3usize, prop::collection::vec((0..20u8, -1000..1000i64), 1..30)), 1..20),
    ) {
        let server = Running::new(Config { loops: 2, ..Config::default() });
        let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
        check(&mut clients[0], &[(CREATE, "OK")]);
        let mut model = BTreeMap::<String, (i64, i64)>::new();
        for (connection, rows) in &adds {
            let texts: Vec<[String; 2]> =
                rows.iter().map(|(city, sold)| [format!("c{city}"), sold.to_string()]).collect();
            let mut arguments: Vec<&[u8]> = vec![b"AGG.ADD", b"sales"];
            arguments.extend(texts.iter().flatten().map(String::as_bytes));
            clients[*connection].socket.write_all(&encode(&arguments)).expect("it is there");
            for ([city, _], (_, sold)) in texts.iter().zip(rows) {
                let group = model.entry(city.clone()).or_default();
                *group = (group.0 + 1, group.1 + sold);
            }
        }
        for (connection, rows) in &adds {
            prop_assert_eq!(clients[*connection].read(), Got::Int(rows.len() as i64));
        }
        for (city, (count, total)) in model {
            let got = shown(&clients[0].ask(&format!("AGG.GET sales {city}")));
            prop_assert!(got.starts_with(&format!("[\"n\" {count} \"total\" {total} ")), "{}", got);
        }
    }
}
