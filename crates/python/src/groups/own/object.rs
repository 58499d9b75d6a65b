//! What Python gives as a function: an object with some attributes, such as one of a class that is a
//! `forebay.UserAggregate`.

use arrow_schema::{DataType, Field, Fields};
use forebay_aggregate::arrow::StateRows;
use forebay_aggregate::names::quoted;
use forebay_env::sync::atomic::AtomicBool;
use forebay_env::sync::{Arc, Mutex};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::Own;
use super::merging::Merging;
use crate::columns;
use crate::failure::{Failure, Outcome};
use crate::home;
use crate::kernel::{field_of, schema_of};

/// What an object lacks that is to be a function.
fn lacking(object: &Bound<'_, PyAny>, what: &str) -> Failure {
    let kind = object.get_type().name().map_or_else(|_| "it".into(), |name| name.to_string());
    Failure::type_error(format!("{kind} is no forebay.UserAggregate: {what}"))
}

/// A type: the text that Arrow has for it, as in `"Float64"`, or an object with `__arrow_c_schema__`.
fn kind_of(given: &Bound<'_, PyAny>) -> Outcome<DataType> {
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_string();
        return text.parse().map_err(|_| {
            Failure::invalid(format!(
                "`{text}` is no type of Arrow's, such as Int64, Float64, Utf8 or List(Float64)"
            ))
        });
    }
    Ok(field_of(given)?.data_type().clone())
}

/// The columns of a state: a schema, or a dictionary of names and types.
fn columns_of(given: &Bound<'_, PyAny>) -> Outcome<Fields> {
    let Ok(named) = given.cast::<PyDict>() else { return Ok(schema_of(given)?.fields().clone()) };
    let column = |(name, kind): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok(Arc::new(Field::new(name.extract::<String>()?, kind_of(&kind)?, true)))
    };
    named.iter().map(column).collect::<Outcome<Vec<_>>>().map(Fields::from)
}

impl Own {
    /// The function that an object is. Its laws are checked here, over the rows that its `samples` gives, if it has
    /// such.
    pub(in crate::groups) fn of(object: &Bound<'_, PyAny>) -> Outcome<Arc<Self>> {
        let get = |name: &str, what: &str| object.getattr(name).map_err(|_| lacking(object, what));
        for method in ["update", "merge", "evaluate"] {
            if !get(method, &format!("it has no {method}"))?.is_callable() {
                return Err(lacking(object, &format!("its {method} cannot be called")));
            }
        }
        let name = get("name", "it has no name")?.extract::<String>();
        let name = name.map_err(|_| lacking(object, "its name is no text"))?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if name.is_empty() || !name.chars().all(is_plain) {
            let told = format!("the name `{name}` of a function is not of letters, digits, `_`, `-` and `.`");
            return Err(Failure::invalid(told));
        }
        let version = get("version", "it has no version")?.extract::<u16>();
        let version = version.map_err(|_| lacking(object, "its version is no number from 0 to 65535"))?;
        let columns = get("columns", "it has no columns")?.extract::<Vec<String>>();
        let columns = columns.map_err(|_| lacking(object, "its columns are no sequence of names"))?;
        let states =
            columns_of(&get("state", "it has no state, the columns of its states and their types")?)?;
        let answer = kind_of(&get("answer", "it has no answer, the type of what it answers")?)?;
        let tolerance = match object.getattr_opt("tolerance")? {
            Some(tolerance) => tolerance.extract::<Option<f64>>()?,
            None => Some(0.0),
        };
        let words = columns.iter().map(|column| format!(":{}", quoted(column))).collect::<String>();
        let own = Arc::new(Self {
            object: object.clone().unbind(),
            text: format!("own:{name}/{version}{words}"),
            name,
            version,
            columns,
            states: Arc::new(StateRows::new(states)?),
            answers: StateRows::new(vec![Field::new("answer", answer, true)].into())?,
            tolerance,
            is_checked: AtomicBool::new(false),
            merging: Mutex::new(Merging::new(object.clone().unbind())),
        });
        home::expect_calls();
        if let Some(samples) = object.getattr_opt("samples")?.filter(|samples| samples.is_callable()) {
            let given = home::calling(|| samples.call0())?;
            if !given.is_none() {
                let values = columns::batch(object.py(), &given)?;
                own.check_once(object.py(), &own.values(&values)?)?;
            }
        }
        Ok(own)
    }
}
