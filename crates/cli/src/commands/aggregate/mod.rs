//! `aggregate`: group-by over files.
//!
//! 1. A source finds records in its inputs and gives each one's group key, and the values of its columns, to
//!    the [engine](engine::Engine), which keeps a state for every key.
//! 2. Coarser groupings are derived from those states.
//! 3. Groups are put into the order to show them in, their keys and states into what they stand for.
//!
//! A plain `count` is compiled for each source by itself; all other functions go through rows of values.

mod ahead;
mod by;
mod columns;
mod cube;
mod engine;
mod inputs;
mod keys;
mod kmers;
mod labels;
mod ngrams;
mod order;
mod report;
mod sequences;
mod sheet;
mod words;

use std::path::PathBuf;
use std::thread;

use clap::{ArgAction, Args};
use forebay::aggregate::functions::Count;
use forebay::env::sync::Arc;
use forebay::limits::KEY_BYTES_MAX;

use super::progress::Progress;
use crate::args::Common;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::input::Position;
use crate::input::delimited;
use crate::output::Form;
use by::{By, Table};
use columns::{Reading, RowFormat};
use cube::Cube;
use engine::{Engine, MEMORY_BYTES_MIN, Means, Measure};
use forebay_bench::sizes;
use inputs::{Input, Inputs, OnBad, Tally};
use labels::{GROUPING, Labels};
use order::Arrangement;
use report::{Report, Stdout};
use sheet::{Header, Sheet, Style};
use words::{Case, Words};

const MEMORY_BYTES: u64 = 512 << 20;

const EXAMPLES: &str = "\
Groups:
  word               bytes between ASCII white space
  ngram:N            N words that follow each other in a file
  kmer:K             K bases of FASTA or FASTQ, up to 64; of a k-mer and its reverse complement the lesser
  column:C[,C...]    columns of csv, tsv or jsonl, by name or, in csv and tsv, by number from 1
Inputs that are gzip data are gunzipped.

