//! Runs the command in a folder of its own.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

/// An empty folder for one test, removed behind it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{test}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command with these arguments, to run in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(arguments).current_dir(&self.0);
        command
    }

    /// A load into `db` with these arguments, which has the database open and waits for more input.
    pub(crate) fn loading(&self, arguments: &[&str]) -> (Child, ChildStdin) {
        let mut command = self.command(arguments);
        let command = command.stdin(Stdio::piped()).stderr(Stdio::null()).stdout(Stdio::null());
        let mut loading = command.spawn().unwrap();
        let input = loading.stdin.take().unwrap();
        while std::fs::read_to_string(self.path("db/LOCK")).unwrap().trim() != loading.id().to_string() {
            std::thread::yield_now();
        }
        (loading, input)
    }

    /// Runs the command to its end, its words divided by spaces.
    pub(crate) fn run(&self, words: &str) -> Outcome {
        self.run_on(words, b"")
    }

    /// The same on this standard input.
    pub(crate) fn run_on(&self, words: &str, input: &[u8]) -> Outcome {
        let arguments: Vec<&str> = words.split(' ').collect();
        let mut child = self
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            // A command that refuses its arguments reads nothing.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().unwrap()
        });
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the command, which must succeed in silence on standard error, and gives what it printed.
    pub(crate) fn ok(&self, words: &str) -> String {
        self.run(words).success(words)
    }

    /// The same on this standard input.
    pub(crate) fn ok_on(&self, words: &str, input: &[u8]) -> String {
        self.run_on(words, input).success(words)
    }

    /// Runs the command and gives the last object it printed.
    pub(crate) fn object(&self, words: &str) -> Value {
        last_object(&self.ok(words))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    fn success(self, words: &str) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "forebay {words}");
        self.stdout
    }

    /// Asserts that the command said one line, `forebay: …` or an object, with all of these words, and gave this code.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        let is_told = self.stderr.starts_with("forebay: ") || self.stderr.starts_with("{\"type\":\"error\",");
        assert!(is_told && self.stderr.lines().count() == 1, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {:?}", self.stderr);
        }
    }
}

/// The last line of JSON.
pub(crate) fn last_object(lines: &str) -> Value {
    serde_json::from_str(lines.lines().next_back().unwrap()).unwrap()
}
