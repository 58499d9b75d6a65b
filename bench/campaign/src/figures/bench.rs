//! Runs the bench: the rivals' program where it is built, else the `forebay` command alone.
//!
//! Rounds go over all runs of a part, so that what changes on the machine meets every engine.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use super::compact;
use super::groups;
use super::part::{DirectIo, FOREBAY, Length, Part, Run};
use super::resume::Kept;

const RIVALS: &str = "bench/rivals/target/release/forebay-bench-rivals";
/// Where databases are made, from the workspace's root.
pub(super) const SCRATCH: &str = "target/figures";
const WORKLOADS: &str = "target/figures/workloads";
pub(super) const RECORDS_MIN: u64 = 1000;
pub(super) const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// Of a run whose bounds are not stretched, for each engine: a bound in time of the whole, with drains, which have none.
const RUN_SECONDS_MAX: Duration = Duration::from_secs(600);
/// How long open loops become with the scale, where nobody says how long.
const MINUTES_MAX: f64 = 10.0;
/// Exit codes from here on are those of signals.
const SIGNALLED: i32 = 128;
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
    pub(super) limit: Option<Limit>,
}

/// How long a command may take, and whose failure it is, and at what, where that is not enough.
pub(super) struct Limit {
    most: Duration,
    engine: String,
    workload: String,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) scale: f64,
    pub(super) minutes: Option<f64>,
}

