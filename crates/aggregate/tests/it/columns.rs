//! Rows that come by columns against the same rows one by one: every function of the catalogue, over lanes of every
//! kind, gives the same groups, states byte for byte, and refuses the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_aggregate::columns::{Bits, HashedRows, Items, Lane, OverRows, Rows, Texts};
use forebay_aggregate::functions::Count;
use forebay_aggregate::{
    Aggregate, Aggregator, AggregatorOptions, Composite, CompressedAggregator, FUNCTIONS, Value,
};
use forebay_base::hash::mix;

use crate::place::Place;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What comes next, by a seed.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The memory of a lane.
#[derive(Default)]
struct Owned {
    kind: u64,
    ints: Vec<i64>,
    floats: Vec<f64>,
    singles: Vec<f32>,
    truths: Vec<u8>,
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    codes: Vec<i32>,
    dictionary: u64,
    valid: Option<Vec<u8>>,
    /// The bits begin at this one.
    shift: usize,
}

const INTS: [i64; 10] = [0, 1, -1, 7, 42, -300, i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1];
const FLOATS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    0.1,
    1e15,
    1e16,
    1e23,
    -1e23,
    5e-324,
    f64::MAX,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];
const TEXTS: [&[u8]; 25] = [
    b"",
    b"0",
    b"-0",
    b"1",
    b"-1",
    b" 12 ",
    b"+5",
    b"1.5",
    b"-0.25",
    b"1e3",
    b"nan",
    b"inf",
    b"true",
    b"no",
    b"id0000000001",
    b"id0000000002",
    b"seven77",
    b"eight888",
    b"sixteen bytes 16",
    b"zero\0in it",
    b"\0",
    b"\xff\xfe",
    b"999999999999999",
    b"1234567890123456789",
    b"0.00000000000000000000000000000000000000001",
];

impl Owned {
    /// Values of a kind; `is_tame` keeps to those whose sums do not depend on their order.
    fn draw(draw: &mut Draw, kind: u64, rows: usize, is_tame: bool) -> Self {
        let mut lane = Self { kind, shift: draw.below(11) as usize, ..Self::default() };
        match kind {
            0 => {
                lane.ints =
                    (0..rows).map(|_| if is_tame { draw.below(100) as i64 } else { draw.of(&INTS) }).collect()
            }
            1 => {
                lane.floats = (0..rows)
                    .map(|_| if is_tame { draw.below(100) as f64 / 4.0 } else { draw.of(&FLOATS) })
                    .collect();
            }
            2 => {
                let small = |draw: &mut Draw| draw.below(100) as f32 / 4.0;
                lane.singles =
                    (0..rows).map(|_| if is_tame { small(draw) } else { draw.of(&FLOATS) as f32 }).collect();
            }
            3 => lane.truths = (0..(rows + lane.shift).div_ceil(8)).map(|_| draw.next() as u8).collect(),
            4 | 5 => {
                let texts = if kind == 4 { rows } else { 24 };
                // Not from the memory's beginning.
                lane.bytes = b"..".to_vec();
                lane.offsets.push(2);
                for _ in 0..texts {
                    let text = draw.of(&TEXTS);
                    lane.bytes.extend_from_slice(if is_tame { b"3" } else { text });
                    lane.offsets.push(lane.bytes.len() as i32);
                }
                lane.codes = (0..rows).map(|_| draw.below(24) as i32).collect();
                lane.dictionary = draw.below(2) * draw.next();
            }
            _ => {}
        }
        if draw.below(2) == 0 {
            lane.valid = Some((0..(rows + lane.shift).div_ceil(8)).map(|_| draw.next() as u8 | 1).collect());
        }
        lane
    }

    fn lane(&self, rows: usize) -> Lane<'_> {
        let texts = || Texts::new(&self.offsets, &self.bytes).expect("ordered offsets");
        let items = match self.kind {
            0 => Items::I64(&self.ints),
            1 => Items::F64(&self.floats),
            2 => Items::F32(&self.singles),
            3 => Items::Bool(Bits::new(&self.truths, self.shift), rows),
            4 => Items::Bytes(texts()),
            5 => Items::Codes { codes: &self.codes, texts: texts(), dictionary: self.dictionary },
            _ => Items::Null(rows),
        };
        Lane::new(items, self.valid.as_ref().map(|valid| Bits::new(valid, self.shift))).expect("a lane")
    }
}

fn contents<A: Aggregate>(aggregator: &impl Aggregator<A>) -> Map {
    let mut map = Map::new();
    let seen = &mut |key: &[u8], state: &[u8]| {
        assert_eq!(map.insert(key.to_vec(), state.to_vec()), None, "every key comes once");
        Ok(())
    };
    aggregator.for_each(seen).expect("it is finalised");
    map
}

