//! What went wrong in a seed, and the smallest part of it that still goes wrong in the same place and way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use forebay_env::sync::Mutex;

use crate::options::PLAIN;
use crate::threads::{self, Threaded};
use crate::{Outcome, Part, run};

/// Runs that shrinking takes, at most.
const RUNS_MAX: usize = 400;

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// As much of it as was done.
    pub part: Part,
    /// What was said, and where: file and line.
    pub message: String,
    place: String,
    operations: Vec<u64>,
}

/// The place and the message of the first panic since it was last taken.
static PANIC: LazyLock<Mutex<Option<(String, String)>>> = LazyLock::new(Mutex::default);

/// Panics are kept, and told by whoever catches them. For the whole process.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or(String::new(), ToString::to_string);
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        PANIC.lock().get_or_insert((place, text));
    }));
}

/// Runs a part of a seed.
pub fn attempt(seed: u64, part: &Part) -> Result<Outcome, Box<Failure>> {
    PANIC.lock().take();
    let mut operations = Vec::new();
    let mut watch = |number| operations.push(number);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, part, false, &mut watch)));
    outcome.map_err(|_| {
        let (place, text) = PANIC.lock().take().unwrap_or_default();
        let message = format!("{place}: {text}");
        Box::new(Failure { seed, part: part.clone(), message, place, operations })
    })
}

/// Runs a seed of real threads. The error is what was said, and where.
pub fn attempt_threads(seed: u64) -> Result<Threaded, String> {
    PANIC.lock().take();
    let outcome = catch_unwind(AssertUnwindSafe(|| threads::run(seed)));
    outcome.map_err(|_| {
        let (place, text) = PANIC.lock().take().unwrap_or_default();
        format!("{place}: {text}")
    })
}

impl Failure {
    /// Where it went wrong, and how what was said begins, without the numbers in it.
    fn kind(&self) -> (&str, Vec<&str>) {
        let said = self.message.rsplit_once("without a cause: ").map_or("", |(_, cause)| cause);
        let words = said.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
        (&self.place, words.take(4).collect())
    }

    /// A smaller one, which fails in the same place and way.
    pub fn shrunk(self) -> Self {
        let mut best = self;
        let tries = |best: &mut Self, part: Part| match attempt(best.seed, &part) {
            Err(failure) if failure.kind() == best.kind() => {
                *best = *failure;
                true
            }
            _ => false,
        };
        for name in PLAIN {
            let part = best.part.with_plain(name);
            tries(&mut best, part);
        }
        let mut chunk = best.operations.len().div_ceil(2);
        let mut left = RUNS_MAX;
        while chunk > 0 {
            let mut at = 0;
            while at < best.operations.len() && left > 0 {
                left -= 1;
                let mut numbers = best.operations.clone();
                numbers.drain(at..numbers.len().min(at + chunk));
                let part = best.part.narrowed(&numbers);
                if !tries(&mut best, part) {
                    at += chunk;
                }
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
        best
    }
}
