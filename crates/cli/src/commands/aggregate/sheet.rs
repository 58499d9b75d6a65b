//! Where groups are shown: text, csv, tsv, JSON or Parquet, on standard output or in a file.

use std::io::{self, BufWriter, Write};
use std::mem;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use forebay::Error;
use forebay_aggregate::Value;
use parquet::arrow::arrow_writer::ArrowColumnChunk;

use super::cells::Cells;
use super::columnar::{self, Columnar};
use super::kinds::Kind;
use super::lines::Lines;
use super::order::Arrangement;
use crate::failure::Failure;
use crate::form::Form;
use crate::screen::Screen;
use crate::written::Written;

/// What standard output is called in errors.
const STDOUT: &str = "standard output";
/// What marks groups on standard output.
const MARK: &str = "group";
/// So many lines, or so many bytes of them, are made together.
const LINES: usize = 4096;
const LINES_BYTES: usize = 256 << 10;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Tabs between cells, which are as they are.
    Plain,
    /// Tabs between cells; a tab, newline, return or backslash in one stands behind a backslash.
    Tsv,
    /// RFC 4180.
    Csv,
    /// An object a row.
    Json,
    /// A file of typed columns.
    Parquet,
}

impl Style {
    /// What a file's name asks for.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "txt" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Shown,
    Hidden,
}

/// See the module.
pub(super) struct Sheet {
    out: Target,
    /// What is written to, and where; none is standard output.
    file: Option<(Written, PathBuf)>,
    style: Style,
}

/// What rows become.
enum Target {
    /// Lines, and what is made of one row.
    Lines(BufWriter<Box<dyn Write>>, Vec<u8>),
    /// A file of columns that are not known yet.
    Empty,
    Columns(Box<Columnar>),
    Finished,
}

/// What makes of cells what is written.
pub(super) enum Encoder {
    Lines(Lines),
    Columns(columnar::Groups),
}

/// What is written of some cells.
pub(super) enum Encoded {
    Lines(Vec<u8>),
    Columns(Vec<ArrowColumnChunk>),
}

impl Encoder {
    /// Encodes cells, which are empty or of no use any more then.
    pub(super) fn encode(&self, cells: &mut Cells) -> Result<Encoded, Error> {
        match self {
            Self::Columns(groups) => groups.encode(cells).map(Encoded::Columns),
            Self::Lines(lines) => {
                let (mut out, is_plain) = (Vec::with_capacity(cells.bytes()), cells.are_plain(lines));
                for row in 0..cells.rows() {
                    let mut line = lines.row(&mut out);
                    cells.write_row(row, &is_plain, &mut line);
                    line.finish();
                }
                Ok(Encoded::Lines(out))
            }
        }
    }

    /// Whether so many cells are encoded together.
    #[inline]
    pub(super) fn is_full(&self, cells: &Cells) -> bool {
        let (rows, bytes) = match self {
            Self::Lines(_) => (LINES, LINES_BYTES),
            Self::Columns(_) => (columnar::GROUP_ROWS, columnar::GROUP_BYTES),
        };
        cells.rows() >= rows || cells.bytes() >= bytes
    }

    /// How many rows are best made by one thread.
    pub(super) fn part_rows(&self) -> RangeInclusive<u64> {
        match self {
            Self::Lines(_) => LINES as u64..=LINES as u64,
            Self::Columns(_) => columnar::GROUP_ROWS as u64 / 4..=columnar::GROUP_ROWS as u64,
        }
    }
}

impl Sheet {
    /// Opens `path`, or standard output, so that what cannot be written is known before any work.
    pub(super) fn open(path: Option<&Path>, style: Style) -> Result<Self, Failure> {
        let create = |path: &Path| Ok::<_, Failure>((Written::create(path)?, path.to_path_buf()));
        let file = path.map(create).transpose()?;
        let lines = |out| Target::Lines(BufWriter::with_capacity(64 << 10, out), Vec::new());
        let form = if style == Style::Json { Form::Json } else { Form::Text };
        let out = match &file {
            None => lines(Box::new(Screen::stdout(form))),
            Some(_) if style == Style::Parquet => Target::Empty,
            Some((written, path)) => {
                lines(Box::new(written.file().map_err(|error| Error::io("write", path, &error))?))
            }
        };
        Ok(Self { out, file, style })
    }

    /// What is written to, as errors call it.
    fn path(&self) -> PathBuf {
        self.file.as_ref().map_or(STDOUT.into(), |(_, path)| path.clone())
    }

    /// Whether [`begin`](Self::begin) has to know what columns hold.
    pub(super) fn is_typed(&self) -> bool {
        self.style == Style::Parquet
    }

    /// Says what the cells of every row are called, in which order rows come, and, where it has to be known, what they
    /// hold.
    pub(super) fn begin(
        &mut self,
        names: Vec<String>,
        kinds: &[Kind],
        header: Header,
        arrangement: Arrangement,
    ) -> Result<Encoder, Error> {
        if let (Target::Empty, Some((written, path))) = (&self.out, &self.file) {
            let file = written.file().map_err(|error| Error::io("write", path, &error))?;
            let (columnar, groups) = Columnar::begin(file, &names, kinds, arrangement)?;
            self.out = Target::Columns(Box::new(columnar));
            return Ok(Encoder::Columns(groups));
        }
        let lines = Lines::new(self.style, names, self.file.is_none().then_some(MARK));
        if header == Header::Shown && self.style != Style::Json {
            let mut out = Vec::new();
            lines.header(&mut out);
            self.write(Encoded::Lines(out))?;
        }
        Ok(Encoder::Lines(lines))
    }

    /// Writes what was made of some cells.
    pub(super) fn write(&mut self, encoded: Encoded) -> Result<(), Error> {
        let written = match (&mut self.out, encoded) {
            (Target::Lines(out, _), Encoded::Lines(lines)) => out.write_all(&lines),
            (Target::Columns(columns), Encoded::Columns(chunks)) => {
                let path = self.file.as_ref().map_or(Path::new(STDOUT), |(_, path)| path);
                return columns.append(chunks, path);
            }
            _ => Ok(()),
        };
        written.map_err(|error| Error::io("write", &self.path(), &error))
    }

    /// Writes a row by itself, as a line.
    pub(super) fn row(&mut self, encoder: &Encoder, cells: &[Value<'_>]) -> Result<(), Error> {
        let (Target::Lines(out, line), Encoder::Lines(lines)) = (&mut self.out, encoder) else {
            return Ok(());
        };
        line.clear();
        let mut row = lines.row(line);
        cells.iter().for_each(|cell| row.push(cell));
        row.finish();
        let written = out.write_all(line);
        written.map_err(|error| Error::io("write", &self.path(), &error))
    }

    /// Sends on what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.out {
            Target::Lines(out, _) => out.flush().map_err(|error| Error::io("write", &self.path(), &error)),
            Target::Columns(_) | Target::Empty | Target::Finished => Ok(()),
        }
    }

    /// Sends on what is buffered. A file is there from now on.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        let path = self.path();
        if let Target::Columns(columns) = mem::replace(&mut self.out, Target::Finished) {
            columns.finish(&path)?;
        }
        let finished = self.file.map_or(Ok(()), |(written, _)| written.finish());
        finished.map_err(|error| Error::io("write", &path, &error))
    }
}

/// A failure of the work, but for a reader of standard output that went away.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::Io { kind: io::ErrorKind::BrokenPipe, path, .. } if path == Path::new(STDOUT) => {
            Failure::OutputClosed
        }
        error => error.into(),
    }
}
