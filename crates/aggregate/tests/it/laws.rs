//! Every function: merging is commutative and associative, in one pass or many; states are read back;
//! malformed bytes do no harm.

use forebay_aggregate::functions::*;
use forebay_aggregate::ordered::{self, Number, NumberBytes};
use forebay_aggregate::{Aggregate, Composite, Merging, Optional, Value};
use forebay_base::Combine;
use proptest::prelude::*;

use crate::values::{floats, ints, lifted, merged, texts};

/// Holds a function to its laws over these states; `same` says when two states count as equal.
fn check_laws<A: Aggregate>(
    function: &A,
    states: &[Vec<u8>],
    order: u64,
    same: impl Fn(&[u8], &[u8]) -> bool,
) {
    let name = function.state_type();
    let all = merged(function, states);
    function.finish(&all).expect("a merge is a state");
    for state in states {
        function.finish(state).expect("a lifted value is a state");
        assert_eq!(merged(function, std::slice::from_ref(state)), *state, "{name}: the merge of one");
        if let Some(bytes) = function.state_bytes() {
            assert_eq!(state.len(), bytes, "{name}: every state has one length");
        }
    }
    assert!(same(&merged(function, std::slice::from_ref(&all)), &all), "{name}: the merge of one merged");

    let mut shuffled = states.to_vec();
    shuffled.sort_by_key(|state| forebay_base::hash::key_hash(state, order));
    assert!(same(&merged(function, &shuffled), &all), "{name}: in another order");

    let pairwise = |states: &[Vec<u8>]| {
        let rule = |one: &Vec<u8>, other: &Vec<u8>| {
            let mut out = Vec::new();
            MergingRef(function).fold(one, other, &mut out);
            out
        };
        states[1..].iter().fold(states[0].clone(), |sum, state| rule(&sum, state))
    };
    assert!(same(&pairwise(states), &all), "{name}: one after the other");
    assert!(same(&pairwise(&shuffled), &all), "{name}: one after the other, in another order");

    let cut = order as usize % states.len();
    if cut > 0 {
        let parts = [merged(function, &states[cut..]), merged(function, &states[..cut])];
        assert!(same(&merged(function, &parts), &all), "{name}: in two parts");
    }
    if function.state_bytes().is_some() {
        let mut sum = states[0].clone();
        states[1..].iter().for_each(|state| function.merge_in_place(&mut sum, state));
        assert!(same(&sum, &all), "{name}: in place");
    }
}

/// What `Merging` does, for a borrowed function.
struct MergingRef<'a, A>(&'a A);

impl<A: Aggregate> MergingRef<'_, A> {
    fn fold(&self, newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        self.0.merge(&[older, newer], out);
    }
}

/// Holds a function to calm over bytes that are no states, alone and among states.
fn check_malformed<A: Aggregate>(function: &A, states: &[Vec<u8>], garbage: &[u8], at: usize) {
    let all = merged(function, states);
    let mut cut = all.clone();
    cut.truncate(at % (all.len() + 1));
    let mut bent = all.clone();
    if let Some(byte) = (!bent.is_empty()).then(|| at % bent.len()).and_then(|at| bent.get_mut(at)) {
        *byte ^= (at >> 8) as u8 | 1;
    }
    let mut head = all[..all.len().min(at % 12)].to_vec();
    head.extend_from_slice(garbage);
    for bad in [garbage.to_vec(), cut, bent, head] {
        if let Err(error) = function.finish(&bad) {
            // The type is named; of a composite, its part's.
            let text = error.to_string();
            let named = text.split(" not a state of ").nth(1).and_then(|rest| rest.split(';').next());
            assert!(named.is_some_and(|named| function.state_type().as_str().contains(named)), "{text}");
        }
        for states in [vec![bad.clone(), bad.clone()], vec![all.clone(), bad.clone(), all.clone()]] {
            let out = merged(function, &states);
            let _ = function.finish(&out);
        }
        let mut state = all.clone();
        function.merge_in_place(&mut state, &bad);
        let mut state = bad.clone();
        function.merge_in_place(&mut state, &all);
        assert_eq!(state.len(), bad.len());
    }
}

