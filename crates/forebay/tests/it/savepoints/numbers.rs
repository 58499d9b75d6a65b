//! The number of a savepoint says what is in it.

use forebay::{Database, Layout, Options};

use super::{Model, all, existing, seen};

/// What operation `number` does: each is one record.
fn operate(table: &forebay::OrderedTable, number: u64) {
    let (low, high) = span(number);
    match number % 40 {
        0 => table.delete_range(&low[..]..&high[..]).unwrap(),
        _ => table.put(low, number.to_be_bytes()).unwrap(),
    }
}

fn span(number: u64) -> ([u8; 8], [u8; 8]) {
    let low = number * 7919 % 900;
    (low.to_be_bytes(), (low + 300).to_be_bytes())
}

fn model_at(operations: impl Iterator<Item = u64>) -> Model {
    let mut model = Model::new();
    for number in operations {
        let (low, high) = span(number);
        let (low, high): (&[u8], &[u8]) = (&low, &high);
        match number % 40 {
            0 => model.retain(|key, _| !(low..high).contains(&&key[..])),
            _ => drop(model.insert(low.to_vec(), number.to_be_bytes().to_vec())),
        }
    }
    model
}

/// Savepoints while somebody writes have what their number says, and nothing else; a writer goes on across a rollback.
#[test]
fn the_number_says_what_is_in_it_while_others_write() {
    let dir = std::env::temp_dir().join(format!("forebay-savepoints-{}", std::process::id()));
    let options = || Options::default().memory_limit(4 << 20).write_buffer(8 << 10);
    for layout in [Layout::leveling(4), Layout::jungle(20.0), Layout::wb_tree_ordered()] {
        let db = Database::open(&dir, options()).unwrap();
        let table = db.table("t").layout(layout).node_bytes(16 << 10).open_ordered().unwrap();
        let taken: Vec<u64> = std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..=30_000).for_each(|number| operate(&table, number)));
            let mut taken = Vec::new();
            while !writer.is_finished() && taken.len() < 40 {
                taken.push(db.savepoint(&taken.len().to_string()).unwrap());
            }
            writer.join().unwrap();
            taken
        });
        assert!(taken.len() > 2, "{taken:?}");
        for (number, sequence) in taken.iter().enumerate() {
            let savepoint = db.open_savepoint(&number.to_string()).unwrap();
            assert!(seen(&savepoint, "t") == model_at(1..=*sequence), "{layout}: {number} at {sequence}");
        }
        let fresh = |number: u64| (10_000 + number).to_be_bytes().to_vec();
        std::thread::scope(|scope| {
            let put = |number| table.put(fresh(number), b"").unwrap();
            let writer = scope.spawn(move || (0..10_000).for_each(put));
            db.rollback("1").unwrap();
            writer.join().unwrap();
        });
        let now = all(&table);
        let mut expected = model_at(1..=taken[1]);
        let left = (now.len() - expected.len()) as u64;
        expected.extend((10_000 - left..10_000).map(|number| (fresh(number), Vec::new())));
        assert!(
            now == expected,
            "{layout}: what was written after the rollback, and nothing that was before"
        );
        drop(table);
        db.close().unwrap();
        let db = Database::open(&dir, options()).unwrap();
        assert!(all(&existing(&db, "t")) == now, "{layout}");
        db.close().unwrap();
        Database::destroy(&dir).unwrap();
    }
}
