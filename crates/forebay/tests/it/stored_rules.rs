//! Merge rules that the engine has: their tables need no code, wherever they are opened.

use forebay::{Database, Error, Layout, MergeRule, Options, Rescue, StoredRule};
use forebay_env::Env;
use forebay_env::fs::CrashFs;
use forebay_testkit::Suffix;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn rules() -> [(StoredRule, &'static [u8]); 4] {
    [
        (StoredRule::append(", ").unwrap(), b"1, 20, 3"),
        (StoredRule::max(), b"3"),
        (StoredRule::min(), b"1"),
        // "1" + "20" + "3", as little-endian numbers.
        (StoredRule::add(), b"\x96\x30\0\0\0\0\0\0"),
    ]
}

/// Buffers with operands are flushed at once, as those of a table whose rule is missing are not; and all that reads,
/// merges and copies tables knows the rule.
#[test]
fn tables_are_opened_without_the_rule() {
    for layout in [Layout::wb_tree(), Layout::leveling(4), Layout::range_merge(), Layout::wb_tree_ordered()] {
        for (rule, merged) in rules() {
            let env = Env::memory(1);
            let db = Database::open("/db", options(&env)).unwrap();
            let table =
                db.table("t").layout(layout).node_bytes(8 << 10).merge_rule(rule.clone()).open().unwrap();
            table.merge("k", "1").unwrap();
            db.flush().unwrap();
            table.merge("k", "20").unwrap();
            table.put("other", "v").unwrap();
            drop(table);
            db.close().unwrap();

            let db = Database::open("/db", options(&env)).unwrap();
            db.snapshot().table("t").unwrap().compact().unwrap();
            let table = db.table("t").open().unwrap();
            table.merge("k", "3").unwrap();
            assert_eq!(table.get("k").unwrap().as_deref(), Some(merged), "{rule} {layout}");
            (0..600_u32).for_each(|n| table.merge(n.to_be_bytes(), [b'x'; 20]).unwrap());
            table.delete("other").unwrap();
            table.merge("other", "w").unwrap();
            table.compact().unwrap();
            assert_eq!(table.get("k").unwrap().as_deref(), Some(merged), "{rule} {layout}");
            assert_eq!(table.get("other").unwrap().as_deref(), Some(&b"w"[..]), "{rule} {layout}");
            assert_eq!(table.get(7_u32.to_be_bytes()).unwrap().map(|value| value.len()), Some(20));
            let described = db.describe().to_string();
            assert!(described.contains(&format!("merge rule `{rule}`")), "{described}");
            drop(table);
            db.close().unwrap();
            let report = Rescue::new(options(&env)).run("/db", "/copy", &mut |_, _| ()).unwrap();
            assert!(report.damage.is_empty() && report.tables[0].left_out.is_none(), "{report:?}");
        }
    }
}

#[test]
fn a_crash_leaves_the_rule() {
    let fs = CrashFs::new(3);
    let env = Env::simulated(fs.clone(), 3);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").merge_rule(StoredRule::append("").unwrap()).open().unwrap();
    table.merge("k", "ab").unwrap();
    table.merge("k", "cd").unwrap();
    db.sync().unwrap();
    fs.crash_at(fs.operations() + 1);
    drop((table, db));
    let db = Database::open("/db", options(&Env::simulated(fs.power_cycle(), 4))).unwrap();
    assert_eq!(db.table("t").open().unwrap().get("k").unwrap().as_deref(), Some(&b"abcd"[..]));
}

#[test]
fn another_rule_is_refused() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    drop(db.table("t").merge_rule(StoredRule::append(",").unwrap()).open().unwrap());
    for other in [StoredRule::append(";").unwrap(), StoredRule::max()] {
        let refused = db.table("t").merge_rule(other.clone()).open();
        let Err(Error::Invalid(said)) = refused else { panic!("{refused:?}") };
        assert!(said.contains("`append:,`") && said.contains(&other.to_string()), "{said}");
    }
    assert!(db.table("t").merge_rule(Suffix).open().is_err());
    assert_eq!(MergeRule::name(&StoredRule::max()), "forebay/max/1");
}
