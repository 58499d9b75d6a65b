//! [`Hub`]: who listens to which channels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_env::sync::RwLock;

use super::outbox::{Message, Outbox, Seat, Text};
use super::outgoing::Outgoing;
use crate::commands::Refusal;
use crate::glob;

/// The longest name of a channel, and pattern.
const NAME_BYTES_MAX: usize = 1024;
/// What the names that a connection listens to may take.
const NAMES_BYTES_MAX: usize = 4 << 20;
/// What a name takes besides its bytes, here and at its connection.
const NAME_BYTES: usize = 200;
/// All patterns together: each is held against each name that somebody publishes to.
const PATTERNS_BYTES_MAX: usize = 64 << 10;
/// So many steps of patterns are as much work as a byte of an answer.
const STEPS_OF_A_BYTE: usize = 16;

/// What a name is: of a channel, a pattern of such names, or of a channel that belongs to one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

type Listeners = BTreeMap<u64, Arc<Outbox>>;

#[derive(Debug, Default)]
struct Names {
    of: [HashMap<Vec<u8>, Listeners>; 3],
    patterns_bytes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    names: RwLock<Names>,
    /// How many names there are; without any nobody looks further.
    count: AtomicUsize,
}

/// What a connection listens to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    names: [BTreeSet<Vec<u8>>; 3],
    bytes: usize,
    pub(crate) outbox: Option<Arc<Outbox>>,
}

impl Subscriptions {
    /// Whether it listens to anything.
    pub(crate) fn is_any(&self) -> bool {
        self.names.iter().any(|names| !names.is_empty())
    }

    /// How many it has, as replies tell it: channels of shards are counted for themselves.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        let [channels, patterns, shards] = self.names.each_ref().map(BTreeSet::len);
        if kind == Kind::Shard { shards } else { channels + patterns }
    }

    /// Of one kind.
    pub(crate) fn of(&self, kind: Kind) -> Vec<Vec<u8>> {
        self.names[kind as usize].iter().cloned().collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that wait for the connection, which all sums have by themselves.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.outbox.as_ref().map_or(0, |outbox| outbox.bytes())
    }
}

fn bytes_of(name: &[u8]) -> usize {
    2 * name.len() + NAME_BYTES
}

