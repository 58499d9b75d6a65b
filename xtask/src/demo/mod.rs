//! The demonstration, `make demo`: real text goes in and comes out again, and the figures are told.
//!
//! 1. The input: every line of the sources that Cargo fetched for this build, or the user's own file.
//! 2. Load it twice with the built command: in hash order and in key order.
//! 3. In new processes, so that nothing is in memory: look up, scan, verify.
//! 4. The report.

pub mod input;
mod report;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::tool::Tool;
use report::{Loaded, Looked, Report};

/// The memory of every command: less than the input, so that it is the disk that is seen at work.
const MEMORY: &str = "32M";
/// How many keys are looked up, present and absent.
const LOOKUPS: u64 = 20_000;
/// The longest key the engine takes, less what makes it one that is not in the input.
const KEY_BYTES_MAX: usize = (64 << 10) - ABSENT.len();
/// Behind a key it makes one that no text holds.
const ABSENT: &str = "\u{1}absent";

/// What is loaded and how.
struct Material {
    file: PathBuf,
    about: String,
    /// Arguments of `load` that say how the file is written.
    format: &'static [&'static str],
    records: u64,
}

/// Runs the demonstration, with the lines of `file` if there is one.
pub fn run(file: Option<&Path>) -> Result<(), String> {
    let tool = Tool::beside_this_program("demo", MEMORY)?;
    println!("\nForebay: real text in, real text out\n");
    let material = prepare(file, &tool.folder)?;
    println!("input     {}", material.about);
    println!("database  {}", tool.database().display());
    println!("memory    {}, for each command\n", MEMORY);
    let keys = sample(&material)?;
    let by_hash = load(&tool, &material, "by-hash", "wb-tree")?;
    let by_key = load(&tool, &material, "by-key", "wb-tree:ordered")?;

    show_gets(&tool, &keys)?;
    show_scan(&tool, &keys)?;
    let lookups = [look_up(&tool, "by-hash", &keys)?, look_up(&tool, "by-key", &keys)?];

    let verified = tool.json(&["verify", "DB"])?;
    println!(
        "  {} pages, {} records",
        report::whole(&verified["pages"]),
        report::whole(&verified["records"])
    );
    tool.show_figures(&["stats", "DB"])?;
    let stats = tool.json_quietly(&["stats", "DB"])?;
    println!();
    let report = Report {
        loads: [by_hash, by_key],
        lookups,
        verified,
        stats,
        disk_bytes: folder_bytes(&tool.database())?,
    };
    print!("{report}");
    Ok(())
}

fn prepare(file: Option<&Path>, folder: &Path) -> Result<Material, String> {
    match file {
        Some(file) => {
            let (records, bytes) = measure(file)?;
            let about = format!(
                "{} lines, {} of {}",
                report::thousands(records),
                report::megabytes(bytes),
                file.display()
            );
            Ok(Material {
                file: file.to_path_buf(),
                about,
                format: &["--format", "lines", "--skip-bad"],
                records,
            })
        }
        None => {
            let path = folder.join("lines.tsv");
            let written = input::write_file(&path)?;
            if written.records == 0 {
                return Err("Cargo fetched no sources for this build; try make demo INPUT=FILE".into());
            }
            let about = format!(
                "{} lines, {}: every line of the sources Cargo fetched for this build",
                report::thousands(written.records),
                report::megabytes(written.bytes)
            );
            let format = &["--format", "tsv", "--key", "1", "--value", "2"];
            Ok(Material { file: path, about, format, records: written.records })
        }
    }
}

fn load(tool: &Tool, material: &Material, table: &'static str, layout: &str) -> Result<Loaded, String> {
    let file = material.file.display().to_string();
    let mut arguments = vec!["load", "DB", table, &file, "--layout", layout];
    arguments.extend(material.format);
    let figures = tool.json(&arguments)?;
    println!(
        "  {} records in {} s, {} a second",
        report::whole(&figures["records"]),
        report::number(&figures["seconds"], 2),
        report::whole(&figures["records_per_second"])
    );
    Ok(Loaded { table, figures })
}

