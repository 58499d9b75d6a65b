//! `aggregate`: group-by over files.
//!
//! 1. A source finds records in its inputs and gives each one's group key, and the values of its columns, to
//!    the [engine](engine::Engine), which keeps a state for every key.
//! 2. Coarser groupings are derived from those states.
//! 3. Groups are put into the order to show them in, their keys and states into what they stand for.
//!
//! A plain `count` is compiled for each source by itself; all other functions go through rows of values.

mod adder;
mod ahead;
mod args;
mod asked;
mod bases;
mod batch;
mod belt;
mod by;
mod cells;
mod chunks;
mod columnar;
mod columns;
mod content;
mod counting;
mod crew;
mod cube;
mod engine;
mod feed;
mod found;
mod gathering;
mod groups;
mod inputs;
mod kinds;
mod kmers;
mod labels;
mod lines;
mod means;
mod ngrams;
mod order;
mod partial;
mod phrases;
mod programs;
mod reached;
mod reads;
mod refused;
mod report;
mod row_format;
mod rows;
mod sequences;
mod shape;
mod sheet;
mod showing;
mod shown;
mod store;
mod stored;
mod tables;
mod taken;
#[cfg(test)]
mod tests;
mod text;
mod tracked;
mod words;

use std::mem;
use std::path::PathBuf;
use std::thread;

use forebay_aggregate::Groupings;
use forebay_aggregate::functions::Count;
use std::sync::Arc;

use crate::args::Common;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::form::Form;
use crate::input::delimited;
use crate::input::window::Tail;
use crate::progress::Progress;
pub(crate) use args::AggregateArgs;
use by::{By, Table};
use columns::Reading;
use engine::{Engine, Measure};
use groups::Walks;
use inputs::{Inputs, OnBad, Tally};
use labels::{GROUPING, Labels};
use means::Means;
use partial::PartialFile;
use report::{Report, Stdout};
use shape::Shape;
use sheet::{Sheet, Style};
pub(crate) use shown::{Key, Shown};
use store::Store;
pub(crate) use tables::{INPUTS, RESCUED, groups_told, may_have_told, writable};

/// Where groups go.
enum Out {
    Answers(Sheet),
    States(PartialFile),
}

/// What the command line asks for, once all of it is found to go together.
struct Job<'a> {
    args: &'a AggregateArgs,
    /// The inputs.
    files: Vec<PathBuf>,
    means: Means,
    style: Style,
    cube: Option<Groupings>,
    store: Option<&'a Store>,
    shape: &'a Shape,
    common: &'a Common,
}

pub(crate) fn run(args: &AggregateArgs, common: &Common) -> Result<(), Failure> {
    let means = asked::means(args, common)?;
    if let Some(shape) = Shape::asked(args) {
        asked::check(args, &shape)?;
    }
    let store = args.store.as_deref().map(|dir| Store::open(dir, args, common, &means)).transpose()?;
    let shape = match &store {
        Some(store) => Some(store.shape.clone()),
        None if args.merge => Some(partial::shape(&args.files)?),
        None => Shape::asked(args),
    };
    let shape = shape.ok_or_else(|| Failure::Usage("say what to group by: --by".into()))?;
    let job = Job::new(args, common, &shape, means, store.as_ref());
    match (job.and_then(|job| job.run_by()), store) {
        (Ok(()), Some(store)) => Ok(store.close()?),
        (Err(failure), Some(store)) => {
            store.give_up();
            Err(failure)
        }
        (outcome, None) => outcome,
    }
}

impl<'a> Job<'a> {
    fn new(
        args: &'a AggregateArgs,
        common: &'a Common,
        shape: &'a Shape,
        means: Means,
        store: Option<&'a Store>,
    ) -> Result<Self, Failure> {
        asked::check(args, shape)?;
        let columns = if let By::Columns(names) = &shape.by { names.len() } else { 0 };
        let cube = match (args.cube, args.rollup) {
            (true, _) => Some(Groupings::cube(columns)?),
            (_, true) => Some(Groupings::rollup(columns)?),
            _ => None,
        };
        let style = match (&args.out, common.form()) {
            (Some(path), _) if args.partial => match path.extension() {
                Some(ending) if ending == partial::ENDING => Style::Plain,
                _ => return Err(Failure::Usage("the name of --out ends in .arrow with --partial".into())),
            },
            (None, Form::Json) => Style::Json,
            (None, Form::Text) => Style::Tsv,
            (Some(path), _) => match Style::of(path) {
                Some(style) => style,
                None => {
                    return Err(Failure::Usage(
                        "the name of --out ends in .csv, .tsv, .jsonl or .parquet, or in .arrow with --partial".into(),
                    ));
                }
            },
        };
        let is_stdin = args.files.is_empty() && store.is_none();
        Ok(Self {
            args,
            files: if is_stdin { vec!["-".into()] } else { args.files.clone() },
            means,
            // Words hold no tabs, and are shown as they are.
            style: if style == Style::Tsv && columns == 0 { Style::Plain } else { style },
            cube,
            store,
            shape,
            common,
        })
    }

    /// Opens what groups go to, so that what cannot be written is known before any work.
    fn out(&self) -> Result<Out, Failure> {
        match &self.args.out {
            Some(path) if self.args.partial => PartialFile::create(path, self.shape).map(Out::States),
            path => Sheet::open(path.as_deref(), self.style).map(Out::Answers),
        }
    }

