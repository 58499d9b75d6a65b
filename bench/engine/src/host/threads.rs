//! Processor time by the kind of thread, as the kernel counts it for the threads that are there.
//!
//! **Invariant:** no thread counts twice. What a thread took that has ended is in no kind, unless who joined it adds it.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::getpid;

/// What threads are there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The main thread, which drives the engine. Those that write beside each other have ended when anybody looks.
    Writer,
    Sort,
    Flush,
    Compact,
    House,
    Io,
}

const KINDS: [Kind; 6] = [Kind::Writer, Kind::Sort, Kind::Flush, Kind::Compact, Kind::House, Kind::Io];
/// Where the processor time of the user stands behind the name. That of the kernel is next.
const USER_FIELD: usize = 11;

/// Processor time of each kind, at one moment or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threads([Duration; KINDS.len()]);

impl Threads {
    /// As it is now; `None` where the kernel does not tell.
    #[expect(clippy::disallowed_methods, reason = "what the kernel tells, not files of the database")]
    pub(crate) fn now() -> Option<Self> {
        let (main, hertz) = (getpid().as_raw_nonzero().to_string(), clock_ticks_per_second());
        let mut threads = Self::default();
        for entry in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
            // One that ends meanwhile is not there any more.
            let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            let (name, ticks) = parse(&text)?;
            let kind = if entry.file_name() == *main { Some(Kind::Writer) } else { kind_of(name) };
            if let Some(kind) = kind {
                threads.add(kind, Duration::from_secs_f64(ticks as f64 / hertz as f64));
            }
        }
        Some(threads)
    }

    pub(crate) fn add(&mut self, kind: Kind, time: Duration) {
        self.0[kind as usize] += time;
    }

    pub(crate) fn of(&self, kind: Kind) -> Duration {
        self.0[kind as usize]
    }

    /// What all kinds took.
    pub(crate) fn sum(&self) -> Duration {
        self.0.iter().sum()
    }

    pub(crate) fn combine(self, other: Self, with: fn(Duration, Duration) -> Duration) -> Self {
        Self(KINDS.map(|kind| with(self.of(kind), other.of(kind))))
    }
}

/// By the name, of which the kernel keeps 15 bytes: no number of a compactor.
fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "forebay-sort" => Some(Kind::Sort),
        "forebay-flush" => Some(Kind::Flush),
        "forebay-compact" => Some(Kind::Compact),
        "forebay-house" => Some(Kind::House),
        "forebay-io" => Some(Kind::Io),
        _ => None,
    }
}

/// A thread's `stat`: its name, and the ticks that it ran. The name stands in brackets, and may have some itself.
fn parse(text: &str) -> Option<(&str, u64)> {
    let (start, rest) = text.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    let mut fields = rest.split_whitespace().skip(USER_FIELD);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((name, ticks()? + ticks()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_text_is_read_whatever_its_name() {
        let text =
            |name: &str| format!("17 ({name}) S 1 17 17 0 -1 4194560 9 0 0 0 120 34 0 0 20 0 3 0 99 1 2");
        for name in ["forebay-compact", "a) b (c", ""] {
            assert_eq!(parse(&text(name)), Some((name, 154)));
        }
        assert_eq!((parse("17 (x) S 1 17"), parse("")), (None, None));
    }

    /// A compactor's name ends in its number, which the kernel cuts off.
    #[test]
    fn threads_are_told_apart_by_their_names() {
        let work = |name: &str| {
            let spin = || {
                let before = crate::host::thread_cpu();
                while crate::host::thread_cpu() - before < Duration::from_millis(100) {}
                Threads::now()
            };
            std::thread::Builder::new().name(name.into()).spawn(spin).unwrap().join().unwrap().unwrap()
        };
        let least = Duration::from_millis(80);
        assert!(work("forebay-compact-0").of(Kind::Compact) >= least);
        assert!(work("forebay-io").of(Kind::Io) >= least);
        let other = work("nobody's");
        assert_eq!((other.of(Kind::Sort), other.of(Kind::House)), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn times_are_added_and_taken_from_one_another() {
        let mut then = Threads::default();
        then.add(Kind::Sort, Duration::from_secs(1));
        let mut now = then;
        now.add(Kind::Sort, Duration::from_secs(2));
        now.add(Kind::Io, Duration::from_secs(4));
        let since = now.combine(then, Duration::saturating_sub);
        assert_eq!((since.of(Kind::Sort), since.sum()), (Duration::from_secs(2), Duration::from_secs(6)));
    }
}
