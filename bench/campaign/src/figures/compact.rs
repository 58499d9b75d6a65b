//! Results as they are kept: without what the page does not show, and samples by columns.
//!
//! **Invariant:** the page that is drawn from a kept line is the one that is drawn from the line itself, to nine digits.

use serde_json::{Map, Value, json};

/// What no part shows.
const UNSHOWN: [&str; 6] =
    ["dir", "bench_version", "operations_per_100_ms", "curve", "peak_file", "cpu_seconds_by_thread"];
/// What is kept by columns.
const BY_COLUMNS: [&str; 2] = ["samples", "curve"];

/// The line as it is kept; `shown` are names that this part shows besides.
pub(super) fn pack(line: Value, shown: &[&str]) -> Value {
    match line {
        Value::Object(fields) => {
            let is_kept = |name: &str, field: &Value| {
                !field.is_null() && (shown.contains(&name) || !UNSHOWN.contains(&name))
            };
            let kept = fields.into_iter().filter(|(name, field)| is_kept(name, field));
            kept.map(|(name, field)| {
                let packed = pack(field, shown);
                let packed = match BY_COLUMNS.contains(&name.as_str()) {
                    true => columns(&packed).unwrap_or(packed),
                    false => packed,
                };
                (name, packed)
            })
            .collect()
        }
        Value::Array(items) => items.into_iter().map(|item| pack(item, shown)).collect(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or(Value::Null, rounded),
        other => other,
    }
}

/// To nine digits.
fn rounded(number: f64) -> Value {
    let rounded: f64 = format!("{number:.8e}").parse().unwrap_or(number);
    match rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        true => json!(rounded as i64),
        false => json!(rounded),
    }
}

/// Samples of the same fields, a list for each field. A field that has fields itself becomes such columns, too.
fn columns(samples: &Value) -> Option<Value> {
    let samples: Vec<&Map<String, Value>> =
        samples.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let names = || samples.iter().flat_map(|sample| sample.keys());
    let column = |name: &String| {
        let column = samples.iter().map(|sample| sample.get(name).cloned().unwrap_or(Value::Null)).collect();
        columns(&column).unwrap_or(column)
    };
    Some(names().map(|name| (name.clone(), column(name))).collect::<Map<_, _>>().into())
}

/// The line with its samples as a list again.
pub(super) fn unpack(mut line: Value) -> Value {
    for name in BY_COLUMNS {
        let Some(columns) = line.get(name).and_then(Value::as_object) else { continue };
        line[name] = samples(columns).into();
    }
    line
}

fn samples(columns: &Map<String, Value>) -> Vec<Value> {
    let columns: Vec<(&String, Vec<Value>)> = columns
        .iter()
        .map(|(name, column)| match column {
            Value::Object(columns) => (name, samples(columns)),
            column => (name, column.as_array().cloned().unwrap_or_default()),
        })
        .collect();
    let len = columns.iter().map(|(_, column)| column.len()).max().unwrap_or(0);
    let sample =
        |at: usize| columns.iter().map(|(name, column)| ((*name).clone(), column[at].clone())).collect();
    (0..len).map(|at| Value::Object(sample(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_comes_back() {
        let line = json!({
            "type": "phase", "dir": "target/x", "rate": 9674495.751870144, "gets": null, "count": 3.0,
            "operations_per_100_ms": [1, 2], "curve": [{"seconds": 1, "operations": 5}],
            "samples": [{"seconds": 0.1234567891, "us": null, "runs": 7}, {"seconds": 2.0, "us": 5, "runs": 8}],
        });
        let packed = pack(line.clone(), &[]);
        let columns = json!({"seconds": [0.123456789, 2], "us": [null, 5], "runs": [7, 8]});
        assert_eq!(packed, json!({"type": "phase", "rate": 9674495.75, "count": 3, "samples": columns}));
        let samples =
            json!([{"seconds": 0.123456789, "us": null, "runs": 7}, {"seconds": 2, "us": 5, "runs": 8}]);
        assert_eq!(unpack(packed.clone())["samples"], samples);
        assert_eq!(pack(unpack(packed.clone()), &[]), packed);
        let curve = pack(line.clone(), &["curve"]);
        assert_eq!(curve["curve"], json!({"seconds": [1], "operations": [5]}));
        assert_eq!(unpack(curve)["curve"], line["curve"]);
        let nested = json!({ "curve": [{"seconds": 1, "us": {"a": 2, "b": 3}}, {"seconds": 2, "us": {"a": 4, "b": 5}}] });
        let packed = pack(nested.clone(), &["curve"]);
        assert_eq!(packed, json!({ "curve": {"seconds": [1, 2], "us": {"a": [2, 4], "b": [3, 5]}} }));
        assert_eq!(unpack(packed), nested);
        assert_eq!(pack(line, &["operations_per_100_ms"])["operations_per_100_ms"], json!([1, 2]));
    }
}