    fn run_by(&self) -> Result<(), Failure> {
        let shape = self.shape;
        let case = shape.case();
        let names = match &shape.by {
            By::Columns(names) => names,
            By::Word => {
                return self.run(Count, self.means.clone(), |inputs, engine| match engine {
                    Engine::Gathering(gatherer) => text::words(inputs, gatherer, case),
                    Engine::Storing(_) => counting::words(inputs, engine, case),
                });
            }
            By::Ngram(n) => {
                // What is kept has its words in its keys.
                let parts = if self.store.is_some() { 8 } else { 5 };
                return self.run(Count, self.means.share(parts, 8), |inputs, engine| match engine {
                    Engine::Gathering(gatherer) => {
                        text::ngrams(inputs, gatherer, *n, case, self.means.share(1, 8))
                    }
                    Engine::Storing(_) => counting::phrases(inputs, engine, *n, case),
                });
            }
            By::Kmer(k) if *k > 32 => return self.count_kmers::<u128>(*k),
            By::Kmer(k) => return self.count_kmers::<u64>(*k),
        };
        let table = Table::new(names, &shape.functions, self.cube.as_ref().map(|_| GROUPING))?;
        let header = if self.args.header { delimited::Header::Present } else { delimited::Header::Absent };
        let reading = Reading { format: self.args.format, header, temp: self.means.temp.clone() };
        if !self.args.merge {
            self.files.iter().try_for_each(|path| reading.format_of(path).map(drop))?;
        }
        let means = if self.cube.is_some() { self.means.share(1, 2) } else { self.means.clone() };
        let labels = || match &self.cube {
            Some(_) => Labels::Cube(table.keys.clone()),
            None => Labels::Columns(table.keys.clone()),
        };
        if shape.counts() && !self.args.merge {
            return self
                .run(Count, means, |inputs, engine| reading.feed(&table, inputs, engine).map(|()| labels()));
        }
        let function = by::functions(&shape.functions, &table.columns)?;
        self.run(function, means, |inputs, engine| {
            let fed = if self.args.merge {
                partial::feed(inputs, engine)
            } else {
                reading.feed(&table, inputs, engine)
            };
            fed.map(|()| labels())
        })
    }

    fn count_kmers<W: kmers::Word>(&self, k: usize) -> Result<(), Failure> {
        self.run(Count, self.means.clone(), |inputs, engine| match engine {
            Engine::Gathering(gatherer) => bases::kmers::<W>(inputs, gatherer, k),
            Engine::Storing(_) => counting::kmers::<W>(inputs, engine, k),
        })
    }

    /// Reads all inputs and shows their groups.
    fn run<A: Measure>(
        &self,
        function: A,
        means: Means,
        feed: impl FnOnce(&mut Inputs<'_, '_>, &mut Engine<A>) -> Result<Labels, Failure>,
    ) -> Result<(), Failure> {
        let bytes = match (inputs::bytes(&self.files), &self.store) {
            // What is wrong with a file of a store is told once the others are read.
            (Err(_), Some(_)) => None,
            (bytes, _) => bytes?,
        };
        let progress = Progress::of_reading(self.common, bytes);
        let out = self.out()?;
        let walks = if self.args.unsorted && self.cube.is_none() { Walks::Few } else { Walks::Many };
        let mut engine = Engine::new(Arc::new(function), means.clone(), self.store)?;
        let watch = Stopwatch::start();
        let (labels, tally, groups) = progress.tell_while(|| {
            let (labels, tally, mut failed) = self.read(&progress, |inputs| feed(inputs, &mut engine))?;
            if tally.records == 0 {
                // Nothing is kept either, so that a new store goes again.
                Inputs::failure(mem::take(&mut failed), self.files.len())?;
            }
            let base = engine.finish(walks)?;
            Inputs::failure(failed, self.files.len())?;
            let groups = match &self.cube {
                Some(groupings) => cube::derive(groupings, base, &means)?,
                None => base,
            };
            Ok::<_, Failure>((labels, tally, groups))
        })?;
        let mut report = Report::new(tally, progress.bytes_read(), &groups, &labels, watch.seconds());
        let showing = Stopwatch::start();
        let count = match out {
            Out::Answers(mut sheet) => self
                .show(&groups, &labels, &mut sheet)
                .and_then(|count| sheet.finish().map(|()| count))
                .map_err(sheet::failure)?,
            Out::States(file) => file.write(&groups.held)?,
        };
        report.shown(count, showing.seconds());
        report.print(self.common, if self.args.out.is_some() { Stdout::Free } else { Stdout::Taken })
    }

    fn read(
        &self,
        progress: &Progress,
        feed: impl FnOnce(&mut Inputs<'_, '_>) -> Result<Labels, Failure>,
    ) -> Result<(Labels, Tally, Vec<String>), Failure> {
        let on_bad = if self.args.skip_bad { OnBad::Skip } else { OnBad::Stop };
        let tail = if self.args.is_final { Tail::Taken } else { Tail::Left };
        thread::scope(|scope| {
            let mut inputs = Inputs {
                files: &self.files,
                progress,
                scope,
                unpackers: self.means.readers,
                on_bad,
                tail,
                tally: Tally::default(),
                is_reached_noted: true,
                failed: Vec::new(),
            };
            let labels = feed(&mut inputs)?;
            Ok((labels, inputs.tally, inputs.failed))
        })
    }
}
