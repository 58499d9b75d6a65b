//! Columns of Arrow in and out of tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, Float64Array, Int16Array, Int64Array,
    LargeBinaryArray, LargeStringArray, StringArray, StringViewArray, UInt32Array,
};
use forebay::{Batch, Database, Durability, Error, Layout, Options};
use forebay_env::{Env, Rng};

fn open() -> Database {
    Database::open("/db", Options::default().memory_limit(1 << 20).env(Env::memory(1))).unwrap()
}

/// Rows as a scan gives them.
fn rows(scan: forebay::ColumnScan) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for batch in scan {
        let batch = batch.unwrap();
        let (keys, values) = (batch.column(0).as_binary::<i32>(), batch.column(1).as_binary::<i32>());
        rows.extend(
            keys.iter().zip(values).map(|(key, value)| (key.unwrap().to_vec(), value.unwrap().to_vec())),
        );
    }
    rows
}

/// Batches of rows, some of them deletions, against a map.
#[test]
fn columns_go_in_and_come_out_as_they_are() {
    for layout in [Layout::wb_tree_ordered(), Layout::leveling(4)] {
        let (db, mut rng, mut model) = (open(), Rng::new(7), BTreeMap::new());
        let table = db.table("t").layout(layout).open_ordered().unwrap();
        for round in 0..20_u64 {
            let keys: Vec<i64> = (0..rng.below(200)).map(|_| rng.below(600) as i64 - 300).collect();
            let values: Vec<Option<String>> =
                keys.iter().map(|key| (!rng.chance(20)).then(|| format!("{key} in {round}"))).collect();
            for (key, value) in keys.iter().zip(&values) {
                match value {
                    Some(value) => drop(model.insert(*key, value.clone())),
                    None => drop(model.remove(key)),
                }
            }
            table.put_columns(&Int64Array::from(keys), &StringArray::from(values)).unwrap();
            if round % 5 == 0 {
                db.flush().unwrap();
            }
        }
        let stored = |key: &i64| (key ^ i64::MIN).to_be_bytes().to_vec();
        let expected: Vec<_> =
            model.iter().map(|(key, value)| (stored(key), value.clone().into_bytes())).collect();
        for rows_max in [1, 7, 100_000] {
            assert_eq!(rows(table.scan_columns(.., rows_max).unwrap()), expected, "{layout}");
            assert_eq!(rows(table.iter_columns(rows_max).unwrap()), expected, "{layout}");
        }
        let part: Vec<_> =
            expected.iter().filter(|(key, _)| *key >= stored(&-5) && *key < stored(&90)).cloned().collect();
        assert_eq!(rows(table.scan_columns(stored(&-5)..stored(&90), 10).unwrap()), part);
        let backward: Vec<_> = part.iter().rev().cloned().collect();
        assert_eq!(rows(table.scan_columns(stored(&-5)..stored(&90), 10).unwrap().backward()), backward);
        let asked: Vec<i64> = (-400..1500).collect();
        let kept: Vec<Option<&[u8]>> = asked.iter().map(|key| model.get(key).map(String::as_bytes)).collect();
        let snapshot = db.snapshot();
        assert_eq!(
            table.get_columns(&Int64Array::from(asked.clone())).unwrap(),
            BinaryArray::from(kept.clone())
        );
        let mut batch = Batch::new();
        batch.delete_columns(&table, &Int64Array::from_iter_values(-5..90));
        db.commit(batch, Durability::Os).unwrap();
        let first = expected[0].0[..4].to_vec();
        let low: Vec<_> = expected.iter().filter(|(key, _)| key.starts_with(&first)).cloned().collect();
        assert_eq!(rows(snapshot.prefix_columns(&table, &first, 9).unwrap()), low);
        assert_eq!(rows(snapshot.scan_columns(&table, stored(&-5)..stored(&90), 10).unwrap()), part);
        assert_eq!(rows(snapshot.iter_columns(&table, 10).unwrap()), expected);
        assert_eq!(snapshot.get_columns(&table, &Int64Array::from(asked)).unwrap(), BinaryArray::from(kept));
        assert!(table.scan_columns(stored(&-5)..stored(&90), 10).unwrap().next().is_none());
        let sizes: Vec<usize> =
            table.scan_columns(.., 10).unwrap().map(|batch| batch.unwrap().num_rows()).collect();
        assert!(sizes[..sizes.len() - 1].iter().all(|rows| *rows == 10), "{sizes:?}");
    }
}

