//! `FB.CHANGES FOLLOW`: connections that are told of each commit. One thread reads the log for all of them.
//!
//! 1. A [`Feed`] has room for one piece. While its connection has not taken that, nothing more is read for it.
//! 2. The thread makes durable what is new, once for all feeds, and only then tells it.
//! 3. A connection takes a piece once it is not behind with its replies, and wakes the thread.
//!
//! **Invariant:** each commit is told once, in order, and only once it survives a power loss; nobody who writes waits for
//! who is told. Of the log a feed holds nothing for longer than a second while its connection takes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use forebay::{ChangeBatch, Changes, Error};
use forebay_env::sync::Mutex;

use crate::commands::{Refusal, commit_bytes, push_commit, push_end};
use crate::held::Held;
use crate::pushes::Seat;
use crate::resp::Reply;
use crate::shared::Shared;

/// So many feeds there are at most.
pub(crate) const FEEDS_MAX: usize = 64;
/// A piece has about this, and one commit at least.
const PIECE_BYTES: usize = 256 << 10;
/// And is made of about this, where most of it is of other tables: then others are served.
const SEEN_BYTES_MAX: usize = 4 << 20;
/// How soon a commit is told.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Where the log is held for one that takes nothing, it is let go of behind this.
const HELD_MAX: Duration = Duration::from_secs(1);
/// Who is told of some tables hears this often how far the others have come.
const PASSED_INTERVAL: Duration = Duration::from_secs(1);

/// What waits for a connection.
#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Where its messages begin.
    marks: Vec<usize>,
    /// The number of the last record that it tells of.
    last: u64,
    /// Nothing comes behind it.
    is_last: bool,
    held: Option<Held>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Feed {
    seat: Seat,
    /// Changes of these are told; of all where it has none.
    tables: Vec<String>,
    piece: Mutex<Piece>,
    /// What waits, for who looks from outside.
    bytes: AtomicUsize,
    /// The number of the last record that the connection was told.
    told: AtomicU64,
    is_left: AtomicBool,
}

