//! [`SlowLog`]: the requests that took long lately.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_env::sync::Mutex;

/// So many are kept.
const ENTRIES_MAX: usize = 128;
/// What is kept of a request.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

/// Commands that tell passwords.
const SECRET: [&[u8]; 3] = [b"ACL", b"AUTH", b"HELLO"];

/// What is kept of a request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How many it has besides the command's name.
    pub(crate) arguments: usize,
    /// The name, and arguments, cut where they are long.
    pub(crate) shown: Vec<String>,
}

/// A request, or the requests of one connection that a turn did one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) id: u64,
    /// When it was done, in milliseconds since 1970.
    pub(crate) at_milliseconds: u64,
    pub(crate) microseconds: u64,
    pub(crate) request: Request,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SlowLog {
    threshold_microseconds: AtomicU64,
    next_id: AtomicU64,
    entries: Mutex<VecDeque<Slow>>,
}

/// What is kept of a request, of whose connection so many more were done with it.
pub(crate) fn shown(arguments: &[&[u8]], others: usize) -> Request {
    Request { arguments: arguments.len().saturating_sub(1), shown: texts(arguments, others) }
}

fn texts(arguments: &[&[u8]], others: usize) -> Vec<String> {
    let text = |argument: &&[u8]| {
        let cut = &argument[..argument.len().min(ARGUMENT_BYTES_MAX)];
        let more = argument.len() - cut.len();
        let text = cut.escape_ascii().to_string();
        if more > 0 { format!("{text}... ({more} more bytes)") } else { text }
    };
    if arguments.first().is_some_and(|name| SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret))) {
        return vec![text(&arguments[0]), "(redacted)".into()];
    }
    let mut shown: Vec<String> = arguments.iter().take(ARGUMENTS_MAX).map(text).collect();
    if arguments.len() > ARGUMENTS_MAX {
        shown.push(format!("... ({} more arguments)", arguments.len() - ARGUMENTS_MAX));
    }
    if others > 0 {
        shown.push(format!("... (with {others} more requests of its pipeline)"));
    }
    shown
}

impl SlowLog {
    pub(crate) fn new(threshold: Duration) -> Self {
        let log = Self {
            threshold_microseconds: AtomicU64::new(0),
            next_id: AtomicU64::new(0),
            entries: Mutex::default(),
        };
        log.set_threshold(threshold);
        log
    }

    /// What takes less is not noted.
    pub(crate) fn threshold(&self) -> Duration {
        Duration::from_micros(self.threshold_microseconds.load(Ordering::Relaxed))
    }

    pub(crate) fn set_threshold(&self, threshold: Duration) {
        let microseconds = u64::try_from(threshold.as_micros()).unwrap_or(u64::MAX);
        self.threshold_microseconds.store(microseconds, Ordering::Relaxed);
    }

    /// Notes a request, if it took long.
    pub(crate) fn note(
        &self,
        took: Duration,
        at_milliseconds: impl Fn() -> u64,
        request: impl FnOnce() -> Request,
    ) {
        if took < self.threshold() {
            return;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let slow = Slow { id, at_milliseconds: at_milliseconds(), microseconds, request: request() };
        let mut entries = self.entries.lock();
        entries.push_front(slow);
        entries.truncate(ENTRIES_MAX);
    }

    /// The last ones first.
    pub(crate) fn last(&self, count: usize) -> Vec<Slow> {
        self.entries.lock().iter().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().len()
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_kept_and_cut() {
        let log = SlowLog::new(Duration::from_millis(1));
        log.note(Duration::from_micros(999), || 5, || panic!("it was fast"));
        for _ in 0..ENTRIES_MAX + 10 {
            log.note(Duration::from_micros(1500), || 5, || shown(&[b"GET", &[0xff; 200]], 3));
        }
        assert_eq!(log.len(), ENTRIES_MAX);
        let last = log.last(1).remove(0);
        assert_eq!((last.id, last.microseconds, last.at_milliseconds), (ENTRIES_MAX as u64 + 9, 1500, 5));
        assert_eq!(last.request.shown[1], format!("{}... (72 more bytes)", "\\xff".repeat(128)));
        assert_eq!(last.request.shown[2], "... (with 3 more requests of its pipeline)");
        let many = shown(&[&b"x"[..]; 40], 0);
        assert_eq!((many.arguments, many.shown.len()), (39, ARGUMENTS_MAX + 1));
        assert_eq!(shown(&[b"auth", b"secret"], 0).shown, ["auth", "(redacted)"]);
        log.clear();
        assert_eq!(log.len(), 0);
    }
}
