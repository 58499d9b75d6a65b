//! Runs the questions of the db-benchmark's group-by, each from a file into a file, by this workspace's command and by
//! query engines that come as Python's wheels.
//!
//! 1. Every engine has the same file and two threads, and writes a file of the same kind.
//! 2. What they answer must agree: each answer is held against the first one, group by group.
//! 3. A round is all questions, formats and engines, and a campaign that was interrupted goes on behind its last run.

mod rows;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::bench::{SCRATCH, own_program, scaled};
use super::part::FOREBAY;
use super::resume::Kept;
use super::watch::{Cost, watch};

/// What the wheels are in.
const PYTHON: &str = "bench/rivals/target/venv/bin/python";
const SCRIPT: &str = include_str!("columns.py");
/// At scale 1.
const ROWS: u64 = 10_000_000;
const ROWS_MIN: u64 = 10_000;
const ROUNDS: u32 = 3;
const THREADS: &str = "2";
pub(super) const DUCKDB: &str = "duckdb";
pub(super) const POLARS: &str = "polars";
pub(super) const ENGINES: [&str; 3] = [FOREBAY, DUCKDB, POLARS];
pub(super) const FORMATS: [&str; 2] = ["csv", "parquet"];

/// A question, in words and as the command has it.
pub(super) struct Question {
    /// The db-benchmark's number.
    pub(super) number: &'static str,
    pub(super) words: &'static str,
    by: &'static str,
    functions: &'static str,
}

const fn question(
    number: &'static str,
    words: &'static str,
    by: &'static str,
    functions: &'static str,
) -> Question {
    Question { number, words, by, functions }
}

/// A sum of floating-point numbers is `fsum`, compensated: `sum` would be exact, which nobody else is.
pub(super) const QUESTIONS: [Question; 10] = [
    question("1", "sum v1 by id1", "id1", "sum:v1"),
    question("2", "sum v1 by id1, id2", "id1,id2", "sum:v1"),
    question("3", "sum v1, mean v3 by id3", "id3", "sum:v1,avg:v3"),
    question("4", "mean v1, v2, v3 by id4", "id4", "avg:v1,avg:v2,avg:v3"),
    question("5", "sum v1, v2, v3 by id6", "id6", "sum:v1,sum:v2,fsum:v3"),
    question("6", "median, sd v3 by id4, id5", "id4,id5", "approx_quantile:v3:0.5,stddev_samp:v3"),
    question("7", "max v1 - min v2 by id3", "id3", "max:v1,min:v2"),
    question("8", "largest two v3 by id6", "id6", "top_k:v3:2"),
    question("9", "r2 of v1, v2 by id2, id4", "id2,id4", "r2:v1:v2"),
    question("10", "sum v3, count by all six", "id1,id2,id3,id4,id5,id6", "fsum:v3,count"),
];

/// How far a sketch may be from the median, in a number that is even between 0 and 100: two hundredths of all, and two
/// of a group's values.
fn median_error(rows: u64) -> f64 {
    let group_rows = (rows as f64 / f64::from(rows::FEW * rows::FEW)).max(1.0);
    2.0 + 200.0 / group_rows
}

/// Where everything is: files of the rows, and the first answers.
struct Place<'a> {
    root: &'a Path,
    /// From the root.
    folder: PathBuf,
    rows: u64,
}

/// Adds what is measured to what was kept; whether the engines are there.
pub(super) fn measure(root: &Path, scale: f64, kept: &mut Kept) -> Result<bool, String> {
    if !root.join(PYTHON).is_file() {
        println!("skipped: {PYTHON} is missing (`make wheels` makes it); what was measured before stays");
        return Ok(false);
    }
    let rows = scaled(ROWS, scale, ROWS_MIN);
    let place = Place { root, folder: Path::new(SCRATCH).join(format!("columns-{rows}")), rows };
    let started = Instant::now();
    for round in 1..=ROUNDS {
        for question in &QUESTIONS {
            for format in FORMATS {
                for engine in ENGINES {
                    let name = format!("{round}: question {}, {format}, {engine}", question.number);
                    if kept.has(&name) {
                        continue;
                    }
                    place.make()?;
                    println!("{:6.0} s  {name}", started.elapsed().as_secs_f64());
                    let began = Instant::now();
                    let line = place.run(question, format, engine);
                    kept.add(&name, began.elapsed().as_secs_f64(), vec![line])?;
                }
            }
        }
    }
    drop(std::fs::remove_dir_all(root.join(&place.folder)));
    Ok(true)
}

