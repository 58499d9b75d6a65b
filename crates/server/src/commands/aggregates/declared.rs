//! [`Declared`]: what `AGG.CREATE` says, and how it is kept.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use forebay::Database;
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema};
use forebay_aggregate::names::columns_of;
use forebay_groups::{Asked, Length, Shape, WINDOW, WindowShape, kept, windowed_schema};

use super::kinds::Kind;
use crate::commands::{Refusal, is};

/// Under this the table beside the groups has the columns of rows that come as arguments: a list of pairs in JSON, of
/// their names and types, in their order.
const COLUMNS: &[u8] = b"columns";
/// A name has at most this many bytes: those of tables beside it are longer.
const NAME_BYTES_MAX: usize = 200;

/// A column of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Column {
    /// `name`, or `name:type`. Without a type it is a text.
    fn parse(text: &str) -> Result<Self, Refusal> {
        let (name, kind) = match text.rsplit_once(':') {
            Some((name, kind)) => (name, Kind::parse(kind)),
            None => (text, Some(Kind::Text)),
        };
        match kind {
            Some(kind) if !name.is_empty() => Ok(Self { name: name.into(), kind }),
            _ => Err(format!(
                "ERR column `{text}` has no type that is known: text, bytes, int, float, bool, date, time, decimal0 to \
                 decimal38"
            )
            .into()),
        }
    }
}

/// The schema of rows with these columns.
pub(super) fn schema_of(columns: &[Column]) -> Schema {
    let field = |column: &Column| Field::new(&column.name, column.kind.data_type(), true);
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

/// See the module.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) asked: Asked,
    /// In the order in which values come.
    pub(super) columns: Vec<Column>,
    window: Option<WindowShape>,
}

/// An error unless an aggregator may have this name: no table of the server's own has it, or one that begins with it.
pub(super) fn checked_name(name: &str) -> Result<(), Refusal> {
    let is_sound = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte))
        && name.len() <= NAME_BYTES_MAX
        && ![kept::ENDING, ".inputs"].iter().any(|ending| name.ends_with(ending));
    match is_sound {
        true => Ok(()),
        false => Err(format!(
            "ERR an aggregator's name is at most {NAME_BYTES_MAX} letters, digits and `_-.:/`, of which the first is a \
             letter or `_`, and does not end in `.schema` or `.inputs`"
        )
        .into()),
    }
}

const WORDS: [&str; 5] = ["KEY", "COLUMNS", "FUNCTIONS", "WINDOW", "RETAIN"];
const USAGE: &str = "ERR syntax error: AGG.CREATE name [WINDOW column every [RETAIN time]] [KEY column[:type] ...] \
                     [COLUMNS column[:type] ...] FUNCTIONS [answer=]function ...";

impl Declared {
    /// What stands behind the name.
    pub(super) fn parse(arguments: &[&[u8]]) -> Result<Self, Refusal> {
        let (mut keys, mut columns, mut named) = (Vec::new(), Vec::new(), Vec::new());
        let (mut window, mut retain) = (Vec::new(), Vec::new());
        let (mut section, mut seen) = (None, [false; WORDS.len()]);
        for argument in arguments {
            if let Some(word) = WORDS.iter().position(|word| is(argument, word)) {
                if std::mem::replace(&mut seen[word], true) {
                    return Err(USAGE.into());
                }
                section = Some(word);
                continue;
            }
            let text = std::str::from_utf8(argument).map_err(|_| "ERR names are texts in UTF-8")?;
            match section {
                Some(0) => keys.push(Column::parse(text)?),
                Some(1) => columns.push(Column::parse(text)?),
                Some(2) => named.push(named_function(text)),
                Some(3) => window.push(text),
                Some(_) => retain.push(text),
                None => return Err(USAGE.into()),
            }
        }
        let window = match (&window[..], &retain[..]) {
            _ if named.is_empty() => return Err(USAGE.into()),
            ([], []) if seen[3..] == [false, false] => None,
            ([time, every], []) if !seen[4] => Some(windows(time, every, None)?),
            ([time, every], [retain]) => Some(windows(time, every, Some(retain))?),
            _ => return Err(USAGE.into()),
        };
        let names = keys.iter().map(|key| key.name.clone()).collect();
        let asked = Asked::new(names, named, &OwnFunctions::default())?;
        let columns = all_columns(window.as_ref(), keys, columns, &asked)?;
        let asked = if window.is_some() { asked.behind(WINDOW)? } else { asked };
        Ok(Self { asked, columns, window })
    }