#[test]
fn all_types_of_bytes_and_numbers_are_taken() {
    let db = open();
    let table = db.table("t").open().unwrap();
    let fixed = FixedSizeBinaryArray::try_from_iter(["ab", "cd"].iter()).unwrap();
    let keys: [(ArrayRef, [&[u8]; 2]); 8] = [
        (Arc::new(BinaryArray::from(vec![&b"a"[..], b""])), [b"a", b""]),
        (Arc::new(LargeBinaryArray::from(vec![&b"b"[..], b"\xff"])), [b"b", b"\xff"]),
        (Arc::new(StringArray::from(vec!["c", "\u{e9}"])), [b"c", "\u{e9}".as_bytes()]),
        (Arc::new(LargeStringArray::from(vec!["d", "e"])), [b"d", b"e"]),
        (
            Arc::new(StringViewArray::from(vec!["f", "a text of more than twelve bytes"])),
            [b"f", b"a text of more than twelve bytes"],
        ),
        (Arc::new(fixed), [b"ab", b"cd"]),
        (Arc::new(UInt32Array::from(vec![1, u32::MAX])), [&[0, 0, 0, 1], &[0xff; 4]]),
        (Arc::new(Int16Array::from(vec![-1, 1])), [&[0x7f, 0xff], &[0x80, 1]]),
    ];
    for (number, (keys, expected)) in keys.into_iter().enumerate() {
        let value = format!("value {number}");
        table.put_columns(&keys, &BinaryArray::from(vec![value.as_bytes(); 2])).unwrap();
        for key in expected {
            assert_eq!(table.get(key).unwrap().as_deref(), Some(value.as_bytes()), "{}", keys.data_type());
        }
    }
    // Only a part of the arrays.
    let (keys, values) = (StringArray::from(vec!["x", "y", "z"]), StringArray::from(vec!["1", "2", "3"]));
    table.put_columns(&keys.slice(1, 1), &values.slice(2, 1)).unwrap();
    assert_eq!((table.get("x").unwrap(), table.get("y").unwrap()), (None, Some(b"3".to_vec())));
}

#[test]
fn what_is_wrong_with_columns_writes_nothing() {
    let db = open();
    let table = db.table("t").open().unwrap();
    let (one, two) = (StringArray::from(vec!["a"]), StringArray::from(vec!["a", "b"]));
    let null = StringArray::from(vec![Some("a"), None]);
    let numbers = Float64Array::from(vec![1.0, 2.0]);
    let whole = Int64Array::from(vec![1, 2]);
    let wrong: [(&dyn Array, &dyn Array, &str); 5] = [
        (&one, &two, "1 keys and 2 values"),
        (&null, &two, "row 1 is null"),
        (&numbers, &two, "keys are Float64"),
        (&two, &numbers, "values are Float64"),
        (&two, &whole, "values are Int64"),
    ];
    for (keys, values, said) in wrong {
        let mut batch = Batch::new();
        batch.put(&table, "other", "v");
        batch.put_columns(&table, keys, values);
        let refused = db.commit(batch, Durability::Os);
        assert!(matches!(&refused, Err(Error::Invalid(reason)) if reason.contains(said)), "{refused:?}");
    }
    assert!(table.is_empty().unwrap());
    assert!(table.iter_columns(0).is_err());
    assert!(table.iter_columns(5).unwrap().next().is_none());
}
