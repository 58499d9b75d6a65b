//! Parquet in and out, held against csv of the same rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;

use super::Draws;
use crate::tool::Folder;

/// A city, a whole number and another, of which some are missing.
type Row = (Option<String>, Option<i64>, f64);

fn rows(seed: u64, count: u64) -> Vec<Row> {
    let mut draws = Draws::new(seed);
    let row = |_| {
        let city = (draws.below(20) > 0).then(|| format!("city {}", draws.skewed(500)));
        let amount = (draws.below(9) > 0).then(|| draws.below(1000) as i64 - 500);
        // Never a whole number, which JSON would write with a point.
        (city, amount, draws.below(1000) as f64 / 8.0 + 0.0625)
    };
    (0..count).map(row).collect()
}

/// Writes rows in groups of this many.
fn write(path: &Path, rows: &[Row], group_rows: usize, compression: Compression) {
    let schema = "message m { optional binary city (UTF8); optional int64 amount; required double share; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    for rows in rows.chunks(group_rows) {
        let mut group = writer.next_row_group().unwrap();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.0.is_some())).collect();
        let cities: Vec<ByteArray> =
            rows.iter().flat_map(|row| &row.0).map(|city| ByteArray::from(&city[..])).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&cities, Some(&levels), None).unwrap();
        column.close().unwrap();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.1.is_some())).collect();
        let amounts: Vec<i64> = rows.iter().filter_map(|row| row.1).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&amounts, Some(&levels), None).unwrap();
        column.close().unwrap();
        let shares: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&shares, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn jsonl(rows: &[Row]) -> String {
    let line = |(city, amount, share): &Row| {
        format!("{}\n", serde_json::json!({"city": city, "amount": amount, "share": share}))
    };
    rows.iter().map(line).collect()
}

/// Each file has a dictionary of its own, here of as many texts as the one before.
#[test]
fn a_dictionary_is_one_file_s() {
    let folder = Folder::new("parquet-dictionaries");
    let mut lines = String::new();
    let row = |city: &&str| (Some(city.to_string()), Some(1), 0.5);
    for (number, cities) in
        [["ok", "fail", "wait"], ["fail", "wait", "ok"], ["x", "y", "z"]].iter().enumerate()
    {
        let rows: Vec<Row> = cities.iter().chain(&cities[..number + 1]).map(row).collect();
        write(&folder.path(&format!("{number}.parquet")), &rows, 100, Compression::UNCOMPRESSED);
        lines.push_str(&jsonl(&rows));
    }
    std::fs::write(folder.path("rows.jsonl"), lines).unwrap();
    let of = |files: &str| folder.ok(&format!("aggregate --by column:city --fn count {files}"));
    assert_eq!(of("0.parquet 1.parquet 2.parquet"), of("rows.jsonl"));
}

#[test]
fn rows_are_those_of_jsonl_in_every_compression() {
    let folder = Folder::new("parquet-in");
    let rows = rows(20, 20_000);
    std::fs::write(folder.path("rows.jsonl"), jsonl(&rows)).unwrap();
    for (by, functions) in [
        ("city", "count"),
        ("amount,city", "count:amount,fsum:share,min:share"),
        ("share", "sum:amount,distinct:city"),
    ] {
        let expected = folder.ok(&format!("aggregate rows.jsonl --by column:{by} --fn {functions}"));
        for (compression, group_rows) in [
            (Compression::UNCOMPRESSED, 20_000),
            (Compression::SNAPPY, 7000),
            (Compression::GZIP(Default::default()), 5000),
            (Compression::LZ4_RAW, 1),
        ] {
            let rows = if group_rows == 1 { &rows[..300] } else { &rows[..] };
            write(&folder.path("rows.parquet"), rows, group_rows, compression);
            let seen = folder.ok(&format!("aggregate rows.parquet --by column:{by} --fn {functions}"));
            match group_rows {
                1 => assert!(seen.lines().count() > 100),
                _ => assert_eq!(seen, expected, "{compression}"),
            }
        }
    }
    write(&folder.path("rows"), &rows, 9000, Compression::SNAPPY);
    let numbered = folder.ok("aggregate rows --format parquet --by column:1 --fn sum:2");
    let named = folder.ok("aggregate rows.jsonl --by column:city --fn sum:amount");
    assert_eq!(numbered.split_once('\n').unwrap().1, named.split_once('\n').unwrap().1);
}

