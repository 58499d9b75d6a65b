//! Numbers and damage in Parquet: exact, refused, or an error.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::tool::Folder;

/// A float beside it made a float of what was exact.
#[test]
fn exact_numbers_are_written_to_parquet_exactly_or_not_at_all() {
    let folder = Folder::new("numbers-exact");
    std::fs::write(folder.path("f.csv"), "k,v\na,9007199254740993\nb,0.5\n").unwrap();
    folder.ok("aggregate --by column:k --fn max:v f.csv --out f.parquet");
    let shown = folder.ok("aggregate --by column:k --fn max:\"max:v\" f.parquet");
    assert_eq!(shown, "k\tmax:\"max:v\"\na\t9007199254740993\nb\t0.5\n");
    std::fs::write(folder.path("f.csv"), "k,v\na,12345678901234567.89\nb,1e300\n").unwrap();
    folder
        .run("aggregate --by column:k --fn max:v f.csv --out g.parquet")
        .refused(1, &["max:v", "write .csv or .jsonl"]);
    // What floats can be stays a float.
    std::fs::write(folder.path("f.csv"), "k,v\na,9007199254740992\nb,1e300\n").unwrap();
    folder.ok("aggregate --by column:k --fn max:v f.csv --out f.parquet");
    let shown = folder.ok("aggregate --by column:k --fn max:\"max:v\" f.parquet");
    assert_eq!(shown, "k\tmax:\"max:v\"\na\t9007199254740992\nb\t1e300\n");
}

/// Writes decimals of any length, as big-endian bytes.
fn write_decimals(path: &Path, kind: &str, values: &[&[u8]]) {
    let schema = format!("message m {{ required binary d ({kind}); }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = values.iter().map(|value| ByteArray::from(value.to_vec())).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

/// They came in as the bytes that they are written as.
#[test]
fn decimals_that_are_too_long_are_refused() {
    let folder = Folder::new("numbers-long");
    for (kind, value) in [("DECIMAL(60,2)", &[b'A'; 17][..]), ("DECIMAL(10,2)", &[])] {
        write_decimals(&folder.path("f.parquet"), kind, &[&[1, 0], value]);
        for command in ["aggregate --by column:d f.parquet", "load db t f.parquet --key 1 --value 1"] {
            folder.run(command).refused(1, &["f.parquet", "\"d\"", "a decimal of"]);
        }
    }
    write_decimals(&folder.path("f.parquet"), "DECIMAL(60,2)", &[&[1, 0], &[0xff, 0x38]]);
    assert_eq!(folder.ok("aggregate --by column:d f.parquet"), "d\tcount\n-2.00\t1\n2.56\t1\n");
}

/// More digits than can be written out.
#[test]
fn decimals_of_absurd_scales_are_refused() {
    let folder = Folder::new("numbers-scale");
    write_decimals(&folder.path("f.parquet"), "DECIMAL(70001,70000)", &[&[1]]);
    folder.run("aggregate --by column:d f.parquet").refused(1, &["f.parquet", "\"d\"", "70000"]);
}

/// The library that reads it panics at some of what damage makes of a file.
#[test]
fn damaged_parquet_is_an_error_and_never_a_panic() {
    let folder = Folder::new("numbers-damage");
    let rows: String = (0..50).map(|number| format!("{},{}\n", number % 7, number * 3)).collect();
    std::fs::write(folder.path("f.csv"), format!("k,v\n{rows}")).unwrap();
    folder.ok("aggregate --by column:k --fn sum:v,list:v f.csv --out f.parquet");
    let whole = std::fs::read(folder.path("f.parquet")).unwrap();
    let mut panics = Vec::new();
    for at in 4..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(folder.path("d.parquet"), &damaged).unwrap();
        let outcome = folder.run("aggregate --by column:1 --fn max:\"sum:v\",max:\"list:v\" d.parquet");
        if !matches!(outcome.code, 0 | 1) || outcome.stderr.contains("panicked") {
            panics.push((at, outcome.stderr));
        }
    }
    assert!(panics.is_empty(), "{} of {}: {:?}", panics.len(), whole.len(), panics.first());
}
