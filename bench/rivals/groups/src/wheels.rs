//! Engines that come as Python's wheels, in an environment that `make rivals` makes beside this program's folder.
//! They read files of their own kinds, which are written before anything is measured.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Failure;
use crate::blocks::{Blocks, Keys};
use crate::engines::Setting;
use crate::inputs::{Input, Kind, remove};

const ENGINE: &str = include_str!("../python/engine.py");
const CONVERT: &str = include_str!("../python/convert.py");

/// Where the environment is missing.
pub(crate) const MISSING: &str = "its wheel is not there: `make rivals` brings it";

/// Python with the engines, if it was made.
pub(crate) fn python() -> Option<PathBuf> {
    let programs = std::env::current_exe().ok()?;
    // target/release/PROGRAM
    let target = programs.ancestors().nth(2)?;
    let python = target.join("venv/bin/python");
    python.is_file().then_some(python)
}

/// The keys once more, as the engines read them, for as long as this lives.
pub(crate) struct Converted {
    python: PathBuf,
    arrow: PathBuf,
    parquet: PathBuf,
}

impl Converted {
    pub(crate) fn make(python: PathBuf, kind: Kind, input: &Input) -> Result<Self, Failure> {
        let [arrow, parquet] = ["arrow", "parquet"].map(|kind| input.path.with_extension(kind));
        let converted = Self { python, arrow, parquet };
        let kind = if kind == Kind::Numbers { Kind::Numbers } else { Kind::Words };
        let mut child = Command::new(&converted.python)
            .args(["-c", CONVERT, kind.name()])
            .args([&converted.arrow, &converted.parquet])
            .stdin(Stdio::piped())
            .spawn()?;
        let written = send(&mut child, &input.path);
        let status = child.wait()?;
        written?;
        if status.success() { Ok(converted) } else { Err(format!("converting the keys: {status}").into()) }
    }

    pub(crate) fn command(&self, setting: &Setting) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-c", ENGINE, setting.name]);
        command.args([&self.arrow, &self.parquet]).arg(setting.threads.to_string());
        command
    }
}

impl Drop for Converted {
    fn drop(&mut self) {
        remove(&self.arrow);
        remove(&self.parquet);
    }
}

/// Gives the script a batch for each block.
fn send(child: &mut Child, path: &Path) -> Result<(), Failure> {
    let mut out = child.stdin.take().ok_or("a process without pipes")?;
    let blocks = Blocks::open(path)?;
    let mut block = Vec::new();
    while let Some(block) = blocks.read(&mut block)? {
        let lengths: Vec<u8> = Keys(block).map(|key| key.len() as u8).collect();
        let keys = Keys(block).collect::<Vec<_>>().concat();
        out.write_all(&(lengths.len() as u32).to_le_bytes())?;
        out.write_all(&(keys.len() as u32).to_le_bytes())?;
        out.write_all(&lengths)?;
        out.write_all(&keys)?;
    }
    Ok(())
}
