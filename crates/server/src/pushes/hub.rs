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
/// So many steps of patterns, or of a search for names, are as much work as a byte of an answer.
const STEPS_OF_A_BYTE: usize = 16;
/// A search for names takes so many steps: nobody begins to listen meanwhile.
const SEARCH_STEPS_MAX: usize = 1 << 26;

/// What a name is: of a channel, a pattern of such names, or of a channel that belongs to one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

/// Messages that are about to go out have it too: who comes or goes meanwhile changes a copy.
pub(super) type Listeners = Arc<BTreeMap<u64, Arc<Outbox>>>;

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
    /// Has a connection listen to some names, all of them or none. Returns of each whether it is new.
    pub(crate) fn subscribe(
        &self,
        (id, seat, waiting_bytes_max): (u64, &Seat, usize),
        own: &mut Subscriptions,
        kind: Kind,
        names: &[&[u8]],
    ) -> Result<Vec<bool>, Refusal> {
        let there = &own.names[kind as usize];
        let mut new: BTreeSet<&[u8]> = names.iter().copied().filter(|name| !there.contains(*name)).collect();
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
        for name in &new {
            own.names[kind as usize].insert(name.to_vec());
            let listeners = all.of[kind as usize].entry(name.to_vec()).or_default();
            Arc::make_mut(listeners).insert(id, Arc::clone(outbox));
        }
        own.bytes += bytes;
        self.note(&all);
        Ok(names.iter().map(|name| new.remove(name)).collect())
    }

    fn note(&self, names: &Names) {
        self.count.store(names.of.iter().map(HashMap::len).sum(), Ordering::Relaxed);
    }

    /// Has a connection listen to some names no more. Returns of each whether it did.
    pub(crate) fn unsubscribe<'n>(
        &self,
        id: u64,
        own: &mut Subscriptions,
        kind: Kind,
        names: impl Iterator<Item = &'n [u8]>,
    ) -> Vec<bool> {
        let mut all = self.names.write();
        let mut were_there = Vec::new();
        for name in names {
            were_there.push(own.names[kind as usize].remove(name));
            if were_there.last() == Some(&true) {
                own.bytes -= bytes_of(name);
                let of = &mut all.of[kind as usize];
                if let Some(listeners) = of.get_mut(name) {
                    Arc::make_mut(listeners).remove(&id);
                    if listeners.is_empty() {
                        of.remove(name);
                        all.patterns_bytes -= if kind == Kind::Pattern { name.len() } else { 0 };
                    }
                }
            }
        }
        self.note(&all);
        drop(all);
        if !own.is_any() {
            own.outbox.take().iter().for_each(|outbox| outbox.retire());
        }
        were_there
    }

    /// Has it listen to nothing.
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
        if out.is_full() {
            return Err("ERR too much is published at once; publish less in a transaction".into());
        }
        let all = self.names.read();
        let [channels, patterns, shards] = &all.of;
        let (word, direct) =
            if kind == Kind::Shard { (&b"smessage"[..], shards) } else { (&b"message"[..], channels) };
        let by_name = direct.get(name).map(|listeners| (vec![word, name], listeners));
        let is_asked = kind == Kind::Channel && !patterns.is_empty();
        let mut steps = 0;
        let matching =
            patterns.iter().filter(|(pattern, _)| is_asked && glob::counted(pattern, name, &mut steps));
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
            out.push(listeners, message);
        }
        out.add(handled, steps);
        Ok((count, handled + count * size_of::<Arc<Outbox>>() + steps / STEPS_OF_A_BYTE))
    }

    /// Names that somebody listens to, of those that match, and what work that was, in bytes. Refused where they take more
    /// than some bytes, or more steps than others can wait for.
    pub(crate) fn active(
        &self,
        kind: Kind,
        pattern: Option<&[u8]>,
        bytes_max: usize,
    ) -> Result<(Vec<Vec<u8>>, usize), Refusal> {
        let all = self.names.read();
        let (mut found, mut bytes, mut steps) = (Vec::new(), 0, 0);
        for name in all.of[kind as usize].keys() {
            steps += 1;
            if pattern.is_none_or(|pattern| glob::counted(pattern, name, &mut steps)) {
                bytes += bytes_of(name);
                found.push(name.clone());
            }
            if steps > SEARCH_STEPS_MAX || bytes > bytes_max {
                return Err("ERR there are too many channels; ask PUBSUB NUMSUB for those of interest".into());
            }
        }
        Ok((found, steps / STEPS_OF_A_BYTE))
    }

    /// How many listen to a name.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        self.names.read().of[kind as usize].get(name).map_or(0, |listeners| listeners.len())
    }

    /// How many names there are of a kind.
    pub(crate) fn count_of(&self, kind: Kind) -> usize {
        self.names.read().of[kind as usize].len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::outbox::Bell;
    use super::*;

    /// Who reads what comes is not to be closed because much is published at once.
    #[test]
    fn too_much_of_one_turn_is_refused_and_closes_nobody() {
        let poll = mio::Poll::new().expect("a poll");
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).expect("a waker"));
        let seat = Seat { bell: Arc::new(Bell::new(waker)), number: 0 };
        let (hub, mut all) = (Hub::default(), Vec::new());
        for id in 0..1000 {
            let mut own = Subscriptions::default();
            let new = hub.subscribe((id, &seat, 32 << 20), &mut own, Kind::Channel, &[b"c", b"c"]);
            assert_eq!(new.expect("there is room"), [true, false]);
            all.push(own);
        }
        let (mut out, sum) = (Outgoing::default(), Arc::default());
        let mut publish = || hub.publish(&mut out, (&sum, usize::MAX), Kind::Channel, (b"c", b"m"));
        let published = (0..10_000).take_while(|_| publish().is_ok()).count();
        assert_eq!(published, (1 << 23) / 1000 + 1);
        // One that goes meanwhile takes nothing, and nobody else misses anything.
        let gone = all[0].outbox.clone().expect("it has listened");
        hub.leave(0, &mut all[0]);
        out.send();
        assert_eq!(gone.bytes(), 0);
        let bytes = all[1].waiting_bytes();
        assert!(bytes > published * 10 && all[1..].iter().all(|one| one.waiting_bytes() == bytes));
    }
}
