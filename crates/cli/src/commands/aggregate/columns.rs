//! Rows of csv, tsv and jsonl: some columns make the group key, and functions are given these and others.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::by::Table;
use super::engine::{Engine, Measure};
use super::inputs::{Input, Inputs};
use super::reached::{Separator, State};
use super::row_format::RowFormat;
use super::{rows, stored};
use crate::failure::Failure;
use crate::input::delimited::{Delimited, Dialect, Header};
use crate::input::format::Column;
use crate::input::header::untold_header;
use crate::input::jsonl::Jsonl;
use crate::input::parquet::ParquetFile;
use crate::input::window::Window;
use crate::input::{Rows, Trouble, TroubleKind};
use crate::progress::Progress;

/// What rows are read as.
pub(super) struct Reading {
    /// The format of all files; else each file's name tells.
    pub(super) format: Option<RowFormat>,
    /// Whether the first row names the columns even where all are given by number.
    pub(super) header: Header,
    /// Where Parquet goes that is no file which can be read from anywhere.
    pub(super) temp: PathBuf,
}

impl Reading {
    /// The format of a file, which the command line must tell.
    pub(super) fn format_of(&self, path: &Path) -> Result<RowFormat, Failure> {
        match self.format.or_else(|| RowFormat::of(path)) {
            Some(format) => Ok(format),
            None => Err(Failure::Usage(format!(
                "{}: its name does not end in .csv, .tsv, .jsonl or .parquet; give --format",
                path.display()
            ))),
        }
    }

    /// What is wrong with a file, and, where its name tells another format than it is read as, that.
    pub(super) fn blame(&self, path: &Path, failure: Failure) -> Failure {
        match (failure, self.format, RowFormat::of(path)) {
            (Failure::Work(reason), Some(asked), Some(named)) if asked != named => Failure::Work(format!(
                "{reason}; it is read as {asked}, which --format says of all inputs, and its name says {named}"
            )),
            (failure, ..) => failure,
        }
    }

    /// Adds the rows of all inputs.
    pub(super) fn feed<A: Measure>(
        &self,
        table: &Table,
        inputs: &mut Inputs<'_, '_>,
        engine: &mut Engine<A>,
    ) -> Result<(), Failure> {
        let fields = match engine {
            Engine::Gathering(gatherer) => rows::gather(self, table, inputs, gatherer)?,
            Engine::Storing(_) => self.store(table, inputs, engine)?,
        };
        fields.check(table, engine)
    }

    /// Adds the rows of all inputs to a store, which keeps how far each was read.
    fn store<A: Measure>(
        &self,
        table: &Table,
        inputs: &mut Inputs<'_, '_>,
        engine: &mut Engine<A>,
    ) -> Result<Fields, Failure> {
        let mut fields = Fields::new(table);
        inputs.for_each(engine, |inputs, path, engine| {
            let read = self.store_file(path, table, inputs, engine, &mut fields);
            read.map_err(|failure| self.blame(path, failure))
        })?;
        Ok(fields)
    }

    fn store_file<A: Measure>(
        &self,
        path: &Path,
        table: &Table,
        inputs: &mut Inputs<'_, '_>,
        engine: &mut Engine<A>,
        fields: &mut Fields,
    ) -> Result<(), Failure> {
        let format = self.format_of(path)?;
        let separator = if format == RowFormat::Parquet { Separator::File } else { Separator::Newline };
        let Some(mut input) = inputs.open(path, engine, separator)? else { return Ok(()) };
        if format == RowFormat::Parquet {
            let file = self.seekable(&mut input)?;
            let file = ParquetFile::open(file, &input.name, &options(table)?)
                .inspect_err(|_| inputs.is_reached_noted = true)?;
            return stored::parquet(&file, table, &input, inputs, engine, fields);
        }
        let window: Window<Box<dyn Read + Send + '_>> =
            Window::behind(input.take(), input.start).with_tail(input.tail);
        match format {
            RowFormat::Delimited(dialect) => {
                let mut rows = self.delimited(window, dialect, &input.state, table)?;
                if let (State::Stateless, Ok(rows)) = (&input.state, &mut rows) {
                    self.tell_untold_header(rows, &input.name, inputs.progress);
                }
                let state = |rows: &Delimited<_>| State::Rows(rows.head());
                stored::text(rows, table, &input, inputs, engine, fields, state)
            }
            _ => {
                let rows = Jsonl::with_fields(window, table.columns.iter().cloned());
                stored::text(rows, table, &input, inputs, engine, fields, |_| State::Stateless)
            }
        }
    }

