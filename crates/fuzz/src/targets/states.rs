//! States of aggregation functions: the same values come to the same however they are divided, and bytes that are no
//! states do no harm.

use forebay_aggregate::{Aggregate, Composite, Value};
use forebay_env::Rng;

use crate::damage::damage;
use crate::draws::{self, one_of};

/// Of every function one; those that are exact come first.
const FUNCTIONS: [&str; 31] = [
    "count",
    "count:int",
    "count_if:int",
    "sum:int",
    "min:int",
    "max:int",
    "min_text:text",
    "max_text:text",
    "any:text",
    "bool_and:int",
    "bool_or:int",
    "bit_and:int",
    "bit_or:int",
    "bit_xor:int",
    "first:text:int",
    "last:text:int",
    "top_k:int:3:text",
    "isum:int",
    "distinct:text",
    "list:text:5",
    "set:text",
    "string_agg:text:-:4",
    "histogram:int:0;10;100",
    "sample:text:3",
    "approx_distinct:text:5",
    "fsum:int",
    "var_pop:int",
    "corr:int:int",
    "theta:text:5",
    "approx_quantile:int:0.5",
    "frequent:text:16",
];
const EXACT: usize = 25;

pub(crate) fn fuzz(rng: &mut Rng) {
    let (first, second) = (rng.index(FUNCTIONS.len()), rng.index(FUNCTIONS.len()));
    let list = [FUNCTIONS[first], FUNCTIONS[second]].join(",");
    let function = Composite::parse(&list, &["text", "int"]).expect("there are such functions");
    let count = one_of(rng, &[1, 2, 30, 300]);
    let states: Vec<Vec<u8>> = (0..count).map(|_| state(rng, &function)).collect();
    let whole = merged(&function, &states);
    function.finish(&whole).expect("a merge is a state");
    if first.max(second) < EXACT {
        let (below, above) = states.split_at(rng.index(states.len()));
        let halves: Vec<_> = [above, below].map(|half| merged(&function, half)).into();
        let halves: Vec<_> = halves.into_iter().filter(|half| !half.is_empty()).collect();
        assert_eq!(merged(&function, &halves), whole, "{list}: in two parts, the other way round");
    }
    for _ in 0..40 {
        let mut bad = one_of(rng, &[&whole, &states[0]]).clone();
        damage(rng, &mut bad);
        let _ = function.finish(&bad);
        for states in [[&bad, &whole], [&whole, &bad], [&bad, &bad]] {
            let states = states.map(Clone::clone);
            let _ = function.finish(&merged(&function, &states));
        }
        if function.state_bytes().is_some() {
            function.merge_in_place(&mut bad.clone(), &whole);
            function.merge_in_place(&mut whole.clone(), &bad);
        }
    }
}

/// The state of a row.
fn state(rng: &mut Rng, function: &Composite) -> Vec<u8> {
    let int = match rng.below(5) {
        0 => Value::Null,
        1 => Value::from(rng.next_u64() as i64),
        _ => Value::from(rng.below(20) as i64 - 3),
    };
    let row = [Value::bytes(draws::key(rng, 50)), int];
    let mut state = Vec::new();
    function.lift_what_is_taken(&row, &mut state);
    state
}

fn merged(function: &Composite, states: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    if !states.is_empty() {
        function.merge(&states.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut out);
    }
    out
}
