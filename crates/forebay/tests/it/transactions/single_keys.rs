//! `compare_and_swap` and `update`, of tables of every kind.

use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay_testkit::Suffix;

use super::{flush, layouts, open, open_table};

#[test]
fn a_value_is_swapped_if_it_is_as_expected() {
    for layout in layouts() {
        let db = open();
        let table = open_table(&db, layout);
        for _ in 0..2 {
            assert!(!table.compare_and_swap("k", Some(b"1"), Some(b"2")).unwrap());
            assert!(table.compare_and_swap("k", None, None).unwrap(), "it has none");
            assert!(table.compare_and_swap("k", None, Some(b"1")).unwrap());
            assert!(!table.compare_and_swap("k", None, Some(b"2")).unwrap());
            flush(&db);
            assert!(table.compare_and_swap("k", Some(b"1"), Some(b"")).unwrap());
            assert!(!table.compare_and_swap("k", None, Some(b"2")).unwrap(), "an empty value is one");
            assert!(table.compare_and_swap("k", Some(b""), None).unwrap());
            assert!(!table.contains_key("k").unwrap());
        }
        // Three writes each time round; what changes nothing is not written.
        assert_eq!(db.last_sequence(), 6);
    }
}

#[test]
fn a_value_is_made_of_the_one_before() {
    for layout in layouts() {
        let db = open();
        let table = open_table(&db, layout);
        let longer = |old: Option<&[u8]>| match old {
            Some(old) if old.len() == 3 => None,
            old => Some([old.unwrap_or_default(), b"x"].concat()),
        };
        let lengths: Vec<_> =
            (0..9).map(|_| table.update("k", longer).unwrap().map(|new| new.len())).collect();
        assert_eq!(lengths, [Some(1), Some(2), Some(3), None, Some(1), Some(2), Some(3), None, Some(1)]);
        assert_eq!(table.update("none", |_| None).unwrap(), None);
        assert_eq!((table.iter().unwrap().count(), db.last_sequence()), (1, 9));
    }
}

#[test]
fn tables_that_merge_or_expire_have_single_keys_too() {
    let db = open();
    let merging = db.table("m").merge_rule(Suffix).open().unwrap();
    merging.merge("k", "a").unwrap();
    merging.merge("k", "b").unwrap();
    assert!(merging.compare_and_swap("k", Some(b"ab"), Some(b"c")).unwrap());
    merging.merge("k", "d").unwrap();
    assert_eq!(merging.update("k", |old| Some(old.unwrap().to_vec())).unwrap().as_deref(), Some(&b"cd"[..]));
    let expiring = db.table("e").time_to_live(Duration::from_secs(60)).open().unwrap();
    assert_eq!(expiring.update("k", |_| Some(b"1".to_vec())).unwrap().as_deref(), Some(&b"1"[..]));
    assert!(expiring.compare_and_swap("k", Some(b"1"), Some(b"2")).unwrap());
    expiring.put_with_ttl("gone", "1", Duration::ZERO).unwrap();
    assert!(expiring.compare_and_swap("gone", None, Some(b"2")).unwrap(), "it has expired");
    let counts = db.aggregator("n", Count).open().unwrap();
    counts.add("k", ()).unwrap();
    let states = db.snapshot().table("n").unwrap();
    let refused = states.update("k", |_| Some(Vec::new())).unwrap_err();
    assert!(refused.to_string().contains("this handle only reads"), "{refused}");
    assert!(states.compare_and_swap("k", None, None).is_err());
    let long = vec![0; 1 << 17];
    assert!(merging.update(&long, |_| Some(Vec::new())).is_err());
    assert!(merging.compare_and_swap(&long, Some(b""), None).is_ok_and(|swapped| !swapped));
}

/// Whoever decides may write to the key itself: then it decides again.
#[test]
fn who_comes_between_is_seen_at_the_next_try() {
    let db = open();
    let table = open_table(&db, layouts()[0]);
    let mut seen = Vec::new();
    table
        .update("k", |old| {
            seen.push(old.map(<[u8]>::to_vec));
            if seen.len() < 3 {
                table.put("k", [seen.len() as u8]).unwrap();
            }
            Some(vec![9])
        })
        .unwrap();
    assert_eq!(seen, [None, Some(vec![1]), Some(vec![2])]);
    assert_eq!(table.get("k").unwrap(), Some(vec![9]));
}
