//! Runs a command of the shell and watches what it and its children take, as somebody beside it sees it:
//! seconds, processor seconds, and the most anonymous memory, which is what they asked for.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often memory is looked at.
const EVERY: Duration = Duration::from_millis(5);
/// Of the times in `/proc`, on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// What a command took.
pub(super) struct Cost {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) anonymous_bytes: u64,
    /// What it printed.
    pub(super) output: String,
}

/// Runs a command to its end; an error where it fails.
pub(super) fn watch(command: &mut Command) -> Result<Cost, String> {
    let cannot = |error: std::io::Error| format!("cannot run a command: {error}");
    let (started, cpu_before) = (Instant::now(), children_cpu_seconds());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut output = Vec::new();
        stdout.map(|mut stdout| stdout.read_to_end(&mut output));
        output
    });
    let mut anonymous_bytes = 0;
    let status = loop {
        anonymous_bytes = anonymous_bytes.max(tree_bytes(child.id()));
        match child.try_wait().map_err(cannot)? {
            Some(status) => break status,
            None => std::thread::sleep(EVERY),
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let output = reader.join().unwrap_or_default();
    let output = String::from_utf8_lossy(&output).into_owned();
    match status.success() {
        true => {
            Ok(Cost { seconds, cpu_seconds: children_cpu_seconds() - cpu_before, anonymous_bytes, output })
        }
        false => Err(format!("{status}: {output}")),
    }
}

/// The anonymous memory of a process and all below it.
fn tree_bytes(process: u32) -> u64 {
    let children = read(&format!("/proc/{process}/task/{process}/children"));
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).map(tree_bytes);
    let status = read(&format!("/proc/{process}/status"));
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
    own.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024 + below.sum::<u64>()
}

/// The processor time of all children that have ended and were waited for.
fn children_cpu_seconds() -> f64 {
    let stat = read("/proc/self/stat");
    // The second field may hold spaces, and ends at the last parenthesis.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_A_SECOND
}

/// Nothing of a process that has gone.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_take_is_counted() {
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i | (cat; sleep 0.05)";
        let cost = watch(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(cost.output, "100000\n");
        assert!(cost.seconds >= 0.05 && cost.cpu_seconds > 0.0, "{} {}", cost.seconds, cost.cpu_seconds);
        assert!(cost.anonymous_bytes > 0);
        assert!(
            watch(Command::new("sh").args(["-c", "echo no; exit 3"])).is_err_and(|why| why.contains("no"))
        );
    }
}
