//! Runs the built `forebay` command beside this program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const DATABASE: &str = "demo.db";
const NOUGHTS: [&str; 4] = [" 0", " 0.00", " 0.000", "0 / 0 / 0"];

/// The command, the memory it may use, and an empty folder to work in.
pub(crate) struct Tool {
    program: PathBuf,
    memory: &'static str,
    pub(crate) folder: PathBuf,
}

impl Tool {
    /// Finds the command and empties the folder.
    pub(crate) fn beside_this_program(folder: &str, memory: &'static str) -> Result<Self, String> {
        let this =
            std::env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?;
        let programs = this.parent().unwrap_or(Path::new("."));
        let program = programs.join(format!("forebay{}", std::env::consts::EXE_SUFFIX));
        if !program.is_file() {
            return Err(format!("{} is missing: run cargo build --release", program.display()));
        }
        let folder = programs.parent().unwrap_or(programs).join(folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(|error| format!("cannot empty {}: {error}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self { program, memory, folder })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    /// Runs the command, `DB` standing for the database, and gives the last object it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        self.say(arguments);
        self.json_quietly(arguments)
    }

    /// The same without a word.
    pub(crate) fn json_quietly(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let output = self.run(&arguments, Vec::new())?;
        last_object(&output.stdout)
    }

    /// Runs the command on `input`, and gives the report it makes on standard error.
    pub(crate) fn reported(&self, arguments: &[&str], input: Vec<u8>) -> Result<Value, String> {
        let output = self.run(arguments, input)?;
        last_object(&output.stderr)
    }

    /// Runs the command and shows the first lines it prints.
    pub(crate) fn show(&self, arguments: &[&str], lines_max: usize) -> Result<(), String> {
        self.show_lines(arguments, |_| true, lines_max)
    }

    /// Runs the command and shows the figures it prints that are not nought: a process that only looks has
    /// counted nothing itself.
    pub(crate) fn show_figures(&self, arguments: &[&str]) -> Result<(), String> {
        self.show_lines(arguments, |line| !NOUGHTS.iter().any(|nought| line.ends_with(nought)), usize::MAX)
    }

    fn show_lines(
        &self,
        arguments: &[&str],
        wanted: fn(&str) -> bool,
        lines_max: usize,
    ) -> Result<(), String> {
        self.say(arguments);
        let output = self.run(arguments, Vec::new())?;
        for line in
            String::from_utf8_lossy(&output.stdout).lines().filter(|line| wanted(line)).take(lines_max)
        {
            let shown: String = line.chars().take(110).collect();
            println!("  {shown}");
        }
        Ok(())
    }

    fn say(&self, arguments: &[&str]) {
        let words: Vec<String> = arguments.iter().map(|argument| self.shown(argument)).collect();
        println!("$ forebay {}", words.join(" "));
    }

    fn shown(&self, argument: &str) -> String {
        let path = Path::new(argument);
        let name = match path.strip_prefix(&self.folder) {
            Ok(inside) => inside.display().to_string(),
            Err(_) if argument == "DB" => DATABASE.into(),
            Err(_) => argument.into(),
        };
        let is_word = |c: char| c.is_alphanumeric() || "-_./:=,".contains(c);
        if name.chars().all(is_word) { name } else { format!("'{name}'") }
    }

    fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Output, String> {
        let cannot = |error: std::io::Error| format!("cannot run {}: {error}", self.program.display());
        let database = self.database().display().to_string();
        let mut arguments =
            arguments.iter().map(|&argument| if argument == "DB" { database.as_str() } else { argument });
        let mut child = Command::new(&self.program)
            .args(arguments.next())
            .args(["--memory", self.memory])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // The command answers while it is asked, so both pipes must move.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
            child.wait_with_output()
        });
        let output = output.map_err(cannot)?;
        match output.status.success() {
            true => Ok(output),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    }
}

fn last_object(lines: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(lines);
    let line = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("forebay printed {line:?}, which is no JSON: {error}"))
}
