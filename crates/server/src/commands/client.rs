//! What is known of a connection.

use std::net::IpAddr;
use std::sync::Arc;

use forebay::Durability;

use super::{Blocked, Queue};
use crate::acl::User;
use crate::jobs::Work;
use crate::pushes::{Kind, Seat, Subscriptions};
use crate::shared::Shared;

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
    /// The command that waits for something to take.
    pub(crate) blocked: Option<Blocked>,
}

impl Client {
    pub(crate) fn new(shared: &Shared, seat: Seat, address: Option<IpAddr>) -> Self {
        let seen = shared.acl.version();
        let user = shared.acl.default_user();
        Self {
            id: shared.new_id(),
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
            blocked: None,
        }
    }

    /// Gives back what it has of others, as its connection has gone.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.queue.leave(shared);
        self.stop_waiting(shared);
        shared.hub.leave(self.id, &mut self.subscriptions);
        self.subscriptions.outbox.iter().for_each(|outbox| outbox.give_up());
    }

    /// Makes it one that has just come.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        if self.is_known {
            self.since = shared.uptime_seconds();
        }
        self.seen = shared.acl.version();
        self.user = shared.acl.default_user();
        self.is_known = self.user.is_open();
        (self.database, self.durability, self.name) = (0, shared.config.durability, Vec::new());
    }

    /// Makes it a user's whose password this is. Whether it is one, the answer may have to wait.
    pub(crate) fn log_in(&mut self, shared: &Shared, name: &[u8], password: &[u8]) -> bool {
        let seen = shared.acl.version();
        let found = shared.acl.log_in(name, password);
        let now = shared.uptime_seconds();
        self.held_seconds = shared.acl.guesses.lock().wait(self.address, name, found.is_some(), now);
        let is_right = found.is_some();
        if let Some(user) = found {
            (self.user, self.seen, self.is_known) = (user, seen, true);
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
        [Kind::Channel, Kind::Pattern, Kind::Shard].into_iter().all(|kind| {
            let may = |name: &Vec<u8>| user.may_use_channel(name, kind == Kind::Pattern);
            self.subscriptions.of(kind).iter().all(may)
        })
    }

    /// A line on it, for people.
    pub(crate) fn shown(&self) -> String {
        let address = self.address.map_or_else(String::new, |address| address.to_string());
        let [name, user] = [&self.name, &self.user.name].map(|text| String::from_utf8_lossy(text));
        format!("id={} addr={address} name={name} db={} user={user}", self.id, self.database)
    }
}
