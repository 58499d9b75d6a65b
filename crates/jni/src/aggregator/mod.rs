//! Group-by of record batches: in memory, and in a database ([`Stored`]). Rows, states and answers are
//! [streams](crate::stream).

#![expect(clippy::too_many_arguments, reason = "natives take what Java passes, one by one")]

mod stored;

use std::path::PathBuf;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use forebay::aggregate::columns_of;
use forebay::{Batch, Error, Result};
use forebay_aggregate::Aggregate;
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema, RecordBatchAggregator, RecordBatches};
use forebay_env::sync::Arc;
use forebay_groups::{Asked, BATCH_ROWS, Batches, Groups, Rows, Wanted};
use jni::sys::jlong;

use crate::failure::{Failure, Outcome};
use crate::glue::{bytes, front, given, given_or_null, natives, optional, text};
use crate::items::{self, Items};
use crate::options::durability;
use crate::stream::{self, Reader, Stream};
use crate::{batch, database, handles, values};

use stored::Stored;

/// Groups in memory, or in a database.
pub(crate) struct Aggregator {
    asked: Asked,
    kind: Kind,
    /// The number of the database, or 0.
    database: jlong,
}

enum Kind {
    Memory(Arc<Groups>),
    Stored(Stored),
}

/// What is asked for: columns, and names with functions by turns.
fn asked(keys: &[u8], aggs: &[u8]) -> Result<Asked> {
    let (mut rest, mut names) = (Items(keys), Vec::new());
    while !rest.is_empty() {
        names.push(rest.text()?.to_string());
    }
    let (mut rest, mut named) = (Items(aggs), Vec::new());
    while !rest.is_empty() {
        named.push((rest.text()?.to_string(), rest.text()?.to_string()));
    }
    Asked::new(names, named, &own())
}

/// There are none from Java.
fn own() -> OwnFunctions {
    OwnFunctions::default()
}

/// Groups in memory by the options that such have.
fn in_memory(options: &[u8]) -> Result<Groups> {
    let (mut memory, mut spill, mut threads, mut texts) = (None, None, 1, Items(options));
    while !texts.is_empty() {
        let (name, text) = (texts.text()?, texts.text()?);
        let wrong = |reason: String| Error::invalid(format!("option `{name}` is `{text}`: {reason}"));
        match name {
            "memory" => memory = Some(forebay_units::sizes::parse(text).map_err(wrong)?),
            "spill" => spill = Some(PathBuf::from(text)),
            "threads" => threads = text.parse().map_err(|_| wrong("give a number".into()))?,
            _ => {
                let told = format!(
                    "there is no option `{name}` of groups in memory; there are: memory, spill, threads"
                );
                return Err(Error::invalid(told));
            }
        }
    }
    Groups::new(memory, spill, threads)
}

fn not_known() -> Failure {
    Failure::invalid("nothing was added yet, so the types of the columns are not known; give a schema")
}

impl Aggregator {
    /// Makes the groups of rows of a schema.
    fn begin(&self, rows: &SchemaRef) -> Outcome<()> {
        let partial = || self.asked.partial(rows, &own());
        match &self.kind {
            Kind::Memory(groups) => Ok(groups.begun(partial).map(drop)?),
            Kind::Stored(stored) => stored.begun(&self.asked, partial).map(drop),
        }
    }

    fn update(&self, rows: Reader, durability_number: i32) -> Outcome<u64> {
        let schema = rows.schema();
        match &self.kind {
            Kind::Memory(groups) => {
                let here = groups.begun(|| self.asked.partial(&schema, &own()))?;
                for_each(rows, |batch| here.add_batch(batch))
            }
            Kind::Stored(stored) => stored.update(&self.asked, rows, durability_number),
        }
    }

    fn merge(&self, states: Reader, durability_number: i32) -> Outcome<u64> {
        let partial = PartialSchema::of_own(&states.schema(), &own())?;
        // Groups that are there already have to be these, too.
        self.asked.agrees(&partial)?;
        match &self.kind {
            Kind::Memory(groups) => {
                let here = groups.begun(|| Ok(partial))?;
                for_each(states, |batch| here.add_partials(batch))
            }
            Kind::Stored(stored) => {
                let groups = stored.begun(&self.asked, || Ok(partial))?;
                stored.merge(&groups, states, durability_number)
            }
        }
    }

