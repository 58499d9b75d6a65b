//! One limit for all memory: however much is written and read, what the engine says it holds stays under it.

use forebay::env::{Env, Rng};
use forebay::{Batch, Codec, Database, Durability, Layout, Options};

/// All that counts against the limit.
fn held(db: &Database) -> u64 {
    let memory = db.stats().memory;
    memory.write_buffers + memory.buffer_indexes + memory.filters + memory.page_search + memory.page_cache
}

#[test]
fn the_order_of_very_short_records_is_bounded_too() {
    let options = Options::default().memory_limit(1 << 20).env(Env::memory(6));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").open().unwrap();
    let mut most = 0;
    for number in 0..5_000u32 {
        let mut batch = Batch::new();
        // Two bytes of lengths and three of key: a buffer holds 25,000 of them.
        (0..50).for_each(|i| batch.put(&table, &(number * 50 + i).to_le_bytes()[..3], b""));
        db.commit(batch, Durability::Memory).unwrap();
        if number % 100 == 0 {
            table.get(b"abc").unwrap();
            let memory = db.stats().memory;
            most = most.max(memory.buffer_indexes);
            assert!(memory.buffer_indexes * 2 <= memory.write_buffers + 4096, "{memory:?}");
        }
    }
    assert!(most > 0, "lookups have built an index");
}

#[test]
fn memory_stays_under_its_limit() {
    let limit = 2 << 20;
    for (layout, codec) in [
        (Layout::write_buffer(), Codec::None),
        (Layout::write_buffer_ordered(), Codec::None),
        (Layout::write_buffer_ordered(), Codec::Lz4),
    ] {
        let env = Env::memory(4);
        let options = Options::default().memory_limit(limit).env(env.clone());
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").layout(layout).codec(codec).open().unwrap();
        let (mut rng, mut most, mut bytes) = (Rng::new(8), 0, 0);
        while bytes < 8 * limit {
            let mut batch = Batch::new();
            for _ in 0..200 {
                let (key, value) = (rng.next_u64().to_le_bytes(), [rng.next_u64() as u8; 40]);
                batch.put(&table, &key, &value[..rng.index(40)]);
            }
            bytes += batch.encoded_bytes() as u64;
            db.commit(batch, Durability::Os).unwrap();
            // Lookups build indexes and fill the cache.
            for _ in 0..5 {
                table.get(&rng.next_u64().to_le_bytes()).unwrap();
            }
            most = most.max(held(&db));
        }
        table.iter().unwrap().take(50_000).for_each(|entry| drop(entry.unwrap()));
        most = most.max(held(&db));
        println!("{layout} {codec:?}: {most} of {limit} bytes; {:?}", db.stats().memory);
        assert!(most <= limit, "{most} bytes are held; the limit is {limit}");
        assert!(most > limit / 4, "the limit is not used");
    }
}
