//! `load`.

use crate::tool::{Folder, last_object};

/// Nothing is written twice, and all is there at the end, durable.
#[test]
fn a_load_without_a_log_writes_lists_alone() {
    let folder = Folder::new("no-log");
    let keys: String = (0..50_000).map(|key| format!("{key:08}\n")).collect();
    let report = last_object(&folder.ok_on("load db t - --no-log --json --memory 4M", keys.as_bytes()));
    assert_eq!(report["records"], 50_000, "{report}");
    assert_eq!(folder.ok("scan db t").lines().count(), 50_000);
    let stats = folder.object("stats db --json");
    assert_eq!(stats["last_sequence"], stats["durable_sequence"], "{stats}");
    for other in ["--durability os", "--sorted", "--keep-changes 1M"] {
        let outcome = folder.run(&format!("load db t - --no-log {other}"));
        assert_eq!(outcome.code, 2, "{other}: {outcome:?}");
    }
}

#[test]
fn every_format_is_loaded_from_a_file_and_from_a_pipe() {
    let folder = Folder::new("formats");
    let inputs: [(&str, &str, &[u8]); 6] = [
        ("lines", "", b"k\n"),
        ("csv", "--quiet", b"k,v\n"),
        ("csv", "--key name --value note", b"id,name,note\n7,k,v\n"),
        ("tsv", "--quiet --key 2 --value 1", b"v\tk"),
        ("jsonl", "--key k --value v", b"{\"k\":\"k\",\"v\":\"v\"}"),
        ("fixed:1,1", "", b"kv"),
    ];
    for (number, (format, options, text)) in inputs.into_iter().enumerate() {
        let value = if format == "lines" { "\n" } else { "v\n" };
        std::fs::write(folder.path("input"), text).unwrap();
        let options = format!("--format {format} {options}");
        let options = options.trim();
        folder.ok(&format!("load db file{number} input {options}"));
        assert_eq!(folder.ok(&format!("get db file{number} k")), value, "{options}");
        folder.ok_on(&format!("load db pipe{number} - {options}"), text);
        assert_eq!(folder.ok(&format!("get db pipe{number} k")), value, "{options}");
        folder.ok_on(&format!("load db nothing{number} - {options}"), b"");
        assert_eq!(folder.ok(&format!("scan db nothing{number}")), "", "{options}");
    }
}

#[test]
fn a_header_that_nobody_has_told_of_is_remarked() {
    let folder = Folder::new("untold");
    std::fs::write(folder.path("users.csv"), "id,e-mail\n1,ada@x.org\n").unwrap();
    let remark = |options: &str| folder.run(format!("load db t users.csv {options}").trim()).stderr;
    assert_eq!(
        remark(""),
        "forebay: users.csv: the first row, id,e-mail, is loaded as a record; if it names the columns, give --header\n"
    );
    assert_eq!(remark("--quiet"), "");
    assert_eq!(remark("--header"), "");
    assert_eq!(remark("--key id --value 2"), "");
    std::fs::write(folder.path("users.csv"), "1,ada@x.org\n").unwrap();
    assert_eq!(remark(""), "");
}

/// Columns that no option names were dropped without a word.
#[test]
fn columns_that_are_left_out_are_named() {
    let folder = Folder::new("left-out");
    std::fs::write(folder.path("u.csv"), "id,name,country,score\n1,ada,uk,7\n").unwrap();
    let told = |options: &str| folder.run(&format!("load db t u.csv {options}")).stderr;
    assert_eq!(told("--key id"), "forebay: u.csv: not loaded: columns \"country\", \"score\"\n");
    assert_eq!(told("--key name"), "forebay: u.csv: not loaded: columns \"id\", \"country\", \"score\"\n");
    assert_eq!(told("--key id --quiet"), "");
    std::fs::write(folder.path("u.csv"), "1,ada,uk\n").unwrap();
    assert_eq!(told("--key 1"), "forebay: u.csv: not loaded: column 3\n");
    assert_eq!(told("--key 1 --value 3"), "");
}

