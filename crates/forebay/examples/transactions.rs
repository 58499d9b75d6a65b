//! Transactions: seats that are booked by many threads at once, each once; and a number that all of them count up.

use std::thread;

use forebay::{Database, Layout, Options, OrderedTable, Table};

const SEATS: u32 = 40;
const CLERKS: u32 = 4;

/// Books the first free seat for somebody, and says which; none where all are taken.
fn book(db: &Database, free: &OrderedTable, taken: &Table, name: &str) -> forebay::Result<Option<Vec<u8>>> {
    db.transaction(|tx| {
        let Some((seat, _)) = tx.iter(free)?.next().transpose()? else { return Ok(None) };
        tx.delete(free, &seat);
        tx.put(taken, &seat, name);
        // It sees what it has written; nobody else does, before all of it is there.
        assert!(tx.contains_key(taken, &seat)? && !tx.contains_key(free, &seat)?);
        Ok(Some(seat))
    })
}

fn count(taken: &Table) -> forebay::Result<()> {
    let next = |number: Option<&[u8]>| {
        let number = number.and_then(|number| number.try_into().ok()).map_or(0, u32::from_be_bytes);
        Some((number + 1).to_be_bytes().to_vec())
    };
    taken.update("booked", next).map(drop)
}

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-transactions-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
    let free = db.table("free").layout(Layout::wb_tree_ordered()).open_ordered()?;
    let taken = db.table("taken").open()?;
    (0..SEATS).try_for_each(|seat| free.put(seat.to_be_bytes(), ""))?;

    thread::scope(|scope| {
        let clerks: Vec<_> = (0..CLERKS)
            .map(|clerk| {
                let (db, free, taken) = (&db, &free, &taken);
                scope.spawn(move || -> forebay::Result<()> {
                    while book(db, free, taken, &format!("by clerk {clerk}"))?.is_some() {
                        count(taken)?;
                    }
                    Ok(())
                })
            })
            .collect();
        clerks.into_iter().try_for_each(|clerk| clerk.join().unwrap_or(Ok(())))
    })?;
    assert!(free.is_empty()?);
    assert_eq!(taken.get("booked")?, Some(SEATS.to_be_bytes().to_vec()), "each seat was booked once");
    assert_eq!(taken.iter()?.count(), SEATS as usize + 1);
    db.close()?;
    Database::destroy(&dir)
}