fn equal(one: &[u8], other: &[u8]) -> bool {
    one == other
}

/// Whether what two states stand for is the same but for rounding.
fn near(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= 1e-9 * (1.0 + one.abs().max(other.abs()))
}

/// One checked function: its laws and its calm.
fn check<A: Aggregate>(function: &A, states: &[Vec<u8>], random: &Random) {
    check_within(function, states, random, equal);
}

fn check_within<A: Aggregate>(
    function: &A,
    states: &[Vec<u8>],
    random: &Random,
    same: impl Fn(&[u8], &[u8]) -> bool,
) {
    check_laws(function, states, random.order, same);
    check_malformed(function, states, &random.garbage, random.at);
}

#[derive(Debug, Clone)]
struct Random {
    words: Vec<u64>,
    garbage: Vec<u8>,
    order: u64,
    at: usize,
}

fn random(words_max: usize) -> impl Strategy<Value = Random> {
    let words = proptest::collection::vec(any::<u64>(), 1..words_max);
    let garbage = proptest::collection::vec(any::<u8>(), 0..80);
    (words, garbage, any::<u64>(), any::<u16>()).prop_map(|(words, garbage, order, at)| Random {
        words,
        garbage,
        order,
        at: at.into(),
    })
}

proptest! {
    #[test]
    fn fixed_functions(random in random(40)) {
        let (ints, floats) = (ints(&random.words), floats(&random.words));
        let truths = || ints.iter().map(|int| int % 2 == 0);
        check(&Count, &lifted(&Count, ints.iter().map(|_| ())), &random);
        check(&CountIf, &lifted(&CountIf, truths()), &random);
        check(&SumInt, &lifted(&SumInt, ints.iter().copied()), &random);
        check(&AverageInt, &lifted(&AverageInt, ints.iter().copied()), &random);
        check(&BoolAnd, &lifted(&BoolAnd, truths()), &random);
        check(&BoolOr, &lifted(&BoolOr, truths()), &random);
        check(&BitAnd, &lifted(&BitAnd, ints.iter().copied().map(i128::from)), &random);
        check(&BitOr, &lifted(&BitOr, ints.iter().copied().map(i128::from)), &random);
        check(&BitXor, &lifted(&BitXor, ints.iter().copied().map(i128::from)), &random);
        let (min, max) = (Min::<i64>::default(), Max::<i64>::default());
        check(&min, &lifted(&min, ints.iter().copied()), &random);
        check(&max, &lifted(&max, ints.iter().copied()), &random);
        let (min, max) = (Min::<f64>::default(), Max::<f64>::default());
        check(&min, &lifted(&min, floats.iter().copied()), &random);
        check(&max, &lifted(&max, floats.iter().copied()), &random);
        let numbers: Vec<Number> =
            ints.iter().map(|&int| int.into()).chain(floats.iter().map(|&float| float.into())).collect();
        let max = Max::<NumberBytes>::default();
        check(&max, &lifted(&max, numbers.iter().map(|number| number.to_bytes())), &random);
        check(&SumDecimal, &lifted(&SumDecimal, numbers.iter().copied()), &random);
        let some = Optional(SumInt);
        check(&some, &lifted(&some, ints.iter().map(|&int| (int % 3 != 0).then_some(int))), &random);
        let histogram = Histogram::new([-5.0, 0.0, 5.0]).expect("bounds rise");
        check(&histogram, &lifted(&histogram, floats.iter().copied()), &random);
    }

    #[test]
    fn rounding_functions(random in random(40)) {
        let floats = floats(&random.words);
        fn within<A: Aggregate>(function: &A, value: impl Fn(A::Output) -> f64) -> impl Fn(&[u8], &[u8]) -> bool {
            move |one, other| {
                let value = |state| value(function.finish(state).expect("a state"));
                near(value(one), value(other))
            }
        }
        let states = lifted(&SumFloat, floats.iter().copied());
        check_within(&SumFloat, &states, &random, within(&SumFloat, |sum| sum));
        let states = lifted(&Average, floats.iter().copied());
        check_within(&Average, &states, &random, within(&Average, |mean| mean));
        let variance = Variance(Spread::VariancePopulation);
        let states = lifted(&variance, floats.iter().copied());
        check_within(&variance, &states, &random, within(&variance, |value| value.unwrap_or(-1.0)));
        // Two states are merged to the same bytes whichever comes first.
        if let [one, .., other] = &states[..] {
            let (there, back) = ([one.clone(), other.clone()], [other.clone(), one.clone()]);
            prop_assert_eq!(merged(&variance, &there), merged(&variance, &back));
        }
        let pairs = floats.iter().copied().zip(floats.iter().rev().copied());
        let fit = Correlation(Fit::Coefficient);
        let states = lifted(&fit, pairs);
        check_within(&fit, &states, &random, within(&fit, |value| value.unwrap_or(-2.0)));
        let (one, other) = states.split_at(states.len() / 3);
        if !one.is_empty() {
            let [one, other] = [one, other].map(|part| merged(&fit, part));
            prop_assert_eq!(merged(&fit, &[one.clone(), other.clone()]), merged(&fit, &[other, one]));
        }
    }

    #[test]
    fn functions_of_bytes(random in random(40)) {
        let texts = texts(&random.words);
        let bytes = || texts.iter().map(String::as_bytes);
        check(&MinBytes, &lifted(&MinBytes, bytes()), &random);
        check(&MaxBytes, &lifted(&MaxBytes, bytes()), &random);
        check(&Distinct, &lifted(&Distinct, bytes()), &random);
        for values_max in [1, 5, 1000] {
            let list = Collect::list(values_max).expect("room");
            check(&list, &lifted(&list, bytes()), &random);
            let set = Collect::set(values_max).expect("room");
            check(&set, &lifted(&set, bytes()), &random);
        }
        let text = StringAgg::new(",", 6).expect("room");
        check(&text, &lifted(&text, bytes()), &random);
        let sample = Sample::new(4, random.order).expect("room");
        let weights = random.words.iter().map(|word| 1.0 + (word % 4) as f64);
        check(&sample, &lifted(&sample, bytes().zip(weights)), &random);
    }

    #[test]
    fn functions_of_an_order(random in random(40)) {
        let (texts, places) = (texts(&random.words), ints(&random.words));
        let places: Vec<[u8; 8]> = places.into_iter().map(ordered::int).collect();
        let pairs = || places.iter().map(|place| &place[..]).zip(texts.iter().map(String::as_bytes));
        for end in [End::Least, End::Greatest] {
            check(&ValueAt(end), &lifted(&ValueAt(end), pairs()), &random);
        }
        for k in [1, 5, 1000] {
            let top = TopK::new(k).expect("room");
            check(&top, &lifted(&top, pairs()), &random);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sketches_of_distinct_values(random in random(400)) {
        let texts: Vec<String> = random.words.iter().map(|word| format!("{}", word % 300)).collect();
        for lg_k in [4, 7, 10] {
            let hll = ApproxDistinct::new(lg_k).expect("a size");
            check(&hll, &lifted(&hll, texts.iter().map(String::as_bytes)), &random);
        }
        let theta = ThetaDistinct::new(5).expect("a size");
        check(&theta, &lifted(&theta, texts.iter().map(String::as_bytes)), &random);
    }

    #[test]
    fn sketches_within_their_error(random in random(400)) {
        let texts = texts(&random.words);
        // Room for all of them: counts are exact.
        let frequent = FrequentItems::new(1024).expect("a size");
        let states = lifted(&frequent, texts.iter().map(String::as_bytes));
        check_within(&frequent, &states, &random, |one, other| {
            frequent.finish(one).expect("a state") == frequent.finish(other).expect("a state")
        });
        let floats = floats(&random.words);
        let median = ApproxQuantiles::new(100, [0.5]).expect("a rank");
        let mut sorted = floats.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = |state: &[u8]| {
            let value = median.finish(state).expect("a state")[0];
            let (low, high) = (sorted.partition_point(|&x| x < value), sorted.partition_point(|&x| x <= value));
            let half = sorted.len() as f64 / 2.0;
            (low as f64 - half).max(half - high as f64).max(0.0) / sorted.len() as f64
        };
        check_within(&median, &lifted(&median, floats.iter().copied()), &random, |one, other| {
            // A value between two of a few is as good as either.
            let slack = 0.05 + 1.0 / sorted.len() as f64;
            rank(one) <= slack && rank(other) <= slack
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn composites(random in random(40)) {
        let (texts, ints) = (texts(&random.words), ints(&random.words));
        let row = |(text, int): (&String, &i64)| {
            let int = if int % 5 == 0 { Value::Null } else { Value::from(*int) };
            vec![Value::from(text.clone().into_bytes()), int]
        };
        let rows: Vec<Vec<Value<'_>>> = texts.iter().zip(&ints).map(row).collect();
        for list in [
            "count,sum:int,max:int,bit_xor:int",
            "count:int,list:text:3,top_k:int:2:text,last:text:int",
            "theta:text:5,min:int,approx_distinct:text:5",
        ] {
            let composite = Composite::parse(list, &["text", "int"]).expect("functions");
            check(&composite, &lifted(&composite, rows.iter().map(Vec::as_slice)), &random);
        }
    }
}

#[test]
fn the_rule_of_merges_is_the_functions_merge() {
    let states = lifted(&SumInt, [3, 4]);
    let mut out = Vec::new();
    Merging(SumInt).fold(b"key", &states[0], &states[1], &mut out);
    assert_eq!(SumInt.finish(&out).expect("a state"), 7);
}

/// The library makes its estimate from them, and looked for one outside its tables.
#[test]
fn sums_that_are_not_those_of_the_registers_are_refused() {
    let sketch = ApproxDistinct::new(5).expect("a size");
    let values: Vec<[u8; 4]> = (0..300u32).map(u32::to_le_bytes).collect();
    let state = merged(&sketch, &lifted(&sketch, values.iter().map(|value| &value[..])));
    assert!(sketch.finish(&state).expect("a state") > 200.0);
    for at in 16..32 {
        let mut bent = state.clone();
        bent[at] ^= 0x40;
        assert!(sketch.finish(&bent).is_err(), "byte {at}");
    }
}

/// An element at a time, through all forms of a state: the bytes are those of lifting and merging.
#[test]
fn adding_in_place_is_merging() {
    for (lg_k, elements) in [(4, 300u32), (8, 3000), (14, 9000)] {
        let hll = ApproxDistinct::new(lg_k).expect("a size");
        let (mut state, mut forms) = (Vec::new(), std::collections::BTreeSet::new());
        for element in 0..elements {
            // Each third has come before.
            let element = (if element % 3 == 2 { element / 2 } else { element }).to_le_bytes();
            let (mut one, mut merged) = (Vec::new(), Vec::new());
            hll.lift(&element, &mut one).expect("it is lifted");
            let before = state.clone();
            let states = [&before[..], &one].into_iter().filter(|state| !state.is_empty());
            hll.merge(&states.collect::<Vec<_>>(), &mut merged);
            let is_changed = hll.add(&element, &mut state);
            assert_eq!(state, merged, "lg_k {lg_k}, {element:?}");
            assert_eq!(is_changed, before != state);
            assert!(hll.is_sound(&state));
            forms.insert(state[7] & 3);
        }
        assert!(forms.len() >= 2, "{forms:?}");
    }
}
