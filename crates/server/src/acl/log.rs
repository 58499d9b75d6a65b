//! What was refused, and how long who guesses passwords has to wait.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

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
        let mut note = note;
        note.object.truncate(SHOWN_BYTES_MAX);
        note.user.truncate(SHOWN_BYTES_MAX);
        let is_same = |kept: &Noted| {
            let one = (&kept.note.reason, &kept.note.context, &kept.note.object, &kept.note.user);
            one == (&note.reason, &note.context, &note.object, &note.user) && now - kept.last <= SAME_SECONDS
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

const ADDRESSES_MAX: usize = 1024;
/// An address that is silent for so long is forgotten.
const REMEMBERED_SECONDS: u64 = 60;
const WAIT_SECONDS_MAX: u64 = 5;

/// Wrong passwords by address, of the last minute. Sockets of this machine without one are one address.
#[derive(Default)]
pub(crate) struct Guesses {
    by_address: HashMap<Option<IpAddr>, (u64, u64)>,
}

impl Guesses {
    /// How many seconds the answer to a password has to wait, whether it is right or wrong: else who does not wait knows.
    pub(crate) fn wait(&mut self, address: Option<IpAddr>, is_right: bool, now: u64) -> u64 {
        let is_new = |(_, last): &(u64, u64)| now - last <= REMEMBERED_SECONDS;
        if !is_right {
            if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&address) {
                self.by_address.retain(|_, guessed| is_new(guessed));
                if self.by_address.len() >= ADDRESSES_MAX {
                    return WAIT_SECONDS_MAX;
                }
            }
            let guessed = self.by_address.entry(address).or_insert((0, now));
            *guessed = (if is_new(guessed) { guessed.0 + 1 } else { 1 }, now);
        }
        let wrong =
            self.by_address.get(&address).filter(|guessed| is_new(guessed)).map_or(0, |guessed| guessed.0);
        wrong.min(WAIT_SECONDS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_waits_longer_each_time_and_is_forgotten() {
        let mut guesses = Guesses::default();
        let [one, other] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last])));
        assert_eq!(guesses.wait(one, true, 0), 0);
        assert_eq!([0; 7].map(|_| guesses.wait(one, false, 1)), [1, 2, 3, 4, 5, 5, 5]);
        assert_eq!((guesses.wait(one, true, 2), guesses.wait(other, true, 2)), (5, 0));
        assert_eq!((guesses.wait(one, true, 62), guesses.wait(one, false, 62)), (0, 1));
        for number in 0..5000_u32 {
            guesses.wait(Some(IpAddr::from(number.to_be_bytes())), false, 62);
        }
        assert_eq!(guesses.by_address.len(), ADDRESSES_MAX);
        assert_eq!(guesses.wait(other, false, 62), WAIT_SECONDS_MAX, "as nobody has room to tell");
    }

    #[test]
    fn the_log_counts_what_is_the_same_and_has_an_end() {
        let mut log = Log::default();
        let note = |object: &[u8]| Note {
            reason: "key",
            context: "toplevel",
            object: object.into(),
            user: b"bob".into(),
            client: String::new(),
        };
        log.note(note(b"a"), 1);
        log.note(note(&[b'x'; 1000]), 2);
        log.note(note(b"a"), 3);
        let counts: Vec<_> =
            log.newest(9).map(|noted| (noted.count, noted.note.object.len(), noted.number)).collect();
        assert_eq!(counts, [(2, 1, 0), (1, 128, 1)]);
        (0..500_u32).for_each(|number| log.note(note(&number.to_be_bytes()), 4));
        assert_eq!(log.newest(usize::MAX).len(), NOTES_MAX);
    }
}