    /// Tells of a first row that is counted, and looks like a header.
    pub(super) fn tell_untold_header<R: Read>(
        &self,
        rows: &mut Delimited<R>,
        name: &str,
        progress: &Progress,
    ) {
        // What is wrong with the row is told when it is read.
        if !rows.head().is_known()
            && let Ok(Some(row)) = rows.untold_header()
        {
            progress.remark(&untold_header(name, &row, "counted"));
        }
    }

    /// A Parquet file, or what comes from elsewhere or packed, as a file.
    pub(super) fn seekable(&self, input: &mut Input<'_>) -> Result<File, Failure> {
        if let Some(file) = input.file.take() {
            return Ok(file);
        }
        let failed = |error: io::Error| Failure::work(format!("cannot read {}: {error}", input.name));
        let mut spool = tempfile::tempfile_in(&self.temp).map_err(|error| {
            Failure::work(format!("cannot make a temporary file in {}: {error}", self.temp.display()))
        })?;
        io::copy(&mut input.from, &mut spool).map_err(failed)?;
        Ok(spool)
    }

    pub(super) fn delimited<R: Read>(
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
pub(super) fn options(table: &Table) -> Result<Vec<(Column, &'static str)>, Failure> {
    let option = |at: usize| if at < table.keys.len() { "--by" } else { "--fn" };
    let columns = table.columns.iter().enumerate();
    columns.map(|(at, name)| Ok((name.parse().map_err(Failure::Usage)?, option(at)))).collect()
}

pub(super) fn header_failure(trouble: TroubleKind, name: &str) -> Failure {
    Failure::work(match trouble {
        TroubleKind::Bad(reason) => format!("{name}: {reason}"),
        TroubleKind::Read(error) => format!("cannot read {name}: {error}"),
    })
}

/// Which columns were in any record.
pub(super) struct Fields {
    records: u64,
    seen: Vec<bool>,
    /// What those may have been meant to be called that were not.
    like: Vec<Option<String>>,
}

impl Fields {
    pub(super) fn new(table: &Table) -> Self {
        Self { records: 0, seen: vec![false; table.columns.len()], like: vec![None; table.columns.len()] }
    }

    /// Notes what rows of an input were without.
    pub(super) fn note(&mut self, rows: &impl Rows, records: u64) {
        self.records += records;
        let mut absent = rows.absent().into_iter().peekable();
        for (place, seen) in self.seen.iter_mut().enumerate() {
            match absent.next_if(|(absent, _)| *absent == place) {
                Some((_, like)) => self.like[place] = like.or(self.like[place].take()),
                None => *seen |= records > 0,
            }
        }
    }

    /// Notes rows that have all columns.
    pub(super) fn note_all(&mut self, records: u64) {
        self.records += records;
        self.seen.iter_mut().for_each(|seen| *seen |= records > 0);
    }

    /// Notes what others noted.
    pub(super) fn merge(&mut self, other: Self) {
        self.records += other.records;
        for (seen, other) in self.seen.iter_mut().zip(other.seen) {
            *seen |= other;
        }
        for (like, other) in self.like.iter_mut().zip(other.like) {
            *like = like.take().or(other);
        }
    }

    /// Fails if some were in no record: a store, to which more may come, is only told.
    fn check<A: Measure>(&self, table: &Table, engine: &Engine<A>) -> Result<(), Failure> {
        let Some(place) = self.seen.iter().position(|seen| !seen).filter(|_| self.records > 0) else {
            return Ok(());
        };
        let like = self.like[place].as_ref().map(|like| format!("; did you mean {like:?}?"));
        let reason = format!("no record has a field {:?}{}", table.columns[place], like.unwrap_or_default());
        match engine {
            Engine::Gathering(_) => Err(Failure::Work(reason)),
            Engine::Storing(_) => {
                tell!("forebay: {reason}");
                Ok(())
            }
        }
    }
}