Examples:
  forebay aggregate --by word --top 10 book.txt
  forebay aggregate --by word --fold-case notes.txt logs/*.gz
  forebay aggregate --by kmer:25 --out kmers.tsv reads.fastq.gz --memory 2G
  forebay aggregate --by column:country,year --fn count,sum:amount,max:price sales.csv
  forebay aggregate --by column:country,year --fn sum:amount --rollup --out sums.csv sales-*.csv";

/// Group the records of files and tell what each group comes to: how many, sums, extremes, sketches
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nFunctions:\n{}", by::functions_help()))]
pub(crate) struct AggregateArgs {
    /// The inputs; - is standard input
    #[arg(default_value = "-")]
    files: Vec<PathBuf>,
    /// What a group is: word, ngram:N, kmer:K, column:C[,C...]
    #[arg(long, value_parser = str::parse::<By>)]
    by: By,
    /// What each group is asked for, such as count,sum:amount; --help lists the functions
    #[arg(long = "fn", value_name = "F[,F...]", action = ArgAction::Append, default_value = "count")]
    functions: Vec<String>,
    /// How columns are written: csv, tsv, jsonl [default: as the name of the file says]
    #[arg(long, value_parser = str::parse::<RowFormat>)]
    format: Option<RowFormat>,
    /// The first row of csv or tsv names the columns; so it does where a column is given by name
    #[arg(long)]
    header: bool,
    /// Words that differ in the case of ASCII letters are one
    #[arg(long)]
    fold_case: bool,
    /// Also group by every choice of the columns; what is left out is null
    #[arg(long, conflicts_with = "rollup")]
    cube: bool,
    /// Also group without the last column, the last two, and so on
    #[arg(long)]
    rollup: bool,
    /// Only the N groups whose first answer is largest, largest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "unsorted")]
    top: Option<u32>,
    /// Groups as they come, instead of by their keys
    #[arg(long)]
    unsorted: bool,
    /// Write groups to a file, by its name as .csv, .tsv or .jsonl
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where files go that do not fit memory [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Keep the groups in a directory, to go on later (not there yet)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Count malformed records and go on
    #[arg(long)]
    skip_bad: bool,
}

/// What the command line asks for, once all of it is found to go together.
struct Job<'a> {
    args: &'a AggregateArgs,
    form: Form,
    means: Means,
    style: Style,
    cube: Option<Cube>,
}

pub(crate) fn run(args: &AggregateArgs, common: &Common) -> Result<(), Failure> {
    let lists = args.functions.iter().flat_map(|list| list.split(','));
    let functions = lists.map(str::trim).collect::<Vec<_>>().join(",");
    let job = Job::new(args, common)?;
    let case = if args.fold_case { Case::Folded } else { Case::Kept };
    let names = match &args.by {
        By::Columns(names) => names,
        _ if functions != "count" => {
            return Err(Failure::Usage(
                "only count goes with words, n-grams and k-mers: --fn is for columns".into(),
            ));
        }
        By::Word => return job.run(Count, job.means.clone(), |inputs, engine| words(inputs, engine, case)),
        By::Ngram(n) => {
            return job.run(Count, job.means.share(5, 8), |inputs, engine| {
                ngrams(inputs, engine, *n, case, job.means.share(1, 8))
            });
        }
        By::Kmer(k) if *k <= 32 => {
            return job.run(Count, job.means.clone(), |inputs, engine| kmers::<u64>(inputs, engine, *k));
        }
        By::Kmer(k) => {
            return job.run(Count, job.means.clone(), |inputs, engine| kmers::<u128>(inputs, engine, *k));
        }
    };
    let table = Table::new(names, &functions, job.cube.as_ref().map(|_| GROUPING))?;
    let header = if args.header { delimited::Header::Present } else { delimited::Header::Absent };
    let reading = Reading { format: args.format, header };
    args.files.iter().try_for_each(|path| reading.format_of(path).map(drop))?;
    let means = if job.cube.is_some() { job.means.share(1, 2) } else { job.means.clone() };
    let labels = || match &job.cube {
        Some(_) => Labels::Cube(table.keys.clone()),
        None => Labels::Columns(table.keys.clone()),
    };
    if functions == "count" {
        return job
            .run(Count, means, |inputs, engine| reading.feed(&table, inputs, engine).map(|()| labels()));
    }
    let function = by::functions(&functions, &table.columns)?;
    job.run(function, means, |inputs, engine| reading.feed(&table, inputs, engine).map(|()| labels()))
}

impl<'a> Job<'a> {
    fn new(args: &'a AggregateArgs, common: &Common) -> Result<Self, Failure> {
        let usage = |reason: &str| Err(Failure::Usage(reason.into()));
        let has_columns = matches!(args.by, By::Columns(_));
        if args.store.is_some() {
            return usage("--store is not there yet: groups live as long as the command does");
        }
        if !has_columns && (args.format.is_some() || args.header || args.cube || args.rollup) {
            return usage("--format, --header, --cube and --rollup are for columns");
        }
        if args.fold_case && !matches!(args.by, By::Word | By::Ngram(_)) {
            return usage("--fold-case is for words and n-grams");
        }
        let columns = if let By::Columns(names) = &args.by { names.len() } else { 0 };
        if columns > cube::COLUMNS_MAX && (args.cube || args.rollup) {
            return usage(&format!("a cube or rollup has at most {} columns", cube::COLUMNS_MAX));
        }
        let cube = match (args.cube, args.rollup) {
            (true, _) => Some(Cube::full(columns)),
            (_, true) => Some(Cube::rollup(columns)),
            _ => None,
        };
        let memory = common.memory.unwrap_or(MEMORY_BYTES);
        if memory < MEMORY_BYTES_MIN {
            return usage(&format!(
                "aggregating takes a --memory of at least {}",
                sizes::human(MEMORY_BYTES_MIN)
            ));
        }
        let style = match (&args.out, common.form()) {
            (None, Form::Json) => Style::Json,
            (None, Form::Text) => Style::Tsv,
            (Some(path), _) => match Style::of(path) {
                Some(style) => style,
                None => return usage("the name of --out ends in .csv, .tsv or .jsonl"),
            },
        };
        Ok(Self {
            args,
            form: common.form(),
            means: Means {
                memory_bytes: usize::try_from(memory).unwrap_or(usize::MAX),
                temp: args.temp.clone().unwrap_or_else(std::env::temp_dir),
            },
            // Words hold no tabs, and are shown as they are.
            style: if style == Style::Tsv && !has_columns { Style::Plain } else { style },
            cube,
        })
    }

    /// Reads all inputs and shows their groups.
    fn run<A: Measure>(
        &self,
        function: A,
        means: Means,
        feed: impl FnOnce(&mut Inputs<'_, '_>, &mut Engine<A>) -> Result<Labels, Failure>,
    ) -> Result<(), Failure> {
        let progress = Progress::of_reading(inputs::bytes(&self.args.files)?);
        let mut sheet = Sheet::open(self.args.out.as_deref(), self.style)?;
        let mut engine = Engine::new(Arc::new(function), means.clone())?;
        let watch = Stopwatch::start();
        let (labels, tally, groups) = progress.tell_while(|| {
            let (labels, tally) = self.read(&progress, |inputs| feed(inputs, &mut engine))?;
            let base = engine.finish()?;
            let groups = match &self.cube {
                Some(cube) => cube.derive(&base, means)?,
                None => base,
            };
            Ok::<_, Failure>((labels, tally, groups))
        })?;
        let mut report = Report::new(tally, progress.bytes_read(), &groups, &labels, watch.seconds());
        let showing = Stopwatch::start();
        let count = self.show(&groups, &labels, &mut sheet).map_err(sheet::failure)?;
        sheet.finish().map_err(sheet::failure)?;
        report.shown(count, showing.seconds());
        report.print(self.form, if self.args.out.is_some() { Stdout::Free } else { Stdout::Taken })
    }

    fn read(
        &self,
        progress: &Progress,
        feed: impl FnOnce(&mut Inputs<'_, '_>) -> Result<Labels, Failure>,
    ) -> Result<(Labels, Tally), Failure> {
        let on_bad = if self.args.skip_bad { OnBad::Skip } else { OnBad::Stop };
        thread::scope(|scope| {
            let mut inputs =
                Inputs { files: &self.args.files, progress, scope, on_bad, tally: Tally::default() };
            let labels = feed(&mut inputs)?;
            Ok((labels, inputs.tally))
        })
    }

    fn show<A: Measure>(
        &self,
        groups: &engine::Groups<A>,
        labels: &Labels,
        sheet: &mut Sheet,
    ) -> Result<u64, forebay::Error> {
        let arrangement = match self.args.top {
            Some(most) => Arrangement::Largest(most as usize),
            None if self.args.unsorted => Arrangement::AsTheyCome,
            None => Arrangement::ByKey,
        };
        let header = match labels {
            Labels::Columns(_) | Labels::Cube(_) => Header::Shown,
            Labels::Plain | Labels::Ngrams { .. } | Labels::Kmers(_) => Header::Hidden,
        };
        let mut names = labels.names();
        names.extend(groups.function.names());
        let cells_a_row = names.len();
        sheet.begin(names, header)?;
        let mut text = Vec::new();
        order::for_each(groups, labels, arrangement, &mut |key, state| {
            let mut cells = Vec::with_capacity(cells_a_row);
            labels.cells(key, &mut text, &mut cells);
            groups.function.answer(state, &mut cells)?;
            sheet.row(&cells)
        })
    }
}

fn words(inputs: &mut Inputs<'_, '_>, engine: &mut Engine<Count>, case: Case) -> Result<Labels, Failure> {
    for path in inputs.files {
        let Input { name, from } = inputs.open(path)?;
        let mut number = 0;
        Words::new(from, &name, case).for_each(|word, offset| {
            number += 1;
            inputs.note(engine.add(word, ()), &name, || Position { number, offset })
        })?;
    }
    Ok(Labels::Plain)
}

fn ngrams(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    words: usize,
    case: Case,
    means: Means,
) -> Result<Labels, Failure> {
    let mut vocabulary = ngrams::Vocabulary::new(means.memory_bytes);
    let mut window = ngrams::Window::new(words);
    for path in inputs.files {
        let Input { name, from } = inputs.open(path)?;
        window.clear();
        let mut number = 0;
        Words::new(from, &name, case).for_each(|word, offset| {
            number += 1;
            let at = Position { number, offset };
            if word.len() > KEY_BYTES_MAX {
                window.clear();
                return inputs.refuse(&name, at, &format!("a word of more than {KEY_BYTES_MAX} bytes"));
            }
            match window.push(vocabulary.number(word)?) {
                Some(key) => inputs.note(engine.add(key, ()), &name, || at),
                None => Ok(()),
            }
        })?;
    }
    let (words, renumbered) = vocabulary.sorted();
    Ok(Labels::Ngrams { words, renumbered })
}

fn kmers<W: kmers::Word>(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    k: usize,
) -> Result<Labels, Failure> {
    let mut roller = kmers::Roller::<W>::new(k);
    for path in inputs.files {
        let Input { name, from } = inputs.open(path)?;
        sequences::for_each(from, &name, |piece| match piece {
            sequences::Piece::Next => {
                roller.clear();
                Ok(())
            }
            sequences::Piece::Bases(bases) => {
                roller.feed(bases, |key| inputs.note(engine.add(key, ()), &name, Position::default))
            }
            sequences::Piece::Malformed(at, reason) => inputs.refuse(&name, at, reason),
        })?;
    }
    Ok(Labels::Kmers(k))
}