    /// What the groups are, once that is known.
    fn schema(&self) -> Outcome<Option<PartialSchema>> {
        Ok(match &self.kind {
            Kind::Memory(groups) => groups.here()?.map(|here| here.schema().clone()),
            Kind::Stored(stored) => stored.found(&self.asked)?.map(|groups| groups.schema.clone()),
        })
    }

    fn state(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        match &self.kind {
            Kind::Memory(groups) => match groups.here()? {
                Some(here) => Ok(here.get(key)?),
                None => Ok(None),
            },
            Kind::Stored(stored) => stored.state(&self.asked, key),
        }
    }

    /// All groups, as of now.
    fn rows(&self, wanted: Wanted) -> Outcome<Stream> {
        let schema = self.schema()?.ok_or_else(not_known)?;
        let batches = match &self.kind {
            Kind::Memory(groups) => {
                let here = groups.here()?.ok_or_else(not_known)?;
                kept_by(&here, groups, wanted)?
            }
            Kind::Stored(stored) => stored.batches(&self.asked, wanted)?.ok_or_else(not_known)?,
        };
        if wanted == Wanted::States {
            return Ok(Stream::new(Rows::new(SchemaRef::clone(schema.schema()), batches)));
        }
        let (asked, answers) = (self.asked.clone(), self.asked.answers(&schema, |_| None));
        let named = SchemaRef::clone(&answers);
        let batches =
            batches.map(move |batch| asked.named_batch(&named, &batch?, |_, column| Ok(Arc::clone(column))));
        Ok(Stream::new(Rows::new(answers, Box::new(batches))))
    }

    fn stored(&self) -> Outcome<&Stored> {
        match &self.kind {
            Kind::Stored(stored) => Ok(stored),
            Kind::Memory(_) => Err(Failure::invalid("the aggregator is none of a database")),
        }
    }
}

/// Batches of groups in memory, whose files stay until they were read.
fn kept_by(here: &RecordBatchAggregator, groups: &Arc<Groups>, wanted: Wanted) -> Result<Batches> {
    let batches = match wanted {
        Wanted::Answers => here.answers(),
        Wanted::States => here.partials(),
    }?;
    Ok(Box::new(Kept { batches: batches.rows_max(BATCH_ROWS), _files: Arc::clone(groups) }))
}

/// The batches are let go of first: the directory of files is removed with the groups, once it is empty.
struct Kept {
    batches: RecordBatches,
    _files: Arc<Groups>,
}

