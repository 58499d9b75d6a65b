//! Runs the applications of the thesis on real data, beside the tools that people use for them.
//!
//! 1. Every tool has the same file, and two threads where it takes any. Each runs in the folder of the data.
//! 2. What they counted must agree: as many groups, and as much in all. Of words and n-grams every line must.

mod inputs;
mod tallies;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::watch::{Cost, watch};
use crate::data;
use tallies::{Tally, last_object, of_forebay, of_jellyfish, of_kmc, of_tsv, of_uniq};

/// At scale 1.
const READS: f64 = 4_000.0;
const GENOME_BASES: f64 = 5e6;
const GENOME_BASES_MIN: f64 = 1e4;
const TEXT_BYTES: f64 = 2e9;
const PHRASES_BYTES: f64 = 1e9;
const READS_PART: &str = "part.fastq";
const COVERED_PART: &str = "covered.fastq";
const TEXT_PART: &str = "part.txt";
const PHRASES_PART: &str = "phrases.txt";
const WORDS_SCRIPT: &str = "words.py";
const LINES_A_READ: usize = 4;
/// From the folder of the data.
const PYTHON: &str = "../../../bench/rivals/target/venv/bin/python";
/// What tools leave behind.
const LEFT: [&str; 6] =
    ["kmc.kmc_pre", "kmc.kmc_suf", "mers.jf", "groups.tsv", "groups.txt", "neighbours.tsv"];
const KMC_TEMP: &str = "kmc-temp";
const DUCKDB: &str = "duckdb";

/// A command of the shell, and how to read what it counted.
struct Trial {
    task: &'static str,
    tool: &'static str,
    program: &'static str,
    script: String,
    rounds: u32,
    read: fn(&Cost, &Path) -> Result<Tally, String>,
}

/// Lines of results; nothing where the data are missing.
pub(super) fn measure(root: &Path, scale: f64) -> Result<Option<Vec<Value>>, String> {
    let folder = root.join(data::FOLDER);
    if !folder.join(data::READS).is_file() || !folder.join(data::TEXT).is_file() {
        println!("skipped: the data are missing (`make data` fetches them); what was measured before stays");
        return Ok(None);
    }
    std::fs::create_dir_all(folder.join(KMC_TEMP)).map_err(told(&folder))?;
    std::fs::write(folder.join(WORDS_SCRIPT), include_str!("words.py")).map_err(told(&folder))?;
    let reads = inputs::head(&folder, data::READS, READS_PART, (READS * scale) as usize * LINES_A_READ)?;
    let covered =
        inputs::reads(&folder, COVERED_PART, (GENOME_BASES * scale).max(GENOME_BASES_MIN) as usize)?;
    let text = inputs::text(&folder, data::TEXT, TEXT_PART, (TEXT_BYTES * scale) as u64)?;
    let phrases = inputs::text(&folder, data::TEXT, PHRASES_PART, (PHRASES_BYTES * scale) as u64)?;
    let mut lines = vec![json!({
        "type": "data", "reads_bytes": reads, "covered_bytes": covered, "text_bytes": text, "phrases_bytes": phrases,
    })];
    for task in
        [kmers("kmers", READS_PART, reads), kmers("covered", COVERED_PART, covered), words(), ngrams()]
    {
        run(&task, &folder, &mut lines)?;
    }
    images(&folder, &mut lines)?;
    for name in [READS_PART, COVERED_PART, TEXT_PART, PHRASES_PART, WORDS_SCRIPT] {
        std::fs::remove_file(folder.join(name)).map_err(told(&folder))?;
    }
    drop(std::fs::remove_dir_all(folder.join("duckdb-temp")));
    Ok(Some(lines))
}

fn kmers(task: &'static str, file: &str, bytes: u64) -> Vec<Trial> {
    let trial = |tool, program, script, rounds, read| Trial { task, tool, program, script, rounds, read };
    let kmc = |more: &str| format!("kmc -k25 -ci1 -t2 -m2 -hp {more}-fq {file} kmc {KMC_TEMP}");
    // About one base in two bytes, and as many k-mers at most.
    let jellyfish = format!("jellyfish count -C -m 25 -t 2 -s {} -o mers.jf {file}", bytes / 2);
    let forebay = format!("forebay aggregate --by kmer:25 --memory 2G --top 1 --json {file}");
    vec![
        trial("forebay", "forebay", forebay, 2, of_forebay),
        trial("kmc", "kmc", kmc(""), 2, of_kmc),
        trial("kmc in memory", "kmc", kmc("-r "), 2, of_kmc),
        trial("jellyfish", "jellyfish", jellyfish, 1, of_jellyfish),
    ]
}

