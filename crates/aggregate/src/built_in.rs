//! Functions known by the type of their states alone: enough to merge states, and to tell what they stand for, where
//! nobody says which function made them.
//!
//! Several functions may share a type, such as the variance and the standard deviation, or a list and one text of it.
//! Then the answer is that of the first of them, and its name says which that is.
//!
//! Of functions of a program's own, beside others in one state, only that their states are lists is known.
//!
//! **Invariant:** a function that is found has exactly the type that was asked for.

use std::fmt;

use forebay_base::{Combine, Error, Result};
use forebay_env::sync::Arc;

use crate::adapt::collected;
use crate::aggregate::{Aggregate, Merging};
use crate::composite::Composite;
use crate::function::Function;
use crate::functions::*;
use crate::lists::{Lists, PREFIX};
use crate::number::{Number, NumberBytes};
use crate::optional::Optional;
use crate::state_type::StateType;
use crate::value::Value;

/// A function of this crate's, found by the type of its states.
pub struct BuiltIn(Found);

enum Found {
    /// One function, and what it is called.
    One(String, Box<dyn Known>),
    /// Several in one state.
    Many(Arc<Composite>),
}

impl BuiltIn {
    /// The function whose states have this type; none where the type is not one of this crate's. What it takes of a
    /// function of a program's own are lists, which merge without that.
    pub fn of(state_type: &str) -> Option<Self> {
        let (name, parameters) = parts(state_type)?;
        let found = if name == "composite/1" {
            let one = |(place, (key, part)): (usize, &(&str, &str))| {
                let (name, function): (_, Box<dyn Function>) = match Lists::of(part) {
                    Some((name, lists)) => (name, Box::new(lists)),
                    None => known(part).map(|(name, function)| (name, function as _))?,
                };
                (*key == place.to_string()).then_some((name, function))
            };
            let functions = parameters.iter().enumerate().map(one).collect::<Option<Vec<_>>>()?;
            Found::Many(Arc::new(Composite::new(functions).ok()?))
        } else {
            let (name, function) = known(state_type)?;
            Found::One(name, function)
        };
        Some(Self(found)).filter(|found| found.state_type().as_str() == state_type)
    }

    /// The type that it was found by.
    pub fn state_type(&self) -> StateType {
        match &self.0 {
            Found::One(_, function) => function.state_type(),
            Found::Many(functions) => functions.state_type(),
        }
    }

    /// What its answers are called.
    pub fn names(&self) -> Vec<&str> {
        match &self.0 {
            Found::One(name, _) => vec![name],
            Found::Many(functions) => functions.names().collect(),
        }
    }

    /// The names of those answers that are no such: lists of states, which only a program of a user's finishes.
    pub fn unfinished(&self) -> Vec<&str> {
        self.names().into_iter().filter(|name| name.starts_with(PREFIX)).collect()
    }

    /// What a state stands for: an answer for each name.
    pub fn finish(&self, state: &[u8]) -> Result<Vec<Value<'static>>> {
        match &self.0 {
            Found::One(_, function) => Ok(vec![function.finish(state)?]),
            Found::Many(functions) => functions.finish(state),
        }
    }

    /// How its states merge.
    pub fn rule(&self) -> Arc<dyn Combine> {
        match &self.0 {
            Found::One(_, function) => function.rule(),
            Found::Many(functions) => Arc::new(Merging(Arc::clone(functions))),
        }
    }
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state_type().fmt(f)
    }
}

/// A function that can be asked for its rule.
trait Known: Function {
    fn rule(&self) -> Arc<dyn Combine>;
}

/// A function whose values are not known, only its states.
struct States<A, S> {
    function: Arc<A>,
    show: S,
}

impl<A: Aggregate, S: Fn(A::Output) -> Value<'static> + Send + Sync> Function for States<A, S> {
    fn state_type(&self) -> StateType {
        self.function.state_type()
    }
    fn state_bytes(&self) -> Option<usize> {
        self.function.state_bytes()
    }
    fn lift(&self, _row: &[Value<'_>], _state: &mut Vec<u8>) -> Result<()> {
        Err(Error::invalid("a function known only by its states takes no values"))
    }
    fn lift_missing(&self, _state: &mut Vec<u8>) {}
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.function.merge(states, out);
    }
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        self.function.merge_in_place(state, other);
    }
    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        Ok((self.show)(self.function.finish(state)?))
    }
}

impl<A: Aggregate, S: Fn(A::Output) -> Value<'static> + Send + Sync> Known for States<A, S> {
    fn rule(&self) -> Arc<dyn Combine> {
        Arc::new(Merging(Arc::clone(&self.function)))
    }
}

