//! Filters never deny what is there: those of list files, as they are made, thinned, and read back; and those of tree
//! files, which grow.

use std::collections::BTreeSet;

use forebay_env::Rng;
use forebay_env::fs::MemoryFs;
use forebay_store::list::{Allowance, GrowingFilter, ListFile, Mark};

use super::list_file::{find, store, write};
use crate::draws::{self, one_of};

pub(crate) fn fuzz(rng: &mut Rng) {
    grow(rng);
    let store = store(rng, &MemoryFs::new());
    let order = store.options.order;
    let count = one_of(rng, &[1, 40, 1000, 20_000]);
    let model = draws::records(rng, order, count);
    let made = write(&store, &model);
    let read_back = ListFile::named(&store, made.meta());
    for list in [made, read_back] {
        for bits in [f64::INFINITY, 12.0, 4.0, 2.0, 1.0] {
            list.thin_filter(Allowance::bits(bits));
            for ((_, key), record) in model.iter().step_by(model.len() / 100 + 1) {
                let found = find(&list, order, key).expect("it is intact");
                assert_eq!(found.as_ref(), Some(record), "a filter of {bits} bits denies a key");
            }
            for _ in 0..20 {
                let key = draws::key(rng, 8 * count);
                let found = find(&list, order, &key).expect("it is intact");
                assert_eq!(found.as_ref(), model.get(&(order.prefix(&key), key)));
            }
        }
    }
}

fn grow(rng: &mut Rng) {
    let (keys, bits) = (one_of(rng, &[1, 50, 3000]), one_of(rng, &[1, 10, 40]));
    let count = GrowingFilter::blocks_for(keys, bits).max(1);
    let filter = GrowingFilter::new(count);
    let mut added = BTreeSet::new();
    for _ in 0..6 {
        let more: Vec<u64> = (0..rng.below(keys)).map(|_| rng.next_u64()).collect();
        match rng.index(3) {
            0 => {
                let other = GrowingFilter::new(count);
                other.add(more.iter().map(|&hash| Mark::of(hash, count)));
                let mut bytes = Vec::new();
                other.encode(&mut bytes);
                assert!(filter.unite(&bytes) && !filter.unite(&bytes[1..]));
            }
            _ => filter.add(more.iter().map(|&hash| Mark::of(hash, count))),
        }
        added.extend(more);
        if rng.chance(30) {
            filter.thin(Allowance::bits(one_of(rng, &[1.0, 4.0, 20.0])), keys);
        }
        assert!(added.iter().all(|&hash| filter.may_contain(hash)), "a filter denies what was added");
    }
}