#[test]
fn groups_that_were_written_are_read_back() {
    let folder = Folder::new("parquet-out");
    std::fs::write(folder.path("rows.jsonl"), jsonl(&rows(21, 90_000))).unwrap();
    let functions = "count,sum:amount,fsum:share,min:share,max:amount,list:city:2";
    let words = format!("aggregate rows.jsonl --by column:city,share --fn {functions}");
    for options in ["", " --cube", " --top 100"] {
        folder.ok(&format!("{words}{options} --out groups.parquet"));
        let columns = if options == " --cube" { "city,share,grouping" } else { "city,share" };
        folder.ok(&format!("{words}{options} --out groups.jsonl"));
        let written = SerializedFileReader::new(File::open(folder.path("groups.parquet")).unwrap()).unwrap();
        let lines = std::fs::read_to_string(folder.path("groups.jsonl")).unwrap();
        let mut count = 0;
        for (row, line) in written.get_row_iter(None).unwrap().zip(lines.lines()) {
            let (row, line): (_, serde_json::Value) = (row.unwrap(), serde_json::from_str(line).unwrap());
            for (name, field) in row.get_column_iter() {
                let expected = &line[name];
                match field {
                    Field::Null => assert!(expected.is_null(), "{name} in {line}"),
                    Field::Long(number) => assert_eq!(Some(*number), expected.as_i64(), "{name} in {line}"),
                    Field::Double(number) => assert_eq!(Some(*number), expected.as_f64(), "{name} in {line}"),
                    Field::Str(text) if name.starts_with("list") => {
                        let items =
                            expected.as_array().unwrap().iter().map(|item| item.as_str().unwrap_or("…"));
                        assert_eq!(*text, items.collect::<Vec<_>>().join(";"));
                    }
                    Field::Str(text) => assert_eq!(Some(&text[..]), expected.as_str(), "{name} in {line}"),
                    other => panic!("{name}: {other:?}"),
                }
            }
            count += 1;
        }
        assert_eq!(count, lines.lines().count());
        let kinds: Vec<String> = written.metadata().file_metadata().schema_descr().columns()
            [columns.split(',').count()..]
            .iter()
            .map(|column| column.physical_type().to_string())
            .collect();
        assert_eq!(kinds, ["INT64", "INT64", "DOUBLE", "DOUBLE", "INT64", "BYTE_ARRAY"]);
        // And the command reads what it wrote.
        let by_number = if options == " --cube" { "4" } else { "3" };
        let sum =
            folder.ok(&format!("aggregate groups.parquet --by column:city --fn sum:{by_number} --top 3"));
        assert!((2..=4).contains(&sum.lines().count()), "{sum}");
    }
    folder.ok_on("aggregate --by word --out words.parquet", b"a b a");
    assert_eq!(folder.ok("aggregate words.parquet --by column:1,2"), "1\t2\tcount\na\t2\t1\nb\t1\t1\n");
}

#[test]
fn stores_go_on_with_parquet() {
    let folder = Folder::new("parquet-store");
    let rows = rows(22, 30_000);
    write(&folder.path("a.parquet"), &rows[..12_000], 5000, Compression::SNAPPY);
    write(&folder.path("b.parquet"), &rows[12_000..], 50_000, Compression::SNAPPY);
    std::fs::write(folder.path("all.jsonl"), jsonl(&rows)).unwrap();
    let by = "--by column:city --fn count,sum:amount";
    folder.ok(&format!("aggregate --store db {by} a.parquet"));
    folder.ok("aggregate --store db a.parquet b.parquet a.parquet");
    assert_eq!(folder.ok("aggregate --store db"), folder.ok(&format!("aggregate all.jsonl {by}")));
    write(&folder.path("a.parquet"), &rows[..13_000], 5000, Compression::SNAPPY);
    folder.run("aggregate --store db a.parquet").refused(1, &["a.parquet", "packed files are not read on"]);
}

/// A store that stopped at a value in the middle of rows that are looked at together goes on there.
#[test]
fn stores_stop_and_go_on_amid_a_row_group() {
    let folder = Folder::new("parquet-store-on");
    let functions = "--by column:amount --fn count,sum:city";
    for (number, bad) in [0, 1, 4095, 4096, 5000, 7001, 11_999].into_iter().enumerate() {
        let mut rows: Vec<Row> =
            (0..12_000).map(|at: usize| (Some(at.to_string()), Some(at as i64 % 9), 0.5)).collect();
        write(&folder.path("before.parquet"), &rows[..bad], 5000, Compression::SNAPPY);
        rows[bad].0 = Some("x".into());
        let file = format!("{number}.parquet");
        write(&folder.path(&file), &rows, 5000, Compression::SNAPPY);
        let words = format!("aggregate --store db{number} {functions} {file}");
        let told = format!("{file}: record {} at byte offset", bad + 1);
        folder.run(&words).refused(1, &[&told, "`x` is not a number"]);
        if bad > 0 {
            let before = folder.ok(&format!("aggregate before.parquet {functions}"));
            assert_eq!(folder.ok(&format!("aggregate --store db{number}")), before, "{bad}");
        }
        let all = folder.run(&format!("aggregate {file} {functions} --skip-bad"));
        let skipped = folder.run(&format!("{words} --skip-bad"));
        assert_eq!((skipped.code, skipped.stdout), (0, all.stdout), "{bad}");
    }
}

