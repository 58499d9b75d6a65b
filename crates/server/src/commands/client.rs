//! What is known of a connection.

use std::net::IpAddr;
use std::sync::Arc;

use forebay::Durability;

use super::{Blocked, Queue, Replies, find};
use crate::acl::User;
use crate::clients::{Known, Seen, Standing};
use crate::feeds::Feed;
use crate::jobs::Work;
use crate::pushes::{Kind, Seat, Subscriptions};
use crate::replication::Place;
use crate::shared::Shared;

/// The answer to a password that was not tried waits so long.
const WAIT_SECONDS_MAX: u64 = 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) name: Vec<u8>,
    /// Whence it came, if that has an address.
    pub(crate) address: Option<IpAddr>,
    pub(crate) database: usize,
    pub(crate) durability: Durability,
    pub(crate) is_known: bool,
    pub(crate) user: Arc<User>,
    /// The version of all users when it was looked for.
    seen: u64,
    /// When it came, or was no longer known.
    pub(crate) since: u64,
    /// How often it was refused before that.
    pub(crate) refusals: u32,
    /// Its answers are to wait for so many seconds.
    pub(crate) held_seconds: u64,
    pub(crate) is_leaving: bool,
    pub(crate) queue: Queue,
    /// What is to be done once the turn is committed, and answered then.
    pub(crate) work: Option<Work>,
    /// Where it is reached.
    pub(crate) seat: Seat,
    pub(crate) subscriptions: Subscriptions,
    /// Its connection is to be a follower's.
    pub(crate) follower: Option<Place>,
    /// By which it is told of commits.
    pub(crate) feed: Option<Arc<Feed>>,
    /// The command that waits for something to take.
    pub(crate) blocked: Option<Blocked>,
    /// What others know of it.
    pub(crate) known: Arc<Known>,
    /// The command that it asked last, and when.
    pub(crate) command: &'static str,
    pub(crate) at: u64,
    /// The name and version of its library, as it says.
    pub(crate) library: [Vec<u8>; 2],
    pub(crate) replies: Replies,
    /// The request that it asked last has no reply, also if that comes later.
    pub(crate) is_hushed: bool,
}

/// Whether a user may be told all that is written, by a command.
fn may_have(user: &User, name: &str) -> bool {
    user.may_see_all() && find(name.as_bytes()).is_some_and(|found| user.denied(found, &[]).is_none())
}

impl Client {
    pub(crate) fn new(shared: &Shared, seat: Seat, address: Option<IpAddr>, ends: (String, String)) -> Self {
        let seen = shared.acl.version();
        let user = shared.acl.default_user();
        let (id, at) = (shared.new_id(), shared.database.unix_milliseconds());
        let begin = Seen {
            name: Vec::new(),
            user: Arc::clone(&user),
            database: 0,
            command: "NULL",
            at,
            version: 2,
            library: Default::default(),
            subscriptions: [0; 3],
            queued: None,
            watched: 0,
            requests_bytes: 0,
            replies_bytes: 0,
            all_bytes: 0,
            is_blocked: false,
        };
        let known = Arc::new(Known::new(id, ends, begin, seat.clone()));
        let standing = if user.is_open() { Standing::Known } else { Standing::Stranger };
        shared.clients.add(&known, standing);
        Self {
            id,
            name: Vec::new(),
            address,
            database: 0,
            durability: shared.config.durability,
            is_known: user.is_open(),
            user,
            seen,
            since: shared.uptime_seconds(),
            refusals: 0,
            held_seconds: 0,
            is_leaving: false,
            queue: Queue::default(),
            work: None,
            seat,
            subscriptions: Subscriptions::default(),
            follower: None,
            feed: None,
            blocked: None,
            known,
            command: "NULL",
            at,
            library: Default::default(),
            replies: Replies::All,
            is_hushed: false,
        }
    }

