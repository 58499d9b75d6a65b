//! `layout`: tables that go from one organisation to another and stay what they are.

use crate::tool::Folder;

#[test]
fn a_table_keeps_its_records_under_every_layout() {
    let folder = Folder::new("layouts");
    let rows: String = (0..5000).map(|row| format!("{:05},value {row}\n", row * 7919 % 5000)).collect();
    folder.ok_on("load db t - --format csv --layout no-merge --memory 8M", rows.as_bytes());
    let before = folder.ok("scan db t");
    for layout in ["leveling", "tiering:t=4", "wb-tree:ordered", "geometric:p=2", "immediate", "no-merge"] {
        let told = folder.ok(&format!("layout db t {layout}"));
        assert!(told.contains(layout), "{told}");
        assert_eq!(folder.ok("scan db t"), before, "{layout}");
    }
    let report = folder.object("layout db t tiering --later --json");
    assert_eq!(report["layout"], "tiering:t=10");
    assert_eq!(report["layout_before"], "no-merge");
    folder.ok("verify db");
}

#[test]
fn a_table_goes_from_hash_order_to_key_order_and_back() {
    let folder = Folder::new("layouts-order");
    let rows: String = (0..5000).map(|row| format!("{:05},value {row}\n", row * 7919 % 5000)).collect();
    folder.ok_on("load db t - --format csv --memory 8M", rows.as_bytes());
    folder.run("scan db t --limit 1 --from 0").refused(1, &["hash-ordered"]);
    let sorted = |text: String| {
        let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    let before = sorted(folder.ok("scan db t"));
    for layout in ["leveling", "wb-tree", "wb-tree:ordered", "wb-tree", "immediate"] {
        let report = folder.object(&format!("layout db t {layout} --json --memory 8M"));
        assert!(report["layout"].as_str().unwrap().starts_with(layout), "{report}");
        let after = folder.ok("scan db t");
        assert!(layout == "wb-tree" || after.lines().is_sorted(), "{layout}");
        assert_eq!(sorted(after), before, "{layout}");
    }
    assert_eq!(folder.ok("scan db t --from 00001 --limit 1"), before[1].clone() + "\n");
    folder.ok("verify db");
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let folder = Folder::new("layouts-refused");
    folder.ok("put db t a 1");
    let unknown = folder.run("layout db t jungle-gym");
    assert!(unknown.code == 2 && unknown.stderr.contains("leveling"), "{unknown:?}");
    folder.run("layout db nothing leveling").refused(1, &["nothing"]);
}

#[test]
fn an_older_name_of_a_layout_is_understood() {
    let folder = Folder::new("layouts-older-name");
    folder.ok("put db old a 1 --layout write-buffer:ordered");
    assert_eq!(folder.object("layout db old leveling --json")["layout_before"], "wb-tree:ordered");
}

#[test]
fn a_table_gets_other_options() {
    let folder = Folder::new("layouts-altered");
    let rows: String = (0..5000).map(|row| format!("{row:05},{:0>60}\n", row % 100)).collect();
    folder.ok_on("load db t - --format csv --memory 8M", rows.as_bytes());
    folder.ok("compact db");
    let bytes =
        || folder.object("stats db t --json")["tables"][0]["space"]["live_file_bytes"].as_u64().unwrap();
    let (before, long) = (folder.ok("scan db t"), bytes());
    folder.ok("alter db t --codec lz4 --max-space-amplification 2");
    folder.ok_on("load db t - --format csv --memory 8M", rows.as_bytes());
    folder.ok("compact db");
    assert_eq!(folder.ok("scan db t"), before);
    assert!(bytes() * 2 < long, "{} bytes were {long}", bytes());
    let told = folder.object("describe db --json");
    assert_eq!(
        (&told["tables"][0]["codec"], &told["tables"][0]["max_space_amplification"]),
        (&"lz4".into(), &2.0.into())
    );
    folder.ok("alter db t --max-space-amplification none");
    assert!(folder.object("describe db --json")["tables"][0]["max_space_amplification"].is_null());
    folder.run("alter db t").refused(2, &["--codec"]);
    folder.run("alter db t --codec snappy").refused(2, &["lz4"]);
    folder.run("alter db t --ttl 1h").refused(1, &["`t`", "time_to_live"]);
    folder.run("alter db nothing --codec lz4").refused(1, &["nothing"]);
}

#[test]
fn a_table_gets_a_prefix_filter() {
    let folder = Folder::new("layouts-prefix-filter");
    let rows = b"ada/1,x\nada/2,y\nbob/1,z\n";
    folder
        .run_on("load db t - --format csv --prefix-filter 4", rows)
        .refused(1, &["wb-tree", "prefix_filter"]);
    folder.run_on("load db t - --prefix-filter until:", rows).refused(2, &["until:/"]);
    for (table, options) in [("t", "--layout tiering:t=4"), ("s", "--sorted")] {
        folder.ok_on(&format!("load db {table} - --format csv --prefix-filter until:/ {options}"), rows);
        folder.ok("compact db");
        assert_eq!(folder.ok(&format!("scan db {table} --prefix ada/")).lines().count(), 2);
        assert_eq!(folder.ok(&format!("scan db {table} --prefix eve/")), "");
    }
    let asked = |at: usize| folder.object("describe db --json")["tables"][at]["prefix_filter"].clone();
    assert_eq!((asked(0), asked(1)), ("until:/".into(), "until:/".into()));
    folder.ok("alter db s --prefix-filter 3");
    folder.ok("alter db t --prefix-filter none");
    assert!(asked(0) == "3" && asked(1).is_null());
    assert!(folder.ok("describe db s").contains("prefix filter 3"));
}
