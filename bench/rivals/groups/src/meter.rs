//! Starts a process that counts, and watches how much memory it takes: the same way for every engine.
//!
//! 1. The process says that it is ready. What it holds by then is its base: a program, or a Python with its modules.
//! 2. It is told to begin, and until it tells its result its anonymous memory is looked at all the time, and the most
//!    is kept. Files that it has mapped do not count, and neither does the page cache.
//! 3. It is told to end once it has been looked at with all of its result still there.

use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Failure;
use crate::child::{READY, Told};

const PAUSE: Duration = Duration::from_millis(5);

/// One count.
pub(crate) struct Measured {
    pub(crate) told: Told,
    pub(crate) base_bytes: u64,
    /// With the base.
    pub(crate) peak_bytes: u64,
}

pub(crate) fn measure(command: &mut Command) -> Result<Measured, Failure> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("a process without pipes".into());
    };
    let mut lines = BufReader::new(output).lines();
    let id = child.id();
    let measured = watch(id, || lines.next().transpose(), &mut input);
    // Ends it, if it has not ended by itself.
    drop(input);
    let status = child.wait()?;
    match measured? {
        Some(measured) => Ok(measured),
        None => Err(format!("the process told nothing: {status}").into()),
    }
}

/// `None` where the process ended too early.
fn watch(
    id: u32,
    mut line: impl FnMut() -> std::io::Result<Option<String>> + Send,
    input: &mut impl Write,
) -> Result<Option<Measured>, Failure> {
    if line()?.as_deref() != Some(READY) {
        return Ok(None);
    }
    let base_bytes = anonymous_bytes(id);
    writeln!(input, "begin")?;
    let told = AtomicBool::new(false);
    let (line, peak_bytes) = std::thread::scope(|scope| {
        let teller = scope.spawn(|| {
            let line = line();
            told.store(true, Ordering::Release);
            line
        });
        let mut peak_bytes = base_bytes;
        loop {
            let was_told = told.load(Ordering::Acquire);
            peak_bytes = peak_bytes.max(anonymous_bytes(id));
            if was_told {
                return (teller.join(), peak_bytes);
            }
            std::thread::sleep(PAUSE);
        }
    });
    let Some(line) = line.map_err(|_| "reading a result panicked")?? else { return Ok(None) };
    let told = serde_json::from_str(&line).map_err(|error| format!("{line:?}: {error}"))?;
    Ok(Some(Measured { told, base_bytes, peak_bytes }))
}

/// Of a process and those that it started; nothing of one that has ended.
fn anonymous_bytes(id: u32) -> u64 {
    let status = read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = field.and_then(|field| field.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let children = read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).map(anonymous_bytes);
    kibibytes.unwrap_or(0) * 1024 + below.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Measured, Failure> {
        measure(Command::new("sh").args(["-c", script]))
    }

    const TOLD: &str = r#"{"version":"1","seconds":1.5,"adding_seconds":null,"cpu_seconds":2,
        "groups":3,"counted":4,"checksum":null}"#;

    #[test]
    fn a_process_is_told_when_to_begin_and_to_end() {
        let told = TOLD.replace('\n', "");
        let measured =
            shell(&format!("echo ready; read a; test $a = begin && echo '{told}'; read b")).unwrap();
        assert_eq!((measured.told.tally.groups, measured.told.seconds), (3, 1.5));
        assert!(measured.base_bytes > 0 && measured.peak_bytes >= measured.base_bytes);
    }

    #[test]
    fn a_process_that_ends_early_is_a_failure() {
        for script in ["exit 3", "echo ready; exit 3", "echo ready; read a; echo no json"] {
            assert!(shell(script).is_err(), "{script}");
        }
    }
}
