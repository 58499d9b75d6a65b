//! [`Outbox`]: messages that wait for a connection. A message that many wait for is there once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_env::sync::Mutex;
use mio::Waker;

use crate::held::Held;
use crate::resp::Reply;

/// Wakes a loop, which then looks at some of its connections.
pub(crate) struct Bell {
    waker: Arc<Waker>,
    numbers: Mutex<Vec<usize>>,
}

impl Bell {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { waker, numbers: Mutex::default() }
    }

    /// One that cannot be woken looks by itself within a second.
    pub(crate) fn wake(&self) {
        drop(self.waker.wake());
    }

    fn ring(&self, number: usize) {
        let mut numbers = self.numbers.lock();
        numbers.push(number);
        if numbers.len() == 1 {
            self.wake();
        }
    }

    /// Those that it was rung for. Another connection may have the number meanwhile, and finds that it has nothing.
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.numbers.lock())
    }
}

/// Where a connection is: its loop's bell, and its number there.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) bell: Arc<Bell>,
    pub(crate) number: usize,
}

impl Seat {
    pub(crate) fn ring(&self) {
        self.bell.ring(self.number);
    }

    /// Whether it is the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.bell, &other.bell)
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({})", self.number)
    }
}

/// Bytes that are in a sum as long as they are there.
#[derive(Debug)]
struct Counted {
    bytes: Vec<u8>,
    held: Held,
}

/// What bytes that are counted take besides.
const COUNTED_BYTES: usize = 128;

impl Counted {
    fn new(bytes: Vec<u8>, sum: &Arc<AtomicUsize>) -> Self {
        Self { held: Held::new(bytes.capacity() + COUNTED_BYTES, sum), bytes }
    }
}

/// The text of a message, which all have who get it, whatever pattern they know it by.
#[derive(Clone, Debug)]
pub(crate) struct Text(Arc<Counted>);

impl Text {
    /// `sum` has what all buffers take.
    pub(crate) fn new(text: &[u8], sum: &Arc<AtomicUsize>) -> Self {
        let mut reply = Reply::default();
        reply.bulk(text);
        Self(Arc::new(Counted::new(reply.bytes, sum)))
    }
}

/// A message, as version 3 of the protocol has it.
#[derive(Debug)]
pub(crate) struct Message {
    head: Counted,
    text: Text,
}

impl Message {
    /// The words before the text: the kind, and the names by which it came.
    pub(crate) fn new(words: &[&[u8]], text: &Text) -> Self {
        let mut head = Reply { bytes: Vec::new(), version: 3 };
        head.push(words.len() + 1);
        words.iter().for_each(|word| head.bulk(word));
        Self { head: Counted::new(head.bytes, text.0.held.sum()), text: text.clone() }
    }

    /// Has its place in an outbox be in the sum of all buffers, or no longer.
    fn count_place(&self) {
        self.text.0.held.sum().fetch_add(PLACE_BYTES, Ordering::Relaxed);
    }

    fn forget_place(&self) {
        self.text.0.held.sum().fetch_sub(PLACE_BYTES, Ordering::Relaxed);
    }

    /// What it counts for each connection that it waits for.
    pub(crate) fn bytes(&self) -> usize {
        self.head.bytes.len() + self.text.0.bytes.len() + COUNTED_BYTES
    }

    fn write(&self, reply: &mut Reply) {
        let mark = reply.bytes.len();
        reply.bytes.extend_from_slice(&self.head.bytes);
        reply.bytes[mark] = reply.push_mark();
        reply.bytes.extend_from_slice(&self.text.0.bytes);
    }
}

/// What a message takes in an outbox: a queue may be half empty.
const PLACE_BYTES: usize = 2 * size_of::<Arc<Message>>();

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Arc<Message>>,
    bytes: usize,
    is_given_up: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.messages.iter().for_each(|message| message.forget_place());
    }
}

impl Waiting {
    /// Takes nothing any more.
    fn given_up() -> Self {
        Self { messages: VecDeque::new(), bytes: 0, is_given_up: true }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    seat: Seat,
    bytes_max: usize,
    waiting: Mutex<Waiting>,
    /// For who looks from outside.
    bytes: AtomicUsize,
}

impl Outbox {
    pub(crate) fn new(seat: Seat, bytes_max: usize) -> Self {
        Self { seat, bytes_max, waiting: Mutex::default(), bytes: AtomicUsize::new(0) }
    }

    /// Has a message wait. One alone may be as long as it likes.
    pub(crate) fn put(&self, message: &Arc<Message>) {
        let mut waiting = self.waiting.lock();
        if waiting.is_given_up {
            return;
        }
        let bytes = waiting.bytes + message.bytes();
        if bytes > self.bytes_max && !waiting.messages.is_empty() {
            drop(waiting);
            return self.give_up();
        }
        waiting.bytes = bytes;
        self.bytes.store(bytes, Ordering::Relaxed);
        message.count_place();
        waiting.messages.push_back(Arc::clone(message));
        if waiting.messages.len() == 1 {
            self.seat.ring();
        }
    }

    /// Forgets what waits: the connection will be closed, or is.
    pub(crate) fn give_up(&self) {
        let before = std::mem::replace(&mut *self.waiting.lock(), Waiting::given_up());
        self.bytes.store(0, Ordering::Relaxed);
        if !before.is_given_up {
            self.seat.ring();
        }
    }

    /// Forgets what waits, and takes no more: the connection listens to nothing, and no message may come behind the reply
    /// that says so.
    pub(super) fn retire(&self) {
        *self.waiting.lock() = Waiting::given_up();
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Writes messages behind a connection's replies, until those have so many bytes. `false` where it was given up.
    pub(crate) fn write(&self, reply: &mut Reply, bytes_max: usize) -> bool {
        let mut waiting = self.waiting.lock();
        while reply.bytes.len() <= bytes_max
            && let Some(message) = waiting.messages.pop_front()
        {
            waiting.bytes -= message.bytes();
            message.forget_place();
            message.write(reply);
        }
        if waiting.messages.is_empty() {
            // Or a burst would be remembered by its memory.
            waiting.messages = VecDeque::new();
        }
        self.bytes.store(waiting.bytes, Ordering::Relaxed);
        !waiting.is_given_up
    }

    /// Bytes of messages that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
