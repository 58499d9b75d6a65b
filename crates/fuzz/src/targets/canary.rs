//! The canary: a map that forgets one key in a thousand, against a map.

use std::collections::BTreeMap;

use forebay_base::hash::mix;
use forebay_env::Rng;

#[derive(Default)]
struct Forgetful(BTreeMap<u64, u64>);

impl Forgetful {
    fn insert(&mut self, key: u64, value: u64) {
        if !mix(key).is_multiple_of(1000) {
            self.0.insert(key, value);
        }
    }
}

pub(crate) fn fuzz(rng: &mut Rng) {
    let (mut model, mut map) = (BTreeMap::new(), Forgetful::default());
    for _ in 0..200 {
        let (key, value) = (rng.below(1 << 20), rng.next_u64());
        model.insert(key, value);
        map.insert(key, value);
        assert_eq!(map.0.get(&key), model.get(&key));
    }
    assert_eq!(map.0, model);
}
