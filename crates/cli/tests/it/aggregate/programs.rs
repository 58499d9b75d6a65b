//! `get` and `scan` of groups that a program keeps.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use forebay::{Database, Durability, Options};
use forebay_aggregate::arrow::OwnFunctions;
use forebay_aggregate::functions::SumInt;
use forebay_aggregate::{Groupings, Value, group_key};
use forebay_groups::kept::{self, Shape};
use forebay_groups::{Asked, WINDOW};

use crate::tool::Folder;

/// Its keys were shown with the ends that columns have in a key, and no text of them found a group.
#[test]
fn groups_of_a_cube_are_shown_by_columns() {
    let folder = Folder::new("aggregate-programs-cube");
    let db = Database::open(folder.path("db"), Options::default()).unwrap();
    let sales = db.cube("sales", SumInt, Groupings::rollup(2).unwrap()).open().unwrap();
    let mut batch = sales.batch();
    for (country, year, amount) in [(Some("de"), "2025", 3), (Some("de"), "2026", 4), (None, "2026", 5)] {
        batch.add(group_key::of([country, Some(year)]), amount).unwrap();
    }
    batch.commit(Durability::Disk, b"").unwrap();
    drop((batch, sales));
    db.close().unwrap();
    assert_eq!(folder.ok("scan db sales"), "\\N\t2026\t5\nde\t2025\t3\nde\t2026\t4\n");
    assert_eq!(folder.ok("scan db sales --prefix de\t2026"), "de\t2026\t4\n");
    assert_eq!(folder.ok("get db sales de\t2026"), "4\n");
    assert_eq!(folder.object("get db sales \\N\t2026 --json")["2"], "2026");
    folder.run("get db sales de").refused(2, &["2 columns", "tabs"]);
    // Of fewer columns, with the number of the grouping behind them.
    assert_eq!(folder.ok("scan db sales@1"), "\\N\t\\N\t1\t5\nde\t\\N\t1\t7\n");
    assert_eq!(folder.ok("get db sales@1 de\t\\N\t1"), "7\n");
    assert_eq!(folder.ok("scan db sales@2"), "\\N\t\\N\t3\t12\n");
    folder.run("scan db sales@1 --prefix de").refused(1, &["groupings", "--hex"]);
    folder.run("aggregate --store db --table sales").refused(1, &["`sales`", "forebay scan shows it"]);
}

/// The same of those that Python, Java and the server keep, whose columns and answers have names. Functions that share
/// states were told as one.
#[test]
fn groups_of_record_batches_are_shown_under_their_names() {
    let folder = Folder::new("aggregate-programs-batches");
    let fields = [("page", DataType::Utf8), ("ms", DataType::Int64), (WINDOW, DataType::Int64)];
    let rows = Schema::new(fields.map(|(name, kind)| Field::new(name, kind, true)).to_vec());
    let named = [("hits", "count"), ("spread", "var_samp:ms"), ("n", "count")];
    let named = named.map(|(name, function)| (name.to_string(), function.to_string())).to_vec();
    let own = OwnFunctions::default();
    let asked = Asked::new(vec!["page".into()], named, &own).unwrap();
    let db = Database::open(folder.path("db"), Options::default()).unwrap();
    for (name, table, asked, shape) in [
        ("hits", "hits", asked.clone(), Shape::Plain),
        ("timed", "timed@0@60000", asked.behind(WINDOW).unwrap(), Shape::Windows(b"[]".to_vec())),
    ] {
        let partial = asked.partial(&rows, &own).unwrap();
        kept::begin(&db, name, &partial, &asked, &shape, &own).unwrap();
        let groups = db.aggregator(table, Arc::clone(partial.function())).open().unwrap();
        for ms in [1_i64, 3] {
            groups.add(group_key::of([Some("/")]), &[Value::from(ms)][..]).unwrap();
        }
    }
    db.close().unwrap();
    for table in ["hits", "timed@0@60000"] {
        let group = folder.object(&format!("get db {table} / --json"));
        assert_eq!(group["page"], "/", "{group}");
        assert!(group["hits"] == 2 && group["n"] == 2, "{group}");
        assert_eq!(group["spread"].as_f64(), Some(2.0), "{group}");
        assert!(folder.ok(&format!("scan db {table}")).starts_with("/\t2\t"));
    }
    folder.run("aggregate --store db --table hits").refused(1, &["`hits`", "forebay scan shows it"]);
    // Who calls a table of their own so has their groups as they are.
    folder.ok("put db own.schema schema text");
    let db = Database::open(folder.path("db"), Options::default()).unwrap();
    db.aggregator("own", SumInt).open().unwrap().add(b"k", 7).unwrap();
    db.close().unwrap();
    assert_eq!(folder.ok("scan db own"), "k\t7\n");
}
