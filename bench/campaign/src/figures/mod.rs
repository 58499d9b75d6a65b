//! The measured figures, `make figures`: a campaign of `forebay bench` runs on this machine, and
//! `docs/figures.md` drawn from what they told.
//!
//! 1. Each part is a list of runs and a way to show them. Its results are kept as JSON lines in
//!    `docs/figures/PART.jsonl`, without what the page does not show.
//! 2. The page is drawn from the kept results of all parts, whenever they were measured. Drawing measures
//!    nothing.

mod applications;
mod bench;
mod columns;
mod compact;
mod device;
mod draw;
mod draws;
mod groups;
mod log;
mod memory;
mod organisations;
mod part;
mod parts;
mod plot;
mod results;
mod resume;
mod simulated;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod watch;

use std::path::Path;

use part::Part;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Records, as a multiple of those that a part has.
    pub scale: f64,
    /// Names of parts; all where there are none.
    pub only: Vec<String>,
    /// Of open loops that are as long as one likes.
    pub minutes: Option<f64>,
    /// Whether only the page is drawn.
    pub draw: bool,
}

impl Options {
    /// From words like `scale=0.1`, `only=engines,reads` and `draw`.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { scale: 1.0, only: Vec::new(), minutes: None, draw: false };
        for word in words {
            match word.split_once('=') {
                Some(("scale", scale)) => match scale.parse() {
                    Ok(scale) if scale > 0.0 && f64::is_finite(scale) => options.scale = scale,
                    _ => return Err(format!("scale={scale} is not a number above 0")),
                },
                Some(("minutes", minutes)) => match minutes.parse() {
                    Ok(minutes) if minutes > 0.0 && f64::is_finite(minutes) => {
                        options.minutes = Some(minutes)
                    }
                    _ => return Err(format!("minutes={minutes} is not a number above 0")),
                },
                Some(("only", names)) => options.only = names.split(',').map(String::from).collect(),
                None if *word == "draw" => options.draw = true,
                _ => return Err(format!("{word} is not scale=NUMBER, minutes=NUMBER, only=NAMES or draw")),
            }
        }
        Ok(options)
    }
}

/// Measures what the options name, and draws the page.
pub fn run(options: &Options) -> Result<(), String> {
    let folder = crate::workspace_root().join("docs/figures");
    let known: Vec<&str> = parts::ALL.iter().map(|part| part.name).collect();
    let is_known = |name: &&String| *name == parts::STEADY || known.contains(&name.as_str());
    if let Some(name) = options.only.iter().find(|name| !is_known(name)) {
        return Err(format!("there is no part `{name}`; there are {}", known.join(", ")));
    }
    if !options.draw {
        let is_in = |part: &str, name: &str| {
            part == name || name == parts::STEADY && part.starts_with(parts::STEADY_PREFIX)
        };
        let wanted =
            |part: &&&Part| options.only.is_empty() || options.only.iter().any(|name| is_in(part.name, name));
        let size = bench::Size { scale: options.scale, minutes: options.minutes };
        measure(&folder, parts::ALL.iter().filter(wanted).copied(), size)?;
    }
    bench::write_workloads(parts::ALL)?;
    let page = draw::page(&folder)?;
    let path = folder.with_extension("md");
    std::fs::write(&path, page).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn measure<'a>(
    folder: &Path,
    parts: impl Iterator<Item = &'a Part>,
    size: bench::Size,
) -> Result<(), String> {
    let bench = bench::Bench::find()?;
    for part in parts {
        bench.measure(part, size, folder)?;
    }
    Ok(())
}
