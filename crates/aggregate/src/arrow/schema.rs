//! [`PartialSchema`]: what record batches of partial states hold, and what their metadata tells of it; `docs/format` has
//! the whole.
//!
//! **Invariant:** states are merged only where each function's state type is that of the state's field.

use arrow_schema::{DataType, Field, FieldRef, Metadata, Schema, SchemaRef};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::answers::{answer_type, answer_type_of};
use super::column::{Column, Form, empty, plain_type};
use super::dictionaries::Dictionaries;
use super::input::is_like;
use super::own::OwnFunctions;
use crate::catalog::parse_function;
use crate::composite::Composite;
use crate::names::{columns_of, split_words};

/// The version of all this.
const VERSION: &str = "1";
/// Under these a field of states has the version, the function, the type of its states, and that of its answers.
const VERSION_KEY: &str = "forebay.partial";
const FUNCTION_KEY: &str = "forebay.function";
const STATE_KEY: &str = "forebay.state";
const ANSWER_KEY: &str = "forebay.answer";

/// The columns of the groups' keys, and behind them a column of states for each function. Its schema tells all that
/// merging needs.
#[derive(Clone, Debug)]
pub struct PartialSchema {
    schema: SchemaRef,
    answers: SchemaRef,
    keys: usize,
    columns: Vec<String>,
    function: Arc<Composite>,
}

impl PartialSchema {
    /// That of grouping batches of this schema by some columns, with functions such as `count,sum:amount`.
    pub fn new<S: AsRef<str>>(input: &Schema, by: &[S], functions: &str) -> Result<Self> {
        Self::with_own(input, by, functions, &OwnFunctions::default())
    }

    /// The same with some functions that are not built in. The schema has the column of each, too.
    pub fn with_own<S: AsRef<str>>(
        input: &Schema,
        by: &[S],
        functions: &str,
        own: &OwnFunctions,
    ) -> Result<Self> {
        let key = |name: &S| {
            let field = field(input, name.as_ref())?;
            Ok(Arc::new(Field::new(field.name(), field.data_type().clone(), true)))
        };
        let keys: Vec<FieldRef> = by.iter().map(key).collect::<Result<_>>()?;
        let mut states = Vec::new();
        for function in split_words(functions, ',').into_iter().map(str::trim) {
            if OwnFunctions::is_own(function) {
                states.push((function.to_string(), DataType::Binary));
                continue;
            }
            let columns: Vec<_> = columns_of(function).collect();
            let kinds = columns.iter().map(|column| Ok(field(input, column)?.data_type()));
            let answer = answer_type(function, &kinds.collect::<Result<Vec<_>>>()?);
            states.push((function.to_string(), answer));
        }
        Self::made(keys, states, own)
    }

    /// That of record batches of partial states, as their schema tells.
    pub fn of(schema: &Schema) -> Result<Self> {
        Self::of_own(schema, &OwnFunctions::default())
    }

    /// The same where some functions are not built in.
    pub fn of_own(schema: &Schema, own: &OwnFunctions) -> Result<Self> {
        let (mut keys, mut states) = (Vec::new(), Vec::new());
        for field in schema.fields() {
            let told = |key: &str| {
                let missing = || blamed(field, &Error::invalid(format!("its metadata has no `{key}`")));
                field.metadata().get(key).ok_or_else(missing)
            };
            if !field.metadata().contains_key(VERSION_KEY) {
                keys.push(Arc::clone(field));
                continue;
            }
            check_version(field)?;
            let answer = answer_type_of(told(ANSWER_KEY)?);
            let answer =
                answer.ok_or_else(|| blamed(field, &Error::invalid("its answers are of no known type")))?;
            states.push((told(FUNCTION_KEY)?.clone(), answer));
        }
        if states.is_empty() {
            return Err(Error::invalid("these are no partial states: no column's metadata tells of any"));
        }
        let made = Self::made(keys, states, own)?;
        made.check_states(schema)?;
        Ok(made)
    }

