//! Files of a store that come back under another name and number: each record is counted once.

use std::fs;

use super::write_gzip;
use crate::tool::{Folder, last_object};

const STORE: &str = "aggregate --store db --by column:k";

/// Rows of one key, so many that a file has more than its first and last bytes.
fn rows(key: &str, count: usize) -> String {
    (0..count).map(|number| format!("{key},{number:06}\n")).collect()
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.path(name), format!("k,v\n{text}")).unwrap();
}

fn pack(folder: &Folder, name: &str, packed: &str) {
    let text = fs::read(folder.path(name)).unwrap();
    fs::remove_file(folder.path(name)).unwrap();
    match packed.ends_with(".zst") {
        true => fs::write(folder.path(packed), zstd::encode_all(&text[..], 1).unwrap()).unwrap(),
        false => write_gzip(folder, packed, &text),
    }
}

/// They had another path and another number, and were counted again.
#[test]
fn rotated_and_packed_files_are_counted_once() {
    for (round, count) in [1, 60, 400, 5000].into_iter().enumerate() {
        for (packed, grown) in
            [("x.csv.1.gz", 0), ("x.csv.1.zst", 3), ("x.csv-20260131.gz", 700), ("x.csv.gz", 0)]
        {
            let folder = Folder::new(&format!("rotated-{round}-{packed}"));
            write(&folder, "x.csv", &rows("a", count));
            folder.ok(&format!("{STORE} x.csv"));
            write(&folder, "x.csv", &rows("a", count + grown));
            pack(&folder, "x.csv", packed);
            // The new one may have the old one's number.
            write(&folder, "x.csv", &rows("b", 2));
            let out = format!("k\tcount\na\t{}\nb\t2\n", count + grown);
            assert_eq!(folder.ok(&format!("{STORE} x.csv {packed}")), out, "{count} {packed}");
            let again = last_object(&folder.ok(&format!("{STORE} {packed} x.csv --json")));
            assert_eq!(
                (&again["records"], &again["known_files"]),
                (&0.into(), &2.into()),
                "{count} {packed}"
            );
        }
    }
}

/// As `logrotate` does it with `copytruncate`: the file stays, and what it had is in another.
#[test]
fn files_that_are_copied_and_cut_are_counted_once() {
    let folder = Folder::new("copytruncate");
    write(&folder, "x.csv", &rows("a", 3));
    folder.ok(&format!("{STORE} x.csv"));
    for round in 1..4 {
        fs::copy(folder.path("x.csv"), folder.path("x.csv.1")).unwrap();
        write(&folder, "x.csv", &rows(&format!("b{round}"), round));
        folder.ok(&format!("{STORE} x.csv x.csv.1"));
        fs::remove_file(folder.path("x.csv.1")).unwrap();
    }
    assert_eq!(folder.ok("aggregate --store db"), "k\tcount\na\t3\nb1\t1\nb2\t2\nb3\t3\n");
}

/// What another name alone tells of: content that has moved is the same, a copy beside it is not, nor is little
/// content.
#[test]
fn content_that_moved_is_counted_once_and_copies_are_counted() {
    let folder = Folder::new("moved-content");
    for (count, rest, expected) in [(300, "", 300), (300, "a,1\n", 301), (5, "", 10)] {
        let db = format!("db{count}{}", rest.len());
        let store = STORE.replace("db", &db);
        write(&folder, "old.csv", &rows("a", count));
        folder.ok(&format!("{store} old.csv"));
        fs::copy(folder.path("old.csv"), folder.path("copy.csv")).unwrap();
        let copied = folder.ok(&format!("{store} copy.csv"));
        assert_eq!(copied, format!("k\tcount\na\t{}\n", 2 * count));
        folder.ok(&format!("destroy {db}"));
        folder.ok(&format!("{store} old.csv"));
        fs::remove_file(folder.path("old.csv")).unwrap();
        write(&folder, "new.csv", &(rows("a", count) + rest));
        assert_eq!(folder.ok(&format!("{store} new.csv")), format!("k\tcount\na\t{expected}\n"), "{count}");
    }
    // The same beginning alone is not the same file.
    write(&folder, "one.csv", &(rows("a", 1000) + "b,1\n"));
    folder.ok("aggregate --store alike --by column:k one.csv");
    fs::remove_file(folder.path("one.csv")).unwrap();
    write(&folder, "two.csv", &(rows("a", 1000) + "c,1\n"));
    let out = folder.ok("aggregate --store alike two.csv");
    assert_eq!(out, "k\tcount\na\t2000\nb\t1\nc\t1\n");
}

/// A number behind the format's ending was an unknown format.
#[test]
fn rotated_names_tell_their_format() {
    let folder = Folder::new("rotated-format");
    write(&folder, "n.csv", "a,1\n");
    fs::rename(folder.path("n.csv"), folder.path("n.csv.1")).unwrap();
    assert_eq!(folder.ok(&format!("{STORE} n.csv.1")), "k\tcount\na\t1\n");
    pack(&folder, "n.csv.1", "n.csv.2.gz");
    folder.ok("load loaded t n.csv.2.gz --key k --value v");
    assert_eq!(folder.ok("get loaded t a"), "1\n");
}
