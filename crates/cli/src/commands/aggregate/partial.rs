//! Partial states as files: written with `--partial` instead of answers, and merged with `--merge`.
//!
//! **Invariant:** what inputs come to that were divided in any way, grouped apart and merged, is what they come to
//! together, as far as the functions' states do.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use arrow_schema::{DataType, Field, Schema};
use forebay::Error;
use forebay_aggregate::Aggregate;
use forebay_aggregate::arrow::{Form, PartialBatches, PartialReader, PartialSchema, PartialWriter};

use super::by::{By, Table};
use super::engine::{Engine, Measure, Sink};
use super::groups::Held;
use super::inputs::Inputs;
use super::shape::Shape;
use crate::failure::Failure;
use crate::input::open::{bytes_of, open};
use crate::written::Written;

/// What the name of such a file ends in.
pub(super) const ENDING: &str = "arrow";

/// A file of partial states that is to be written.
pub(super) struct PartialFile {
    written: Written,
    path: PathBuf,
    schema: PartialSchema,
}

impl PartialFile {
    /// Opens `path`, so that what cannot be written is known before any work.
    pub(super) fn create(path: &Path, shape: &Shape) -> Result<Self, Failure> {
        let By::Columns(keys) = &shape.by else {
            return Err(Failure::Usage("--partial is for groups of columns".into()));
        };
        let table = Table::new(keys, &shape.functions, None)?;
        // Columns of files are texts here, of any bytes.
        let text = |name: &String| Field::new(name, DataType::Binary, true);
        let input = Schema::new(table.columns.iter().map(text).collect::<Vec<_>>());
        let schema = PartialSchema::new(&input, keys, &shape.functions)
            .map_err(|error| Failure::Usage(format!("--fn: {error}")))?;
        Ok(Self { written: Written::create(path)?, path: path.to_path_buf(), schema })
    }

    /// Writes all groups. Returns how many there are.
    pub(super) fn write<A: Aggregate>(self, groups: &Held<A>) -> Result<u64, Error> {
        let Self { written, path, schema } = self;
        let failed = |error: io::Error| Error::io("write", &path, &error);
        let file = BufWriter::new(written.file().map_err(failed)?);
        let mut writer = PartialWriter::new(file, &schema).map_err(failed)?;
        let (mut batches, mut count) = (PartialBatches::new(&schema), 0);
        groups.for_each(&mut |key, state| {
            count += 1;
            match batches.push(key, state)? {
                Some(batch) => writer.write(&batch).map_err(failed),
                None => Ok(()),
            }
        })?;
        if let Some(batch) = batches.finish()? {
            writer.write(&batch).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        written.finish().map_err(failed)?;
        Ok(count)
    }
}

/// What the groups of the first of some files are, which those of all others must be.
pub(super) fn shape(files: &[PathBuf]) -> Result<Shape, Failure> {
    let path = files.first().ok_or_else(|| Failure::Usage("--merge takes files of --partial".into()))?;
    let (_, schema) = opened(path)?;
    let keys = schema.keys().iter().map(|key| key.name().clone()).collect::<Vec<_>>();
    if keys.is_empty() {
        return Err(Failure::work(format!("{}: its groups have no columns", path.display())));
    }
    let functions: Vec<_> = schema.states().iter().map(|state| &state.name()[..]).collect();
    Ok(Shape::of(By::Columns(keys), functions.join(",")))
}

/// Merges the states of all files.
pub(super) fn feed<A: Measure>(inputs: &mut Inputs<'_, '_>, engine: &mut Engine<A>) -> Result<(), Failure> {
    let mut first: Option<PartialSchema> = None;
    inputs.for_each(engine, |inputs, path, engine| {
        let (reader, schema) = opened(path)?;
        let failed = |error: &Error| Failure::work(format!("{}: {error}", path.display()));
        let first = first.get_or_insert(schema.clone());
        first.check_states(schema.schema()).map_err(|error| failed(&error))?;
        if !schema.keys().iter().map(|key| key.name()).eq(first.keys().iter().map(|key| key.name())) {
            let names = |schema: &PartialSchema| {
                schema.keys().iter().map(|key| &key.name()[..]).collect::<Vec<_>>().join(", ")
            };
            let told = format!("its groups are by {}, those before by {}", names(&schema), names(first));
            return Err(failed(&Error::invalid(told)));
        }
        for (number, batch) in reader.enumerate() {
            let batch = batch.map_err(|error| failed(&error))?;
            first
                .read(&batch, Form::Shown, &mut |key, state| engine.add_state(key, state))
                .map_err(|error| failed(&Error::invalid(format!("batch {}: {error}", number + 1))))?;
            inputs.count(batch.num_rows() as u64);
        }
        inputs.progress.read(bytes_of(path)?.unwrap_or(0));
        Ok(())
    })
}

/// A file, all of which is as it was written, and what it holds.
fn opened(path: &Path) -> Result<(PartialReader<File>, PartialSchema), Failure> {
    let opened = open(path)?;
    let failed = |error: Error| Failure::work(format!("{}: {error}", opened.name));
    let file = opened.file.as_ref().map(File::try_clone).transpose();
    let file = file.map_err(|error| Failure::work(format!("cannot read {}: {error}", opened.name)))?;
    let file = file.ok_or_else(|| Failure::Usage(format!("{}: --merge takes files", opened.name)))?;
    let reader = PartialReader::open(file).map_err(failed)?;
    let schema = PartialSchema::of(&reader.schema()).map_err(failed)?;
    Ok((reader, schema))
}
