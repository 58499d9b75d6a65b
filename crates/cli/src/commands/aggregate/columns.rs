//! Rows of csv, tsv and jsonl: some columns make the group key, and functions are given these and others.

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use forebay::aggregate::Value;

use super::by::Table;
use super::engine::{Engine, Measure};
use super::inputs::{Input, Inputs};
use super::keys;
use super::reached::{Extent, Place, Separator, State};
use crate::failure::Failure;
use crate::input::delimited::{Delimited, Dialect, Header};
use crate::input::format::Column;
use crate::input::jsonl::Jsonl;
use crate::input::parquet::ParquetRows;
use crate::input::window::Window;
use crate::input::{Position, Rows, Trouble, TroubleKind};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    Delimited(Dialect),
    Jsonl,
    Parquet,
}

impl FromStr for RowFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "csv" => Ok(Self::Delimited(Dialect::Csv)),
            "tsv" => Ok(Self::Delimited(Dialect::Tsv)),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "parquet" => Ok(Self::Parquet),
            _ => Err("one of csv, tsv, jsonl, parquet".into()),
        }
    }
}

impl RowFormat {
    /// What a file's name tells, with or without `.gz` behind.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.to_str()?;
        let (_, ending) = name.strip_suffix(".gz").unwrap_or(name).rsplit_once('.')?;
        ending.parse().ok()
    }
}

/// What rows are read as.
pub(super) struct Reading {
    /// The format of all files; else each file's name tells.
    pub(super) format: Option<RowFormat>,
    /// Whether the first row names the columns even where all are given by number.
    pub(super) header: Header,
}

impl Reading {
    /// The format of a file, which the command line must tell.
    pub(super) fn format_of(&self, path: &Path) -> Result<RowFormat, Failure> {
        match self.format.or_else(|| RowFormat::of(path)) {
            Some(RowFormat::Parquet) if path.as_os_str() == "-" => {
                Err(Failure::Usage("Parquet is read from files only, not from standard input".into()))
            }
            Some(format) => Ok(format),
            None => Err(Failure::Usage(format!(
                "{}: its name does not end in .csv, .tsv, .jsonl or .parquet; say --format",
                path.display()
            ))),
        }
    }

    /// Adds the rows of all inputs.
    pub(super) fn feed<A: Measure>(
        &self,
        table: &Table,
        inputs: &mut Inputs<'_, '_>,
        engine: &mut Engine<A>,
    ) -> Result<(), Failure> {
        for path in inputs.files {
            let format = self.format_of(path)?;
            let separator = if format == RowFormat::Parquet { Separator::File } else { Separator::Newline };
            let Some(mut input) = inputs.open(path, engine, separator)? else { continue };
            let window: Window<Box<dyn Read + '_>> = Window::behind(input.take(), input.start);
            match format {
                RowFormat::Delimited(dialect) => {
                    let rows = self.delimited(window, dialect, &input.state, table)?;
                    let state = |rows: &Delimited<_>| State::Rows(rows.head());
                    pump(rows, table, &input, inputs, engine, state)?;
                }
                RowFormat::Jsonl => {
                    let rows = Jsonl::with_fields(window, table.columns.iter().cloned());
                    pump(rows, table, &input, inputs, engine, |_| State::Stateless)?;
                }
                RowFormat::Parquet => {
                    let columns = options(table)?;
                    let progress = inputs.progress;
                    let rows = ParquetRows::open(path, &columns, input.start, |bytes| progress.read(bytes))?;
                    pump(Ok(rows), table, &input, inputs, engine, |_| State::Stateless)?;
                }
            }
        }
        Ok(())
    }

    fn delimited<R: Read>(
        &self,
        window: Window<R>,
        dialect: Dialect,
        state: &State,
        table: &Table,
    ) -> Result<Result<Delimited<R>, Trouble>, Failure> {
        let columns = options(table)?;
        let is_named = columns.iter().any(|(column, _)| matches!(column, Column::Name(_)));
        let header = if is_named { Header::Present } else { self.header };
        if let State::Rows(head) = state
            && head.is_known()
        {
            let options = columns.iter().map(|(_, option)| *option);
            return Ok(Ok(Delimited::behind(window, dialect, head, options)));
        }
        let chosen: Vec<_> = columns.iter().map(|(column, option)| (column, *option)).collect();
        Ok(Delimited::with_columns(window, dialect, header, &chosen))
    }
}

/// The columns that are read, and the option that asks for each.
fn options(table: &Table) -> Result<Vec<(Column, &'static str)>, Failure> {
    let option = |at: usize| if at < table.keys.len() { "--by" } else { "--fn" };
    let columns = table.columns.iter().enumerate();
    columns.map(|(at, name)| Ok((name.parse().map_err(Failure::Usage)?, option(at)))).collect()
}

fn header_failure(trouble: TroubleKind, name: &str) -> Failure {
    Failure::work(match trouble {
        TroubleKind::Bad(reason) => format!("{name}: {reason}"),
        TroubleKind::Read(error) => format!("cannot read {name}: {error}"),
    })
}

/// Adds the rows of one input, if its head could be read. `state` tells what reading on behind them needs.
fn pump<A: Measure, R: Rows>(
    rows: Result<R, Trouble>,
    table: &Table,
    input: &Input<'_>,
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<A>,
    state: impl Fn(&R) -> State,
) -> Result<(), Failure> {
    let name = &input.name[..];
    let mut rows = rows.map_err(|trouble| header_failure(*trouble, name))?;
    let mut key = Vec::new();
    loop {
        match rows.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(trouble) => {
                inputs.trouble(*trouble, name, rows.position())?;
                continue;
            }
        }
        key.clear();
        (0..table.keys.len()).for_each(|at| keys::push(&mut key, rows.column(at)));
        let values = (0..table.columns.len()).map(|at| rows.value(at).map_or(Value::Null, Value::bytes));
        let added = A::add_row(engine, &key, values);
        inputs.note(added, name, || rows.position())?;
        if engine.is_due() {
            let at = Position { number: rows.position().number, offset: rows.end() };
            let place = Place { at, end: at.offset, extent: Extent::Part, state: state(&rows) };
            input.reach(place, engine)?;
        }
    }
    input.end(rows.position().number, None, state(&rows), inputs.progress, engine)
}