/// A type's name with its version, and its parameters.
fn parts(state_type: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let Some((name, rest)) = state_type.split_once('(') else { return Some((state_type, Vec::new())) };
    let inside = rest.strip_suffix(')')?;
    let (mut parameters, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in inside.bytes().chain([b',']).enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                parameters.push(inside[start..at].split_once('=')?);
                start = at + 1;
            }
            _ => {}
        }
    }
    (depth == 0).then_some((name, parameters))
}

/// One function, and what it is called.
fn known(state_type: &str) -> Option<(String, Box<dyn Known>)> {
    let (name, parameters) = parts(state_type)?;
    match (name, &parameters[..]) {
        ("optional/1", [("of", of)]) => {
            let (name, parameters) = parts(of)?;
            single(name, &parameters, Values::Missing)
        }
        _ => single(name, &parameters, Values::All),
    }
}

/// Whether values may be missing.
#[derive(Clone, Copy)]
enum Values {
    All,
    Missing,
}

impl Values {
    fn found<A: Aggregate>(
        self,
        name: impl Into<String>,
        function: A,
        show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
    ) -> Option<(String, Box<dyn Known>)> {
        let known: Box<dyn Known> = match self {
            Self::All => Box::new(States { function: Arc::new(function), show }),
            Self::Missing => {
                let nothing = function.of_nothing().map_or(Value::Null, &show);
                Box::new(States {
                    function: Arc::new(Optional(function)),
                    show: move |output: Option<A::Output>| output.map_or_else(|| nothing.clone(), &show),
                })
            }
        };
        Some((name.into(), known))
    }
}

fn single(name: &str, parameters: &[(&str, &str)], values: Values) -> Option<(String, Box<dyn Known>)> {
    match (name, parameters) {
        ("count/1", []) => values.found("count", Count, Value::from),
        ("sum_int/1", []) => values.found("isum", SumInt, Value::from),
        ("sum_decimal/1", []) => values.found("sum", SumDecimal, |sum| sum),
        ("sum_float/1", []) => values.found("fsum", SumFloat, Value::from),
        ("avg/1", []) => values.found("avg", Average, Value::from),
        ("avg_int/1", []) => values.found("avg", AverageInt, Value::from),
        ("variance/1", []) => values.found("var_pop", Variance(Spread::VariancePopulation), Value::from),
        ("correlation/1", []) => values.found("corr", Correlation(Fit::Coefficient), Value::from),
        ("bool_and/1", []) => values.found("bool_and", BoolAnd, Value::from),
        ("bool_or/1", []) => values.found("bool_or", BoolOr, Value::from),
        ("bit_and/2", []) => values.found("bit_and", BitAnd, bits),
        ("bit_or/2", []) => values.found("bit_or", BitOr, bits),
        ("bit_xor/2", []) => values.found("bit_xor", BitXor, bits),
        ("arg_min/1", []) => values.found("first", ValueAt(End::Least), Value::from),
        ("arg_max/1", []) => values.found("last", ValueAt(End::Greatest), Value::from),
        ("distinct/1", []) => values.found("distinct", Distinct, Value::from),
        (_, [parameter]) => with_parameter(name, *parameter, values),
        ("sample/1", [("k", k), ("seed", seed)]) => {
            let sample = Sample::new(k.parse().ok()?, seed.parse().ok()?).ok()?;
            values.found("sample", sample, |items| {
                Value::List(items.into_iter().map(|(item, _)| Value::from(item)).collect())
            })
        }
        _ => None,
    }
}

/// Functions whose type has one parameter.
fn with_parameter(
    name: &str,
    (parameter, value): (&str, &str),
    values: Values,
) -> Option<(String, Box<dyn Known>)> {
    match (name, parameter, value) {
        ("min/1", "type", "decimal") => values.found("min", Min::<NumberBytes>::default(), number),
        ("max/1", "type", "decimal") => values.found("max", Max::<NumberBytes>::default(), number),
        ("min/1", "type", "i64") => values.found("min", Min::<i64>::default(), Value::from),
        ("max/1", "type", "i64") => values.found("max", Max::<i64>::default(), Value::from),
        ("min/1", "type", "f64") => values.found("min", Min::<f64>::default(), Value::from),
        ("max/1", "type", "f64") => values.found("max", Max::<f64>::default(), Value::from),
        ("min/1", "type", "bytes") => values.found("min_text", MinBytes, Value::from),
        ("max/1", "type", "bytes") => values.found("max_text", MaxBytes, Value::from),
        ("top_k/1", "k", k) => values.found("top_k", TopK::new(k.parse().ok()?).ok()?, |ranked| {
            Value::List(ranked.into_iter().map(|(_, value)| Value::from(value)).collect())
        }),
        ("collect_list/1", "max", most) => {
            values.found("list", Collect::list(most.parse().ok()?).ok()?, collected)
        }
        ("collect_set/1", "max", most) => {
            values.found("set", Collect::set(most.parse().ok()?).ok()?, collected)
        }
        ("histogram/1", "bounds", bounds) => {
            let bounds = bounds.split(';').map(|bound| bound.parse().ok()).collect::<Option<Vec<f64>>>()?;
            values.found("histogram", Histogram::new(bounds).ok()?, histogram)
        }
        ("hll8/1", "lg_k", lg_k) => {
            let function = ApproxDistinct::new(lg_k.parse().ok()?).ok()?;
            values.found("approx_distinct", function, |count| Value::from(count.round() as u64))
        }
        ("theta/1", "lg_k", lg_k) => {
            let function = ThetaDistinct::new(lg_k.parse().ok()?).ok()?;
            values.found("theta", function, |count| Value::from(count.round() as u64))
        }
        ("tdigest/1", "k", k) => {
            let median = ApproxQuantiles::new(k.parse().ok()?, [0.5]).ok()?;
            values.found("approx_quantile:0.5", median, |values| Value::from(values.first().copied()))
        }
        ("frequent/2", "size", size) => {
            values.found("frequent", FrequentItems::new(size.parse().ok()?).ok()?, frequencies)
        }
        _ => None,
    }
}

