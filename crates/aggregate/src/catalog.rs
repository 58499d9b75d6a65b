//! Functions by name: `count`, `sum:amount`, `top_k:price:10`.
//!
//! **Invariant:** every name that [`FUNCTIONS`] lists can be parsed, and no other.

use std::borrow::Cow;

use forebay_base::{Error, Result};

use crate::adapt::{
    collected, distinct, frequent, of_exact, of_extreme, of_float_columns, of_floats, of_ints, of_numbers,
    of_pairs, of_places, of_texts, of_truths, of_whole, over_present, quantile, sample, top_k,
};
use crate::built_in::histogram;
use crate::columns::Wanted;
use crate::composite::Composite;
use crate::function::{Column, Function};
use crate::functions::*;
use crate::names::{similar, split_words, unquoted};
use crate::row_count::RowCount;
use crate::value::{CUT, Value};

/// How many values collections keep by default.
const VALUES_MAX: &str = "1000";

/// Every function's form, and what it answers. Capitals stand for columns and numbers, brackets for what may
/// be left out.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("count", "how many rows"),
    ("count:C", "how many rows with a value in column C"),
    ("count_if:C", "how many rows in which C is true"),
    ("sum:C", "the exact sum of integers and decimals"),
    ("isum:C", "the exact sum of integers of 64 bits, in less than half the memory"),
    ("fsum:C", "the compensated sum of numbers"),
    ("avg:C", "the mean"),
    ("mean:C", "the same as avg"),
    ("min:C", "the least number"),
    ("max:C", "the greatest number"),
    ("min_text:C", "the least text, by bytes"),
    ("max_text:C", "the greatest text, by bytes"),
    ("any:C", "one of the values, the same in any order"),
    ("var_pop:C", "the variance of all"),
    ("var_samp:C", "the variance of a sample"),
    ("variance:C", "the same as var_samp"),
    ("stddev_pop:C", "the standard deviation of all"),
    ("stddev_samp:C", "the standard deviation of a sample"),
    ("stddev:C", "the same as stddev_samp"),
    ("corr:C:D", "the correlation of C and D (Pearson's)"),
    ("r2:C:D", "its square: how far a straight line explains one by the other"),
    ("bool_and:C", "whether all are true"),
    ("bool_or:C", "whether any is true"),
    ("bit_and:C", "the bits that all integers have"),
    ("bit_or:C", "the bits that any integer has"),
    ("bit_xor:C", "the bits that an odd number of integers have"),
    ("first:C:BY", "the value of C where BY is least"),
    ("last:C:BY", "the value of C where BY is greatest"),
    ("arg_min:C:BY", "the same as first"),
    ("arg_max:C:BY", "the same as last"),
    ("top_k:C:K[:BY]", "the K greatest values of C, or those where BY is greatest"),
    ("distinct:C", "how many distinct values, exactly"),
    ("list:C[:MAX]", "the values, in order of their bytes, the least 1,000 by default"),
    ("set:C[:MAX]", "the distinct values, likewise"),
    ("string_agg:C[:SEPARATOR[:MAX]]", "the values as one text, with a space between by default"),
    ("histogram:C:BOUNDS", "how many below each bound, as in 0;10;100"),
    ("sample:C:K[:WEIGHT]", "K distinct values at random, by weight"),
    ("approx_distinct:C[:LG_K]", "about how many distinct values (HyperLogLog)"),
    ("theta:C[:LG_K]", "about how many distinct values (Theta sketch)"),
    ("approx_quantile:C:SHARE", "about the value that this share of all is below (t-digest)"),
    ("frequent:C[:SIZE]", "the most frequent texts and about how often each came"),
];

/// What others call a function, and what comes nearest to it.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("median", "approx_quantile:C:0.5"),
    ("quantile", "approx_quantile:C:SHARE"),
    ("quantile_cont", "approx_quantile:C:SHARE"),
    ("percentile", "approx_quantile:C:SHARE"),
    ("top", "top_k:C:K"),
    ("std", "stddev_samp:C"),
    ("var", "var_samp:C"),
    ("regr_r2", "r2:C:D"),
    ("count_distinct", "distinct:C"),
    ("n_unique", "distinct:C"),
    ("mode", "frequent:C"),
    ("array_agg", "list:C"),
    ("group_concat", "string_agg:C"),
];

impl Composite {
    /// The functions of a list such as `count,sum:amount`, over rows with these columns.
    pub fn parse(list: &str, columns: &[impl AsRef<str>]) -> Result<Self> {
        let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
        let parse = |text: &str| Ok((text.to_string(), parse_function(text, &columns)?));
        Self::new(split_words(list, ',').into_iter().map(str::trim).map(parse).collect::<Result<_>>()?)
    }
}

/// One function over rows with these columns.
pub fn parse_function(text: &str, columns: &[&str]) -> Result<Box<dyn Function>> {
    let mut words: Vec<Cow<'_, str>> = split_words(text, ':').into_iter().map(unquoted).collect();
    let name = &*words.remove(0);
    let call = Call { text, words, columns };
    let form = FUNCTIONS.iter().rfind(|(form, _)| name_of(form) == name).map(|(form, _)| *form);
    let form = form.ok_or_else(|| {
        let names = || FUNCTIONS.iter().map(|(form, _)| name_of(form));
        let known = OTHER_NAMES.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
        Error::invalid(match known.map(|(_, form)| *form).or_else(|| similar(name, names())) {
            Some(name_of_one) => format!("there is no function `{name}`; did you mean `{name_of_one}`?"),
            None if name.is_empty() => {
                "there is no function ``: between commas stands one, and a comma or colon that \
                                        is meant as it is stands in double quotes, as in string_agg:C:\",\""
                    .into()
            }
            None => format!("there is no function `{name}`; there are: {}", all(names())),
        })
    })?;
    let (least, most) = (form.split('[').next().map_or(0, colons), colons(form));
    let least = if name == "count" { 0 } else { least };
    if !(least..=most).contains(&call.words.len()) {
        return Err(Error::invalid(format!("`{text}` is not of the form `{form}`")));
    }
    build(name, &call)
        .and_then(|function| function.ok_or_else(|| Error::invalid(format!("there is no function `{name}`"))))
}