    /// Tells others of it: the version of its protocol, and what requests, replies, and all that it has take in bytes.
    pub(crate) fn tell(
        &self,
        version: u8,
        (requests_bytes, replies_bytes, all_bytes): (usize, usize, usize),
    ) {
        let mut seen = self.known.seen.lock();
        if seen.name != self.name {
            seen.name.clone_from(&self.name);
        }
        if seen.library != self.library {
            seen.library.clone_from(&self.library);
        }
        if !Arc::ptr_eq(&seen.user, &self.user) {
            seen.user = Arc::clone(&self.user);
        }
        (seen.database, seen.command, seen.at, seen.version) =
            (self.database, self.command, self.at, version);
        seen.subscriptions =
            [Kind::Channel, Kind::Pattern, Kind::Shard].map(|kind| self.subscriptions.count(kind));
        (seen.queued, seen.watched) = self.queue.counts();
        seen.is_blocked = self.blocked.is_some();
        if all_bytes > 0 {
            (seen.requests_bytes, seen.replies_bytes) = (requests_bytes, replies_bytes);
            seen.all_bytes = all_bytes;
        }
    }

    /// Gives back what it has of others, as its connection has gone.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        shared.clients.remove(self.id);
        self.queue.leave(shared);
        self.stop_waiting(shared);
        shared.hub.leave(self.id, &mut self.subscriptions);
        self.subscriptions.outbox.iter().for_each(|outbox| outbox.give_up());
        if let Some(feed) = self.feed.take() {
            feed.leave();
            shared.feeds.wake();
        }
    }

    /// Bytes of messages that wait for it.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.subscriptions.waiting_bytes() + self.feed.as_ref().map_or(0, |feed| feed.bytes())
    }

    /// Makes it one that has just come.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        if self.is_known {
            self.since = shared.uptime_seconds();
        }
        self.seen = shared.acl.version();
        self.user = shared.acl.default_user();
        self.is_known = self.user.is_open();
        let standing = if self.is_known { Standing::Known } else { Standing::Stranger };
        shared.clients.note(self.id, standing);
        self.replies = Replies::All;
        (self.database, self.durability, self.name) = (0, shared.config.durability, Vec::new());
    }

    /// Makes it a user's whose password this is. Whether it is one, the answer may have to wait.
    pub(crate) fn log_in(&mut self, shared: &Shared, name: &[u8], password: &[u8]) -> bool {
        let seen = shared.acl.version();
        let found = shared.acl.log_in(name, password);
        let now = shared.uptime_seconds();
        let waits = shared.acl.guesses.lock().wait(self.address, name, found.is_some(), now);
        self.held_seconds = waits.unwrap_or(WAIT_SECONDS_MAX);
        let found = found.filter(|_| waits.is_some());
        let is_right = found.is_some();
        if let Some(user) = found {
            (self.user, self.seen, self.is_known) = (user, seen, true);
            shared.clients.note(self.id, Standing::Known);
        }
        is_right
    }

    /// Whether its user was not deleted, and may listen to what it listens to. From then on it has the rights that the user
    /// has now.
    pub(crate) fn is_still_there(&mut self, shared: &Shared) -> bool {
        let version = shared.acl.version();
        if version != self.seen {
            let Some(user) = shared.acl.newer(&self.user).filter(|user| self.may_listen(user)) else {
                self.is_leaving = true;
                return false;
            };
            (self.user, self.seen) = (user, version);
        }
        true
    }

    fn may_listen(&self, user: &User) -> bool {
        if self.feed.is_some() && !may_have(user, "FB.CHANGES") {
            return false;
        }
        [Kind::Channel, Kind::Pattern, Kind::Shard].into_iter().all(|kind| {
            let may = |name: &Vec<u8>| user.may_use_channel(name, kind == Kind::Pattern);
            self.subscriptions.of(kind).iter().all(may)
        })
    }

    /// Whether its user may be told all that is written, by a command.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        may_have(&self.user, name)
    }

    /// A line on it, for people.
    pub(crate) fn shown(&self) -> String {
        let address = self.address.map_or_else(String::new, |address| address.to_string());
        let [name, user] = [&self.name, &self.user.name].map(|text| String::from_utf8_lossy(text));
        format!("id={} addr={address} name={name} db={} user={user}", self.id, self.database)
    }
}
