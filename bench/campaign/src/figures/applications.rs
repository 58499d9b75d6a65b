//! Runs the applications of the thesis on real data, beside the tools that people use for them.
//!
//! 1. Every tool has the same file, and two threads where it takes any. Each runs in the folder of the data.
//! 2. What they counted must agree: as many groups, and as much in all. Of words and n-grams every line must.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::Hasher;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::watch::{Cost, watch};
use crate::data;

/// At scale 1.
const READS: f64 = 4_000.0;
const TEXT_BYTES: f64 = 256e6;
const READS_PART: &str = "part.fastq";
const TEXT_PART: &str = "part.txt";
const LINES_A_READ: usize = 4;
/// What tools leave behind.
const LEFT: [&str; 6] =
    ["kmc.kmc_pre", "kmc.kmc_suf", "mers.jf", "groups.tsv", "groups.txt", "neighbours.tsv"];
const KMC_TEMP: &str = "kmc-temp";

/// A command of the shell, and how to read what it counted.
struct Trial {
    task: &'static str,
    tool: &'static str,
    program: &'static str,
    script: String,
    rounds: u32,
    read: fn(&Cost, &Path) -> Result<Tally, String>,
}

/// What a tool counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    groups: u64,
    records: u64,
    /// Over all lines, in any order; nought where there are no lines.
    checksum: u64,
}

/// Lines of results; nothing where the data are missing.
pub(super) fn measure(root: &Path, scale: f64) -> Result<Option<Vec<Value>>, String> {
    let folder = root.join(data::FOLDER);
    if !folder.join(data::READS).is_file() || !folder.join(data::TEXT).is_file() {
        println!("skipped: the data are missing (`make data` fetches them); what was measured before stays");
        return Ok(None);
    }
    let reads =
        head(&folder, data::READS, READS_PART, |lines, _| lines < (READS * scale) as usize * LINES_A_READ)?;
    let text = head(&folder, data::TEXT, TEXT_PART, |_, bytes| (bytes as f64) < TEXT_BYTES * scale)?;
    std::fs::create_dir_all(folder.join(KMC_TEMP)).map_err(told(&folder))?;
    let mut lines = vec![json!({ "type": "data", "reads_bytes": reads, "text_bytes": text })];
    for task in [kmers(reads), words(), ngrams()] {
        run(&task, &folder, &mut lines)?;
    }
    images(&folder, &mut lines)?;
    for name in [READS_PART, TEXT_PART] {
        std::fs::remove_file(folder.join(name)).map_err(told(&folder))?;
    }
    Ok(Some(lines))
}

fn kmers(bytes: u64) -> Vec<Trial> {
    let trial =
        |tool, program, script, rounds, read| Trial { task: "kmers", tool, program, script, rounds, read };
    let kmc = |more: &str| format!("kmc -k25 -ci1 -t2 -m2 -hp {more}-fq {READS_PART} kmc {KMC_TEMP}");
    // About one base in two bytes, and as many k-mers at most.
    let jellyfish = format!("jellyfish count -C -m 25 -t 2 -s {} -o mers.jf {READS_PART}", bytes / 2);
    let forebay = format!("forebay aggregate --by kmer:25 --memory 2G --top 1 --json {READS_PART}");
    vec![
        trial("forebay", "forebay", forebay, 2, of_forebay),
        trial("kmc", "kmc", kmc(""), 2, of_kmc),
        trial("kmc in memory", "kmc", kmc("-r "), 2, of_kmc),
        trial("jellyfish", "jellyfish", jellyfish, 1, of_jellyfish),
    ]
}

fn words() -> Vec<Trial> {
    by_sorting("words", "word", "")
}

fn ngrams() -> Vec<Trial> {
    by_sorting("2-grams", "ngram:2", "awk 'NR > 1 { print last \" \" $0 } { last = $0 }' | ")
}