/// What a number looks like.
pub(crate) fn number(bytes: NumberBytes) -> Value<'static> {
    Value::from(Number::from(bytes))
}

/// What bits look like.
pub(crate) fn bits(bits: i128) -> Value<'static> {
    i64::try_from(bits).map_or(Value::I128(bits), Value::I64)
}

/// What a histogram looks like.
pub(crate) fn histogram(bins: Vec<Bin>) -> Value<'static> {
    let pair = |bin: Bin| (Value::from(bin.below), Value::from(bin.count));
    Value::Pairs(bins.into_iter().map(pair).collect())
}

/// What frequent items look like.
pub(crate) fn frequencies(items: Vec<FrequentItem>) -> Value<'static> {
    let pair = |item: FrequentItem| (Value::from(item.item), Value::from(item.count_max));
    Value::Pairs(items.into_iter().map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{FUNCTIONS, parse_function};

    /// A call of a form such as `top_k:C:K[:BY]`, with everything that may be left out left out.
    fn call(form: &str) -> String {
        let words = form.split('[').next().unwrap_or_default().split(':').map(|word| match word {
            "C" | "D" | "BY" => "c",
            "K" => "3",
            "BOUNDS" => "0;10;100.5",
            "SHARE" => "0.5",
            word => word,
        });
        words.collect::<Vec<_>>().join(":")
    }

    #[test]
    fn every_function_is_found_by_its_type() {
        let row = [Value::from(1_i64)];
        let boolean = [Value::from(true)];
        for (form, _) in FUNCTIONS {
            let text = call(form);
            let function = parse_function(&text, &["c"]).unwrap();
            let state_type = function.state_type();
            let found = BuiltIn::of(state_type.as_str());
            let found = found.unwrap_or_else(|| panic!("{text}: {state_type} is not known"));
            let mut state = Vec::new();
            function.lift(&row, &mut state).or_else(|_| function.lift(&boolean, &mut state)).unwrap();
            let shared = ["stddev", "var_samp", "variance", "string_agg"];
            if !shared.iter().any(|name| text.starts_with(name)) {
                assert_eq!(found.finish(&state).unwrap(), [function.finish(&state).unwrap()], "{text}");
            }
            let (mut merged, mut expected) = (Vec::new(), Vec::new());
            found.rule().merge_states(b"k", &[&state, &state], &mut merged);
            function.merge(&[&state, &state], &mut expected);
            assert_eq!(merged, expected, "{text}");
            assert_eq!(found.rule().keeps_length(), function.state_bytes().is_some(), "{text}");
        }
    }

    #[test]
    fn several_functions_are_found_together() {
        let functions: Vec<String> = FUNCTIONS.iter().map(|(form, _)| call(form)).collect();
        let all = Composite::parse(&functions.join(","), &["c"]).unwrap();
        let found = BuiltIn::of(all.state_type().as_str()).unwrap();
        assert_eq!(found.names().len(), FUNCTIONS.len());
        let row = [Value::from(1_i64)];
        let mut state = Vec::new();
        all.lift(&row, &mut state).unwrap();
        assert_eq!(found.finish(&state).unwrap().len(), FUNCTIONS.len());
    }

    #[test]
    fn what_is_not_of_this_crate_is_not_found() {
        for text in [
            "",
            "count",
            "count/2",
            "count/1(",
            "count/1(a=b)",
            "suffix/1",
            "composite/1",
            "composite/1(1=count/1)",
            "composite/1(0=other/1)",
            "optional/1(of=optional/1(of=count/1))",
            "top_k/1(k=0)",
            "top_k/1(k=03)",
            "histogram/1(bounds=2;1)",
            "a/1(x=(,y=))",
        ] {
            assert!(BuiltIn::of(text).is_none(), "{text}");
        }
    }
}