impl Iterator for Kept {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

/// Does something with each batch. Returns how many rows there were.
fn for_each(reader: Reader, mut with: impl FnMut(&RecordBatch) -> Result<()>) -> Outcome<u64> {
    let mut rows = 0;
    for batch in reader {
        let batch = batch?;
        with(&batch)?;
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

fn get(number: jlong) -> Outcome<Arc<Aggregator>> {
    handles::get(number)
}

/// A number for an aggregator, of rows whose schema is that of a stream, unless that is 0.
fn held(aggregator: Aggregator, rows: jlong) -> Outcome<jlong> {
    if rows != 0 {
        let schema = stream::schema(rows)?;
        aggregator.begin(&schema)?;
    }
    handles::hold(aggregator.database, aggregator)
}

natives! {
    fn new_aggregator(env, options: [jbyte], keys: [jbyte], aggs: [jbyte], rows: jlong) -> jlong {
        let options = bytes(env, &options, "options")?;
        let asked = asked(&bytes(env, &keys, "key")?, &bytes(env, &aggs, "aggs")?)?;
        let kind = Kind::Memory(Arc::new(in_memory(&options)?));
        held(Aggregator { asked, kind, database: 0 }, rows)
    }

    // Without functions it is one that is there already.
    fn open_aggregator(
        env,
        database: jlong,
        name: [jbyte],
        options: [jbyte],
        keys: [jbyte],
        aggs: [jbyte],
        rows: jlong,
    ) -> jlong {
        let (name, options) = (text(env, &name, "name")?, bytes(env, &options, "options")?);
        let (keys, aggs) = (bytes(env, &keys, "key")?, bytes(env, &aggs, "aggs")?);
        let asked = if aggs.is_empty() && keys.is_empty() { None } else { Some(asked(&keys, &aggs)?) };
        let (asked, stored) = Stored::open(database::get(database)?, &name, asked, &options)?;
        held(Aggregator { asked, kind: Kind::Stored(stored), database }, rows)
    }

    fn aggregator_update(_env, aggregator: jlong, rows: jlong, durability: jint) -> jlong {
        let aggregator = get(aggregator)?;
        Ok(aggregator.update(stream::take(rows)?, durability)?.cast_signed())
    }

    fn aggregator_merge(_env, aggregator: jlong, states: jlong, durability: jint) -> jlong {
        let aggregator = get(aggregator)?;
        Ok(aggregator.merge(stream::take(states)?, durability)?.cast_signed())
    }

    // Rows and writes to tables, with metadata: all of it or nothing.
    fn aggregator_commit(
        env,
        aggregator: jlong,
        rows: jlong,
        writes: [jbyte],
        write_bytes: jint,
        metadata: [jbyte],
        durability_number: jint,
    ) -> jlong {
        let aggregator = get(aggregator)?;
        let stored = aggregator.stored()?;
        let mut others = Batch::new();
        batch::read_into(&front(env, &writes, write_bytes)?, &mut others)?;
        let (metadata, durability) = (optional(env, &metadata)?, durability(durability_number, stored.usual())?);
        let rows = if rows == 0 { None } else { Some(stream::take(rows)?) };
        let sequence = stored.commit(&aggregator.asked, rows, others, metadata.as_deref(), durability)?;
        Ok(sequence.cast_signed())
    }

    fn aggregator_metadata(env, aggregator: jlong) -> [jbyte] {
        let aggregator = get(aggregator)?;
        let metadata = aggregator.stored()?.metadata(&aggregator.asked)?;
        given_or_null(env, metadata)
    }

    fn aggregator_get(env, aggregator: jlong, key: [jbyte]) -> [jbyte] {
        let (aggregator, key) = (get(aggregator)?, bytes(env, &key, "key")?);
        let schema = aggregator.schema()?.ok_or_else(not_known)?;
        let Some(state) = aggregator.state(&values::key(&schema, &key)?)? else {
            return Ok(jni::objects::JByteArray::default());
        };
        let answers = schema.function().finish(&state)?;
        let mut out = Vec::new();
        for (name, place) in &aggregator.asked.names {
            items::push(&mut out, Some(name.as_bytes()));
            let kind = schema.answers().field(aggregator.asked.keys.len() + place).data_type();
            values::push_answer(&mut out, &answers[*place], kind)?;
        }
        given(env, &out)
    }

    fn aggregator_delete(env, aggregator: jlong, key: [jbyte], durability_number: jint) -> void {
        let (aggregator, key) = (get(aggregator)?, bytes(env, &key, "key")?);
        let stored = aggregator.stored()?;
        let schema = aggregator.schema()?.ok_or_else(not_known)?;
        let durability = durability(durability_number, stored.usual())?;
        stored.delete(&aggregator.asked, &values::key(&schema, &key)?, durability)
    }

    fn aggregator_rows(_env, aggregator: jlong, wanted: jint) -> jlong {
        let wanted = match wanted {
            0 => Wanted::Answers,
            1 => Wanted::States,
            _ => return Err(Failure::invalid(format!("groups have no rows {wanted}"))),
        };
        let aggregator = get(aggregator)?;
        handles::hold(aggregator.database, aggregator.rows(wanted)?)
    }

    fn aggregator_memory(_env, aggregator: jlong) -> jlong {
        Ok(match &get(aggregator)?.kind {
            Kind::Memory(groups) => groups.here()?.map_or(0, |here| here.memory_bytes()) as jlong,
            Kind::Stored(_) => 0,
        })
    }

    // The columns that a function is given.
    fn function_columns(env, function: [jbyte]) -> [jbyte] {
        let function = text(env, &function, "function")?;
        let columns: Vec<_> = columns_of(&function).map(std::borrow::Cow::into_owned).collect();
        given(env, &items::of(columns))
    }
}
