//! What was refused, and how long who guesses passwords has to wait.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

const NOTES_MAX: usize = 128;
const SHOWN_BYTES_MAX: usize = 128;
/// The same once more within this time is counted with it.
const SAME_SECONDS: u64 = 60;

/// Why something was refused: `auth`, `command`, `key` or `channel`; and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) reason: &'static str,
    /// `toplevel` or `multi`.
    pub(crate) context: &'static str,
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    pub(crate) client: String,
}

impl Note {
    /// What is kept of a name or a text: a copy of no more.
    pub(crate) fn cut(text: &[u8]) -> Vec<u8> {
        text[..text.len().min(SHOWN_BYTES_MAX)].to_vec()
    }
}

/// A note and its number, how often it was made, and when, in seconds of the server.
pub(crate) struct Noted {
    pub(crate) note: Note,
    pub(crate) count: u64,
    pub(crate) since: u64,
    pub(crate) last: u64,
    pub(crate) number: u64,
}

/// The newest notes, the newest first.
#[derive(Default)]
pub(crate) struct Log {
    notes: VecDeque<Noted>,
    next: u64,
}

impl Log {
    pub(crate) fn note(&mut self, note: Note, now: u64) {
        let is_same = |kept: &Noted| {
            let one = (&kept.note.reason, &kept.note.context, &kept.note.object, &kept.note.user);
            one == (&note.reason, &note.context, &note.object, &note.user)
                && now.saturating_sub(kept.last) <= SAME_SECONDS
        };
        let kept = self.notes.iter().position(is_same).and_then(|at| self.notes.remove(at));
        let noted = match kept {
            Some(kept) => Noted { count: kept.count + 1, last: now, note, ..kept },
            None => {
                self.next += 1;
                Noted { note, count: 1, since: now, last: now, number: self.next - 1 }
            }
        };
        self.notes.truncate(NOTES_MAX - 1);
        self.notes.push_front(noted);
    }

    pub(crate) fn newest(&self, count: usize) -> impl ExactSizeIterator<Item = &Noted> {
        self.notes.iter().take(count)
    }

    pub(crate) fn clear(&mut self) {
        self.notes.clear();
    }
}

const GUESSERS_MAX: usize = 1024;
/// A guesser that is silent for so long is forgotten.
const REMEMBERED_SECONDS: u64 = 60;
/// Who gave the right password is trusted for so long.
const TRUSTED_SECONDS: u64 = 3600;
const WAIT_SECONDS_MAX: u64 = 5;
/// Names of one address are in so many groups, so that by many names nobody takes all room.
const GROUPS: u8 = 16;

/// Answers of one guesser wait for one another; beyond so many seconds of that nothing is tried any more.
const WAIT_ALL_SECONDS_MAX: u64 = 30;

/// Of one guesser.
#[derive(Clone, Copy, Default)]
struct Wrong {
    count: u64,
    /// When the last one was.
    last: u64,
    /// When the last answer goes out.
    answered: u64,
}

/// Passwords of late. Sockets of this machine without an address are one.
#[derive(Default)]
pub(crate) struct Guesses {
    /// Of a group of names.
    wrong: HashMap<(Option<IpAddr>, u8), Wrong>,
    /// When one of a user was right.
    right: HashMap<(Option<IpAddr>, Vec<u8>), u64>,
}

/// Removes what is no longer `new` from a full map. Says whether there is room for a key.
fn has_room<K: Eq + Hash, T>(map: &mut HashMap<K, T>, key: &K, is_new: impl Fn(&T) -> bool) -> bool {
    if map.len() >= GUESSERS_MAX && !map.contains_key(key) {
        map.retain(|_, kept| is_new(kept));
    }
    map.len() < GUESSERS_MAX || map.contains_key(key)
}

impl Guesses {
    /// How many seconds the answer to a password has to wait, whether it is right or wrong: else who does not wait knows.
    /// Answers of one guesser go out one behind the other, so that by many connections nobody guesses faster. `None`: too
    /// many wait already, and the password counts as wrong. A right one does not wait for who has lately given it from
    /// there: others guess, too, at an address of many.
    pub(crate) fn wait(
        &mut self,
        address: Option<IpAddr>,
        name: &[u8],
        is_right: bool,
        now: u64,
    ) -> Option<u64> {
        let address = address.map(net);
        let is_trusted = |at: &u64| now.saturating_sub(*at) <= TRUSTED_SECONDS;
        let is_new = |wrong: &Wrong| now.saturating_sub(wrong.last) <= REMEMBERED_SECONDS;
        let user = (address, name.to_vec());
        if is_right && self.right.get(&user).is_some_and(is_trusted) {
            self.right.insert(user, now);
            return Some(0);
        }
        let group = name.iter().fold(0_u8, |group, byte| group.wrapping_mul(31).wrapping_add(*byte)) % GROUPS;
        let guesser = (address, group);
        let has_room_to_tell = has_room(&mut self.wrong, &guesser, is_new);
        let mut wrong = self.wrong.get(&guesser).copied().filter(is_new).unwrap_or_default();
        wrong.count += u64::from(!is_right);
        let waits = if has_room_to_tell { wrong.count.min(WAIT_SECONDS_MAX) } else { WAIT_SECONDS_MAX };
        let answered = wrong.answered.max(now) + waits;
        if answered - now > WAIT_ALL_SECONDS_MAX {
            return None;
        }
        if is_right && has_room(&mut self.right, &user, is_trusted) {
            self.right.insert(user, now);
        }
        if has_room_to_tell && (!is_right || waits > 0) {
            let last = if is_right { wrong.last } else { now };
            self.wrong.insert(guesser, Wrong { last, answered, ..wrong });
        }
        Some(answered - now)
    }
}

