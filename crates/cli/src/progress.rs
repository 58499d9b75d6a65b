//! How far reading an input is: a bar for a person at a terminal, and of a load `{"acknowledged":N}` five times
//! a second for a program.
//!
//! The work stores two numbers; a thread beside it reads and tells them, so that a commit that waits does
//! not silence it. What a load tells as acknowledged was stored after the commit returned.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Common;
use crate::clock::Stopwatch;
use crate::form::Form;
use crate::output::thousands;
use crate::screen;

const JSON_EVERY: Duration = Duration::from_millis(200);
const BAR_EVERY: Duration = Duration::from_millis(100);

enum Audience {
    Program,
    Person(ProgressBar),
    Nobody,
}

/// See the module.
pub(crate) struct Progress {
    audience: Audience,
    is_quiet: bool,
    acknowledged: AtomicU64,
    bytes_read: AtomicU64,
}

impl Progress {
    /// Of a load: a program is told what is acknowledged.
    pub(crate) fn new(common: &Common, input_bytes: Option<u64>) -> Self {
        match common.form() {
            Form::Json => Self::to(Audience::Program, common),
            Form::Text => Self::of_reading(common, input_bytes),
        }
    }

    /// Of anything that reads: only a person is told.
    pub(crate) fn of_reading(common: &Common, input_bytes: Option<u64>) -> Self {
        let audience = match io::stderr().is_terminal() && !common.is_quiet() {
            true => Audience::Person(bar(input_bytes)),
            false => Audience::Nobody,
        };
        Self::to(audience, common)
    }

    fn to(audience: Audience, common: &Common) -> Self {
        let (acknowledged, bytes_read) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { audience, is_quiet: common.is_quiet(), acknowledged, bytes_read }
    }

    /// Of which nobody is told.
    #[cfg(test)]
    pub(crate) fn untold() -> Self {
        let (acknowledged, bytes_read) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { audience: Audience::Nobody, is_quiet: true, acknowledged, bytes_read }
    }

    /// Tells what may be wrong with the input, unless nobody wants to know.
    pub(crate) fn remark(&self, words: &str) {
        if !self.is_quiet {
            tell!("forebay: {}", screen::message(words));
        }
    }

    /// This many records are acknowledged, of this many bytes of input.
    pub(crate) fn acknowledge(&self, records: u64, bytes_read: u64) {
        self.bytes_read.store(bytes_read, Ordering::Relaxed);
        self.acknowledged.store(records, Ordering::Release);
    }

    /// This many records are read, and nothing of them is acknowledged yet: a person is told.
    pub(crate) fn see(&self, records: u64, bytes_read: u64) {
        self.bytes_read.store(bytes_read, Ordering::Relaxed);
        if let Audience::Person(_) = self.audience {
            self.count(records);
        }
    }

    /// This many records are done.
    #[inline]
    pub(crate) fn count(&self, records: u64) {
        self.acknowledged.store(records, Ordering::Relaxed);
    }

    /// This many more records are done.
    pub(crate) fn add(&self, records: u64) {
        self.acknowledged.fetch_add(records, Ordering::Relaxed);
    }

    /// This many more bytes of input are read.
    pub(crate) fn read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many bytes of input are read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    /// Clears what a person sees of the work.
    pub(crate) fn clear(&self) {
        if let Audience::Person(bar) = &self.audience {
            bar.finish_and_clear();
        }
    }

    /// Tells while `work` runs.
    pub(crate) fn tell_while<T>(&self, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            // Held until the work is done, or unwinds: then the receiver sees it gone.
            let (working, done) = mpsc::channel::<()>();
            match &self.audience {
                Audience::Nobody => {}
                Audience::Program => {
                    scope.spawn(move || self.tell_program(&done));
                }
                Audience::Person(bar) => {
                    scope.spawn(move || self.tell_person(bar, &done));
                }
            }
            let outcome = work();
            drop(working);
            outcome
        })
    }

    fn tell_program(&self, done: &Receiver<()>) {
        while done.recv_timeout(JSON_EVERY) == Err(RecvTimeoutError::Timeout) {
            let line = format!("{{\"type\":\"progress\",\"acknowledged\":{}}}\n", self.acknowledged());
            let mut out = io::stdout().lock();
            // A reader that went away does not stop the load.
            if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    }

    fn tell_person(&self, bar: &ProgressBar, done: &Receiver<()>) {
        let watch = Stopwatch::start();
        while done.recv_timeout(BAR_EVERY) == Err(RecvTimeoutError::Timeout) {
            let records = self.acknowledged();
            let rate = records as f64 / watch.seconds().max(1e-9);
            bar.set_position(self.bytes_read());
            bar.set_message(format!("{} records, {}/s", thousands(records), thousands(rate as u64)));
        }
        bar.finish_and_clear();
    }
}

/// A bar over records, for a person at a terminal.
pub(crate) fn record_bar(common: &Common) -> ProgressBar {
    if !io::stderr().is_terminal() || common.is_quiet() {
        return ProgressBar::hidden();
    }
    let template = "{bar:32} {percent:>3}% {human_pos} of {human_len} records, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => ProgressBar::new(0).with_style(style),
        Err(_) => ProgressBar::new(0),
    }
}

fn bar(input_bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match input_bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:32} {percent:>3}% {msg}, {bytes_per_sec}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}, {bytes} read, {bytes_per_sec}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
