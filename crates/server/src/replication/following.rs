//! A server that follows: one thread takes in what the source tells, while loops answer who reads.
//!
//! 1. A turn holds the gate for reading, and a step of the follower for writing. So no turn sees a commit half done, and
//!    none holds a table that the source has dropped.
//! 2. Behind a step, what the server knows of its tables is looked for anew.
//! 3. When it is promoted, the thread makes the database one of its own while no turn runs, and ends.
//!
//! **Invariant:** nothing writes to a database that follows, but the follower.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Beside, Database, Follower, Options, Result, StreamEnd};
use forebay_env::sync::{Mutex, RwLock, RwLockReadGuard};

use super::link::{Both, READ_INTERVAL, Source, is_pause};
use crate::shared::Shared;

/// A source that says nothing for so long is gone: it says each second that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Between tries to reach it.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is known of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    pub(crate) is_up: bool,
    /// Why not, where that is known.
    pub(crate) error: String,
    /// When something came last.
    pub(crate) heard_at: Option<Instant>,
    /// By when, on the source's clock, the follower had all.
    pub(crate) caught_up_at_milliseconds: Option<u64>,
}

/// See the module.
pub(crate) struct Following {
    is_on: AtomicBool,
    gate: RwLock<()>,
    /// Empty tables, in the place of those that the source has not made yet.
    blank: Option<Database>,
    pub(crate) source: Option<Source>,
    follower: Mutex<Option<Follower>>,
    link: Mutex<Link>,
    is_to_end: AtomicBool,
    promotion: Mutex<Option<std::result::Result<(), String>>>,
    /// How often the link came up.
    pub(crate) connected: AtomicU64,
}

impl Following {
    /// Of a server that follows, or of one that does not.
    pub(crate) fn new(follower: Option<Follower>, source: Option<Source>) -> Result<Self> {
        let is_on = follower.is_some();
        let blank = match is_on {
            true => {
                let env = Env { fs: MemoryFs::new(), ..Env::real() };
                let options = Options::default().memory_limit(1 << 20).env(env);
                Some(Database::open("/blank", options)?)
            }
            false => None,
        };
        if let Some(source) = &source {
            source.check()?;
        }
        Ok(Self {
            is_on: AtomicBool::new(is_on),
            gate: RwLock::default(),
            blank,
            source,
            follower: Mutex::new(follower),
            link: Mutex::default(),
            is_to_end: AtomicBool::new(false),
            promotion: Mutex::default(),
            connected: AtomicU64::new(0),
        })
    }

    /// Whether the server follows, and takes no writes.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// What a turn holds, so that the follower takes no step meanwhile.
    pub(crate) fn reading(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.is_on().then(|| self.gate.read())
    }

    /// Where a table is looked for that the source has not made.
    pub(crate) fn blank(&self) -> Option<&Database> {
        self.blank.as_ref().filter(|_| self.is_on())
    }

    /// What is known of the source now.
    pub(crate) fn link(&self) -> Link {
        self.link.lock().clone()
    }

    /// How long ago the source had nothing that is not here, in milliseconds; unknown before the follower was there once.
    pub(crate) fn lag_milliseconds(&self, now: u64) -> Option<u64> {
        let caught_up_at = self.link.lock().caught_up_at_milliseconds;
        caught_up_at.map(|at| now.saturating_sub(at))
    }

    /// Has the thread promote the database. Says what came of it, once that is known.
    pub(crate) fn promote(&self) -> Option<std::result::Result<(), String>> {
        if !self.is_on() {
            return Some(Ok(()));
        }
        self.is_to_end.store(true, Ordering::SeqCst);
        self.promotion.lock().clone()
    }
}

/// The thread, where the server follows.
pub(crate) fn spawn(shared: &Arc<Shared>) -> io::Result<Option<JoinHandle<()>>> {
    let Some(follower) = shared.following.follower.lock().take() else { return Ok(None) };
    let Some(source) = shared.following.source.clone() else { return Ok(None) };
    let shared = Arc::clone(shared);
    let run = move || {
        let follower = follower.beside(Arc::new(Reader(Arc::clone(&shared))));
        follow(&shared, &source, follower);
    };
    thread::Builder::new().name("forebay-follow".into()).spawn(run).map(Some)
}

fn is_stopping(shared: &Shared) -> bool {
    shared.stopping.load(Ordering::SeqCst)
}