/// A few lookups as a person would make them.
fn show_gets(tool: &Tool, keys: &[Vec<u8>]) -> Result<(), String> {
    for key in keys.iter().filter(|key| is_plain(key)).take(3) {
        let key = String::from_utf8_lossy(key);
        tool.show(&["get", "DB", "by-hash", "--json", "--", &key], 1)?;
    }
    Ok(())
}

/// The neighbours of a key, in order.
fn show_scan(tool: &Tool, keys: &[Vec<u8>]) -> Result<(), String> {
    let Some(key) = keys.iter().find(|key| is_plain(key)) else { return Ok(()) };
    let key = String::from_utf8_lossy(key);
    let end = key.rfind(':').map_or(key.len().min(4), |colon| colon + 1);
    let prefix: String = key.chars().take(end).collect();
    tool.show(&["scan", "DB", "by-key", "--limit", "4", &format!("--prefix={prefix}")], 4)
}

/// Many lookups from a fresh process: of keys that are there, and of keys that are not.
fn look_up(tool: &Tool, table: &'static str, keys: &[Vec<u8>]) -> Result<Looked, String> {
    let ask = |suffix: &str| {
        let mut text = Vec::new();
        for key in keys {
            text.extend_from_slice(key);
            text.extend_from_slice(suffix.as_bytes());
            text.push(b'\n');
        }
        tool.reported(&["get", "DB", table, "-", "--json", "--report"], text)
    };
    let looked = Looked { present: ask("")?, absent: ask(ABSENT)? };
    let asked = keys.len() as u64;
    match (looked.present["found"].as_u64(), looked.absent["found"].as_u64()) {
        (Some(found), Some(0)) if found == asked => Ok(looked),
        (found, absent) => Err(format!(
            "of {asked} keys of the input {found:?} were found in {table}, and {absent:?} of as many that are not in it"
        )),
    }
}

/// Keys spread over the whole input, in an order that is not its own.
fn sample(material: &Material) -> Result<Vec<Vec<u8>>, String> {
    let step = (material.records / LOOKUPS).max(1);
    let is_tsv = material.format.contains(&"tsv");
    let mut keys = Vec::new();
    each_line(&material.file, |index, line| {
        let key = if is_tsv { line.split(|&byte| byte == b'\t').next().unwrap_or_default() } else { line };
        // Keys over the engine's limit were skipped by the load; a return would be read as a line's end.
        if index % step == 0 && key.len() <= KEY_BYTES_MAX && !key.ends_with(b"\r") {
            keys.push(key.to_vec());
        }
    })?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&index| (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    Ok(order.into_iter().map(|index| std::mem::take(&mut keys[index])).collect())
}

fn measure(file: &Path) -> Result<(u64, u64), String> {
    let (mut records, mut bytes) = (0, 0);
    each_line(file, |_, line| {
        records += 1;
        bytes += line.len() as u64 + 1;
    })?;
    Ok((records, bytes))
}

fn each_line(file: &Path, mut handle: impl FnMut(u64, &[u8])) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", file.display());
    let mut reader = BufReader::with_capacity(1 << 20, std::fs::File::open(file).map_err(cannot)?);
    let mut line = Vec::new();
    let mut index = 0;
    while reader.read_until(b'\n', &mut line).map_err(cannot)? > 0 {
        let text = match line.strip_suffix(b"\n") {
            Some(text) => text.strip_suffix(b"\r").unwrap_or(text),
            None => &line,
        };
        handle(index, text);
        index += 1;
        line.clear();
    }
    Ok(())
}

/// Whether a key can stand on a command line that is shown.
fn is_plain(key: &[u8]) -> bool {
    (4..=80).contains(&key.len()) && key.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}

fn folder_bytes(folder: &Path) -> Result<u64, String> {
    let cannot = |error: std::io::Error| format!("cannot list {}: {error}", folder.display());
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(cannot)?.len();
    }
    Ok(bytes)
}
