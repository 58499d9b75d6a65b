//! Runs the bench: the rivals' program where it is built, else the `forebay` command alone.
//!
//! Rounds go over all runs of a part, so that what changes on the machine meets every engine.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::compact;
use super::groups;
use super::part::{DirectIo, FOREBAY, Part, Run};

const RIVALS: &str = "bench/rivals/target/release/forebay-bench-rivals";
/// Where databases are made, from the workspace's root.
pub(super) const SCRATCH: &str = "target/figures";
const WORKLOADS: &str = "target/figures/workloads";
pub(super) const RECORDS_MIN: u64 = 1000;
pub(super) const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// Below it no program works.
const CGROUP_BYTES_MIN: u64 = 32 << 20;

/// A program that has engines.
pub(super) struct Bench {
    root: PathBuf,
    program: PathBuf,
    has_rivals: bool,
}

/// A command, as it is started and as it is told.
pub(super) struct Order {
    pub(super) arguments: Vec<String>,
    pub(super) shown: String,
}

/// At another scale than 1, and never below what works.
pub(super) fn scaled(count: u64, scale: f64, least: u64) -> u64 {
    ((count as f64 * scale) as u64).max(least)
}

/// The `forebay` command that was built with this program.
pub(super) fn own_program() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    let program = this.with_file_name(format!("forebay{}", std::env::consts::EXE_SUFFIX));
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("{} is missing: run cargo build --release", program.display())),
    }
}

impl Bench {
    pub(super) fn find() -> Result<Self, String> {
        let root = crate::workspace_root();
        let rivals = root.join(RIVALS);
        if rivals.is_file() {
            return Ok(Self { root, program: rivals, has_rivals: true });
        }
        println!("{RIVALS} is missing (`make rivals` builds it): Forebay is measured alone");
        Ok(Self { root, program: own_program()?, has_rivals: false })
    }

    /// Runs a part and keeps its results in the folder.
    pub(super) fn measure(&self, part: &Part, scale: f64, folder: &Path) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot write below {}: {error}", folder.display());
        std::fs::create_dir_all(self.root.join(SCRATCH)).map_err(cannot)?;
        write_workloads(&[part])?;
        println!("== {}", part.title);
        let groups = groups::runs(part.name);
        if !groups.is_empty() && !groups::is_built(&self.root) {
            println!("{} is missing (`make rivals` builds it): this part is left as it is", groups::PROGRAM);
            return Ok(());
        }
        let started = Instant::now();
        let runs = (part.runs)();
        let (mut lines, mut commands) = (Vec::new(), Vec::new());
        for round in 1..=runs.iter().map(|run| run.rounds).max().unwrap_or(0) {
            for run in runs.iter().filter(|run| round <= run.rounds) {
                let Some(order) = self.order(run, scale) else { continue };
                println!("{:6.0} s  {}", started.elapsed().as_secs_f64(), order.shown);
                self.start(&self.program, &order, &mut lines)?;
                commands.push(order.shown);
            }
        }
        for run in groups {
            let order = run.order(scale);
            println!("{:6.0} s  {}", started.elapsed().as_secs_f64(), order.shown);
            self.start(&self.root.join(groups::PROGRAM), &order, &mut lines)?;
            commands.push(order.shown);
        }
        for forecast in super::parts::forecasts(part.name) {
            lines.push(forecast.measure(scale)?);
        }
        if part.name == super::parts::LOG {
            lines.push(super::log::measure(&self.root.join(SCRATCH))?);
        }
        if part.name == super::parts::MEMORY {
            let (told, measured): (Vec<_>, Vec<_>) = super::memory::measure(&self.root, scale)?
                .into_iter()
                .partition(|line| line["type"] == "command");
            commands.extend(told.iter().filter_map(|line| line["command"].as_str()).map(String::from));
            lines.extend(measured);
        }
        if part.name == super::parts::APPLICATIONS {
            let Some(measured) = super::applications::measure(&self.root, scale)? else { return Ok(()) };
            commands.extend(measured.iter().filter_map(|line| line["command"].as_str()).map(String::from));
            lines.extend(measured);
        }
        commands.sort();
        commands.dedup();
        let seconds = started.elapsed().as_secs_f64();
        println!("{seconds:6.0} s  {}: done", part.name);
        let campaign = json!({
            "type": "campaign", "part": part.name, "scale": scale, "seconds": seconds, "commands": commands,
        });
        let mut file = File::create(folder.join(format!("{}.jsonl", part.name))).map_err(cannot)?;
        let lines = [campaign]
            .into_iter()
            .chain(lines)
            .map(|line| compact::pack(line, super::parts::shown(part.name)));
        lines.into_iter().try_for_each(|line| writeln!(file, "{line}")).map_err(cannot)
    }

    /// The command of a run, if this program has any of its engines.
    fn order(&self, run: &Run, scale: f64) -> Option<Order> {
        let engines: Vec<&str> =
            run.engines.iter().copied().filter(|engine| self.has_rivals || *engine == FOREBAY).collect();
        if engines.is_empty() {
            return None;
        }
        let scaled = |count: u64, least: u64| scaled(count, scale, least).to_string();
        let mut arguments = vec![format!("{WORKLOADS}/{}.toml", run.name)];
        arguments.extend(["--records".into(), scaled(run.records, RECORDS_MIN)]);
        let cgroup = run.cgroup_bytes.map_or("auto".into(), |bytes| scaled(bytes, CGROUP_BYTES_MIN));
        arguments.extend(["--cgroup".into(), cgroup]);
        if let Some(bytes) = run.memory_bytes {
            arguments.extend(["--memory".into(), scaled(bytes, MEMORY_BYTES_MIN)]);
        }
        if run.direct_io == DirectIo::On {
            arguments.push("--direct-io".into());
        }
        let program = match self.has_rivals {
            true => {
                arguments.extend(["--engines".into(), engines.join(",")]);
                "forebay-bench-rivals"
            }
            false => {
                arguments.insert(0, "bench".into());
                "forebay"
            }
        };
        let shown = format!("{program} {}", arguments.join(" "));
        arguments.extend(["--dir".into(), SCRATCH.into(), "--json".into()]);
        Some(Order { arguments, shown })
    }

    /// Starts a command and keeps what it tells.
    fn start(&self, program: &Path, order: &Order, lines: &mut Vec<Value>) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot run {}: {error}", program.display());
        // In the workspace, so that no result holds a path of this machine.
        let mut child = Command::new(program)
            .args(&order.arguments)
            .current_dir(&self.root)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let before = lines.len();
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(cannot)?;
            let value = serde_json::from_str(&line)
                .map_err(|error| format!("{} printed {line:?}: {error}", order.shown))?;
            // Summaries are made anew.
            lines.extend(Some(value).filter(|line: &Value| line["type"] != "summary"));
        }
        let status = child.wait().map_err(cannot)?;
        match lines.len() > before {
            // A run that failed is told by a line of its own, and the page shows it.
            true => Ok(()),
            false => Err(format!("{} told nothing: {status}", order.shown)),
        }
    }
}

/// Writes the files that the commands of these parts name.
pub(super) fn write_workloads(parts: &[&Part]) -> Result<(), String> {
    let folder = crate::workspace_root().join(WORKLOADS);
    let cannot = |error: std::io::Error| format!("cannot write below {}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(cannot)?;
    let mut runs = parts.iter().flat_map(|part| (part.runs)());
    runs.try_for_each(|run| std::fs::write(folder.join(format!("{}.toml", run.name)), &run.workload))
        .map_err(cannot)
}
