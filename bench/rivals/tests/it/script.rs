//! A script of random acts from a seed, done to an engine and to a sorted map.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_bench::{Batch, Engine, Kind, Setup, Writer};

pub(crate) const KEY_BYTES: usize = 9;
pub(crate) const VALUE_BYTES: usize = 12;
/// Few, so that overwrites and deletes meet what is there.
const KEYS: u64 = 3000;

/// A splitmix generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Spread over all first bytes, so that an engine that compares signed bytes is found out.
fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0xab; KEY_BYTES];
    key[..8].copy_from_slice(&Random(number).next().to_be_bytes());
    key
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[4..].copy_from_slice(&number.to_be_bytes());
    value
}

/// Puts numbers as keys and values.
pub(crate) fn put(engine: &mut dyn Engine, puts: &[(u64, u64)]) {
    let bytes = bytes_of(puts);
    engine.put(Batch { bytes: &bytes, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }).unwrap();
}

/// The same by one of several writers.
pub(crate) fn put_by(writer: &mut dyn Writer, puts: &[(u64, u64)]) {
    let bytes = bytes_of(puts);
    writer.put(Batch { bytes: &bytes, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }).unwrap();
}

fn bytes_of(puts: &[(u64, u64)]) -> Vec<u8> {
    puts.iter().flat_map(|(number, put)| key(*number).into_iter().chain(value(*put))).collect()
}

/// The model as the engine should show it.
fn sorted(model: &BTreeMap<u64, u64>) -> BTreeMap<[u8; KEY_BYTES], [u8; VALUE_BYTES]> {
    model.iter().map(|(number, put)| (key(*number), value(*put))).collect()
}

/// Scans all, if there is an order, and looks every key and as many absent ones up.
pub(crate) fn check_all(kind: &dyn Kind, engine: &mut dyn Engine, model: &BTreeMap<u64, u64>) {
    let expected = sorted(model);
    if kind.is_ordered() {
        let mut entries = expected.iter();
        engine
            .scan(&[], usize::MAX, &mut |key, value| {
                let (expected_key, expected_value) = entries.next().expect("no more entries");
                assert_eq!((key, value), (&expected_key[..], &expected_value[..]), "{}", kind.name());
            })
            .unwrap();
        assert!(entries.next().is_none(), "{} shows too few", kind.name());
    }
    let end = model.last_key_value().map_or(0, |(last, _)| *last) + 10;
    let numbers: Vec<u64> = (0..end).collect();
    for numbers in numbers.chunks(1000) {
        check_multi_get(kind, engine, model, numbers);
    }
    for number in (0..end).step_by(7) {
        check_get(kind, engine, model, number);
    }
}

fn check_get(kind: &dyn Kind, engine: &mut dyn Engine, model: &BTreeMap<u64, u64>, number: u64) {
    let mut found = b"before".to_vec();
    let is_found = engine.get(&key(number), &mut found).unwrap();
    let mut expected = b"before".to_vec();
    let put = model.get(&number);
    expected.extend(put.into_iter().flat_map(|put| value(*put)));
    assert_eq!((is_found, found), (put.is_some(), expected), "{}: key {number}", kind.name());
}

fn check_multi_get(kind: &dyn Kind, engine: &mut dyn Engine, model: &BTreeMap<u64, u64>, numbers: &[u64]) {
    let keys: Vec<u8> = numbers.iter().flat_map(|number| key(*number)).collect();
    let mut told = vec![false; numbers.len()];
    engine
        .multi_get(&keys, KEY_BYTES, &mut |at, found| {
            let expected = model.get(&numbers[at]).map(|put| value(*put));
            assert_eq!(found, expected.as_ref().map(|value| &value[..]), "{}", kind.name());
            assert!(!std::mem::replace(&mut told[at], true), "{} tells twice", kind.name());
        })
        .unwrap();
    assert!(told.iter().all(|told| *told), "{} tells too few", kind.name());
}

pub(crate) struct Script<'a> {
    kind: &'a dyn Kind,
    setup: &'a Setup,
    dir: PathBuf,
    engine: Option<Box<dyn Engine>>,
    model: BTreeMap<u64, u64>,
    random: Random,
}

impl<'a> Script<'a> {
    pub(crate) fn new(kind: &'a dyn Kind, dir: &Path, setup: &'a Setup, seed: u64) -> Self {
        let engine = Some(crate::open(kind, dir, setup));
        Self { kind, setup, dir: dir.to_path_buf(), engine, model: BTreeMap::new(), random: Random(seed) }
    }

    /// One random act.
    pub(crate) fn act(&mut self) {
        let draw = self.random.below(100);
        let count = if self.random.below(4) == 0 { 1 } else { 1 + self.random.below(300) };
        let numbers: Vec<u64> = (0..count).map(|_| self.random.below(KEYS)).collect();
        let engine = self.engine.as_deref_mut().expect("open");
        match draw {
            0..45 => {
                let puts: Vec<(u64, u64)> =
                    numbers.into_iter().map(|number| (number, self.random.next())).collect();
                put(engine, &puts);
                self.model.extend(puts);
            }
            45..60 => {
                let keys: Vec<u8> = numbers.iter().flat_map(|number| key(*number)).collect();
                engine.delete(&keys, KEY_BYTES).unwrap();
                self.model.retain(|number, _| !numbers.contains(number));
            }
            60..75 => check_get(self.kind, engine, &self.model, numbers[0]),
            75..85 => check_multi_get(self.kind, engine, &self.model, &numbers),
            85..97 => self.check_scan(numbers[0], numbers.len()),
            97 => engine.drain().unwrap(),
            _ => self.reopen(),
        }
    }

    fn check_scan(&mut self, from: u64, limit: usize) {
        let engine = self.engine.as_deref_mut().expect("open");
        if !self.kind.is_ordered() {
            assert!(engine.scan(&key(from), limit, &mut |_, _| ()).is_err());
            return;
        }
        let mut shown = Vec::new();
        engine.scan(&key(from), limit, &mut |key, value| shown.push((key.to_vec(), value.to_vec()))).unwrap();
        let model = sorted(&self.model);
        let expected = model.range(key(from)..).take(limit);
        let expected: Vec<_> = expected.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(shown, expected, "{}", self.kind.name());
    }

    fn reopen(&mut self) {
        self.engine.take().expect("open").close().unwrap();
        self.engine = Some(crate::open(self.kind, &self.dir, self.setup));
    }

    /// Checks everything, and once more after a drain and a reopening.
    pub(crate) fn finish(mut self) {
        for act in 0..3 {
            check_all(self.kind, self.engine.as_deref_mut().expect("open"), &self.model);
            match act {
                0 => self.engine.as_deref_mut().expect("open").drain().unwrap(),
                _ => self.reopen(),
            }
        }
    }
}
