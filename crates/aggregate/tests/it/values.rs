//! Values for every kind of function, made from a few random words, with many repeats among them.

use forebay_aggregate::Aggregate;

/// The states of values.
pub(crate) fn lifted<'a, A: Aggregate>(
    function: &A,
    values: impl IntoIterator<Item = A::Input<'a>>,
) -> Vec<Vec<u8>> {
    let one = |value| {
        let mut state = Vec::new();
        function.lift(value, &mut state).expect("these values are taken");
        state
    };
    values.into_iter().map(one).collect()
}

/// The merge of states.
pub(crate) fn merged<A: Aggregate>(function: &A, states: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    function.merge(&states.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut out);
    out
}

pub(crate) fn ints(words: &[u64]) -> Vec<i64> {
    words.iter().map(|&word| if word % 3 == 0 { word as i64 } else { (word % 17) as i64 - 8 }).collect()
}

/// Finite, of moderate size, with both zeros.
pub(crate) fn floats(words: &[u64]) -> Vec<f64> {
    let one = |word: u64| match word % 5 {
        0 => 0.0,
        1 => -0.0,
        2 => (word % 13) as f64 - 6.0,
        _ => (word as i64 >> 12) as f64 / 4096.0,
    };
    words.iter().map(|&word| one(word)).collect()
}

/// Texts of 0 to 20 bytes.
pub(crate) fn texts(words: &[u64]) -> Vec<String> {
    words.iter().map(|word| format!("{:x}", word % 40).repeat((word % 11) as usize)).collect()
}
