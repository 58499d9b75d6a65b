//! Fresh processes: every run has one, so that processor time, memory and bytes are its own.
//!
//! The program is started again with the words that lead back here and a hidden argument; what it has to do
//! comes in by its standard input, and results go out by its standard output.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use forebay_env::sync::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::plan::Plan;
use crate::{Failure, Kind};

/// The hidden argument.
pub(crate) const CHILD: &str = "--child";

/// The processes that were started and are held, by their numbers.
static STARTED: OnceLock<Mutex<BTreeSet<u32>>> = OnceLock::new();

fn started() -> MutexGuard<'static, BTreeSet<u32>> {
    STARTED.get_or_init(Mutex::default).lock()
}

/// Ends all processes that were started, and starts no more: for a program that a signal ends, so that none of them
/// brings back what it removes.
pub fn end_all() {
    let started = started();
    for pid in started.iter().filter_map(|number| Pid::from_raw(*number as i32)) {
        let _ = kill_process(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }
    std::mem::forget(started);
}

/// The program that uses this crate.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The engines it knows. The first is the one that others are compared with.
    pub kinds: &'a [&'a dyn Kind],
    /// The words on its command line that lead to [`run`](crate::run).
    pub words: &'a [&'a str],
}

impl<'a> Program<'a> {
    /// The engine of that name.
    pub(crate) fn kind(&self, name: &str) -> Option<&'a dyn Kind> {
        self.kinds.iter().copied().find(|kind| kind.name() == name)
    }

    /// Starts the program again, to do what the plan says.
    pub(crate) fn start(&self, plan: &Plan) -> Result<Running, Failure> {
        self.start_in(plan, |_| {})
    }

    /// The same; `prepare` is told the process's number before it does anything.
    pub(crate) fn start_in(&self, plan: &Plan, prepare: impl FnOnce(u32)) -> Result<Running, Failure> {
        let mut started = started();
        let child = Command::new(std::env::current_exe()?)
            .args(self.words)
            .arg(CHILD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        started.insert(child.id());
        drop(started);
        prepare(child.id());
        let mut running = Running(child);
        if let Some(mut stdin) = running.0.stdin.take() {
            stdin.write_all(&serde_json::to_vec(plan)?)?;
        }
        Ok(running)
    }
}

/// What [`Program::start`] wrote, in the process that was started.
pub(crate) fn read_plan() -> Result<Plan, Failure> {
    Ok(serde_json::from_reader(io::stdin().lock())?)
}

/// A process that was started. It is killed when nobody holds it any more.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn output(&mut self) -> Result<&mut ChildStdout, Failure> {
        self.0.stdout.as_mut().ok_or_else(|| "the process has no output".into())
    }

    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = self.0.wait();
        // Its number may be another one's from now on.
        started().remove(&self.0.id());
        ended
    }

    /// Ends it on the spot, and returns when it has ended.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.0.kill()?;
        self.wait().map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.kill();
    }
}
