//! Tables in key order: ranges, prefixes, both directions, the nearest key, and a snapshot that stays as it is.

use forebay::{Database, Layout, Nearest, Options};

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-scan-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
    let readings = db.table("readings").layout(Layout::wb_tree_ordered()).open_ordered()?;
    for (sensor, hour) in [("attic", 1), ("attic", 2), ("cellar", 1), ("cellar", 3), ("hall", 2)] {
        readings.put(format!("{sensor}/{hour:02}"), format!("{} C", 10 + hour))?;
    }
    let before = db.snapshot();
    readings.put("hall/03", "13 C")?;

    let keys = |scan: forebay::Scan| -> forebay::Result<Vec<String>> {
        scan.map(|entry| entry.map(|(key, _)| String::from_utf8_lossy(&key).into_owned())).collect()
    };
    assert_eq!(keys(readings.prefix("cellar/")?)?, ["cellar/01", "cellar/03"]);
    assert_eq!(keys(readings.range("b".."h")?)?, ["cellar/01", "cellar/03"]);
    assert_eq!(keys(readings.range("hall"..)?)?, ["hall/02", "hall/03"]);
    assert_eq!(keys(before.range(&readings, "hall"..)?)?, ["hall/02"]);

    // The newest reading of the cellar, by a walk from the end or by one lookup.
    let (newest, _) = readings.prefix("cellar/")?.next_back().transpose()?.unwrap_or_default();
    assert_eq!(newest, b"cellar/03");
    let found = readings.nearest("cellar/99", Nearest::AtOrBelow)?;
    assert_eq!(found.map(|(key, _)| key), Some(newest));

    // A cursor hands out entries without copies, and turns round anywhere.
    let mut cursor = readings.cursor()?;
    cursor.seek("cellar/02")?;
    assert_eq!(cursor.entry(), Some((&b"cellar/03"[..], &b"13 C"[..])));
    cursor.prev()?;
    assert_eq!(cursor.entry(), Some((&b"cellar/01"[..], &b"11 C"[..])));
    drop((cursor, before));
    db.close()?;
    Database::destroy(&dir)
}
