//! The measured figures, `make figures`: loads, lookups and the log, on this machine, into
//! `docs/figures.md`.

mod log;
mod page;

use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::Value;

use crate::tool::Tool;

/// How many 16-byte records are loaded unless told otherwise.
pub const RECORDS: u64 = 50_000_000;
/// The memory limit of every command.
const MEMORY: &str = "512M";
/// Each load is made so often, and the median told.
const ROUNDS: usize = 3;
/// How many keys are looked up, present and absent.
const LOOKUPS: u64 = 20_000;
/// What lookups draw from: the part of the input that is in lists by the end of the load.
const LISTED_SHARE: f64 = 0.75;

/// One kind of load.
struct Shape {
    key_bytes: u64,
    value_bytes: u64,
    layout: &'static str,
    /// Records, as a part of what was asked for.
    share: u64,
}

const SHAPES: [Shape; 4] = [
    Shape { key_bytes: 8, value_bytes: 8, layout: "write-buffer", share: 1 },
    Shape { key_bytes: 8, value_bytes: 8, layout: "write-buffer:ordered", share: 1 },
    Shape { key_bytes: 8, value_bytes: 56, layout: "write-buffer", share: 4 },
    Shape { key_bytes: 8, value_bytes: 248, layout: "write-buffer", share: 16 },
];

/// A load and the lookups behind it.
struct Measured {
    name: String,
    records: u64,
    loads: Vec<Value>,
    present: Value,
    absent: Value,
    stats: Value,
}

/// Measures everything with so many records and writes the page.
pub fn run(records: u64) -> Result<(), String> {
    let tool = Tool::beside_this_program("figures", MEMORY)?;
    let log = log::measure(&tool.folder)?;
    let mut measured = Vec::new();
    for shape in &SHAPES {
        measured.push(measure(&tool, shape, (records / shape.share).max(1))?);
    }
    let page = page::Page { records, measured: &measured, log };
    let path = crate::workspace_root().join("docs/figures.md");
    std::fs::write(&path, page.to_string())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn measure(tool: &Tool, shape: &Shape, records: u64) -> Result<Measured, String> {
    let (width, input) = (shape.key_bytes + shape.value_bytes, tool.folder.join("records"));
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", input.display());
    random_records(&input, records * width).map_err(cannot)?;
    let format = format!("fixed:{},{}", shape.key_bytes, shape.value_bytes);
    let file = input.display().to_string();
    let mut loads = Vec::new();
    for _ in 0..ROUNDS {
        if tool.database().exists() {
            tool.json_quietly(&["destroy", "DB"])?;
        }
        loads.push(tool.json(&["load", "DB", "t", &file, "--format", &format, "--layout", shape.layout])?);
    }
    let ask = |keys: String| {
        tool.reported(&["get", "DB", "t", "-", "--hex", "--json", "--report"], keys.into_bytes())
    };
    let present = ask(keys_of(&input, records, width).map_err(cannot)?)?;
    let absent = ask((0..LOOKUPS).map(|i| format!("{:016x}\n", mix(u64::MAX - i))).collect())?;
    let stats = tool.json_quietly(&["stats", "DB"])?;
    let name = format!("{width} B, {}", shape.layout);
    Ok(Measured { name, records, loads, present, absent, stats })
}

/// Spreads a number over 64 bits (SplitMix64's finaliser): the same input on every machine.
fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn random_records(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    for word in 0..bytes / 8 {
        file.write_all(&mix(word).to_le_bytes())?;
    }
    file.flush()
}

/// Keys from all over the part of the input that is in lists, one a line in hexadecimal.
fn keys_of(path: &Path, records: u64, width: u64) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let listed = ((records as f64 * LISTED_SHARE) as u64).max(1);
    let mut keys = String::new();
    for i in 0..LOOKUPS {
        file.seek(SeekFrom::Start(mix(i) % listed * width))?;
        let mut key = [0; 8];
        file.read_exact(&mut key)?;
        keys.push_str(&format!("{:016x}\n", u64::from_be_bytes(key)));
    }
    Ok(keys)
}