fn words() -> Vec<Trial> {
    let duckdb = format!("{PYTHON} {WORDS_SCRIPT} {TEXT_PART} groups.tsv 2 2GB");
    let mut trials = by_sorting("words", "word", TEXT_PART, "");
    trials.push(Trial {
        task: "words",
        tool: DUCKDB,
        program: PYTHON,
        script: duckdb,
        rounds: 1,
        read: of_tsv,
    });
    trials
}

fn ngrams() -> Vec<Trial> {
    by_sorting("2-grams", "ngram:2", PHRASES_PART, "awk 'NR > 1 { print last \" \" $0 } { last = $0 }' | ")
}

/// Forebay beside sort and uniq, which are given as much memory.
fn by_sorting(task: &'static str, by: &str, file: &str, between: &str) -> Vec<Trial> {
    let forebay =
        |more: &str| format!("forebay aggregate --by {by} --memory 1G {more}--out groups.tsv --json {file}");
    let sort = format!(
        "tr -s '[:space:]' '\\n' < {file} | grep -a -v '^$' | {between}sort -S 1G --parallel=2 -T . | \
         uniq -c > groups.txt"
    );
    let own = |tool, more: &str| Trial {
        task,
        tool,
        program: "forebay",
        script: forebay(more),
        rounds: 1,
        read: of_tsv,
    };
    vec![
        own("forebay", ""),
        own("forebay, unsorted", "--unsorted "),
        Trial { task, tool: "sort, uniq -c", program: "sort", script: sort, rounds: 1, read: of_uniq },
    ]
}

/// Runs the trials of a task. Those whose program is missing are told as skipped.
fn run(trials: &[Trial], folder: &Path, lines: &mut Vec<Value>) -> Result<(), String> {
    let mut expected: Option<Tally> = None;
    for trial in trials {
        if !shell(folder, &format!("command -v {} >/dev/null", trial.program))?
            .status()
            .is_ok_and(|status| status.success())
        {
            println!("skipped: {} is not installed (`make rivals` installs it)", trial.program);
            lines.push(json!({
                "type": "skipped", "engine": trial.tool, "workload": trial.task, "reason": "not installed",
            }));
            continue;
        }
        for _ in 0..trial.rounds {
            println!("          {}", trial.script);
            let cost = match watch(&mut shell(folder, &trial.script)?) {
                Ok(cost) => cost,
                Err(error) if trial.tool == DUCKDB => {
                    // It may have no room.
                    lines.push(json!({
                        "type": "failure", "engine": trial.tool, "workload": trial.task, "reason": error,
                    }));
                    break;
                }
                Err(error) => return Err(format!("{}: {error}", trial.script)),
            };
            let tally = (trial.read)(&cost, folder)?;
            if *expected.get_or_insert(tally) != tally {
                return Err(format!(
                    "{}: {} gives {tally:?}, where {expected:?} was",
                    trial.task, trial.tool
                ));
            }
            let mut line = told_cost(trial.task, trial.tool, &cost);
            line["command"] = trial.script.as_str().into();
            line["groups"] = tally.groups.into();
            line["records"] = tally.records.into();
            lines.push(line);
            for name in LEFT {
                drop(std::fs::remove_file(folder.join(name)));
            }
        }
    }
    Ok(())
}

/// Image neighbours, once for its cost and once held against all pairs.
fn images(folder: &Path, lines: &mut Vec<Value>) -> Result<(), String> {
    let folders = data::IMAGES.map(|package| format!("{}/{package}", data::PACKAGES)).join(" ");
    let script = format!("image_neighbours {folders} 2>&1 >neighbours.tsv");
    println!("          {script}");
    let cost = watch(&mut shell(folder, &script)?).map_err(|error| format!("{script}: {error}"))?;
    let mut line = told_cost("images", "forebay", &cost);
    line["found"] = last_object(&cost.output)?;
    let script = format!("image_neighbours {folders} --check 2>&1 >neighbours.tsv");
    let checked = watch(&mut shell(folder, &script)?).map_err(|error| format!("{script}: {error}"))?;
    line["check"] = last_object(&checked.output)?;
    drop(std::fs::remove_file(folder.join("neighbours.tsv")));
    lines.push(line);
    Ok(())
}

fn told_cost(task: &str, tool: &str, cost: &Cost) -> Value {
    json!({
        "type": "application", "task": task, "tool": tool, "seconds": cost.seconds,
        "cpu_seconds": cost.cpu_seconds, "anonymous_bytes": cost.anonymous_bytes,
    })
}

/// A command of the shell in the folder, which finds this workspace's programs.
fn shell(folder: &Path, script: &str) -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    let own = this.parent().unwrap_or(Path::new(".")).to_path_buf();
    let mut paths: Vec<PathBuf> = vec![own.join("examples"), own];
    paths.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    let path = std::env::join_paths(paths).map_err(|error| format!("PATH: {error}"))?;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder).env("PATH", path).env("LC_ALL", "C");
    Ok(shell)
}

fn told(folder: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("cannot read or write below {}: {error}", folder.display())
}
