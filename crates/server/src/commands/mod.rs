//! What can be asked. Each file or folder has the commands of one kind, and says for each how many arguments it takes, which of
//! them are keys, and whether it reads or writes them; [`ALL`] has one line a file.

mod acl;
mod aggregates;
mod bits;
mod blocking;
mod catalogue;
mod client;
mod clients;
mod config;
mod connection;
mod containers;
mod counters;
mod engine;
mod events;
mod expiry;
mod hashes;
mod inspect;
mod keys;
mod lists;
mod longest;
mod numbers;
mod pubsub;
mod replication;
mod server;
mod sets;
mod sketches;
mod slowlog;
mod sort;
mod sorted_sets;
mod strings;
mod transactions;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::resp::Reply;
use crate::shared::Shared;
use crate::turn::{Plan, Stored, Turn};
use crate::value::Type;

pub(crate) use aggregates::Aggregates;
pub(crate) use blocking::{Blocked, run_again, time_out};
pub(crate) use client::Client;
pub(crate) use clients::Replies;
pub(crate) use connection::is_open;
pub(crate) use engine::{commit_bytes, push_commit, push_end};
pub(crate) use events::{Events, tell_expired};
pub(crate) use transactions::Queue;

/// All of them.
const ALL: &[&[Command]] = &[
    acl::COMMANDS,
    aggregates::COMMANDS,
    engine::COMMANDS,
    replication::COMMANDS,
    slowlog::COMMANDS,
    connection::COMMANDS,
    clients::COMMANDS,
    server::COMMANDS,
    catalogue::COMMANDS,
    config::COMMANDS,
    inspect::COMMANDS,
    keys::COMMANDS,
    expiry::COMMANDS,
    strings::COMMANDS,
    longest::COMMANDS,
    counters::COMMANDS,
    bits::COMMANDS,
    hashes::COMMANDS,
    sets::COMMANDS,
    sorted_sets::COMMANDS,
    lists::COMMANDS,
    sort::COMMANDS,
    transactions::COMMANDS,
    #[cfg(test)]
    crate::loops::tests::COMMANDS,
    pubsub::COMMANDS,
    blocking::COMMANDS,
    sketches::COMMANDS,
];

static BY_NAME: LazyLock<HashMap<&[u8], &Command>> =
    LazyLock::new(|| all_commands().map(|one| (one.name.as_bytes(), one)).collect());

/// One after the other.
pub(crate) fn all_commands() -> impl Iterator<Item = &'static Command> {
    ALL.iter().flat_map(|some| some.iter())
}

/// What a command does with the keys that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It has none.
    Nothing,
    /// It reads them.
    Reads,
    /// It reads them, and writes.
    Changes,
    /// It writes without a look.
    Writes,
    /// It adds what merges, and reads nothing: only who wants all keys waits for it.
    Adds,
    /// It reads a container's elements, which it names from its third argument on, each so many arguments.
    ReadsNamed(usize),
    /// The same, and it writes them.
    ChangesNamed(usize),
    /// It concerns all keys there are.
    Whole,
}

/// Which arguments are keys: the first, the last (from the end where it is negative), and the step between them.
pub(crate) type Keys = (usize, isize, usize);
/// In the place of the last: the argument before the first says how many there are. What is between that and the name is a
/// key, too.
pub(crate) const COUNTED: isize = isize::MIN;
/// The same where there is one argument more before the number, which is no key.
pub(crate) const COUNTED_BEHIND_ONE: isize = isize::MIN + 1;

/// In the place of the last: besides the first one, what stands behind the word `STORE`.
pub(crate) const STORED: isize = isize::MIN + 2;

/// See the module.
pub(crate) struct Command {
    /// In capitals.
    pub(crate) name: &'static str,
    /// How many arguments there are, the name included; at least so many where it is negative.
    pub(crate) arity: isize,
    pub(crate) keys: Keys,
    pub(crate) uses: Use,
    pub(crate) run: fn(&mut Call<'_, '_>) -> Answer,
}

/// A command is done, or refused, and then nothing of it was done or answered.
pub(crate) type Answer = Result<(), Refusal>;

/// Why a command is refused: the error that the client gets.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Cow<'static, str>, Option<forebay::Error>);

impl From<&'static str> for Refusal {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text), None)
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text), None)
    }
}

impl From<forebay::Error> for Refusal {
    fn from(error: forebay::Error) -> Self {
        Self(Cow::Owned(format!("ERR {error}")), Some(error))
    }
}

pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// One request on its way.
pub(crate) struct Call<'c, 's> {
    /// The first is the name.
    pub(crate) arguments: &'c [&'c [u8]],
    pub(crate) client: &'c mut Client,
    pub(crate) turn: &'c mut Turn<'s>,
    pub(crate) reply: &'c mut Reply,
}

impl Call<'_, '_> {
    /// What a key holds, if that is a text.
    fn string(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Refusal> {
        string(self.turn, self.client.database, key)
    }

    fn stored(&mut self, key: &[u8]) -> Result<Option<&Stored>, Refusal> {
        Ok(self.turn.get(self.client.database, key)?)
    }

    /// When a key expires, if it does.
    fn expiry(&mut self, key: &[u8]) -> Result<Option<u64>, Refusal> {
        Ok(self.stored(key)?.and_then(|stored| stored.expiry))
    }

    fn set(&mut self, key: &[u8], text: &[u8], expiry: Option<u64>) {
        let stored = Stored { bytes: crate::value::string(text), expiry };
        self.turn.set(self.client.database, key, Some(stored));
    }

    fn delete(&mut self, key: &[u8]) {
        self.turn.set(self.client.database, key, None);
    }
}

/// What a key of a database holds, if that is a text.
fn string<'t>(turn: &'t mut Turn<'_>, database: usize, key: &[u8]) -> Result<Option<&'t [u8]>, Refusal> {
    match turn.get(database, key)? {
        None => Ok(None),
        Some(stored) if Type::of(&stored.bytes) == Some(Type::String) => Ok(Some(&stored.bytes[1..])),
        Some(_) => Err(WRONG_TYPE.into()),
    }
}

/// The command of this name.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    const NAME_BYTES_MAX: usize = 24;
    let mut capitals = [0; NAME_BYTES_MAX];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    BY_NAME.get(&*capitals).copied()
}

impl Command {
    /// Whether it takes so many arguments, the name included.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        match self.arity {
            exact if exact >= 0 => arguments == exact as usize,
            least => arguments >= least.unsigned_abs(),
        }
    }

    /// The arguments that are keys.
    pub(crate) fn keys_of<'a>(&self, arguments: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (first, last, step) = self.keys;
        let end = match last {
            COUNTED | COUNTED_BEHIND_ONE => {
                let count = arguments.get(first - 1).and_then(|count| integer(count).ok());
                first.saturating_add(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
            }
            STORED => first + 1,
            last if last >= 0 => last as usize + 1,
            last => (arguments.len() + 1).saturating_sub(last.unsigned_abs()),
        };
        let before = if last == COUNTED { 1..first - 1 } else { 0..0 };
        let end = if first == 0 { 0 } else { end.min(arguments.len()) };
        let behind = arguments.windows(2).skip(1).filter(move |pair| last == STORED && is(pair[0], "STORE"));
        let behind = behind.map(|pair| &pair[1]);
        let before = arguments.get(before).unwrap_or_default().iter();
        let there = arguments.get(first..end).unwrap_or_default().iter().step_by(step.max(1));
        before.chain(there).chain(behind).copied()
    }

    /// Whether it writes.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.uses, Use::Changes | Use::Writes | Use::Adds | Use::Whole | Use::ChangesNamed(_))
    }

    /// Whether it may change what there is. Of what names no keys the table of categories knows.
    pub(crate) fn changes_data(&self) -> bool {
        match self.uses {
            Use::Nothing => self.name == "FB.ROLLBACK" || crate::acl::is_write(self.name),
            _ => self.writes(),
        }
    }

    /// Tells a plan what it needs.
    pub(crate) fn plan(&self, arguments: &[&[u8]], client: &Client, plan: &mut Plan) {
        match self.uses {
            Use::Nothing => client.queue.plan(self.name, client.id, plan),
            Use::Whole => plan.whole(),
            // Any lock keeps those out that want all of them.
            Use::Adds => arguments.last().into_iter().for_each(|argument| plan.lock(argument)),
            uses => {
                let is_read = uses != Use::Writes;
                self.keys_of(arguments).for_each(|key| plan.key(client.database, key, is_read));
                if let Use::ReadsNamed(step) | Use::ChangesNamed(step) = uses {
                    let names = arguments[2..].iter().step_by(step);
                    names.for_each(|name| plan.name(client.database, arguments[1], name));
                }
            }
        }
    }
}