/// What is damaged before the place where a store stopped does not bring that place back.
#[test]
fn stores_count_no_row_twice_where_a_file_cannot_be_read_on() {
    let folder = Folder::new("parquet-store-damaged");
    let words = "aggregate --store db --by column:amount --fn count,sum:city f.parquet";
    let mut rows: Vec<Row> =
        (0..12_000).map(|at: usize| (Some(at.to_string()), Some(at as i64 % 9), 0.5)).collect();
    rows[7001].0 = Some("x".into());
    let path = folder.path("f.parquet");
    write(&path, &rows, 5000, Compression::UNCOMPRESSED);
    folder.run(words).refused(1, &["f.parquet: record 7002", "`x` is not a number"]);
    let stopped = folder.ok("aggregate --store db");
    let whole = std::fs::read(&path).unwrap();
    let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let at = file.metadata().row_group(1).column(1).byte_range().0 as usize;
    // Its ends stay as they are, by which it is known.
    assert!((4096..whole.len() - 5000).contains(&at), "{at} of {}", whole.len());
    let mut damaged = whole.clone();
    damaged[at..at + 16].fill(0xff);
    std::fs::write(&path, &damaged).unwrap();
    folder.run(words).refused(1, &["cannot read f.parquet"]);
    assert_eq!(folder.ok("aggregate --store db"), stopped);
    std::fs::write(&path, &whole).unwrap();
    let skipped = folder.run(&format!("{words} --skip-bad"));
    let all = folder.run(&format!("{words} --skip-bad").replace("--store db ", ""));
    assert_eq!((skipped.code, skipped.stdout), (0, all.stdout));
}

/// `tests/data/make_pyarrow.py` tells how the files were made.
#[test]
fn what_pyarrow_writes_is_read() {
    let folder = Folder::new("parquet-pyarrow");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["pyarrow.parquet", "zstd.parquet"] {
        std::fs::copy(data.join(name), folder.path(name)).unwrap();
    }
    let words = "aggregate pyarrow.parquet --by column";
    assert_eq!(
        folder.ok(&format!("{words}:name --fn count,count:name,sum:small,fsum:half")),
        "name\tcount\tcount:name\tsum:small\tfsum:half\n\
         \\N\t1\t0\t2\t2.5\n\t3\t3\t12\t10.5\nbern\t4\t4\t10\t11\noslo\t4\t4\t6\t9\n"
    );
    assert_eq!(
        folder.ok(&format!("{words}:yes,big")),
        "yes\tbig\tcount\nfalse\t9223372036854775809\t6\ntrue\t9223372036854775808\t6\n"
    );
    assert_eq!(
        folder.ok(&format!("{words}:day,at --fn max:price,any:kind --top 2")),
        "day\tat\tmax:price\tany:kind\n2024-02-28\t2024-02-28T13:00:00.000000Z\t0.75\ta\n\
         2024-02-29\t2024-02-28T13:00:00.000000Z\t0.75\ta\n"
    );
    folder.run(&format!("{words}:list")).refused(1, &["\"list\"", "single values"]);
    folder.run(&format!("{words}:no")).refused(1, &["\"no\"", "name, small"]);
    folder.run(&format!("{words}:11")).refused(1, &["10 columns"]);
    assert_eq!(folder.ok("aggregate zstd.parquet --by column:name"), folder.ok(&format!("{words}:name")));
    folder.run_on("aggregate --format parquet --by column:name", b"").refused(1, &["standard input"]);
    std::fs::write(folder.path("no.parquet"), "a,b\n").unwrap();
    folder.run("aggregate no.parquet --by column:a").refused(1, &["no.parquet"]);
    std::fs::write(folder.path("latin"), b"\xe9t\xe9").unwrap();
    folder.run("aggregate latin --by word --out o.parquet").refused(1, &["UTF-8"]);
}

/// Differences of more bits than the integers have, with and without nulls; `tests/data/make_duckdb.py` tells how the
/// file was made.
#[test]
fn integers_that_jump_are_read() {
    let folder = Folder::new("parquet-jumps");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::copy(data.join("jumps.parquet"), folder.path("jumps.parquet")).unwrap();
    assert_eq!(
        folder.ok("aggregate jumps.parquet --by column:k --fn count:v,sum:v,min:v,max:v,sum:w"),
        "k\tcount:v\tsum:v\tmin:v\tmax:v\tsum:w\n\
         0\t85\t-2147483690\t-2147483648\t2147483638\t-200\n\
         1\t86\t254\t-2147483644\t2147483646\t100\n\
         2\t86\t-340\t-2147483646\t2147483642\t-200\n"
    );
}