impl Hub {
    /// Has a connection listen to some names, all of them or none.
    pub(crate) fn subscribe(
        &self,
        (id, seat, waiting_bytes_max): (u64, &Seat, usize),
        own: &mut Subscriptions,
        kind: Kind,
        names: &[&[u8]],
    ) -> Result<(), Refusal> {
        let there = &own.names[kind as usize];
        let new: BTreeSet<&[u8]> = names.iter().copied().filter(|name| !there.contains(*name)).collect();
        if new.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(
                format!("ERR a channel's name, or a pattern, has at most {NAME_BYTES_MAX} bytes").into()
            );
        }
        let bytes: usize = new.iter().map(|name| bytes_of(name)).sum();
        if own.bytes + bytes > NAMES_BYTES_MAX {
            return Err("ERR the connection listens to too many names".into());
        }
        let mut all = self.names.write();
        if kind == Kind::Pattern {
            let patterns = &all.of[kind as usize];
            let more = new.iter().filter(|name| !patterns.contains_key(**name)).map(|name| name.len());
            let sum = all.patterns_bytes + more.sum::<usize>();
            if sum > PATTERNS_BYTES_MAX {
                return Err("ERR there are too many patterns; subscribe to channels by their names".into());
            }
            all.patterns_bytes = sum;
        }
        let outbox = own.outbox.get_or_insert_with(|| Arc::new(Outbox::new(seat.clone(), waiting_bytes_max)));
        for name in new {
            own.names[kind as usize].insert(name.to_vec());
            all.of[kind as usize].entry(name.to_vec()).or_default().insert(id, Arc::clone(outbox));
        }
        own.bytes += bytes;
        self.note(&all);
        Ok(())
    }

    fn note(&self, names: &Names) {
        self.count.store(names.of.iter().map(HashMap::len).sum(), Ordering::Relaxed);
    }

    /// Has a connection listen to some names no more.
    pub(crate) fn unsubscribe<'n>(
        &self,
        id: u64,
        own: &mut Subscriptions,
        kind: Kind,
        names: impl Iterator<Item = &'n [u8]>,
    ) {
        let mut all = self.names.write();
        for name in names {
            if own.names[kind as usize].remove(name) {
                own.bytes -= bytes_of(name);
                let of = &mut all.of[kind as usize];
                if let Some(listeners) = of.get_mut(name) {
                    listeners.remove(&id);
                    if listeners.is_empty() {
                        of.remove(name);
                        all.patterns_bytes -= if kind == Kind::Pattern { name.len() } else { 0 };
                    }
                }
            }
        }
        self.note(&all);
    }

    /// Has it listen to nothing. What waits comes all the same.
    pub(crate) fn leave(&self, id: u64, own: &mut Subscriptions) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            if !own.names[kind as usize].is_empty() {
                let names = own.of(kind);
                self.unsubscribe(id, own, kind, names.iter().map(Vec::as_slice));
            }
        }
    }

    /// Whether nobody listens to anything.
    pub(crate) fn is_silent(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Finds who is to get a message. Returns how many those are, and what work that was, in bytes.
    pub(crate) fn publish(
        &self,
        out: &mut Outgoing,
        (sum, bytes_max): (&Arc<AtomicUsize>, usize),
        kind: Kind,
        (name, text): (&[u8], &[u8]),
    ) -> Result<(usize, usize), Refusal> {
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("ERR a channel's name has at most {NAME_BYTES_MAX} bytes").into());
        }
        if self.is_silent() {
            return Ok((0, 0));
        }
        let all = self.names.read();
        let [channels, patterns, shards] = &all.of;
        let (word, direct) =
            if kind == Kind::Shard { (&b"smessage"[..], shards) } else { (&b"message"[..], channels) };
        let by_name = direct.get(name).map(|listeners| (vec![word, name], listeners));
        let is_asked = kind == Kind::Channel && !patterns.is_empty();
        let matching = patterns.iter().filter(|(pattern, _)| is_asked && glob::matches(pattern, name));
        let by_pattern = matching
            .map(|(pattern, listeners)| (vec![&b"pmessage"[..], pattern.as_slice(), name], listeners));
        let (mut count, mut handled, mut shared_text) = (0, 0, None);
        for (words, listeners) in by_name.into_iter().chain(by_pattern) {
            count += listeners.len();
            if sum.load(Ordering::Relaxed) > bytes_max.saturating_add(bytes_max / 4) {
                // Those that hold most are closed at the end of each round: this is beyond what rounds can mend.
                listeners.values().for_each(|outbox| outbox.give_up());
                continue;
            }
            let text = shared_text.get_or_insert_with(|| Text::new(text, sum));
            let message = Arc::new(Message::new(&words, text));
            handled += message.bytes();
            listeners.values().for_each(|outbox| out.push(outbox, &message));
        }
        out.add_bytes(handled);
        let steps = if is_asked { all.patterns_bytes * name.len() } else { 0 };
        Ok((count, handled + count * size_of::<Arc<Outbox>>() + steps / STEPS_OF_A_BYTE))
    }

    /// Names that somebody listens to, of those that match.
    pub(crate) fn active(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let all = self.names.read();
        let names = all.of[kind as usize].keys();
        names.filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name))).cloned().collect()
    }

    /// How many listen to a name.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        self.names.read().of[kind as usize].get(name).map_or(0, BTreeMap::len)
    }

    /// How many names there are of a kind.
    pub(crate) fn count_of(&self, kind: Kind) -> usize {
        self.names.read().of[kind as usize].len()
    }
}
