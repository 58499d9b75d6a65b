//! One engine's count, in a process of its own. [`meter`](crate::meter) tells when to begin and when to end.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::exit;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::args::ChildArgs;
use crate::blocks::Blocks;
use crate::engines;
use crate::tally::Tally;

/// What the process says once it can begin.
pub(crate) const READY: &str = "ready";

/// What a count took.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) version: String,
    pub(crate) seconds: f64,
    /// Until all keys were added, where that is something apart.
    pub(crate) adding_seconds: Option<f64>,
    /// Of all threads.
    pub(crate) cpu_seconds: f64,
    /// Of these by stage, where that was asked for.
    pub(crate) stages: Option<BTreeMap<String, f64>>,
    #[serde(flatten)]
    pub(crate) tally: Tally,
}

pub(crate) fn run(args: &ChildArgs) -> Result<(), Failure> {
    let blocks = Blocks::open(&args.file)?;
    println!("{READY}");
    wait()?;
    let (started, cpu_started) = (Instant::now(), cpu_seconds());
    let mut engine = engines::open(args)?;
    engine.add(&blocks)?;
    let adding_seconds = Some(started.elapsed().as_secs_f64());
    let mut tally = Tally::default();
    engine.each(&mut |key, count| tally.take(key, count))?;
    let told = Told {
        version: engine.version(),
        seconds: started.elapsed().as_secs_f64(),
        adding_seconds,
        cpu_seconds: cpu_seconds() - cpu_started,
        stages: engine.stages(),
        tally,
    };
    println!("{}", serde_json::to_string(&told)?);
    wait()?;
    // Without taking everything down first.
    exit(0)
}

/// Until the other process says a line, or has gone.
fn wait() -> Result<(), Failure> {
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