/// The net that one customer has at least: all of it is one guesser.
fn net(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_waits_longer_each_time_and_is_forgotten() {
        let mut guesses = Guesses::default();
        let mut wait = |last, name: &[u8], is_right, now| {
            guesses.wait(Some(IpAddr::from([10, 0, 0, last])), name, is_right, now)
        };
        let waits = [1, 2, 4, 7, 11, 16, 21].map(|now| wait(1, b"ann", false, now));
        assert_eq!(waits, [1, 2, 3, 4, 5, 5, 5].map(Some));
        assert_eq!(
            [wait(1, b"ann", true, 26), wait(2, b"ann", true, 26), wait(1, b"bob", true, 26)],
            [5, 0, 0].map(Some)
        );
        assert_eq!(wait(1, b"ann", true, 27), Some(0), "it was right lately");
        assert_eq!(wait(1, b"ann", false, 31), Some(5));
        assert_eq!(wait(1, b"carl", false, 40), Some(1));
        assert_eq!([wait(1, b"carl", true, 101), wait(1, b"dora", false, 101)], [0, 1].map(Some));
        assert_eq!([101, 100].map(|now| wait(2, b"eve", false, now)), [Some(1), Some(4)], "a clock's edge");
    }

    /// By a hundred connections as by one.
    #[test]
    fn guesses_side_by_side_wait_for_one_another() {
        let mut guesses = Guesses::default();
        let mut wait = |is_right, now| guesses.wait(None, b"ann", is_right, now);
        let waits: Vec<_> = (0..100).map(|_| wait(false, 1)).collect();
        assert_eq!(waits[..8], [1, 3, 6, 10, 15, 20, 25, 30].map(Some));
        assert!(waits[8..].iter().all(Option::is_none));
        assert_eq!(wait(true, 1), None, "a right one is not told apart");
        let later: Vec<_> = (2..62).map(|now| wait(false, now)).collect();
        assert_eq!(later.iter().flatten().count(), 12, "one each five seconds");
    }

    #[test]
    fn guessers_are_so_many_at_most_and_one_for_each_net() {
        let mut guesses = Guesses::default();
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().ok());
        let both = [guesses.wait(one, b"a", false, 1), guesses.wait(other, b"a", false, 2)];
        assert_eq!(both, [1, 2].map(Some));
        assert_eq!(guesses.wait(None, b"a", true, 1), Some(0));
        for number in 0..5000_u32 {
            guesses.wait(one, &number.to_be_bytes(), false, 1);
        }
        assert_eq!(guesses.wrong.len(), usize::from(GROUPS));
        for number in 0..5000_u32 {
            guesses.wait(Some(IpAddr::from(number.to_be_bytes())), b"c", number % 2 == 0, 1);
        }
        assert_eq!((guesses.wrong.len(), guesses.right.len()), (GUESSERS_MAX, GUESSERS_MAX));
        let others = guesses.wait(None, b"b", true, 1);
        assert_eq!(others, Some(WAIT_SECONDS_MAX), "as nobody has room to tell");
        assert_eq!(guesses.wait(None, b"a", true, 1), Some(0));
        assert_eq!(guesses.wait(None, b"b", true, 62), Some(0));
    }

    #[test]
    fn the_log_counts_what_is_the_same_and_has_an_end() {
        let mut log = Log::default();
        let note = |object: &[u8]| Note {
            reason: "key",
            context: "toplevel",
            object: Note::cut(object),
            user: b"bob".into(),
            client: String::new(),
        };
        log.note(note(b"a"), 1);
        log.note(note(&[b'x'; 1000]), 2);
        log.note(note(b"a"), 3);
        let counts: Vec<_> =
            log.newest(9).map(|noted| (noted.count, noted.note.object.capacity(), noted.number)).collect();
        assert_eq!(counts, [(2, 1, 0), (1, 128, 1)]);
        (0..500_u32).for_each(|number| log.note(note(&number.to_be_bytes()), 4));
        assert_eq!(log.newest(usize::MAX).len(), NOTES_MAX);
    }
}