impl Feed {
    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of the last record that was told.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// Gives up what waits: nobody is told any more.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        *self.piece.lock() = Piece::default();
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Writes what waits behind a connection's replies, unless those have more than some bytes. Returns whether something
    /// was written, and whether nothing more comes.
    pub(crate) fn write(&self, reply: &mut Reply, bytes_max: usize) -> (bool, bool) {
        if reply.bytes.len() > bytes_max || self.bytes() == 0 {
            return (false, false);
        }
        let Piece { bytes, marks, last, is_last, held } = std::mem::take(&mut *self.piece.lock());
        let begin = reply.bytes.len();
        reply.bytes.extend_from_slice(&bytes);
        let mark = reply.push_mark();
        marks.iter().for_each(|at| reply.bytes[begin + at] = mark);
        self.told.store(last, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        drop(held);
        (true, is_last)
    }

    fn put(&self, piece: Piece) {
        let mut waiting = self.piece.lock();
        if !self.is_left.load(Ordering::Relaxed) {
            debug_assert!(waiting.bytes.is_empty(), "a piece comes once the one before was taken");
            self.bytes.store(piece.bytes.len(), Ordering::Relaxed);
            *waiting = piece;
            drop(waiting);
            self.seat.ring();
        }
    }
}

/// All feeds.
#[derive(Default)]
pub(crate) struct Feeds {
    /// Those that the thread has not seen yet.
    new: Mutex<Vec<Arc<Feed>>>,
    count: AtomicUsize,
    thread: OnceLock<Thread>,
}

impl Feeds {
    /// Begins to tell a connection what was committed after a number.
    pub(crate) fn begin(&self, seat: &Seat, since: u64, tables: Vec<String>) -> Result<Arc<Feed>, Refusal> {
        if self.count.fetch_add(1, Ordering::SeqCst) >= FEEDS_MAX {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Err(format!("ERR {FEEDS_MAX} connections follow the changes already").into());
        }
        let feed = Arc::new(Feed {
            seat: seat.clone(),
            tables,
            piece: Mutex::default(),
            bytes: AtomicUsize::new(0),
            told: AtomicU64::new(since),
            is_left: AtomicBool::new(false),
        });
        self.new.lock().push(Arc::clone(&feed));
        self.wake();
        Ok(feed)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Has the thread look whether there is something to do.
    pub(crate) fn wake(&self) {
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    fn run(&self, shared: &Shared) {
        let mut readings: Vec<Reading> = Vec::new();
        while !shared.stopping.load(Ordering::SeqCst) {
            readings.extend(self.new.lock().drain(..).map(Reading::new));
            let mut is_busy = false;
            let durable = durable(shared, &readings);
            for reading in &mut readings {
                // What fails inside ends one feed, and no other.
                let step = catch_unwind(AssertUnwindSafe(|| reading.step(shared, &durable)));
                is_busy |= step.unwrap_or_else(|_| {
                    reading.end("ERR the feed failed inside; see the log");
                    false
                });
            }
            let before = readings.len();
            readings.retain(|reading| !reading.is_over && !reading.feed.is_left.load(Ordering::Relaxed));
            self.count.fetch_sub(before - readings.len(), Ordering::SeqCst);
            match (readings.is_empty(), is_busy) {
                (true, _) => thread::park(),
                (false, true) => {}
                (false, false) => thread::park_timeout(LOOK_INTERVAL),
            }
        }
    }
}

/// The number up to which records survive a power loss, once those do that somebody waits to be told of.
fn durable(shared: &Shared, readings: &[Reading]) -> Result<u64, Error> {
    let (database, last) = (&shared.database, shared.database.last_sequence());
    let is_waited_for = |reading: &Reading| reading.feed.bytes() == 0 && reading.position < last;
    if database.durable_sequence() < last && readings.iter().any(is_waited_for) {
        database.sync()?;
    }
    Ok(database.durable_sequence())
}

/// Why a feed ends, with a word of its own where a newer copy helps, and nothing else does.
fn told(error: Error) -> Refusal {
    match error {
        Error::ChangesGone { .. } => format!("GONE {error}").into(),
        error => error.into(),
    }
}

/// How far the thread is with a feed.
struct Reading {
    feed: Arc<Feed>,
    /// The number of the last record that was read.
    position: u64,
    /// What comes next, of a moment that is past.
    changes: Option<Changes>,
    /// When something was taken, or told, last.
    moved_at: Instant,
    is_over: bool,
}

impl Reading {
    fn new(feed: Arc<Feed>) -> Self {
        let position = feed.told();
        Self { feed, position, changes: None, moved_at: Instant::now(), is_over: false }
    }

    /// Reads a piece for a feed that has none. Returns whether there may be more at once.
    fn step(&mut self, shared: &Shared, durable: &Result<u64, Error>) -> bool {
        if self.feed.bytes() > 0 {
            if self.moved_at.elapsed() > HELD_MAX {
                self.changes = None;
            }
            return false;
        }
        if shared.buffers_bytes.load(Ordering::Relaxed) > shared.config.buffers_bytes_max {
            // Whoever holds most is about to be closed.
            return false;
        }
        let durable = match durable {
            Ok(durable) => *durable,
            Err(error) => return self.end(&format!("ERR {error}")),
        };
        let mut reply = Reply { bytes: Vec::new(), version: 3 };
        let mut piece = Piece::default();
        let refusal = self.read(shared, durable, &mut reply, &mut piece.marks).err();
        let is_quiet = reply.bytes.is_empty();
        if is_quiet && self.position > self.feed.told() && self.moved_at.elapsed() > PASSED_INTERVAL {
            piece.marks.push(0);
            push_commit(&mut reply, &ChangeBatch { last_sequence: self.position, changes: Vec::new() });
        }
        if let Some(refusal) = refusal {
            piece.marks.push(reply.bytes.len());
            push_end(&mut reply, self.position, &refusal.0);
            (self.is_over, self.changes) = (true, None);
        }
        if reply.bytes.is_empty() {
            return self.position < durable;
        }
        self.moved_at = Instant::now();
        let held = Held::new(reply.bytes.capacity(), &shared.buffers_bytes);
        let (is_last, last) = (self.is_over, self.position);
        self.feed.put(Piece { bytes: reply.bytes, last, is_last, held: Some(held), ..piece });
        self.position < durable
    }

    /// Reads commits, up to the end of a piece or of what is durable.
    fn read(
        &mut self,
        shared: &Shared,
        durable: u64,
        reply: &mut Reply,
        marks: &mut Vec<usize>,
    ) -> Result<(), Refusal> {
        let mut seen_bytes = 0;
        while self.position < durable && reply.bytes.len() < PIECE_BYTES && seen_bytes < SEEN_BYTES_MAX {
            let changes = match &mut self.changes {
                Some(changes) => changes,
                none => none.insert(shared.database.changes(self.position).map_err(told)?),
            };
            let next = changes.next().transpose().map_err(told)?;
            let Some(mut batch) = next.filter(|batch| batch.last_sequence <= durable) else {
                // The rest is newer than it, and is looked for again.
                self.changes = None;
                break;
            };
            seen_bytes += commit_bytes(&batch);
            let tables = &self.feed.tables;
            if !tables.is_empty() {
                batch.changes.retain(|change| tables.iter().any(|table| **table == *change.table));
            }
            if tables.is_empty() || !batch.changes.is_empty() {
                let (bytes, bytes_max) = (commit_bytes(&batch), shared.config.reply_bytes_max());
                if bytes > bytes_max {
                    return Err(format!(
                        "ERR the next commit has {bytes} bytes, and may have {bytes_max}: go on behind it from {}, and \
                         read it by `forebay changes`, or start the server with more for `--buffers`",
                        batch.last_sequence
                    )
                    .into());
                }
                marks.push(reply.bytes.len());
                push_commit(reply, &batch);
            }
            self.position = batch.last_sequence;
        }
        if self.position >= durable {
            self.changes = None;
        }
        Ok(())
    }

    /// Tells why nothing more comes.
    fn end(&mut self, text: &str) -> bool {
        let mut reply = Reply { bytes: Vec::new(), version: 3 };
        push_end(&mut reply, self.position, text);
        (self.is_over, self.changes) = (true, None);
        let last = self.position;
        self.feed.put(Piece { bytes: reply.bytes, marks: vec![0], last, is_last: true, held: None });
        false
    }
}

/// The thread.
pub(crate) fn spawn(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let run = {
        let shared = Arc::clone(shared);
        move || shared.feeds.run(&shared)
    };
    let thread = thread::Builder::new().name("forebay-feeds".into()).spawn(run)?;
    let _ = shared.feeds.thread.set(thread.thread().clone());
    // Somebody may have come before.
    thread.thread().unpark();
    Ok(thread)
}