impl Size {
    /// How many times as long as the workload's a run's bounds in seconds are, where they are not left as they are.
    fn stretch(self, length: Length) -> Option<f64> {
        match length {
            Length::Fixed => None,
            Length::Scaled => Some(self.scale),
            Length::Minutes { seconds } => Some(
                self.minutes
                    .map_or(self.scale.min(MINUTES_MAX * 60.0 / seconds), |minutes| minutes * 60.0 / seconds),
            ),
        }
    }
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
    pub(super) fn measure(&self, part: &Part, size: Size, folder: &Path) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot write below {}: {error}", folder.display());
        let scale = size.scale;
        std::fs::create_dir_all(self.root.join(SCRATCH)).map_err(cannot)?;
        write_workloads(&[part])?;
        println!("== {}", part.title);
        let groups = groups::runs(part.name);
        if !groups.is_empty() && !groups::is_built(&self.root) {
            println!("{} is missing (`make rivals` builds it): this part is left as it is", groups::PROGRAM);
            return Ok(());
        }
        let started = Instant::now();
        let mut commands = Vec::new();
        let mut kept = self.runs(part, size, &mut commands)?;
        if part.name == super::parts::COLUMNS && !super::columns::measure(&self.root, scale, &mut kept)? {
            return Ok(());
        }
        let (before, mut lines) = kept.told();
        commands.extend(lines.iter().filter_map(|line| line["command"].as_str()).map(String::from));
        let after = Instant::now();
        for run in groups {
            let order = run.order(scale);
            println!("{:6.0} s  {}", started.elapsed().as_secs_f64(), order.shown);
            lines.extend(self.start(&self.root.join(groups::PROGRAM), &order)?);
            commands.push(order.shown);
        }
        for forecast in super::parts::forecasts(part.name) {
            lines.push(forecast.measure(scale)?);
        }
        let Some(measured) = self.others(part, scale)? else { return Ok(()) };
        commands.extend(measured.iter().filter_map(|line| line["command"].as_str()).map(String::from));
        lines.extend(measured.into_iter().filter(|line| line["type"] != "command"));
        commands.sort();
        commands.dedup();
        let seconds = before + after.elapsed().as_secs_f64();
        println!("{seconds:6.0} s  {}: done", part.name);
        let campaign = json!({
            "type": "campaign", "part": part.name, "scale": scale, "seconds": seconds, "commands": commands,
        });
        let mut file = File::create(folder.join(format!("{}.jsonl", part.name))).map_err(cannot)?;
        let lines = [campaign]
            .into_iter()
            .chain(lines)
            .map(|line| compact::pack(line, super::parts::shown(part.name)));
        lines.into_iter().try_for_each(|line| writeln!(file, "{line}")).map_err(cannot)?;
        kept.end()
    }

    /// What parts measure that run no engine; nothing where what they take is missing.
    fn others(&self, part: &Part, scale: f64) -> Result<Option<Vec<Value>>, String> {
        match part.name {
            super::parts::LOG => super::log::measure(&self.root.join(SCRATCH)).map(|line| Some(vec![line])),
            super::parts::MEMORY => super::memory::measure(&self.root, scale).map(Some),
            super::parts::APPLICATIONS => super::applications::measure(&self.root, scale),
            _ => Ok(Some(Vec::new())),
        }
    }

    /// All runs of a part, but for those that were done before it was interrupted; and what the device does, where the
    /// part shows that.
    fn runs(&self, part: &Part, size: Size, commands: &mut Vec<String>) -> Result<Kept, String> {
        let program = match part.name {
            super::parts::COLUMNS => built(&own_program()?),
            _ => built(&self.program),
        };
        let mark = json!({ "scale": size.scale, "minutes": size.minutes, "program": program });
        let path = self.root.join(SCRATCH).join(format!("{}.unfinished.jsonl", part.name));
        let mut kept = Kept::open(&path, &mark)?;
        if kept.count() > 0 {
            println!("{} runs were done before: {} has them", kept.count(), path.display());
        }
        let started = Instant::now();
        let device = |name: &str, kept: &mut Kept| match super::parts::shows_device(part.name) {
            true if !kept.has(name) => {
                let began = Instant::now();
                let line = super::device::measure(&self.root.join(SCRATCH))?;
                kept.add(name, began.elapsed().as_secs_f64(), vec![line])
            }
            _ => Ok(()),
        };
        device("the device before", &mut kept)?;
        let runs = (part.runs)();
        for round in 1..=runs.iter().map(|run| run.rounds).max().unwrap_or(0) {
            for run in runs.iter().filter(|run| round <= run.rounds) {
                let Some(order) = self.order(run, size) else { continue };
                let name = format!("{round}: {}", order.shown);
                if !kept.has(&name) {
                    println!("{:6.0} s  {}", started.elapsed().as_secs_f64(), order.shown);
                    let began = Instant::now();
                    let lines = self.start(&self.program, &order)?;
                    kept.add(&name, began.elapsed().as_secs_f64(), lines)?;
                }
                commands.push(order.shown);
            }
        }
        device("the device after", &mut kept)?;
        Ok(kept)
    }

    /// The command of a run, if this program has any of its engines.
    fn order(&self, run: &Run, size: Size) -> Option<Order> {
        let engines: Vec<&str> =
            run.engines.iter().copied().filter(|engine| self.has_rivals || *engine == FOREBAY).collect();
        if engines.is_empty() {
            return None;
        }
        let scaled = |count: u64, least: u64| scaled(count, size.scale, least).to_string();
        let mut arguments = vec![format!("{WORKLOADS}/{}.toml", run.name)];
        arguments.extend(["--records".into(), scaled(run.records, RECORDS_MIN)]);
        let cgroup = run.cgroup_bytes.map_or("auto".into(), |bytes| scaled(bytes, CGROUP_BYTES_MIN));
        arguments.extend(["--cgroup".into(), cgroup]);
        if let Some(bytes) = run.memory_bytes {
            arguments.extend(["--memory".into(), scaled(bytes, MEMORY_BYTES_MIN)]);
        }
        if let Some(count) = run.background_threads {
            arguments.extend(["--background-threads".into(), count.to_string()]);
        }
        if run.direct_io == DirectIo::On {
            arguments.push("--direct-io".into());
        }
        let stretch = size.stretch(run.length);
        if let Some(times) = stretch {
            arguments.extend(["--stretch".into(), times.to_string()]);
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
        let most = stretch.map(|times| RUN_SECONDS_MAX.mul_f64(times.max(1.0) * engines.len() as f64));
        let (engine, workload) = (engines[0].to_string(), run.name.clone());
        let limit = most.map(|most| Limit { most, engine, workload });
        Some(Order { arguments, shown, limit })
    }

    /// Runs a command, and gives what it tells.
    fn start(&self, program: &Path, order: &Order) -> Result<Vec<Value>, String> {
        let cannot = |error: std::io::Error| format!("cannot run {}: {error}", program.display());
        // In the workspace, so that no result holds a path of this machine.
        let mut child = Command::new(program)
            .args(&order.arguments)
            .current_dir(&self.root)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let watch = order.limit.as_ref().map(|limit| (Watch::begin(child.id(), limit.most), limit));
        let mut lines = Vec::new();
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(cannot)?;
            let value = serde_json::from_str(&line)
                .map_err(|error| format!("{} printed {line:?}: {error}", order.shown))?;
            // Summaries are made anew.
            lines.extend(Some(value).filter(|line: &Value| line["type"] != "summary"));
        }
        let status = child.wait().map_err(cannot)?;
        let late = watch.and_then(|(watch, limit)| watch.end().then_some(limit));
        let is_ended = status.code().is_none_or(|code| code >= SIGNALLED);
        if let Some(Limit { most, engine, workload }) = late {
            let reason = format!("it was ended after {} s", most.as_secs());
            lines.push(json!({
                "type": "failure", "engine": engine, "workload": workload, "reason": reason,
            }));
        }
        match lines.is_empty() || is_ended && late.is_none() {
            // A run that failed is told by a line of its own, and the page shows it.
            false => Ok(lines),
            true => Err(format!("{} told nothing, or not all: {status}", order.shown)),
        }
    }
}

/// What tells a build of a program from another one.
fn built(program: &Path) -> Value {
    let about = program.metadata().ok();
    let since = |about: &std::fs::Metadata| about.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    let time = about.as_ref().and_then(since).map(|since| since.as_secs());
    json!({ "bytes": about.map(|about| about.len()), "built": time })
}

/// Ends a process that takes too long, as somebody would who presses Ctrl-C: it removes what it has made.
struct Watch {
    ended: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watch {
    fn begin(process: u32, most: Duration) -> Self {
        let (ended, end) = channel();
        let watch = move || {
            let is_late = end.recv_timeout(most) == Err(RecvTimeoutError::Timeout);
            is_late && Command::new("kill").arg(process.to_string()).status().is_ok()
        };
        Self { ended, thread: std::thread::spawn(watch) }
    }

    /// Whether it took too long.
    fn end(self) -> bool {
        let _ = self.ended.send(());
        self.thread.join().unwrap_or(false)
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
