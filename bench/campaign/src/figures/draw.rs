//! Draws the page, its plots and the engines' options from kept results.

use std::collections::BTreeMap;
use std::path::Path;

use super::part::{Part, Shown};
use super::parts;
use super::results::Results;
use super::table::short;
use super::target::{self, Outcome};

const HEAD: &str = include_str!("parts/head.txt");
/// More commands of one part than these are not written out.
const COMMANDS_MAX: usize = 8;

/// Draws everything below the folder, and gives the page.
pub(super) fn page(folder: &Path) -> Result<String, String> {
    let (mut sections, mut options) = (Vec::new(), Options::default());
    let mut targets = Vec::new();
    let (mut steady, mut small) = (String::new(), String::new());
    let mut machine = None;
    for part in parts::ALL {
        let results = Results::read(&folder.join(format!("{}.jsonl", part.name)))?;
        let Some(results) = results else {
            let how = format!("`make figures ONLY={}` measures this part; it has not been.\n", part.name);
            sections.push(format!("## {}\n\n{how}", part.title));
            continue;
        };
        let shown = (part.show)(&results)?;
        for (name, svg) in &shown.plots {
            // For who hears it, or points at it.
            let title = format!("><title>{}</title>", escaped(&caption(part, name)));
            write(&folder.join(format!("{name}.svg")), &svg.replacen('>', &title, 1))?;
        }
        machine = machine.or_else(|| machine_of(&results));
        options.add(&results);
        sections.push(section(part, &results, &shown)?);
        let briefs = if part.name.starts_with(parts::STEADY_PREFIX) { &mut steady } else { &mut small };
        shown.brief.iter().for_each(|brief| briefs.push_str(&format!("- {brief}\n")));
        targets.extend(shown.targets);
    }
    options.write(folder)?;
    let count = |outcome| targets.iter().filter(|target| target.outcome() == outcome).count();
    let missed: Vec<target::Target> =
        targets.iter().filter(|target| target.outcome() == Outcome::Missed).cloned().collect();
    let summary = format!(
        "Of {} targets {} are reached, {} are not, and {} were not measured.",
        targets.len(),
        count(Outcome::Reached),
        count(Outcome::Missed),
        count(Outcome::Unmeasured)
    );
    let misses = match missed.is_empty() {
        true => String::new(),
        false => format!("Not reached:\n\n{}", target::table(&missed)),
    };
    let head = HEAD
        .replace("{{machine}}", &machine.unwrap_or_else(|| "A machine that nobody asked.".into()))
        .replace("{{steady}}", &steady)
        .replace("{{small}}", &small)
        .replace("{{summary}}", &summary)
        .replace("{{misses}}", &misses)
        .replace("{{contents}}", &contents())
        .replace("{{options}}", &options.links());
    // What a person found out about it, by hand.
    let remarks = std::fs::read_to_string(folder.join("remarks.md")).unwrap_or_default();
    Ok(tidied(&format!("{head}\n{remarks}\n{}", sections.join("\n"))))
}

/// What a plot shows, in words.
fn caption(part: &Part, plot: &str) -> String {
    format!("{}: {}", part.title, plot.replace('-', " "))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A line a part, which leads to it.
fn contents() -> String {
    let anchor = |title: &str| -> String {
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
    };
    let lines = parts::ALL.iter().map(|part| format!("- [{}](#{})\n", part.title, anchor(part.title)));
    lines.collect()
}

/// A part's text with its places filled.
fn section(part: &Part, results: &Results, shown: &Shown) -> Result<String, String> {
    let mut text = part.text.to_string();
    let plots: Vec<String> = shown
        .plots
        .iter()
        .map(|(name, _)| format!("![{}](figures/{name}.svg)", caption(part, name)))
        .collect();
    let failures: Vec<String> = results.failures.iter().map(|failure| format!("- {failure}")).collect();
    let failures = match failures.is_empty() {
        true => String::new(),
        false => format!("Runs without result:\n\n{}\n", failures.join("\n")),
    };
    let mut places = vec![
        ("commands", commands(part, results)),
        ("targets", target::table(&shown.targets)),
        ("plots", plots.join("\n\n")),
        ("failures", failures),
    ];
    places.extend(shown.places.iter().cloned());
    for (name, filling) in places {
        let place = format!("{{{{{name}}}}}");
        // What was measured must not be left out of the page.
        if !text.contains(&place) && !filling.is_empty() {
            return Err(format!("the text of {} has no place for {name}", part.name));
        }
        text = text.replace(&place, filling.trim_end());
    }
    match text.contains("{{") {
        true => Err(format!("the text of {} has a place that nothing fills", part.name)),
        false => Ok(format!("## {}\n\n{text}", part.title)),
    }
}

fn commands(part: &Part, results: &Results) -> String {
    let campaign = &results.campaign;
    let all: Vec<&str> =
        campaign["commands"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
    let number = |name: &str| short(campaign[name].as_f64().unwrap_or(f64::NAN));
    let mut text = format!(
        "`make figures ONLY={} SCALE={}`, {} seconds. [All results](figures/{}.jsonl).\n",
        part.name,
        number("scale"),
        number("seconds"),
        part.name
    );
    if all.is_empty() {
        return text;
    }
    text.push_str("\n```\n");
    for command in all.iter().take(COMMANDS_MAX) {
        text.push_str(&format!("{command}\n"));
    }
    if let Some(more @ 1..) = all.len().checked_sub(COMMANDS_MAX) {
        text.push_str(&format!(
            "... and {more} more, in the first line of docs/figures/{}.jsonl\n",
            part.name
        ));
    }
    text.push_str("```\n");
    text
}

fn machine_of(results: &Results) -> Option<String> {
    let setup = results.setups.values().flat_map(BTreeMap::values).next()?;
    let machine = &setup["machine"];
    let memory = machine["memory_bytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 30);
    Some(format!(
        "A machine with {} cores, {} GiB of memory and Linux {}.",
        machine["cores"],
        short(memory),
        machine["kernel"].as_str().unwrap_or("of some version")
    ))
}

/// What engines were opened with.
#[derive(Default)]
struct Options {
    /// By engine, and then by the text: workloads.
    texts: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Options {
    fn add(&mut self, results: &Results) {
        for (engine, setups) in &results.setups {
            let texts = self.texts.entry(engine.replace(", direct I/O", "-direct-io")).or_default();
            for (workload, setup) in setups {
                let lines = setup["options"].as_str().unwrap_or_default().lines().map(str::trim_end);
                let mut text = lines.collect::<Vec<_>>().join("\n");
                text.push_str(&format!("\nversion {}", setup["version"].as_str().unwrap_or("unknown")));
                texts.entry(text).or_default().push(workload.clone());
            }
        }
    }

    fn write(&self, folder: &Path) -> Result<(), String> {
        for (engine, texts) in &self.texts {
            let blocks =
                texts.iter().map(|(text, workloads)| format!("== {}\n{text}\n", workloads.join(", ")));
            write(&folder.join(format!("options-{engine}.txt")), &blocks.collect::<Vec<_>>().join("\n"))?;
        }
        Ok(())
    }

    fn links(&self) -> String {
        let link = |engine: &String| format!("[{engine}](figures/options-{engine}.txt)");
        self.texts.keys().map(link).collect::<Vec<_>>().join(", ")
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Without trailing spaces, and with one blank line where there are more.
fn tidied(text: &str) -> String {
    let mut tidied = String::new();
    let mut blank = true;
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && blank) {
            tidied.push_str(line);
            tidied.push('\n');
        }
        blank = line.is_empty();
    }
    tidied
}
