//! What the engine tells of itself: numbers by name, and JSON.

use forebay::{Error, Result};
use serde::Serialize;
use serde_json::Value;

use crate::items;

/// As JSON, as the command's `--json` has it.
pub(crate) fn json(told: &impl Serialize) -> Result<String> {
    serde_json::to_string(told).map_err(|error| not_json(&error))
}

/// All numbers, as items: a name, its number, and so on. What stands within something has the names of both: `a.b`.
pub(crate) fn numbers(told: &impl Serialize) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    walk("", &serde_json::to_value(told).map_err(|error| not_json(&error))?, &mut found);
    Ok(items::of(found))
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::bug(format!("no JSON can be made: {error}"))
}

fn walk(name: &str, value: &Value, found: &mut Vec<String>) {
    let within = |inner: &str| if name.is_empty() { inner.to_string() } else { format!("{name}.{inner}") };
    match value {
        Value::Object(values) => values.iter().for_each(|(inner, value)| walk(&within(inner), value, found)),
        Value::Array(values) => {
            values
                .iter()
                .enumerate()
                .for_each(|(index, value)| walk(&within(&index.to_string()), value, found));
        }
        // Java has no larger whole number.
        Value::Number(number) => {
            let shown = number.as_u64().map(|number| number.min(i64::MAX as u64).to_string());
            found.extend([name.to_string(), shown.unwrap_or_else(|| number.to_string())]);
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_wherever_they_stand() {
        let told = serde_json::json!({ "a": 1, "b": { "c": 1.5, "d": "x" }, "e": [u64::MAX] });
        let expected = ["a", "1", "b.c", "1.5", "e.0", "9223372036854775807"];
        assert_eq!(numbers(&told).unwrap(), items::of(expected));
    }
}
