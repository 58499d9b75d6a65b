//! What a part has measured so far: a campaign that was interrupted goes on behind its last finished run.
//!
//! **Invariant:** what is kept was measured at the same scale by the same program: else it is begun anew.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// See the module.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
    runs: Vec<Run>,
}

/// A finished run.
struct Run {
    name: String,
    seconds: f64,
    lines: Vec<Value>,
}

impl Kept {
    /// Goes on where `mark` is that of what is there.
    pub(super) fn open(path: &Path, mark: &Value) -> Result<Self, String> {
        let runs = std::fs::read_to_string(path).map_or_else(|_| Vec::new(), |text| finished(&text, mark));
        // A last line that was cut off is left out for good.
        let told = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(path).map_err(told)?;
        writeln!(file, "{mark}").map_err(told)?;
        let mut kept = Self { path: path.into(), file, runs: Vec::new() };
        runs.into_iter().try_for_each(|run| kept.add(&run.name, run.seconds, run.lines))?;
        Ok(kept)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.name == name)
    }

    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// A run that has finished.
    pub(super) fn add(&mut self, name: &str, seconds: f64, lines: Vec<Value>) -> Result<(), String> {
        let line = json!({ "run": name, "seconds": seconds, "lines": lines });
        writeln!(self.file, "{line}")
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.runs.push(Run { name: name.into(), seconds, lines });
        Ok(())
    }

    /// What all runs took, and what they told.
    pub(super) fn told(&self) -> (f64, Vec<Value>) {
        let seconds = self.runs.iter().map(|run| run.seconds).sum();
        (seconds, self.runs.iter().flat_map(|run| run.lines.iter().cloned()).collect())
    }

    /// All is measured, and kept elsewhere.
    pub(super) fn end(self) -> Result<(), String> {
        std::fs::remove_file(&self.path)
            .map_err(|error| format!("cannot remove {}: {error}", self.path.display()))
    }
}

/// The runs of a text that begins with this mark.
fn finished(text: &str, mark: &Value) -> Vec<Run> {
    let mut lines = text.lines().map(serde_json::from_str::<Value>);
    if !lines.next().is_some_and(|first| first.is_ok_and(|first| first == *mark)) {
        return Vec::new();
    }
    let run = |line: Value| {
        let lines = line["lines"].as_array()?.clone();
        Some(Run { name: line["run"].as_str()?.into(), seconds: line["seconds"].as_f64()?, lines })
    };
    lines.map_while(|line| run(line.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_goes_on_behind_its_last_finished_run() {
        let path = std::env::temp_dir().join(format!("forebay-resume-{}", std::process::id()));
        let mark = json!({ "scale": 1.0 });
        let mut kept = Kept::open(&path, &mark).unwrap();
        kept.add("one", 1.5, vec![json!({ "rate": 1 })]).unwrap();
        kept.add("two", 2.0, vec![json!({ "rate": 2 })]).unwrap();
        drop(kept);
        // The last line is cut off.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut kept = Kept::open(&path, &mark).unwrap();
        assert_eq!((kept.count(), kept.has("one"), kept.has("two")), (1, true, false));
        kept.add("two", 3.0, vec![json!({ "rate": 3 })]).unwrap();
        drop(kept);
        let kept = Kept::open(&path, &mark).unwrap();
        assert_eq!(kept.told(), (4.5, vec![json!({ "rate": 1 }), json!({ "rate": 3 })]));
        drop(kept);
        // At another scale, or of another program, all is begun anew.
        let kept = Kept::open(&path, &json!({ "scale": 2.0 })).unwrap();
        assert_eq!(kept.count(), 0);
        kept.end().unwrap();
        assert!(!path.exists());
    }
}