/// Follows, for as long as the server runs and nobody promotes it.
fn follow(shared: &Arc<Shared>, source: &Source, mut follower: Follower) {
    let following = &shared.following;
    let (mut pause, mut told) = (PAUSE_MIN, String::new());
    let is_wanted = || !is_stopping(shared) && !following.is_to_end.load(Ordering::SeqCst);
    while is_wanted() {
        let before = follower.position();
        let reason = match once(shared, source, &mut follower) {
            Err(error) => error.to_string(),
            Ok(StreamEnd::Behind) => format!(
                "the source is behind record {}, or has not heard yet which tables were made by then",
                follower.position()
            ),
            Ok(_) => "the source has ended the connection".into(),
        };
        if !is_wanted() {
            break;
        }
        if follower.position() != before {
            pause = PAUSE_MIN;
        }
        let was_up = std::mem::replace(&mut following.link.lock().is_up, false);
        if was_up || reason != told {
            shared.config.tell(&format!("the source at {}:{}: {reason}", source.host, source.port));
        }
        told.clone_from(&reason);
        following.link.lock().error = reason;
        let until = Instant::now() + pause;
        while is_wanted() && Instant::now() < until {
            thread::sleep(READ_INTERVAL.min(pause));
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    following.link.lock().is_up = false;
    if is_stopping(shared) {
        return;
    }
    let promoted = promote(shared, follower);
    shared.config.tell(&match &promoted {
        Ok(()) => {
            format!("promoted at record {}: it takes writes of its own", shared.database.last_sequence())
        }
        Err(error) => format!("cannot be promoted, and follows no more: {error}"),
    });
    *following.promotion.lock() = Some(promoted.map_err(|error| error.to_string()));
}

/// Follows over one connection.
fn once(shared: &Arc<Shared>, source: &Source, follower: &mut Follower) -> Result<StreamEnd> {
    let stream = source.ask(follower.position())?;
    Ok(follower.apply(Incoming { stream, shared: Arc::clone(shared) })?.end)
}

/// Makes the database one that takes writes, while no turn runs.
fn promote(shared: &Shared, follower: Follower) -> Result<()> {
    let _alone = shared.following.gate.write();
    drop(follower.promote_shared()?);
    shared.renew_tables()?;
    shared.pass_containers()?;
    shared.following.is_on.store(false, Ordering::Release);
    Ok(())
}

/// What comes of the source. It ends where nothing more is wanted, or the source is gone.
struct Incoming {
    stream: Box<dyn Both>,
    shared: Arc<Shared>,
}

impl Read for Incoming {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            let following = &self.shared.following;
            if is_stopping(&self.shared) || following.is_to_end.load(Ordering::SeqCst) {
                return Ok(0);
            }
            match self.stream.read(bytes) {
                Err(error) if is_pause(&error) && begun.elapsed() < SILENCE_MAX => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Of TLS that ends without a word.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                Ok(read) => {
                    following.link.lock().heard_at = Some(Instant::now());
                    return Ok(read);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Loops, which read the follower's database.
struct Reader(Arc<Shared>);

impl Reader {
    /// The source has told what there is: a stream that is refused comes to no such thing.
    fn note_up(&self) {
        let Shared { following, config, database, .. } = &*self.0;
        {
            let mut link = following.link.lock();
            if link.is_up {
                return;
            }
            link.is_up = true;
            link.error.clear();
        }
        following.connected.fetch_add(1, Ordering::Relaxed);
        if let Some(Source { host, port, .. }) = &following.source {
            let position = database.last_sequence();
            config.tell(&format!("follows {host}:{port}, and has records up to {position}"));
        }
    }
}

impl Beside for Reader {
    fn step(&self, take: &mut dyn FnMut() -> bool) {
        let shared = &self.0;
        let before = shared.database.last_sequence();
        let alone = shared.following.gate.write();
        if take() {
            // It fails where the database does, and then so do those who read.
            let _ = shared.renew_tables();
        }
        shared.note_all_written();
        // Who waits for it need not wait for what is told.
        drop(alone);
        if shared.database.last_sequence() != before {
            self.note_up();
        }
    }

    fn caught_up(&self, _: u64, at_milliseconds: u64) {
        self.note_up();
        self.0.following.link.lock().caught_up_at_milliseconds = Some(at_milliseconds);
    }
}
