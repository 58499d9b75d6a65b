//! Numbers held against integers, floating-point numbers and texts.

use proptest::prelude::*;

use super::*;

fn number(text: &str) -> Number {
    Number::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
}

proptest! {
    #[test]
    fn integers_are_exact(a: i128, b: i128, shift in 0_u32..127) {
        let (a, b) = (a >> shift, b >> shift);
        prop_assert_eq!(Number::from(a).cmp(&Number::from(b)), a.cmp(&b));
        prop_assert_eq!(Number::from(a).as_i128(), Some(a));
        prop_assert_eq!(Number::from(Number::from(a).to_bytes()).as_i128(), Some(a));
        prop_assert_eq!(Number::from(a).to_string(), a.to_string());
        prop_assert_eq!(Number::parse_exact(&a.to_string()), Some(Number::from(a)));
    }

    #[test]
    fn floats_come_back_and_are_ordered(x: f64, y: f64) {
        prop_assert_eq!(Number::from(x).cmp(&Number::from(y)), (x + 0.0).partial_cmp(&(y + 0.0)).unwrap());
        prop_assert_eq!(Number::from(x).as_f64(), x);
        prop_assert_eq!(Number::from(Number::from(x).to_bytes()).as_f64(), x);
        prop_assert_eq!(number(&Number::from(x).to_string()), Number::from(x));
    }

    #[test]
    fn integers_and_floats_compare_exactly(near in any::<i64>(), step in -2000i64..2000) {
        let (whole, float) = (near.saturating_add(step), near as f64);
        let exact = i128::from(whole).cmp(&(float as i128));
        prop_assert_eq!(Number::from(whole).cmp(&Number::from(float)), exact);
    }

    #[test]
    fn texts_are_numbers_where_the_library_reads_them(text in "[-+]?[0-9]{0,4}[.]?[0-9]{0,4}(e[-+]?[0-9]{0,3})?") {
        let float = text.parse::<f64>().ok();
        prop_assert_eq!(Number::parse(&text).map(Number::as_f64), float.map(|float| float + 0.0));
        prop_assert_eq!(Number::parse(&text).is_some(), Number::parse_exact(&text).is_some());
    }

    #[test]
    fn decimals_are_ordered_by_size(a in -3000_i128..3000, b in -3000_i128..3000, up in 0_u32..3, more in 0_u32..3) {
        let text = |value: i128, zeros: u32| {
            let digits = value.unsigned_abs() * 10_u128.pow(zeros);
            format!("{}{digits}e-{}", if value < 0 { "-" } else { "" }, zeros + 40)
        };
        prop_assert_eq!(number(&text(a, up)).cmp(&number(&text(b, more))), a.cmp(&b));
    }
}

#[test]
fn digits_beyond_those_of_floats_count() {
    let rising = [
        "-inf",
        "-1e400",
        "-18446744073709551615",
        "-18446744073709551614.9999999999",
        "-1e-400",
        "0",
        "0.1234567890123456788",
        "0.1234567890123456789",
        "9007199254740992.0",
        "9007199254740993.0",
        "12345678901234567.88",
        "12345678901234567.89",
        "18446744073709551613",
        "18446744073709551614",
        "18446744073709551615",
        "170141183460469231731687303715884105727",
        "99999999999999999999999999999999999999e2",
        "1e400",
        "inf",
        "nan",
    ];
    for pair in rising.windows(2) {
        assert!(number(pair[0]) < number(pair[1]), "{pair:?}");
    }
    for text in rising {
        assert_eq!(number(&number(text).to_string()), number(text), "{text}");
    }
    assert_eq!(number("12345678901234567.890").to_string(), "12345678901234567.89");
    assert_eq!(number("90071992547409931e1").as_i64(), Some(900_719_925_474_099_310));
    assert_eq!(number("9007199254740993.0").as_i64(), Some(9_007_199_254_740_993));
    assert_eq!(number("4503599627370497.5").as_i128(), None);
    assert_eq!(number("1e-400").as_i128(), None);
}

#[test]
fn equal_numbers_are_equal_bytes() {
    for equal in
        [["3", "3.0"], ["-0.0", "0"], ["1e3", "+1000"], [".5", "5e-1"], ["1e99999", "inf"], ["1e-99999", "0"]]
    {
        assert_eq!(number(equal[0]).to_bytes(), number(equal[1]).to_bytes(), "{equal:?}");
    }
    assert_eq!(Number::from(3_i64), Number::from(3.0));
    assert_eq!(Number::from(0.1), number("0.1"));
    assert_eq!(Number::from(f64::NAN), number("-nan"));
    assert_eq!(number("9223372036854775807").as_i64(), Some(i64::MAX));
    assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
    assert_eq!(number("9223372036854775808").as_i64(), None);
}

#[test]
fn what_is_too_long_is_rounded_and_refused_where_it_has_to_be_exact() {
    let long = format!("0.{}5", "4".repeat(38));
    assert_eq!(Number::parse_exact(&long), None);
    assert_eq!(number(&long), number(&format!("0.{}5", "4".repeat(37))));
    assert_eq!(number(&"9".repeat(50)), number("1e50"));
    assert!(Number::parse_exact(&format!("1{}", "0".repeat(200))).is_some());
    assert_eq!(Number::parse_exact("1e99999"), None);
    for text in ["", "-", ".", "e5", "1e", "1e+", "1x", "1.2.3", "0x1", "1_0", "infinit", "--1", "1 "] {
        assert_eq!(Number::parse(text), None, "{text}");
    }
}

#[test]
fn texts_are_short_where_they_can_be() {
    for (text, shown) in [
        ("1e3", "1000"),
        ("1000e-3", "1"),
        ("-12.50", "-12.5"),
        ("5e-3", "0.005"),
        ("1.5e-30", "1.5e-30"),
        ("1e38", "100000000000000000000000000000000000000"),
        ("15e40", "1.5e41"),
        ("-infinity", "-inf"),
    ] {
        assert_eq!(number(text).to_string(), shown);
    }
}

#[test]
fn no_bytes_are_too_much() {
    for byte in 0..=255 {
        for class in 0..8 {
            let mut bytes = [byte; BYTES];
            bytes[0] = class;
            let number = Number::from(NumberBytes(bytes));
            assert!(!number.to_string().is_empty() && number.as_i64().is_none_or(|_| true));
            let _ = (number.as_f64(), number.to_bytes());
        }
    }
}