    fn made(keys: Vec<FieldRef>, states: Vec<(String, DataType)>, own: &OwnFunctions) -> Result<Self> {
        // Batches may have nulls whatever the first schema says, and dictionaries come back as their values.
        let plain =
            |key: FieldRef| Arc::new(Field::new(key.name(), plain_type(key.data_type()).clone(), true));
        let keys: Vec<FieldRef> = keys.into_iter().map(plain).collect();
        for (at, key) in keys.iter().enumerate() {
            let is_told = keys[..at].iter().any(|other| other.name() == key.name());
            if is_told || states.iter().any(|(function, _)| function == key.name()) {
                return Err(Error::invalid(format!("two columns would be called `{}`", key.name())));
            }
            let none = empty(key.data_type());
            let column = none.and_then(|none| Column::of(&none, Form::Exact, &Dictionaries::default()));
            column.map_err(|error| blamed(key, &error))?;
        }
        let mut columns: Vec<String> = Vec::new();
        for (at, (function, _)) in states.iter().enumerate() {
            if states[..at].iter().any(|(other, _)| other == function) {
                return Err(Error::invalid(format!("two columns would be called `{function}`")));
            }
            let own = OwnFunctions::is_own(function).then(|| function.into());
            let new = columns_of(function).chain(own);
            let new = new.filter(|column| columns.iter().all(|known| known != column));
            let new: Vec<_> = new.map(|column| column.into_owned()).collect();
            columns.extend(new);
        }
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let functions = states.iter().map(|(text, _)| {
            let made = match names.iter().position(|name| OwnFunctions::is_own(text) && name == text) {
                Some(place) => own.make(text, place),
                None => parse_function(text, &names),
            };
            Ok((text.clone(), made?))
        });
        let function = Composite::new(functions.collect::<Result<_>>()?)?;
        let state = |((text, answer), one): (&(String, DataType), &dyn crate::Function)| {
            let metadata = [
                (VERSION_KEY, VERSION.to_string()),
                (FUNCTION_KEY, text.clone()),
                (STATE_KEY, one.state_type().to_string()),
                (ANSWER_KEY, answer.to_string()),
            ];
            let metadata: Metadata = metadata.into_iter().collect();
            Arc::new(Field::new(text, DataType::Binary, false).with_metadata(metadata))
        };
        let of_states = states.iter().zip(function.functions()).map(state);
        let of_answers = states.iter().map(|(text, answer)| Arc::new(Field::new(text, answer.clone(), true)));
        let answers = Schema::new(keys.iter().cloned().chain(of_answers).collect::<Vec<_>>());
        let schema = Schema::new(keys.iter().cloned().chain(of_states).collect::<Vec<_>>());
        Ok(Self {
            schema: Arc::new(schema),
            answers: Arc::new(answers),
            keys: keys.len(),
            columns,
            function: Arc::new(function),
        })
    }

    /// The schema of batches of partial states.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema of batches of answers.
    pub fn answers(&self) -> &SchemaRef {
        &self.answers
    }

    /// The columns of the key.
    pub fn keys(&self) -> &[FieldRef] {
        &self.schema.fields()[..self.keys]
    }

    /// The columns of states.
    pub fn states(&self) -> &[FieldRef] {
        &self.schema.fields()[self.keys..]
    }

    /// The columns that functions are given.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The functions as one.
    pub fn function(&self) -> &Arc<Composite> {
        &self.function
    }

    /// An error that names the column unless batches of this other schema have these keys, of the same types, and states
    /// that may be merged with these and give answers of the same types.
    pub fn check(&self, other: &Schema) -> Result<()> {
        self.check_keys(other)?;
        self.check_states(other)?;
        for state in self.states() {
            let field = field(other, state.name())?;
            let (told, known) = (field.metadata().get(ANSWER_KEY), state.metadata().get(ANSWER_KEY));
            if told != known {
                let [told, known] = [told, known].map(|kind| kind.map_or("none", String::as_str));
                let told = format!(
                    "its answers would be {told} by the types of these columns, where {known} is expected; cast them, or \
                     say the types when the groups are made"
                );
                return Err(blamed(state, &Error::invalid(told)));
            }
        }
        Ok(())
    }

    /// The same of the keys alone.
    pub(super) fn check_keys(&self, other: &Schema) -> Result<()> {
        for key in self.keys() {
            let kind = field(other, key.name())?.data_type();
            if !is_like(kind, key.data_type()) {
                let told = format!("its values are {kind}, where {} is expected", key.data_type());
                return Err(blamed(key, &Error::invalid(told)));
            }
        }
        Ok(())
    }

    /// The same whatever the types of the keys: where people read them only texts count.
    pub fn check_states(&self, other: &Schema) -> Result<()> {
        for state in self.states() {
            let field = field(other, state.name())?;
            check_version(field)?;
            let (told, known) = (field.metadata().get(STATE_KEY), state.metadata().get(STATE_KEY));
            if told != known {
                let [told, known] = [told, known].map(|kind| kind.map_or("none", String::as_str));
                let told = format!("its states are of type {told}; those of type {known} are expected");
                return Err(blamed(state, &Error::invalid(told)));
            }
        }
        Ok(())
    }
}

/// The column of this name.
pub(super) fn field<'s>(schema: &'s Schema, name: &str) -> Result<&'s FieldRef> {
    schema.fields().iter().find(|field| field.name() == name).ok_or_else(|| {
        let names: Vec<_> = schema.fields().iter().map(|field| &field.name()[..]).collect();
        Error::invalid(format!("there is no column `{name}`; there are: {}", names.join(", ")))
    })
}

/// An error that is one of a column.
pub(super) fn blamed(column: &Field, error: &Error) -> Error {
    Error::invalid(format!("column `{}`: {error}", column.name()))
}

fn check_version(field: &Field) -> Result<()> {
    match field.metadata().get(VERSION_KEY).map(String::as_str) {
        Some(VERSION) => Ok(()),
        Some(version) => Err(blamed(
            field,
            &Error::invalid(format!(
                "partial states of version {version}; this program knows version {VERSION}"
            )),
        )),
        None => Err(blamed(field, &Error::invalid("its metadata tells of no states"))),
    }
}