fn aggregator<A: Aggregate>(function: A) -> CompressedAggregator<A> {
    let options = AggregatorOptions::default().memory_limit(8 << 20).threads(1).spill_to(Place::default());
    CompressedAggregator::new(function, options).expect("memory")
}

/// Adds rows up to one that is refused, passes over that, and so on; checks that it stops at those only.
fn add_sound<A: OverRows>(hashed: &mut HashedRows<A>, rows: &Rows<'_>, refused: &[u32], what: &str) {
    let mut from = 0;
    for next in refused.iter().map(|row| *row as usize).chain([rows.len()]) {
        let sound = hashed.add_sound_rows(&rows.slice(from, rows.len())).expect("memory");
        assert_eq!(from + sound, next, "{what}: the next row that is refused");
        from = next + 1;
    }
}

/// Adds batches by columns and by rows, and compares.
fn compare<A: OverRows>(
    make: impl Fn() -> A,
    batches: &[(Vec<Owned>, usize)],
    keys: usize,
    what: &str,
    add: impl Fn(&mut CompressedAggregator<A>, &[u8], &[Value<'_>]) -> bool,
) {
    let (by_columns, mut by_rows) = (aggregator(make()), aggregator(make()));
    let hashed = || HashedRows::new(Arc::new(make()), 64 << 20);
    let (mut hashed, mut sound) = (hashed(), hashed());
    let (mut row, mut key, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (lanes, len) in batches {
        let rows = Rows::new(lanes.iter().map(|lane| lane.lane(*len)).collect(), keys).expect("rows");
        by_columns.add_rows(&rows, &mut refused).expect("memory");
        let mut expected = Vec::new();
        for at in 0..*len {
            rows.row(at, &mut row);
            key.clear();
            rows.write_key(at, &mut key);
            if !add(&mut by_rows, &key, &row) {
                expected.push(at as u32);
            }
        }
        assert_eq!(refused, expected, "{what}: the rows that are refused");
        hashed.add_rows(&rows, &mut refused).expect("memory");
        assert_eq!(refused, expected, "{what}: the rows that are refused");
        add_sound(&mut sound, &rows, &refused, what);
    }
    by_columns.finalize().expect("memory");
    by_rows.finalize().expect("memory");
    hashed.finalize().expect("memory");
    sound.finalize().expect("memory");
    let expected = contents(&by_rows);
    let mut all_found = vec![contents(&by_columns)];
    // What stays in such a sketch hangs on what is merged with what.
    if !what.contains("frequent") {
        all_found.extend([contents(&hashed), contents(&sound)]);
    }
    for found in all_found {
        assert_eq!(found, expected, "{what}");
    }
}

/// A list of functions over the column `v` and, where one is asked for, `w`.
fn calls() -> Vec<String> {
    let argument = |word: &str| match word {
        "C" => "v",
        "BY" | "D" | "WEIGHT" => "w",
        "K" => "3",
        "BOUNDS" => "0;10",
        "SHARE" => "0.5",
        "MAX" => "5",
        "SIZE" => "64",
        "LG_K" => "8",
        "SEPARATOR" => "|",
        word => panic!("{word}"),
    };
    let call = |form: &&str| {
        let words: Vec<&str> = form.split([':', '[', ']']).filter(|word| !word.is_empty()).collect();
        let arguments = words[1..].iter().map(|word| argument(word));
        std::iter::once(words[0]).chain(arguments).collect::<Vec<_>>().join(":")
    };
    // A column in its own order.
    let more = ["top_k:v:3", "top_k:v:1"].map(String::from);
    FUNCTIONS.iter().map(|(form, _)| form).map(call).chain(more).collect()
}

fn batches(draw: &mut Draw, is_tame: bool) -> Vec<(Vec<Owned>, usize)> {
    // Some aggregations see lanes of other kinds on the way.
    let mut kinds: Vec<u64> = (0..4).map(|_| draw.below(7)).collect();
    (0..3)
        .map(|_| {
            let rows = 1 + draw.below(100) as usize;
            if draw.below(4) == 0 {
                let place = draw.below(4) as usize;
                kinds[place] = draw.below(7);
            }
            (kinds.iter().map(|kind| Owned::draw(draw, *kind, rows, is_tame)).collect(), rows)
        })
        .collect()
}

/// Whether the order of values may change the last bits of a state.
fn hangs_on_order(call: &str) -> bool {
    ["fsum", "avg", "mean", "var", "stddev", "corr", "r2"].iter().any(|name| call.starts_with(name))
}

#[test]
fn columns_and_rows_come_to_the_same() {
    let columns = ["a", "b", "v", "w"];
    for (number, call) in calls().iter().enumerate() {
        for round in 0..12 {
            let seed = (number as u64) << 8 | round;
            let is_sum = ["fsum", "avg", "mean"].iter().any(|name| call.starts_with(name));
            let batches = batches(&mut Draw(seed), is_sum && round > 3);
            // Values go in the order they come while the table holds them.
            let is_ordered = hangs_on_order(call) && (!is_sum || round <= 3);
            let batches = if is_ordered { &batches[..1] } else { &batches[..] };
            let what = format!("seed {seed}: {call}");
            let list = if round % 3 == 0 { format!("{call},count:w") } else { call.clone() };
            let make = || Composite::parse(&list, &columns).expect("a function");
            compare(make, batches, 2, &what, |aggregator, key, row| aggregator.add(key, row).is_ok());
        }
    }
}

#[test]
fn rows_are_counted_by_columns() {
    for seed in 0..20 {
        let batches = batches(&mut Draw(seed), false);
        let keys = (seed % 5) as usize;
        compare(
            || Count,
            &batches,
            keys,
            &format!("seed {seed}"),
            |aggregator, key, _| aggregator.add(key, ()).is_ok(),
        );
    }
}

/// Keys that hardly come again pass by the table, and others come back to it.
#[test]
fn many_groups_are_those_of_rows() {
    let (mut draw, columns) = (Draw(7), ["k", "v"]);
    let mut lanes = Vec::new();
    for batch in 0..60 {
        let rows = 2000;
        let keys = if batch < 40 { 1 << 40 } else { 5 };
        let mut key = Owned::draw(&mut draw, 0, rows, true);
        key.ints = (0..rows).map(|_| draw.below(keys) as i64).collect();
        lanes.push((vec![key, Owned::draw(&mut draw, batch / 30, rows, true)], rows));
    }
    let make = || Composite::parse("sum:v,max:v,bit_or:v", &columns).expect("functions");
    let add = |aggregator: &mut CompressedAggregator<Composite>, key: &[u8], row: &[Value<'_>]| {
        aggregator.add(key, row).is_ok()
    };
    compare(make, &lanes, 1, "seed 7", add);
}

/// A sketch of distinct values is a list at first, then a set, then registers.
#[test]
fn sketches_take_values_in_all_their_forms() {
    let mut draw = Draw(8);
    let (rows, columns) = (1000, ["k", "v"]);
    let lanes: Vec<_> = (0..6)
        .map(|_| {
            let [mut key, mut value] = [(); 2].map(|()| Owned::draw(&mut draw, 0, rows, true));
            // Some groups come to few values, some to thousands.
            key.ints = (0..rows).map(|_| (draw.below(1 << 12) as i64 + 1).ilog2().into()).collect();
            value.ints = (0..rows).map(|_| draw.below(1 << 20) as i64).collect();
            (vec![key, value], rows)
        })
        .collect();
    let make = || Composite::parse("approx_distinct:v,approx_distinct:v:8", &columns).expect("functions");
    let add = |aggregator: &mut CompressedAggregator<Composite>, key: &[u8], row: &[Value<'_>]| {
        aggregator.add(key, row).is_ok()
    };
    compare(make, &lanes, 1, "seed 8", add);
}

#[test]
fn malformed_lanes_are_refused() {
    assert!(Texts::new(&[0, 3, 2], b"abc").is_err());
    assert!(Texts::new(&[0, 4], b"abc").is_err());
    assert!(Texts::new(&[-1, 3], b"abc").is_err());
    let texts = Texts::new(&[0, 1], b"a").expect("a text");
    let codes = |valid| Lane::new(Items::Codes { codes: &[0, 9], texts, dictionary: 0 }, valid);
    assert!(codes(None).is_err());
    assert!(codes(Some(Bits::new(&[1], 0))).is_ok(), "what is under a null does not matter");
    assert!(Lane::new(Items::I64(&[1, 2]), Some(Bits::new(&[3], 7))).is_err());
    assert!(Lane::new(Items::Bool(Bits::new(&[], 0), 1), None).is_err());
    assert!(Rows::new(vec![Lane::nulls(1), Lane::nulls(2)], 1).is_err());
    assert!(Rows::new(vec![Lane::nulls(1)], 2).is_err());
}

/// Of rows that are all refused nothing is kept, whatever texts they have; nor of texts that are no keys.
#[test]
fn what_is_refused_takes_no_memory() {
    let rows_of = |texts: &[Vec<u8>]| -> (Vec<u8>, Vec<i32>) {
        let ends = texts.iter().scan(0, |end, text| {
            *end += text.len() as i32;
            Some(*end)
        });
        (texts.concat(), std::iter::once(0).chain(ends).collect())
    };
    let sums = Composite::parse("sum:v", &["v"]).expect("a function");
    let by_columns = aggregator(sums);
    let mut refused = Vec::new();
    for batch in 0..60_u64 {
        let keys: Vec<Vec<u8>> = match batch % 2 {
            0 => (0..4000_u64).map(|row| format!("a long key {}", batch * 4000 + row).into_bytes()).collect(),
            _ => (0..20).map(|row| vec![row as u8; 100_000 + batch as usize]).collect(),
        };
        let names = vec![b"no number".to_vec(); keys.len()];
        let ((key_bytes, key_ends), (name_bytes, name_ends)) = (rows_of(&keys), rows_of(&names));
        let texts = |ends, bytes| Items::Bytes(Texts::new(ends, bytes).expect("texts"));
        let key = Lane::new(texts(&key_ends, &key_bytes), None).expect("a lane");
        let ones = vec![1_i64; keys.len()];
        let value = match batch % 2 {
            0 => Lane::new(texts(&name_ends, &name_bytes), None),
            _ => Lane::new(Items::I64(&ones), None),
        };
        let rows = Rows::with_keys(vec![key], vec![value.expect("a lane")]).expect("rows");
        by_columns.add_rows(&rows, &mut refused).expect("memory");
        assert_eq!(refused.len(), keys.len(), "all of batch {batch} are refused");
        assert!(by_columns.memory_bytes() < 4 << 20, "{} bytes", by_columns.memory_bytes());
    }
    assert_eq!(contents(&by_columns).len(), 0);
}

/// Keys of some thousand bytes each: the table in front keeps to its share.
#[test]
fn long_keys_keep_to_the_limit() {
    let by_columns = aggregator(Count);
    let mut refused = Vec::new();
    for batch in 0..12_u64 {
        let keys: Vec<Vec<u8>> = (0..2000_u64)
            .map(|row| {
                let mut key = vec![b'k'; 3000];
                key.extend_from_slice(&(batch / 2 * 2000 + row).to_be_bytes());
                key
            })
            .collect();
        let ends: Vec<i32> = (0..=2000).map(|row| row * 3008).collect();
        let bytes = keys.concat();
        let lane = Lane::new(Items::Bytes(Texts::new(&ends, &bytes).expect("texts")), None).expect("a lane");
        let rows = Rows::new(vec![lane], 1).expect("rows");
        by_columns.add_rows(&rows, &mut refused).expect("memory");
        assert!(refused.is_empty() && by_columns.memory_bytes() <= 8 << 20, "{}", by_columns.memory_bytes());
    }
    assert_eq!(contents(&by_columns).len(), 12_000);
}

/// In the least memory there was no room beside the table in front: each group that left it was a list of its own.
#[test]
fn the_table_in_front_leaves_room_for_leaves() {
    for (adders, threads, limit) in [(1, 2, 1536 << 10), (4, 1, 2 << 20)] {
        let place = Place::default();
        let options = AggregatorOptions::default().memory_limit(limit).threads(threads).adders(adders);
        let sums = Composite::parse("sum:v", &["key", "v"]).expect("a call");
        let sums = CompressedAggregator::new(sums, options.spill_to(place.clone())).expect("memory");
        let mut refused = Vec::new();
        for batch in 0..60_i64 {
            let keys: Vec<i64> = (0..2000).map(|row| batch / 2 * 2000 + row).collect();
            let lane = || Lane::new(Items::I64(&keys), None).expect("a lane");
            let rows = Rows::new(vec![lane(), lane()], 1).expect("rows");
            sums.add_rows(&rows, &mut refused).expect("memory");
            assert!(place.publications() < 200, "{} lists in batch {batch}", place.publications());
        }
        assert!(place.publications() > 3, "it is filled");
        assert_eq!(sums.keys().expect("they are counted"), 60_000);
    }
}

/// The same lanes make other keys.
#[test]
fn the_key_may_become_longer() {
    let by_columns = aggregator(Count);
    let (ones, twos, mut refused) = (vec![1_i64; 10], (0..10_i64).collect::<Vec<_>>(), Vec::new());
    let lanes = || [&ones, &twos].map(|items| Lane::new(Items::I64(items), None).expect("a lane")).to_vec();
    for keys in [1, 2, 1, 2] {
        by_columns.add_rows(&Rows::new(lanes(), keys).expect("rows"), &mut refused).expect("memory");
    }
    let [one, two] = [lanes()[..1].to_vec(), lanes()];
    for (keys, others) in [(one.clone(), two.clone()), (two, one)] {
        by_columns.add_rows(&Rows::with_keys(keys, others).expect("rows"), &mut refused).expect("memory");
    }
    assert_eq!(contents(&by_columns).len(), 1 + 10);
}
