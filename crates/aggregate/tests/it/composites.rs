//! Functions by name: each of them, several in one state, and what is said of names that do not exist.

use forebay_aggregate::{Aggregate, Aggregator, Composite, FUNCTIONS, HashAggregator, Value};
use forebay_base::Result;

use crate::values::{lifted, merged};

const COLUMNS: [&str; 4] = ["name", "amount", "price", "ok"];

fn rows() -> Vec<Vec<Value<'static>>> {
    let rows: [[&[u8]; 4]; 4] = [
        [b"ebb", b"3", b"0.5", b"true"],
        [b"flood", b"-1", b"2", b"false"],
        [b"ebb", b"10", b"1e1", b"true"],
        [b"", b"", b"", b""],
    ];
    let value = |text: &'static [u8]| if text.is_empty() { Value::Null } else { Value::bytes(text) };
    rows.iter().map(|row| row.iter().map(|text| value(text)).collect()).collect()
}

fn answers(list: &str) -> Result<String> {
    let composite = Composite::parse(list, &COLUMNS)?;
    let rows = rows();
    let state = merged(&composite, &lifted(&composite, rows.iter().map(Vec::as_slice)));
    let texts = composite.finish(&state)?;
    Ok(texts
        .iter()
        .map(|value| String::from_utf8_lossy(&value.to_text()).into_owned())
        .collect::<Vec<_>>()
        .join(" | "))
}

#[test]
fn every_function_answers() -> Result<()> {
    let expected = [
        ("count,count:name,count_if:ok", "4 | 3 | 2"),
        ("sum:amount,isum:amount,fsum:price,avg:amount", "12 | 12 | 12.5 | 4"),
        ("min:price,max:price,min_text:name,max_text:name,any:name", "0.5 | 10 | ebb | flood | ebb"),
        ("var_pop:amount,var_samp:amount", "20.666666666666668 | 31"),
        ("stddev_pop:amount,stddev_samp:amount", "4.546060565661952 | 5.56776436283002"),
        ("corr:amount:price,r2:amount:price", "0.87"),
        ("bool_and:ok,bool_or:ok,bit_and:amount,bit_or:amount,bit_xor:amount", "false | true | 2 | -1 | -10"),
        ("first:name:amount,last:name:price,arg_min:ok:name,arg_max:amount:name", "flood | ebb | true | -1"),
        ("top_k:amount:2,top_k:name:1:price,distinct:name", "10;3 | ebb | 2"),
        (
            "list:name,set:name,list:name:1,string_agg:name:+",
            "ebb;ebb;flood | ebb;flood | ebb;… | ebb+ebb+flood",
        ),
        ("histogram:price:1;5,sample:name:5", "1=1;5=1;inf=1 | "),
        (
            "approx_distinct:name,theta:name:5,approx_quantile:amount:0.5,frequent:name",
            "2 | 2 | 3 | ebb=2;flood=1",
        ),
    ];
    for (list, expected) in expected {
        let found = answers(list)?;
        assert!(found.starts_with(expected), "{list}: {found}");
    }
    Ok(())
}

#[test]
fn every_listed_form_can_be_parsed_and_keeps_nothing_of_no_rows() -> Result<()> {
    for (form, about) in FUNCTIONS {
        assert!(!about.is_empty());
        let least = form.split('[').next().unwrap_or_default();
        let text = least
            .replace(":C", ":amount")
            .replace(":D", ":price")
            .replace(":K", ":3")
            .replace(":BY", ":price")
            .replace(":BOUNDS", ":0;1")
            .replace(":SHARE", ":0.5");
        let composite = Composite::parse(&text, &COLUMNS)?;
        let mut state = Vec::new();
        composite.lift(&rows()[3], &mut state)?;
        let answer = composite.finish(&state)?;
        let nothing = match *form {
            "count_if:C" => Value::Null,
            form if form.starts_with("count") => answer[0].clone(),
            form if form.contains("distinct") || form.starts_with("theta") => Value::I64(0),
            _ => Value::Null,
        };
        assert_eq!(answer, [nothing], "{form}");
        let again = merged(&composite, &[state.clone(), state.clone()]);
        if *form != "count" {
            assert_eq!(again, state, "{form}");
        }
    }
    Ok(())
}

#[test]
fn fixed_functions_make_a_fixed_state() -> Result<()> {
    let composite = Composite::parse("count,sum:amount,max:price", &COLUMNS)?;
    assert_eq!(composite.state_bytes(), Some(8 + 41 + 21));
    assert_eq!(Composite::parse("count,distinct:name", &COLUMNS)?.state_bytes(), None);
    let mut hash = HashAggregator::new(composite, 1 << 20);
    for row in &rows() {
        hash.add(&row[0].to_text(), row)?;
    }
    let state = hash.get(b"ebb")?.unwrap_or_default();
    let composite = Composite::parse("count,sum:amount,max:price", &COLUMNS)?;
    assert_eq!(composite.finish(&state)?, [Value::I64(2), Value::I128(13), Value::I64(10)]);
    Ok(())
}

