//! What goes when the command ends, however it ends: temporary files and directories, also where a signal stops it.
//!
//! **Invariant:** what is made and what becomes permanent changes hands under one lock, which a signal takes for good.
//! So what a stopped command leaves is a whole result or nothing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use forebay_env::sync::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// What there is now.
static PLACES: OnceLock<Mutex<BTreeSet<PathBuf>>> = OnceLock::new();

/// What a signal has to say of the work that it stops.
type LastWords = Box<dyn Fn(i32) + Send + Sync>;
static LAST_WORDS: OnceLock<LastWords> = OnceLock::new();
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// Has a signal that stops the command call this first. The first caller is the one.
pub(crate) fn at_signal(tell: impl Fn(i32) + Send + Sync + 'static) {
    let _ = LAST_WORDS.set(Box::new(tell));
    places();
}

fn places() -> &'static Mutex<BTreeSet<PathBuf>> {
    PLACES.get_or_init(|| {
        watch_signals();
        Mutex::default()
    })
}

/// A temporary file or directory that a signal removes. Otherwise its owner does.
#[derive(Debug)]
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    /// Makes something, and notes the path that it has.
    pub(crate) fn make<T>(
        make: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> &Path,
    ) -> io::Result<(T, Self)> {
        let mut places = places().lock();
        let made = make()?;
        let path = path(&made).to_path_buf();
        places.insert(path.clone());
        Ok((made, Self(path)))
    }

    /// Lets it become something that stays.
    pub(crate) fn keep<T>(self, keep: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut places = places().lock();
        let kept = keep();
        places.remove(&self.0);
        drop(places);
        kept
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        places().lock().remove(&self.0);
    }
}

/// Removes what there is when a signal comes, and lets the signal do what it does.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread sleeps until a signal comes, outside all simulation"
)]
fn watch_signals() {
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    // Without this the default stays: the command ends and leaves them.
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let watch = move || {
        let Some(signal) = signals.forever().next() else { return };
        let places = places().lock();
        forebay_bench::end_all();
        for path in &*places {
            let _ = if path.is_dir() { remove_dir(path) } else { std::fs::remove_file(path) };
        }
        say_last_words(signal);
        let _ = emulate_default_handler(signal);
    };
    let _ = thread::Builder::new().name("signals".into()).stack_size(64 << 10).spawn(watch);
}

/// Says them, but does not wait for a reader of standard error who takes nothing any more: the command ends all the same.
fn say_last_words(signal: i32) {
    let Some(tell) = LAST_WORDS.get() else { return };
    let (saying, said) = mpsc::channel::<()>();
    let say = move || {
        tell(signal);
        drop(saying);
    };
    if thread::Builder::new().name("last words".into()).spawn(say).is_ok() {
        let _ = said.recv_timeout(LAST_WORDS_PATIENCE);
    }
}

/// Removes a directory under another name, so that a process of this one's that still writes there brings nothing back.
#[expect(clippy::disallowed_methods, reason = "what goes is no database that anybody has open here")]
fn remove_dir(dir: &Path) -> io::Result<()> {
    let mut aside = dir.as_os_str().to_owned();
    aside.push(".going");
    match std::fs::rename(dir, &aside) {
        Ok(()) => std::fs::remove_dir_all(&aside),
        Err(_) => std::fs::remove_dir_all(dir),
    }
}

/// Whether the process was started so that a signal does nothing, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let ignored = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    let mask = std::fs::read_to_string("/proc/self/status").ok().and_then(ignored).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
