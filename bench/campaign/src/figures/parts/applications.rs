//! The applications of the Compressed Buffer Tree, on real data (section 5.5 of the thesis).

use serde_json::Value;

use crate::figures::part::{FOREBAY, Part, Shown};
use crate::figures::plot;
use crate::figures::results::{Results, Spread};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

use super::APPLICATIONS;

pub(super) const PART: Part = Part {
    name: APPLICATIONS,
    title: "Words, n-grams, k-mers and images",
    text: include_str!("applications.txt"),
    runs: Vec::new,
    show,
};

const KMC: &str = "kmc";
const KMC_IN_MEMORY: &str = "kmc in memory";
const JELLYFISH: &str = "jellyfish";
const SORT: &str = "sort, uniq -c";
const UNSORTED: &str = "forebay, unsorted";
const DUCKDB: &str = "duckdb";
const KMERS: &str = "kmers";
const COVERED: &str = "covered";
/// Tasks, and how the page calls them.
const TASKS: [(&str, &str); 4] = [
    (KMERS, "25-mers, long reads"),
    (COVERED, "25-mers, 20 times"),
    ("words", "words"),
    ("2-grams", "2-grams"),
];
const TOOLS: [&str; 7] = [FOREBAY, UNSORTED, KMC, KMC_IN_MEMORY, JELLYFISH, SORT, DUCKDB];

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown { targets: targets(results), ..Shown::default() };
    shown.place("table", table(results));
    shown.place("found", found(results));
    shown.place("data", told_data(results));
    shown.place("images", told_images(results));
    let groups = TASKS.map(|(_, label)| label);
    for (name, title, pointer, unit) in [
        ("applications", "seconds", "/seconds", 1.0),
        ("applications-memory", "MB of anonymous memory", "/anonymous_bytes", 1e6),
    ] {
        let figures = |tool| {
            let scaled = |Spread { median, min, max }| Spread {
                median: median / unit,
                min: min / unit,
                max: max / unit,
            };
            TASKS.map(|(task, _)| spread(results, task, tool, pointer).map(scaled)).to_vec()
        };
        let series: Vec<_> = TOOLS.iter().map(|tool| (tool.to_string(), figures(tool))).collect();
        shown.plot(name, plot::bars(title, &groups, &series)?);
    }
    Ok(shown)
}

fn lines<'a>(results: &'a Results, task: &'a str, tool: &'a str) -> impl Iterator<Item = &'a Value> {
    let is =
        move |line: &&Value| line["type"] == "application" && line["task"] == task && line["tool"] == tool;
    results.others.iter().filter(is)
}

fn spread(results: &Results, task: &str, tool: &str, pointer: &str) -> Option<Spread> {
    let figures = lines(results, task, tool).filter_map(|line| line.pointer(pointer)?.as_f64());
    Spread::of(figures.collect())
}

fn median(results: &Results, task: &str, tool: &str, pointer: &str) -> Option<f64> {
    spread(results, task, tool, pointer).map(|spread| spread.median)
}

/// Bytes of anonymous memory a group.
fn group_bytes(results: &Results, task: &str, tool: &str) -> Option<f64> {
    Some(median(results, task, tool, "/anonymous_bytes")? / median(results, task, tool, "/groups")?)
}

fn targets(results: &Results) -> Vec<Target> {
    let ratio = |own: Option<f64>, other: Option<f64>| Some(own? / other?);
    let seconds = |task, tool| median(results, task, tool, "/seconds");
    let mut targets = Vec::new();
    for (task, label) in &TASKS[..2] {
        let time = ratio(seconds(task, FOREBAY), seconds(task, KMC));
        targets.push(Target::at_most(format!("{label}: time by KMC's"), 3.0, "x", time));
        let bytes = |tool| group_bytes(results, task, tool);
        let bytes = ratio(bytes(FOREBAY), bytes(JELLYFISH));
        targets.push(Target::at_most(
            format!("{label}: memory a distinct one by Jellyfish's"),
            1.0,
            "x",
            bytes,
        ));
    }
    for (task, label) in &TASKS[2..] {
        let found = ratio(seconds(task, FOREBAY), seconds(task, SORT));
        targets.push(Target::at_most(format!("{label}: time by that of sort and uniq"), 1.0, "x", found));
        let bytes = |tool| median(results, task, tool, "/anonymous_bytes");
        let copied = ratio(bytes(FOREBAY), bytes(UNSORTED));
        targets.push(Target::at_most(format!("{label}: memory in order by that in none"), 1.5, "x", copied));
    }
    targets
}