/// Every other size has units.
#[test]
fn how_long_values_are_that_stand_apart_is_a_size() {
    let folder = Folder::new("apart-size");
    folder.ok_on("load db t - --values-apart 10K", b"a\n");
    folder.ok("alter db t --values-apart 20K");
    assert!(folder.ok("describe db t").contains("20480") || folder.ok("describe db t").contains("20.0 KiB"));
    for wrong in ["0", "4G", "ten"] {
        assert_eq!(folder.run(&format!("load db u - --values-apart {wrong}")).code, 2, "{wrong}");
    }
}

#[test]
fn the_last_object_tells_what_the_load_came_to() {
    let folder = Folder::new("figures");
    let keys: String = (0..5000).map(|key| format!("{key:06}\n")).collect();
    let figures =
        last_object(&folder.ok_on("load db t - --json --batch 100 --durability disk", keys.as_bytes()));
    assert_eq!(figures["acknowledged"], 5000);
    assert_eq!(figures["records"], 5000);
    assert_eq!(figures["skipped"], 0);
    assert_eq!(figures["input_bytes"], keys.len());
    for name in ["seconds", "records_per_second", "write_amplification", "stall_seconds", "close_seconds"] {
        assert!(figures[name].as_f64().is_some_and(|figure| figure >= 0.0), "{name} in {figures}");
    }
    let latency =
        ["p50", "p99", "p999", "max"].map(|name| figures["batch_latency_us"][name].as_f64().unwrap());
    assert!(latency.is_sorted() && latency[0] > 0.0, "{latency:?}");
    let text = folder.ok_on("load db t", keys.as_bytes());
    assert!(text.starts_with("5,000 records, "), "{text}");
    // So little seemed to be written many times: files have parts that are there however little is in them.
    assert!(text.contains("\nstalled ") && !text.contains("amplification"), "{text}");
}

#[test]
fn a_later_record_replaces_an_earlier_one() {
    let folder = Folder::new("replace");
    folder.ok_on("load db t - --format csv", b"a,1\nb,2\na,3\n");
    folder.ok_on("load db t - --format csv", b"b,4\n");
    assert_eq!(folder.ok("get db t a b"), "3\n4\n");
}

#[test]
fn a_malformed_record_ends_the_load_behind_what_came_before_it() {
    let folder = Folder::new("malformed");
    std::fs::write(folder.path("users.csv"), "id,name\n1,ada\n2,\"bob\n3,cyd,x\n4,dan\n").unwrap();
    let outcome = folder.run("load db t users.csv --format csv --key id --value name --json");
    outcome
        .refused(1, &["users.csv", "record 2", "byte offset 14", "never closed", "1 record;", "--skip-bad"]);
    assert_eq!(outcome.stdout.lines().next_back(), Some("{\"type\":\"progress\",\"acknowledged\":1}"));
    assert_eq!(folder.ok("get db t 1"), "ada\n");

    let text = folder.ok("load db t users.csv --format csv --key id --value name --skip-bad --json");
    let figures = last_object(&text);
    assert_eq!((figures["records"].as_u64(), figures["skipped"].as_u64()), (Some(2), Some(2)));
    assert_eq!(folder.ok("get db t 1 4"), "ada\ndan\n");
}

#[test]
fn each_format_tells_what_is_malformed() {
    let folder = Folder::new("reasons");
    for (options, text, words) in [
        ("--format csv", "a,1\nb\n", ["record 2", "byte offset 4", "1 column, where the first row has 2"]),
        ("--format csv", "\"a\"b,1\n", ["record 1", "byte offset 0", "closing quote"]),
        ("--format tsv", "a\t1\nb\t2\t3\n", ["record 2", "byte offset 4", "3 columns"]),
        ("--format tsv --key 5", "a\t1\n", ["record 1", "--key", "number 5"]),
        ("--format jsonl --key k", "{\"k\":1}\n\n{\"k\":\n", ["record 2", "byte offset 9", "EOF"]),
        ("--format jsonl --key k", "{\"j\":1}\n", ["record 1", "no field", "\"k\""]),
        ("--format fixed:2,1", "abcde", ["record 2", "byte offset 3", "2 of the record's 3 bytes"]),
    ] {
        folder.run_on(&format!("load db t - {options}"), text.as_bytes()).refused(1, &words);
    }
    let long = "x".repeat((64 << 10) + 1);
    folder.run_on("load db t", format!("a\n{long}\n").as_bytes()).refused(1, &["record 2", "65537 bytes"]);
    folder
        .run_on("load db t - --format csv --key id", b"name,note\n1,2\n")
        .refused(1, &["standard input", "no column is called \"id\"", "name, note"]);
}