/// Forebay beside sort and uniq, which are given as much memory.
fn by_sorting(task: &'static str, by: &str, between: &str) -> Vec<Trial> {
    let forebay = format!("forebay aggregate --by {by} --memory 512M --out groups.tsv --json {TEXT_PART}");
    let sort = format!(
        "tr -s '[:space:]' '\\n' < {TEXT_PART} | grep -a -v '^$' | {between}sort -S 512M --parallel=2 -T . | \
         uniq -c > groups.txt"
    );
    vec![
        Trial { task, tool: "forebay", program: "forebay", script: forebay, rounds: 2, read: of_tsv },
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
            let cost = watch(&mut shell(folder, &trial.script)?)
                .map_err(|error| format!("{}: {error}", trial.script))?;
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

/// Writes the first lines, as long as `goes_on` says so of how many lines and bytes there are. Returns the bytes.
fn head(folder: &Path, from: &str, to: &str, goes_on: impl Fn(usize, u64) -> bool) -> Result<u64, String> {
    let mut source = BufReader::new(File::open(folder.join(from)).map_err(told(folder))?);
    let mut target = BufWriter::new(File::create(folder.join(to)).map_err(told(folder))?);
    let (mut lines, mut bytes, mut line) = (0, 0, Vec::new());
    while goes_on(lines, bytes) {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(told(folder))? == 0 {
            break;
        }
        target.write_all(&line).map_err(told(folder))?;
        lines += 1;
        bytes += line.len() as u64;
    }
    target.flush().map_err(told(folder))?;
    Ok(bytes)
}

fn told(folder: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("cannot read or write below {}: {error}", folder.display())
}

fn last_object(output: &str) -> Result<Value, String> {
    let line = output.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{line:?} is no JSON: {error}"))
}

fn of_forebay(cost: &Cost, _: &Path) -> Result<Tally, String> {
    let object = last_object(&cost.output)?;
    let number = |name: &str| object[name].as_u64().ok_or_else(|| format!("forebay told no {name}"));
    Ok(Tally { groups: number("groups")?, records: number("records")?, checksum: 0 })
}

fn of_kmc(cost: &Cost, _: &Path) -> Result<Tally, String> {
    numbers(&cost.output, "No. of unique counted k-mers", "Total no. of k-mers")
}

fn of_jellyfish(_: &Cost, folder: &Path) -> Result<Tally, String> {
    let stats = watch(&mut shell(folder, "jellyfish stats mers.jf")?)?;
    numbers(&stats.output, "Distinct", "Total")
}

/// The numbers of the lines `groups: N` and `records: N`.
fn numbers(output: &str, groups: &str, records: &str) -> Result<Tally, String> {
    let number = |name: &str| {
        let line =
            output.lines().filter_map(|line| line.trim().split_once(':')).find(|line| line.0.trim() == name);
        line.and_then(|(_, number)| number.trim().parse().ok())
            .ok_or_else(|| format!("no {name} in {output}"))
    };
    Ok(Tally { groups: number(groups)?, records: number(records)?, checksum: 0 })
}

/// Lines of `group<TAB>count`.
fn of_tsv(_: &Cost, folder: &Path) -> Result<Tally, String> {
    tally(&folder.join("groups.tsv"), |line| {
        let tab = line.iter().rposition(|byte| *byte == b'\t')?;
        Some((&line[..tab], &line[tab + 1..]))
    })
}

/// Lines of `  count group`.
fn of_uniq(_: &Cost, folder: &Path) -> Result<Tally, String> {
    tally(&folder.join("groups.txt"), |line| {
        let line = line.trim_ascii_start();
        let space = line.iter().position(|byte| *byte == b' ')?;
        Some((&line[space + 1..], &line[..space]))
    })
}

/// Divides a line into group and count.
type Split = fn(&[u8]) -> Option<(&[u8], &[u8])>;

fn tally(path: &Path, split: Split) -> Result<Tally, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut tally = Tally::default();
    for line in BufReader::new(File::open(path).map_err(cannot)?).split(b'\n') {
        let line = line.map_err(cannot)?;
        let parts = split(&line).and_then(|(group, count)| Some((group, std::str::from_utf8(count).ok()?)));
        let counted = parts.and_then(|(group, count)| Some((group, count.parse::<u64>().ok()?)));
        let (group, count) = counted.ok_or_else(|| format!("{}: {line:?} is no count", path.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(group);
        hasher.write_u64(count);
        tally.groups += 1;
        tally.records += count;
        tally.checksum = tally.checksum.wrapping_add(hasher.finish());
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_tools_are_read_alike() {
        let folder = std::env::temp_dir().join(format!("forebay-applications-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let cost =
            |output: &str| Cost { seconds: 0.0, cpu_seconds: 0.0, anonymous_bytes: 0, output: output.into() };
        std::fs::write(folder.join("groups.tsv"), "a b\t2\nc\td\t13\n").unwrap();
        std::fs::write(folder.join("groups.txt"), "     13 c\td\n      2 a b\n").unwrap();
        let counted = of_tsv(&cost(""), &folder).unwrap();
        assert_eq!(counted, of_uniq(&cost(""), &folder).unwrap());
        assert_eq!((counted.groups, counted.records), (2, 15));
        std::fs::write(folder.join("groups.txt"), "     12 c\td\n      3 a b\n").unwrap();
        assert_ne!(counted, of_uniq(&cost(""), &folder).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();

        let expected = Tally { groups: 7, records: 9, checksum: 0 };
        let kmc =
            "Stats:\n   No. of unique counted k-mers       :            7\n   Total no. of k-mers  :   9\n";
        assert_eq!(of_kmc(&cost(kmc), &folder), Ok(expected));
        assert_eq!(of_forebay(&cost("{}\n{\"groups\":7,\"records\":9}\n"), &folder), Ok(expected));
        assert_eq!(numbers("Unique:    5\nDistinct:  7\nTotal:     9\n", "Distinct", "Total"), Ok(expected));
        assert!(of_kmc(&cost("out of memory"), &folder).is_err());
    }
}