impl Place<'_> {
    /// Writes the rows, where they are not there.
    fn make(&self) -> Result<(), String> {
        let folder = self.root.join(&self.folder);
        let [csv, parquet] = FORMATS.map(|format| folder.join(format!("rows.{format}")));
        let cannot = |error: std::io::Error| format!("cannot write below {}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(cannot)?;
        let part = folder.join("part");
        if !csv.exists() {
            println!("          {} rows", self.rows);
            rows::write(&part, self.rows).and_then(|()| std::fs::rename(&part, &csv)).map_err(cannot)?;
        }
        if !parquet.exists() {
            let mut python = self.python("convert");
            watch(python.arg(&csv).arg(&part))?;
            std::fs::rename(&part, &parquet).map_err(cannot)?;
        }
        Ok(())
    }

    /// A line about one run. A failure of an engine is told, and the others go on.
    fn run(&self, question: &Question, format: &str, engine: &str) -> Value {
        let [rows, answer] = ["rows", "answer"].map(|name| self.folder.join(format!("{name}.{format}")));
        let outcome = match engine {
            FOREBAY => self.own(question, &rows, &answer),
            _ => self.other(engine, question, &rows, &answer),
        };
        let checked = outcome.and_then(|line| Ok((line, self.check(question, &answer)?)));
        drop(std::fs::remove_file(self.root.join(&answer)));
        let mut line = match checked {
            Ok((mut line, groups)) => {
                line["type"] = "columns".into();
                line["rows"] = self.rows.into();
                line["groups"] = groups.into();
                line
            }
            Err(reason) => {
                let workload = format!("question {}, {format}", question.number);
                json!({ "type": "failure", "workload": workload, "reason": reason })
            }
        };
        line["engine"] = engine.into();
        line["question"] = question.number.into();
        line["format"] = format.into();
        line
    }

    fn own(&self, question: &Question, rows: &Path, answer: &Path) -> Result<Value, String> {
        let arguments = format!(
            "aggregate --by column:{} --fn {} --unsorted --memory 4G --threads {THREADS} --out {} {}",
            question.by,
            question.functions,
            answer.display(),
            rows.display()
        );
        let mut command = Command::new(own_program()?);
        let cost =
            watch(command.args(arguments.split(' ')).arg("--temp").arg(SCRATCH).current_dir(self.root))?;
        let mut line = told(&cost);
        line["command"] = format!("forebay {arguments}").into();
        Ok(line)
    }

    /// Time is what it tells itself: without starting Python, and importing.
    fn other(&self, engine: &str, question: &Question, rows: &Path, answer: &Path) -> Result<Value, String> {
        let cost = watch(self.python(engine).arg(question.number).args([rows, answer]).arg(THREADS))?;
        let said = last_object(&cost)?;
        let mut line = told(&cost);
        for name in ["version", "seconds", "cpu_seconds"] {
            line[name] = said[name].clone();
        }
        Ok(line)
    }

    /// How many groups there are, where the answer is the first one's.
    fn check(&self, question: &Question, answer: &Path) -> Result<u64, String> {
        let expected = self.folder.join(format!("expected-{}.parquet", question.number));
        let mut python = self.python("check");
        python.arg(question.number).args([answer, &expected]).arg(median_error(self.rows).to_string());
        last_object(&watch(&mut python)?)?["groups"].as_u64().ok_or_else(|| "no groups were counted".into())
    }

    /// A word of the script, in the workspace's root.
    fn python(&self, word: &str) -> Command {
        let mut python = Command::new(self.root.join(PYTHON));
        python.args(["-c", SCRIPT, word]).current_dir(self.root);
        python
    }
}

fn told(cost: &Cost) -> Value {
    json!({
        "seconds": cost.seconds, "cpu_seconds": cost.cpu_seconds, "anonymous_bytes": cost.anonymous_bytes,
    })
}

fn last_object(cost: &Cost) -> Result<Value, String> {
    let line = cost.output.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{line:?} is no JSON: {error}"))
}