fn found(results: &Results) -> String {
    let seconds = |task, tool| cell(median(results, task, tool, "/seconds"));
    let bytes = |task, tool| cell(group_bytes(results, task, tool));
    let kmers = |task, of: &str| {
        format!(
            "Of {} distinct 25-mers of {of} Forebay takes {} bytes each, Jellyfish {}, KMC {} with its files and {} \
             without; it takes {} seconds, Jellyfish {}, KMC {} and {}. ",
            cell(median(results, task, FOREBAY, "/groups")),
            bytes(task, FOREBAY),
            bytes(task, JELLYFISH),
            bytes(task, KMC),
            bytes(task, KMC_IN_MEMORY),
            seconds(task, FOREBAY),
            seconds(task, JELLYFISH),
            seconds(task, KMC),
            seconds(task, KMC_IN_MEMORY),
        )
    };
    format!(
        "{}{}Words are counted in {} seconds, by sorting in {}, by DuckDB in {}; 2-grams in {} and {}.",
        kmers(KMERS, "long reads, which are nearly all met once,"),
        kmers(COVERED, "short reads that cover a genome 20 times"),
        seconds("words", FOREBAY),
        seconds("words", SORT),
        seconds("words", DUCKDB),
        seconds("2-grams", FOREBAY),
        seconds("2-grams", SORT),
    )
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        "task, tool",
        "rounds",
        "seconds",
        "CPU seconds",
        "memory, MB",
        "memory, B a group",
        "groups",
        "repeats",
    ]);
    for (task, label) in TASKS {
        for tool in TOOLS.into_iter().filter(|tool| lines(results, task, tool).next().is_some()) {
            let of = |pointer: &str| median(results, task, tool, pointer);
            table.row([
                format!("{label}, {tool}"),
                lines(results, task, tool).count().to_string(),
                cell(of("/seconds")),
                cell(of("/cpu_seconds")),
                cell(of("/anonymous_bytes").map(|bytes| bytes / 1e6)),
                cell(group_bytes(results, task, tool)),
                cell(of("/groups")),
                cell(of("/records").zip(of("/groups")).map(|(records, groups)| records / groups)),
            ]);
        }
    }
    table.finish()
}

fn told_data(results: &Results) -> String {
    let line = results.others.iter().find(|line| line["type"] == "data");
    let megabytes = |name: &str| cell(line.and_then(|line| line[name].as_f64()).map(|bytes| bytes / 1e6));
    format!(
        "Text: the pages of debian-handbook, linux-doc-6.1, openjdk-17-doc, python3.11-doc and rust-doc without their \
         markup: prose of several languages, lists of names and source code; again and again until there are {} MB of \
         it, of 2-grams {}, and of each copy but the first every 64th word, drawn at random, has the copy's number \
         behind it. Long reads: {} MB of FASTQ, the first of the 280 MB in wtdbg2-examples: a PacBio run of \
         Escherichia coli K12. Short reads: {} MB of FASTQ, drawn from a genome at random of 5 million bases at scale 1: \
         150 bases each, 20 times the genome, either strand, one base of a hundred wrong. Images: all PNG and JPEG of \
         faenza-icon-theme, gnome-icon-theme, mate-backgrounds, mate-icon-theme, moka-icon-theme and \
         oxygen-icon-theme: icons, many of them in several sizes, and some photographs.",
        megabytes("text_bytes"),
        megabytes("phrases_bytes"),
        megabytes("reads_bytes"),
        megabytes("covered_bytes"),
    )
}

fn told_images(results: &Results) -> String {
    let Some(line) = lines(results, "images", FOREBAY).next() else { return "It was not measured.".into() };
    let number = |pointer: &str| cell(line.pointer(pointer).and_then(Value::as_f64));
    let percent = |pointer: &str| {
        line.pointer(pointer).and_then(Value::as_f64).map_or_else(|| "-".into(), |share| short(100.0 * share))
    };
    let megabytes =
        |pointer: &str| cell(line.pointer(pointer).and_then(Value::as_f64).map(|bytes| bytes / 1e6));
    format!(
        "Of {} images, hashed in {} seconds, {} clusters are made and {} pairs compared in {} seconds; the states \
         take {} MB, the process {} MB. The nearest of all images is found for {} % of them, and {} % of the \
         neighbours that differ in at most 6 bits. (Comparing all pairs one by one takes {} seconds.)",
        number("/found/images"),
        number("/found/hash_seconds"),
        number("/found/clusters"),
        number("/found/pairs"),
        number("/found/seconds"),
        megabytes("/found/memory_bytes"),
        megabytes("/anonymous_bytes"),
        percent("/check/nearest_found"),
        percent("/check/alike_found"),
        number("/check/naive_seconds"),
    )
}