#[test]
fn errors_say_what_there_is() {
    let error = |list: &str| Composite::parse(list, &COLUMNS).expect_err(list).to_string();
    assert!(error("xyz:amount").starts_with("there is no function `xyz`; there are: count, count_if, sum"));
    assert_eq!(
        error("median:amount"),
        "there is no function `median`; did you mean `approx_quantile:C:0.5`?"
    );
    assert_eq!(error("stdev_pop:amount"), "there is no function `stdev_pop`; did you mean `stddev_pop`?");
    assert_eq!(error("sum:"), "`sum:` names no column");
    assert_eq!(
        error("sum:total"),
        "`sum:total`: there is no column `total`; there are: name, amount, price, ok"
    );
    assert_eq!(error("sum"), "`sum` is not of the form `sum:C`");
    assert_eq!(error("count:a:b"), "`count:a:b` is not of the form `count:C`");
    assert_eq!(error("top_k:name:many"), "`top_k:name:many`: `many` is not a number that it takes");
    assert!(error("").contains("there is no function ``"));
    assert!(error("histogram:price:5;1").contains("bounds that rise"));
    assert!(error("approx_distinct:name:99").contains("99"));
    let composite = Composite::parse("bit_or:price", &COLUMNS).expect("a column");
    let mut state = vec![1];
    let error = composite.lift(&rows()[0], &mut state).expect_err("a fraction").to_string();
    assert_eq!(error, "bit_or:price: column `price`: `0.5` is not an integer of at most 128 bits");
    assert_eq!(state, [1], "what was there is as it was");
    let composite = Composite::parse("avg:ok", &COLUMNS).expect("a column");
    let error = composite.lift(&rows()[0], &mut Vec::new()).expect_err("a truth").to_string();
    assert_eq!(error, "avg:ok: column `ok`: `true` is not a number");
}

#[test]
fn columns_may_be_called_anything() -> Result<()> {
    let composite = Composite::parse("sum:\"a,b\",list:\"c:\"\"d\"", &["a,b", "c:\"d"])?;
    let mut state = Vec::new();
    composite.lift(&[Value::I64(3), Value::bytes(&b"x"[..])], &mut state)?;
    assert_eq!(composite.finish(&state)?[0], Value::I128(3));
    assert_eq!(composite.names().collect::<Vec<_>>(), ["sum:\"a,b\"", "list:\"c:\"\"d\""]);
    Ok(())
}

/// A value that a function cannot take is none for that function, and a value for others.
#[test]
fn what_one_function_refuses_another_takes() -> Result<()> {
    let composite =
        Composite::parse("count,count:name,sum:name,approx_quantile:amount:0.5,max:amount", &COLUMNS)?;
    let rows = [[&b"7"[..], b"1"], [b"x", b"NaN"], [b"y", b"-1"]];
    let mut states = Vec::new();
    let mut refused = 0;
    for row in rows {
        let row: Vec<_> = row.into_iter().chain([&b""[..]; 2]).map(Value::bytes).collect();
        let mut state = Vec::new();
        refused += composite.lift_what_is_taken(&row, &mut state);
        states.push(state);
    }
    assert_eq!(refused, 3);
    let answers = composite.finish(&merged(&composite, &states))?;
    assert_eq!(answers[..3], [Value::I64(3), Value::I64(3), Value::I128(7)]);
    assert_eq!(answers[3], Value::F64(1.0));
    assert!(matches!(answers[4], Value::F64(max) if max.is_nan()), "{answers:?}");
    Ok(())
}

/// Rows of which the answers are known from DuckDB 2.0, over columns of its types `UBIGINT`, `DECIMAL(38,2)` and
/// `DOUBLE`.
#[test]
fn numbers_are_exact_whatever_their_size() -> Result<()> {
    let answer = |list: &str, rows: &[[&'static str; 2]]| -> Result<String> {
        let composite = Composite::parse(list, &["u", "n"])?;
        let rows: Vec<Vec<Value<'_>>> =
            rows.iter().map(|row| row.iter().map(|text| Value::bytes(text.as_bytes())).collect()).collect();
        let state = merged(&composite, &lifted(&composite, rows.iter().map(Vec::as_slice)));
        let texts = composite.finish(&state)?;
        Ok(texts
            .iter()
            .map(|value| String::from_utf8_lossy(&value.to_text()).into_owned())
            .collect::<Vec<_>>()
            .join(" "))
    };
    let hashes =
        [["18446744073709551615", "x"], ["18446744073709551614", "y"], ["18446744073709551613", "z"]];
    let list = "first:n:u,last:n:u,top_k:n:1:u,min:u,max:u,sum:u,bit_xor:u,bit_and:u";
    let expected = "z x x 18446744073709551613 18446744073709551615 55340232221128654842 18446744073709551612 18446744073709551612";
    assert_eq!(answer(list, &hashes)?, expected);
    let money = [["12345678901234567.89", "a"], ["12345678901234567.88", "b"], ["-0.01", "c"]];
    assert_eq!(
        answer("sum:u,min:u,max:u,last:n:u,first:n:u", &money)?,
        "24691357802469135.76 -0.01 12345678901234567.89 a c"
    );
    assert_eq!(
        answer("last:n:u", &[["0.1234567890123456789", "more"], ["0.1234567890123456788", "less"]])?,
        "more"
    );
    assert_eq!(answer("sum:u", &[["90071992547409931e1", ""]])?, "900719925474099310");
    let infinite = [["inf", ""], ["1", ""]];
    assert_eq!(answer("var_pop:u,stddev_samp:u", &infinite)?, "NaN NaN");
    assert_eq!(answer("var_pop:u", &infinite[..1])?, "0");
    Ok(())
}

/// Texts that differ in bytes which are not UTF-8 are not one text.
#[test]
fn bytes_are_counted_as_they_are() -> Result<()> {
    let composite = Composite::parse("frequent:v,distinct:v", &["v"])?;
    let rows = [&b"\xff"[..], b"\xfe", "\u{fffd}".as_bytes(), b"\xff"].map(|text| [Value::bytes(text)]);
    let state = merged(&composite, &lifted(&composite, rows.iter().map(<[_; 1]>::as_slice)));
    let answers = composite.finish(&state)?;
    assert_eq!(&*answers[0].to_text(), b"\xff=2;\xef\xbf\xbd=1;\xfe=1");
    assert_eq!(answers[1], Value::I64(3));
    Ok(())
}