fn wrong_arity(name: &str) -> Refusal {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// Has the key that a request names, and may use, be counted among those that are hot.
pub(crate) fn note_key(shared: &Shared, client: &Client, arguments: &[&[u8]]) {
    let may = |found: &&Command| client.user.denied(found, arguments).is_none();
    let command = find(arguments[0]).filter(|found| found.takes(arguments.len())).filter(may);
    match command.and_then(|command| Some((command, command.keys_of(arguments).next()?))) {
        Some((command, key)) => {
            shared.hot.note(client.database, key, command.writes(), shared.uptime_seconds())
        }
        None => shared.hot.note_other(),
    }
}

/// Does what is asked, in a turn that has its keys.
pub(crate) fn run(call: &mut Call<'_, '_>) {
    let answer = match checked(call) {
        Ok(command) if call.client.queue.takes(command) => {
            call.client.queue.push(call.arguments);
            call.reply.simple("QUEUED");
            Ok(())
        }
        Ok(command) => {
            (call.client.command, call.client.at) = (command.name, call.turn.now);
            run_command(command, call)
        }
        Err(refusal) => {
            call.client.queue.spoil();
            Err(refusal)
        }
    };
    if let Err(Refusal(text, _)) = answer {
        call.client.refusals += u32::from(!call.client.is_known);
        call.reply.error(&text);
    }
}

/// The command that is asked, if it is one and may be asked.
fn checked(call: &mut Call<'_, '_>) -> Result<&'static Command, Refusal> {
    let command = find(call.arguments[0]).ok_or_else(|| unknown(call.arguments))?;
    if !command.takes(call.arguments.len()) {
        return Err(wrong_arity(&command.name.to_ascii_lowercase()));
    }
    // Of many passwords at once the answers would wait no longer than of one.
    if call.client.queue.takes(command) && ["AUTH", "HELLO"].contains(&command.name) {
        return Err("ERR Command not allowed inside a transaction".into());
    }
    if !call.client.is_known && !is_open(command.name) {
        return Err("NOAUTH Authentication required.".into());
    }
    if !is_open(command.name) {
        acl::checked(call, command)?;
    }
    pubsub::check(call, command)?;
    if call.turn.shared.following.is_on() && command.changes_data() {
        return Err("READONLY You can't write against a read only replica.".into());
    }
    Ok(command)
}

/// The same once all was checked.
fn run_command(command: &Command, call: &mut Call<'_, '_>) -> Answer {
    if call.turn.transaction_reply_bytes(call.reply.bytes.len()) > reply_bytes_max(call) {
        return Err("ERR the replies of this transaction are too long; ask for less at a time".into());
    }
    if call.turn.is_full() {
        return Err("ERR this transaction has read or written too much; do less at a time".into());
    }
    if command.writes() {
        call.turn.asks_for(call.client.durability);
    }
    let before = call.turn.changes();
    // Also of one that changes it behind that, in one packet or transaction.
    let durability = call.client.durability;
    let answer = (command.run)(call);
    if call.turn.changes() != before {
        call.turn.note_durability(durability);
    }
    // Half of what a command writes is not to stay, or header and elements no longer agree.
    if let Err(Refusal(_, Some(error))) = &answer
        && call.turn.changes() != before
    {
        call.turn.fail(error);
    }
    if call.turn.has_touched() {
        events::tell_all(command, call);
    }
    answer
}

/// The longest reply, in bytes.
pub(crate) fn reply_bytes_max(call: &Call<'_, '_>) -> usize {
    call.turn.shared.config.reply_bytes_max()
}

/// The begin of an argument, for an error.
pub(crate) fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(&argument[..argument.len().min(128)]).into_owned()
}

fn unknown(arguments: &[&[u8]]) -> Refusal {
    let begin: String = arguments[1..].iter().take(8).map(|one| format!("'{}' ", shown(one))).collect();
    let name = shown(arguments[0]);
    format!("ERR unknown command '{name}', with args beginning with: {begin}").into()
}

/// A number as Redis takes it: no spaces, no plus, no zeros in front.
pub(crate) fn integer(text: &[u8]) -> Result<i64, Refusal> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    parsed.filter(|number| number.to_string().as_bytes() == text).ok_or(NOT_AN_INTEGER.into())
}

/// Whether an argument is this word, in any case.
pub(crate) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}