pub(crate) fn name_of(form: &str) -> &str {
    form.split([':', '[']).next().unwrap_or_default()
}

/// The names, each once.
fn all<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    names.join(", ")
}

fn colons(form: &str) -> usize {
    form.matches(':').count()
}

/// A function's arguments, and what they may name.
struct Call<'a> {
    text: &'a str,
    words: Vec<Cow<'a, str>>,
    columns: &'a [&'a str],
}

impl Call<'_> {
    fn word<'w>(&'w self, at: usize, default: &'w str) -> &'w str {
        self.words.get(at).map_or(default, |word| word)
    }

    fn column(&self, at: usize) -> Result<Column> {
        let name = self.word(at, "");
        if name.is_empty() {
            return Err(Error::invalid(format!("`{}` names no column", self.text)));
        }
        let index = self.columns.iter().position(|column| *column == name);
        let index = index.ok_or_else(|| {
            let columns = self.columns.join(", ");
            Error::invalid(format!("`{}`: there is no column `{name}`; there are: {columns}", self.text))
        })?;
        Ok(Column::new(index, name))
    }

    fn number<T: std::str::FromStr>(&self, at: usize, default: &str) -> Result<T> {
        let word = self.word(at, default);
        word.parse()
            .map_err(|_| Error::invalid(format!("`{}`: `{word}` is not a number that it takes", self.text)))
    }
}

/// The function of a name; `None` for none.
fn build(name: &str, call: &Call<'_>) -> Result<Option<Box<dyn Function>>> {
    if name == "count" && call.words.is_empty() {
        return Ok(Some(Box::new(RowCount)));
    }
    let column = call.column(0)?;
    let by = |at| call.column(at);
    let spread = |spread| of_float_columns(Variance(spread), column.clone());
    Ok(Some(match name {
        "count" => over_present(column),
        "count_if" => of_truths(CountIf, column),
        "sum" => of_exact(column),
        "isum" => of_whole(column),
        "fsum" => of_float_columns(SumFloat, column),
        "avg" | "mean" => of_float_columns(Average, column),
        "min" => of_numbers(Min::default(), column, Wanted::Least),
        "max" => of_numbers(Max::default(), column, Wanted::Greatest),
        "min_text" | "any" => of_extreme(MinBytes, column, Wanted::Least),
        "max_text" => of_extreme(MaxBytes, column, Wanted::Greatest),
        "var_pop" => spread(Spread::VariancePopulation),
        "var_samp" | "variance" => spread(Spread::VarianceSample),
        "stddev_pop" => spread(Spread::DeviationPopulation),
        "stddev_samp" | "stddev" => spread(Spread::DeviationSample),
        "corr" => of_pairs(Correlation(Fit::Coefficient), column, by(1)?),
        "r2" => of_pairs(Correlation(Fit::Determination), column, by(1)?),
        "bool_and" => of_truths(BoolAnd, column),
        "bool_or" => of_truths(BoolOr, column),
        "bit_and" => of_ints(BitAnd, column),
        "bit_or" => of_ints(BitOr, column),
        "bit_xor" => of_ints(BitXor, column),
        "first" | "arg_min" => of_places(ValueAt(End::Least), column, by(1)?, Value::from),
        "last" | "arg_max" => of_places(ValueAt(End::Greatest), column, by(1)?, Value::from),
        "top_k" => {
            let by = if call.words.len() > 2 { by(2)? } else { column.clone() };
            top_k(TopK::new(call.number(1, "")?)?, column, by)
        }
        "distinct" => of_texts(Distinct, column, Value::from),
        "list" => of_texts(Collect::list(call.number(1, VALUES_MAX)?)?, column, collected),
        "set" => of_texts(Collect::set(call.number(1, VALUES_MAX)?)?, column, collected),
        "string_agg" => {
            let separator = call.word(1, " ");
            of_texts(StringAgg::new(separator, call.number(2, VALUES_MAX)?)?, column, |joined| {
                Value::from(if joined.is_cut { [&joined.text, CUT].concat() } else { joined.text })
            })
        }
        "sample" => sample(column, call.number(1, "")?, (call.words.len() > 2).then(|| by(2)).transpose()?)?,
        _ => return sketch(name, call, column),
    }))
}

/// As [`build`], of functions that count in bins or answer about.
fn sketch(name: &str, call: &Call<'_>, column: Column) -> Result<Option<Box<dyn Function>>> {
    Ok(Some(match name {
        "histogram" => {
            let word = call.word(1, "");
            let bounds: Result<Vec<f64>, _> = word.split(';').map(str::parse).collect();
            of_floats(Histogram::new(bounds.unwrap_or_default())?, column, histogram)
        }
        "approx_distinct" => distinct(ApproxDistinct::new(call.number(1, "12")?)?, column),
        "theta" => of_texts(ThetaDistinct::new(call.number(1, "12")?)?, column, |count| {
            Value::from(count.round() as u64)
        }),
        "approx_quantile" => quantile(ApproxQuantiles::new(200, [call.number(1, "")?])?, column),
        "frequent" => frequent(FrequentItems::new(call.number(1, "256")?)?, column),
        _ => return Ok(None),
    }))
}
