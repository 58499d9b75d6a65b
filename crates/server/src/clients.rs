//! Who is there: what each connection last said of itself, where others look, and what one asks of another.
//!
//! **Invariant:** a connection tells of itself behind each round that it was in, and heeds what it is asked in its own loop:
//! nobody else touches it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_env::sync::{Mutex, RwLock};

use crate::acl::User;
use crate::pushes::Seat;

/// What others see of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: Vec<u8>,
    pub(crate) user: Arc<User>,
    pub(crate) database: usize,
    /// The command that it asked last, and when, in milliseconds since 1970.
    pub(crate) command: &'static str,
    pub(crate) at: u64,
    pub(crate) version: u8,
    /// The name of its library, and the version of that.
    pub(crate) library: [Vec<u8>; 2],
    /// Channels, patterns, channels of shards.
    pub(crate) subscriptions: [usize; 3],
    /// Commands that wait for `EXEC`, and keys that are watched.
    pub(crate) queued: Option<usize>,
    pub(crate) watched: usize,
    pub(crate) requests_bytes: usize,
    pub(crate) replies_bytes: usize,
    pub(crate) all_bytes: usize,
    pub(crate) is_blocked: bool,
}

/// What a connection is asked by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    End = 1,
    /// To wait no more for something to take: as if its time were over, or with an error.
    WakeWithNothing = 2,
    WakeWithError = 4,
}

/// A connection, as others know it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: u64,
    /// Whence it comes, and where to.
    pub(crate) peer: String,
    pub(crate) local: String,
    /// When it came, as the database counts time, and as the machine does.
    pub(crate) since: u64,
    came: Instant,
    pub(crate) seen: Mutex<Seen>,
    seat: Seat,
    asked: AtomicU8,
}

impl Known {
    pub(crate) fn new(id: u64, (peer, local): (String, String), seen: Seen, seat: Seat) -> Self {
        let (since, came) = (seen.at, Instant::now());
        Self { id, peer, local, since, came, seen: Mutex::new(seen), seat, asked: AtomicU8::new(0) }
    }

    pub(crate) fn ask(&self, what: Ask) {
        self.asked.fetch_or(what as u8, Ordering::SeqCst);
        self.seat.ring();
    }

    /// Whether it was asked this, since it was looked for last.
    pub(crate) fn takes(&self, what: Ask) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
            && self.asked.fetch_and(!(what as u8), Ordering::SeqCst) & what as u8 != 0
    }
}

/// Which commands wait, and until when.
#[derive(Debug)]
pub(crate) struct Pause {
    started: Instant,
    /// In milliseconds since then; 0 where nothing waits.
    until: AtomicU64,
    is_of_all: AtomicBool,
}

impl Default for Pause {
    fn default() -> Self {
        Self { started: Instant::now(), until: AtomicU64::new(0), is_of_all: AtomicBool::new(false) }
    }
}

impl Pause {
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Has commands wait that write, or all. A pause that there is gets no shorter, and no weaker.
    pub(crate) fn begin(&self, milliseconds: u64, is_of_all: bool) {
        let now = self.now();
        let was_on = self.until.fetch_max(now.saturating_add(milliseconds), Ordering::SeqCst) > now;
        let is_of_all = is_of_all || was_on && self.is_of_all.load(Ordering::SeqCst);
        self.is_of_all.store(is_of_all, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Whether a command waits that writes, or does not.
    pub(crate) fn stops(&self, writes: bool) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until > 0 && until > self.now() && (writes || self.is_of_all.load(Ordering::Relaxed))
    }
}

/// Whether a connection has said who it is, where that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Known,
    Stranger,
}

/// A stranger may take so long to say who it is before another one takes its place.
const STRANGER_TIME: Duration = Duration::from_secs(1);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    all: RwLock<BTreeMap<u64, Arc<Known>>>,
    /// Those that are there and were not asked to go, the oldest first.
    strangers: Mutex<BTreeSet<u64>>,
    pub(crate) pause: Pause,
}

impl Clients {
    pub(crate) fn add(&self, known: &Arc<Known>, standing: Standing) {
        self.all.write().insert(known.id, Arc::clone(known));
        if standing == Standing::Stranger {
            self.note(known.id, standing);
        }
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all.write().remove(&id);
        self.strangers.lock().remove(&id);
    }

    /// Notes that a connection is a stranger, or no longer one.
    pub(crate) fn note(&self, id: u64, standing: Standing) {
        match standing {
            Standing::Known => self.strangers.lock().remove(&id),
            Standing::Stranger => self.strangers.lock().insert(id),
        };
    }

    /// Asks the oldest stranger to go, if that has had its time. Says whether there was one.
    pub(crate) fn make_room(&self) -> bool {
        let mut strangers = self.strangers.lock();
        let oldest = strangers
            .first()
            .and_then(|id| self.find(*id))
            .filter(|oldest| oldest.came.elapsed() >= STRANGER_TIME);
        let Some(oldest) = oldest else { return false };
        strangers.remove(&oldest.id);
        oldest.ask(Ask::End);
        true
    }

    /// In the order in which they came.
    pub(crate) fn all(&self) -> Vec<Arc<Known>> {
        self.all.read().values().cloned().collect()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Known>> {
        self.all.read().get(&id).cloned()
    }
}
