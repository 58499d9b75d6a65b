//! What functions say of a few values that can be checked by hand, and sketches of many.

use forebay_aggregate::Aggregate;
use forebay_aggregate::functions::*;
use forebay_aggregate::ordered;
use forebay_base::hash::mix;

use crate::values::{lifted, merged};

fn answer<'a, A: Aggregate>(function: &A, values: impl IntoIterator<Item = A::Input<'a>>) -> A::Output {
    function.finish(&merged(function, &lifted(function, values))).expect("a merge is a state")
}

#[test]
fn numbers() {
    let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
    assert_eq!(answer(&Count, values.map(|_| ())), 8);
    assert_eq!(answer(&CountIf, values.map(|value| value > 4.5)), 4);
    assert_eq!(answer(&SumFloat, values), 40.0);
    assert_eq!(answer(&Average, values), 5.0);
    assert_eq!(answer(&Variance(Spread::VariancePopulation), values), Some(4.0));
    assert_eq!(answer(&Variance(Spread::DeviationPopulation), values), Some(2.0));
    assert_eq!(answer(&Variance(Spread::VarianceSample), values), Some(32.0 / 7.0));
    assert_eq!(answer(&Variance(Spread::DeviationSample), [1.0]), None);
    let line = [1.0, 2.0, 4.0].map(|x| (x, 7.0 - 2.0 * x));
    assert_eq!(answer(&Correlation(Fit::Coefficient), line), Some(-1.0));
    assert_eq!(answer(&Correlation(Fit::Determination), line), Some(1.0));
    assert_eq!(
        answer(&Correlation(Fit::Coefficient), [(1.0, 3.0), (2.0, 3.0)]),
        None,
        "one is always the same"
    );
    assert_eq!(answer(&Correlation(Fit::Coefficient), [(1.0, 3.0)]), None);
    // Both have squared distances of 5 in all, and the product of distances is 4.
    let pairs = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)];
    let found = answer(&Correlation(Fit::Coefficient), pairs).expect("both differ");
    assert!((found - 0.8).abs() < 1e-15, "{found}");
    assert_eq!(answer(&Min::<f64>::default(), [0.0, -0.0]).to_bits(), (-0.0f64).to_bits());
    assert_eq!(answer(&SumInt, [i64::MAX, i64::MAX, 1]), 2 * i128::from(i64::MAX) + 1);
    assert_eq!(answer(&AverageInt, [1, 2]), 1.5);
    assert_eq!(answer(&BitXor, [1, 3]), 2);
    assert!(!answer(&BoolAnd, [true, false]) && answer(&BoolOr, [true, false]));
}

#[test]
fn places() {
    let places = [5, -1, 5].map(ordered::int);
    let pairs = || places.iter().map(|place| &place[..]).zip([&b"b"[..], b"x", b"c"]);
    assert_eq!(answer(&ValueAt(End::Least), pairs()), b"x");
    assert_eq!(answer(&ValueAt(End::Greatest), pairs()), b"c", "ties go by the value");
    let top = TopK::new(2).expect("room");
    let values: Vec<Vec<u8>> = answer(&top, pairs()).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [b"c", b"b"]);
}

#[test]
fn sketches_keep_within_their_errors() {
    let values: Vec<String> = (0..20_000).map(|i| format!("value {}", mix(i) % 10_000)).collect();
    let distinct = values.iter().collect::<std::collections::BTreeSet<_>>().len() as f64;
    let bytes = || values.iter().map(String::as_bytes);
    let hll = ApproxDistinct::new(12).expect("a size");
    assert!((answer(&hll, bytes()) / distinct - 1.0).abs() < 3.0 * 0.01625);
    let theta = ThetaDistinct::new(12).expect("a size");
    assert!((answer(&theta, bytes()) / distinct - 1.0).abs() < 3.0 / 64.0);
    assert_eq!(answer(&Distinct, bytes()) as f64, distinct);

    let quantiles = ApproxQuantiles::new(200, [0.0, 0.5, 0.99]).expect("ranks");
    let found = answer(&quantiles, (0..20_000).map(|i| (mix(i) % 1000) as f64));
    assert!(found[0] == 0.0 && (490.0..510.0).contains(&found[1]) && (985.0..994.0).contains(&found[2]));

    let frequent = FrequentItems::new(64).expect("a size");
    let texts: Vec<String> =
        (0..20_000u64).map(|i| if i % 4 == 0 { "often".into() } else { format!("{}", mix(i)) }).collect();
    let items = answer(&frequent, texts.iter().map(String::as_bytes));
    assert_eq!(items[0].item, b"often");
    assert!(items[0].count_min <= 5000 && 5000 <= items[0].count_max);
}

/// The bytes of a state of `count` values, which the documentation gives.
#[test]
fn states_are_as_long_as_documented() {
    fn bytes<'a, A: Aggregate>(function: &A, values: impl IntoIterator<Item = A::Input<'a>>) -> usize {
        merged(function, &lifted(function, values)).len()
    }
    let texts: Vec<String> = (0..9000).map(|i| format!("{i:04}")).collect();
    let text = |count: usize| texts[..count].iter().map(String::as_bytes);
    assert_eq!(bytes(&Variance(Spread::VarianceSample), [1.0, 2.0]), 24);
    assert_eq!(bytes(&Correlation(Fit::Coefficient), [(1.0, 2.0), (3.0, 4.0)]), 48);
    assert_eq!(bytes(&Histogram::new([1.0, 2.0]).expect("bounds"), [1.0]), 24);
    assert_eq!(bytes(&Distinct, text(3)), 3 * 5);
    assert_eq!(bytes(&Collect::list(2).expect("room"), text(3)), 1 + 2 * 5);
    assert_eq!(bytes(&Sample::new(2, 0).expect("room"), text(3).map(|text| (text, 1.0))), 2 * (16 + 5));
    assert_eq!(bytes(&TopK::new(2).expect("room"), text(3).map(|text| (text, text))), 2 * (5 + 5));
    assert_eq!(bytes(&ValueAt(End::Least), text(3).map(|text| (text, text))), 5 + 4);
    let hll = ApproxDistinct::new(12).expect("a size");
    assert_eq!([1, 7, 8, 100, 9000].map(|count| bytes(&hll, text(count))), [12, 36, 44, 412, 40 + 4096]);
    let theta = ThetaDistinct::new(5).expect("a size");
    assert_eq!([1, 9000].map(|count| bytes(&theta, text(count))), [16, 24 + 8 * 32]);
    let digest = ApproxQuantiles::new(100, [0.5]).expect("a rank");
    let numbers = |count: usize| (0..count).map(|i| i as f64);
    assert_eq!([1, 2, 512].map(|count| bytes(&digest, numbers(count))), [16, 32 + 2 * 8, 32 + 512 * 8]);
    assert!(bytes(&digest, numbers(9000)) <= 32 + 16 * 210);
    let frequent = FrequentItems::new(64).expect("a size");
    assert_eq!(bytes(&frequent, texts[..3].iter().map(String::as_bytes)), 32 + 3 * (8 + 4 + 4));
}