#[test]
fn sorted_records_go_straight_to_lists() {
    let folder = Folder::new("sorted");
    let rows: String = (0..5000).map(|key| format!("{key:06},value {key}\n")).collect();
    let words = "load db t - --sorted --format csv --json --memory 8M";
    let figures = last_object(&folder.ok_on(words, rows.as_bytes()));
    assert_eq!((figures["acknowledged"].as_u64(), figures["records"].as_u64()), (Some(5000), Some(5000)));
    assert_eq!(figures["input_bytes"], rows.len());
    assert!(figures["batch_latency_us"]["p50"].is_number(), "{figures}");
    let stats = folder.object("stats db --json");
    assert_eq!(stats["tables"][0]["layout"], "leveling:t=10", "{stats}");
    assert_eq!(folder.ok("scan db t --from 001000 --limit 1"), "001000\tvalue 1000\n");
    // What comes so replaces what was there.
    folder.ok_on("load db t - --sorted --format csv", b"001000,new\n999999,last\n");
    assert_eq!(folder.ok("get db t 001000 999999 000000"), "new\nlast\nvalue 0\n");
    folder.ok("verify db");
}

#[test]
fn records_out_of_order_are_named_and_nothing_is_loaded() {
    let folder = Folder::new("unsorted");
    for (text, words) in [
        ("a\nb\nb\n", ["record 3", "byte offset 4", "not above"]),
        ("b\na\n", ["standard input", "record 2", "nothing was loaded"]),
    ] {
        let outcome = folder.run_on("load db t - --sorted --json", text.as_bytes());
        outcome.refused(1, &words);
        assert_eq!(outcome.stdout.lines().next_back(), Some("{\"type\":\"progress\",\"acknowledged\":0}"));
        assert!(!folder.path("db").exists(), "what was made for nothing is gone again");
    }
    let long = format!("a\n{}\nb\n", "x".repeat((64 << 10) + 1));
    folder.run_on("load db t - --sorted", long.as_bytes()).refused(1, &["record 2", "65537 bytes"]);
    let text = folder.ok_on("load db t - --sorted --skip-bad --json", long.as_bytes());
    let figures = last_object(&text);
    assert_eq!((figures["records"].as_u64(), figures["skipped"].as_u64()), (Some(2), Some(1)));
    folder.ok("put db hashed a 1");
    folder.run_on("load db hashed - --sorted", b"a\n").refused(1, &["hash order"]);
    folder.ok_on("load db tree - --layout wb-tree:ordered", b"a\n");
    folder.run_on("load db tree - --sorted", b"b\n").refused(1, &["layout of runs"]);
    assert_eq!(folder.run("load db t - --sorted --batch 7").code, 2);
}

#[test]
fn an_input_that_cannot_be_read_is_named() {
    let folder = Folder::new("unreadable");
    folder.run("load db t missing.txt").refused(1, &["missing.txt"]);
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.run("load db t folder").refused(1, &["folder", "directory"]);
    assert!(!folder.path("db").exists(), "nothing is made for an input that is not there");
}