    /// What is kept of it besides key and functions.
    pub(super) fn shape(&self) -> Shape {
        self.window.as_ref().map_or(Shape::Plain, |window| Shape::Windows(window.kept()))
    }

    /// What its groups are.
    pub(super) fn partial(&self) -> Result<PartialSchema, Refusal> {
        let mut rows = Arc::new(schema_of(&self.columns));
        if let Some(window) = &self.window {
            rows = windowed_schema(&rows, &window.time, None)?.0;
        }
        Ok(self.asked.partial(&rows, &OwnFunctions::default())?)
    }

    /// Keeps the columns, before anything else is kept of it.
    pub(super) fn keep(&self, database: &Database, name: &str) -> Result<(), Refusal> {
        let columns = self.columns.iter().map(|column| (&column.name, column.kind.to_string()));
        let columns = serde_json::to_vec(&columns.collect::<Vec<_>>());
        let columns = columns.map_err(|error| forebay::Error::bug(format!("columns as text: {error}")))?;
        let table = database.table(&format!("{name}{}", kept::ENDING)).open()?;
        Ok(table.put(COLUMNS, columns)?)
    }
}

/// The columns that are kept of an aggregator; nothing where something else than `AGG.CREATE` has made it.
pub(super) fn columns(database: &Database, name: &str) -> Result<Option<Vec<Column>>, Refusal> {
    let Some(table) = kept::table(database, name).transpose()? else { return Ok(None) };
    let Some(columns) = table.get(COLUMNS)? else { return Ok(None) };
    let unknown = || {
        let told = format!("ERR table `{name}{}` does not tell what columns `{name}` has", kept::ENDING);
        Refusal::from(told)
    };
    let columns: Vec<(String, String)> = serde_json::from_slice(&columns).map_err(|_| unknown())?;
    let column = |(name, kind): (String, String)| Some(Column { name, kind: Kind::parse(&kind)? });
    columns.into_iter().map(column).collect::<Option<_>>().map(Some).ok_or_else(unknown)
}

/// `answer=function`, or a function that its answer is called by.
fn named_function(text: &str) -> (String, String) {
    match text.split_once('=') {
        Some((name, function)) if !name.is_empty() && !name.contains([':', '"']) => {
            (name.into(), function.into())
        }
        _ => (text.into(), text.into()),
    }
}

/// Windows by a column of times.
fn windows(time: &str, every: &str, retain: Option<&str>) -> Result<WindowShape, Refusal> {
    let length = |text: &str| Length::parse(text).map_err(|reason| format!("ERR `{text}`: {reason}"));
    let retain = retain.map(length).transpose()?;
    Ok(WindowShape::new(time.into(), length(every)?, retain)?)
}

/// The column of times, columns of the key, then others, then those that functions name and nobody has told of: these are
/// texts.
fn all_columns(
    window: Option<&WindowShape>,
    keys: Vec<Column>,
    others: Vec<Column>,
    asked: &Asked,
) -> Result<Vec<Column>, Refusal> {
    let is_told = |time: &str| keys.iter().chain(&others).any(|column| column.name == time);
    let time = window.filter(|window| !is_told(&window.time));
    let time = time.map(|window| Column { name: window.time.clone(), kind: Kind::Time });
    let mut columns: Vec<Column> = time.into_iter().chain(keys).chain(others).collect();
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| other.name == column.name) {
            return Err(format!("ERR column `{}` is there twice", column.name).into());
        }
    }
    for name in asked.functions.iter().flat_map(|function| columns_of(function)) {
        if columns.iter().all(|column| column.name != name) {
            columns.push(Column { name: name.into_owned(), kind: Kind::Text });
        }
    }
    Ok(columns)
}