/// What `aggregate` reads by its name and its first bytes, `load` does too.
#[test]
fn formats_go_by_the_names_of_files() {
    let folder = Folder::new("load-formats");
    let rows = "id,name\n1,ada\n2,bob\n";
    std::fs::write(folder.path("u.csv"), rows).unwrap();
    crate::aggregate::write_gzip(&folder, "u.csv.gz", rows.as_bytes());
    crate::aggregate::write_gzip(&folder, "packed", b"1\n2\n");
    std::fs::write(folder.path("u.jsonl"), "{\"id\":1,\"name\":\"ada\"}\n{\"id\":2,\"name\":\"bob\"}\n")
        .unwrap();
    folder.ok("aggregate --by column:id --fn any:name --out u.parquet u.csv");
    for (number, file) in ["u.csv", "u.csv.gz", "u.jsonl"].into_iter().enumerate() {
        folder.ok(&format!("load db t{number} {file} --key id --value name"));
        assert_eq!(folder.ok(&format!("get db t{number} 1 2")), "ada\nbob\n", "{file}");
    }
    folder.ok("load db p u.parquet --key id --value any:name");
    folder.ok("load db q u.parquet");
    folder.ok("load db r u.parquet --sorted");
    for table in ["p", "q", "r"] {
        assert_eq!(folder.ok(&format!("get db {table} 1 2")), "ada\nbob\n", "{table}");
    }
    folder.ok("load db packed packed");
    assert_eq!(folder.ok("get db packed 1 --json"), "{\"type\":\"record\",\"key\":\"1\",\"value\":\"\"}\n");
    folder.run("load db s u.parquet --key nosuch").refused(1, &["u.parquet", "\"nosuch\""]);
    folder.run("load db s - --format parquet").refused(2, &["standard input"]);
    folder.run("load db s u.csv --format fixed:0,8").refused(2, &["at least one byte"]);
    folder.run("load db s u.csv --max-space-amplification 1").refused(2, &["1.25"]);
    let sorted = folder.object("load db r2 u.parquet --sorted --json");
    assert!(sorted["write_amplification"].as_f64().unwrap() > 1.0, "{sorted}");
}

/// Its first column had a name that nobody could type.
#[test]
fn text_of_wider_units_is_told() {
    let folder = Folder::new("wide-text");
    let wide = |mark: &[u8], unit: fn(u16) -> Vec<u8>| -> Vec<u8> {
        mark.iter().copied().chain("k,v\na,1\n".encode_utf16().flat_map(unit)).collect()
    };
    let little = |unit: u16| unit.to_le_bytes().to_vec();
    let big = |unit: u16| unit.to_be_bytes().to_vec();
    let four = |unit: u16| u32::from(unit).to_le_bytes().to_vec();
    for (text, name) in [
        (wide(b"\xff\xfe", little), "UTF-16"),
        (wide(b"\xfe\xff", big), "UTF-16"),
        (wide(b"", little), "UTF-16LE"),
        (wide(b"", big), "UTF-16BE"),
        (wide(b"\xff\xfe\0\0", four), "UTF-32"),
    ] {
        std::fs::write(folder.path("w.csv"), text).unwrap();
        let told = [&*format!("w.csv: this is {name} text"), &*format!("iconv -f {name} -t UTF-8")];
        folder.run("load db t w.csv --key k --value v").refused(1, &told);
        folder.run("load db t w.csv --skip-bad").refused(1, &told);
        folder.run("aggregate --by column:k w.csv").refused(1, &told);
        assert!(!folder.path("db").exists());
    }
}

/// Its name was said to tell no format.
#[test]
fn what_is_packed_by_others_is_told() {
    let folder = Folder::new("packed-by-others");
    for (end, head, packer) in [
        (".bz2", &b"BZh91AY&SY"[..], "bzip2"),
        (".bz2", b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0", "bzip2"),
        (".xz", b"\xfd7zXZ\0\0", "xz"),
        (".lz4", b"\x04\x22\x4d\x18\x64", "lz4"),
        (".Z", b"\x1f\x9d\x90abc", "compress"),
        (".zip", b"PK\x03\x04\x14\0", "zip"),
    ] {
        let name = format!("u.csv{end}");
        std::fs::write(folder.path(&name), head).unwrap();
        let told = [&*name, &*format!("packed by {packer}"), "unpack it first"];
        folder.run(&format!("load db t {name} --key k")).refused(1, &told);
        folder.run(&format!("aggregate --by column:k {name}")).refused(1, &told);
        assert!(!folder.path("db").exists());
    }
    // What it holds counts, not what it is called.
    std::fs::write(folder.path("u.csv.bz2"), "k,v\na,1\n").unwrap();
    assert_eq!(folder.ok("aggregate --by column:k u.csv.bz2"), "k\tcount\na\t1\n");
}
