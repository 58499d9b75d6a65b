//! A user, and the rules that make one: Redis's own, but for selectors and first arguments.

use forebay::limits::KEY_BYTES_MAX;

use super::passwords::{Hash, are_same, from_hex, hash, hex};
use super::table::{Access, Row, TABLE, category};
use crate::commands::Command;
use crate::glob;

/// The longest pattern, and how many patterns and passwords a user has at most.
const PATTERN_BYTES_MAX: usize = 1024;
const LIST_MAX: usize = 1024;

const SYNTAX: &str = "Syntax error";
const UNKNOWN: &str = "Unknown command or category name in ACL";
const BEHIND_ALL: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                          effect. Try 'resetkeys' to start with an empty list of patterns";
const CHANNEL_BEHIND_ALL: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
                                  not have any effect. Try 'resetchannels' to start with an empty list of channels";
const HASH: &str =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_PASSWORD: &str = "The password you are trying to remove from the user does not exist";
const TOO_MUCH: &str = "A user has at most 1024 patterns and passwords, and a pattern at most 1024 bytes";

/// Keys that match may be used so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Keys {
    access: Access,
    pattern: Vec<u8>,
}

/// What a user must not do: what the log of refusals tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied<'r> {
    Command(String),
    Key(&'r [u8]),
    Channel(&'r [u8]),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: Vec<u8>,
    /// Another one of the same name, made after this was deleted, has another number.
    pub(super) born: u64,
    pub(super) is_on: bool,
    pub(crate) has_nopass: bool,
    pub(super) passwords: Vec<Hash>,
    keys: Vec<Keys>,
    channels: Vec<Vec<u8>>,
    /// A bit for each row of the table.
    commands: Vec<u64>,
    rules: Vec<String>,
    /// Nothing is refused to it.
    is_free: bool,
}

impl User {
    /// One that may do nothing.
    pub(super) fn new(name: &[u8], born: u64) -> Self {
        Self {
            name: name.into(),
            born,
            is_on: false,
            has_nopass: false,
            passwords: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
            commands: vec![0; TABLE.rows.len().div_ceil(64)],
            rules: vec!["-@all".into()],
            is_free: false,
        }
    }

    /// One that may do all, and needs no password.
    pub(super) fn free(name: &[u8], born: u64) -> Self {
        let mut user = Self::new(name, born);
        for rule in ["on", "nopass", "allkeys", "allchannels", "allcommands"] {
            let applied = user.apply(rule.as_bytes());
            debug_assert_eq!(applied, Ok(()));
        }
        user
    }

    /// Whether whoever comes is this user without a word.
    pub(crate) fn is_open(&self) -> bool {
        self.is_on && self.has_nopass
    }

    /// Whether nothing is refused to it.
    pub(crate) fn is_free(&self) -> bool {
        self.is_free
    }

    /// Whether this is a password of it.
    pub(super) fn takes(&self, asked: &Hash) -> bool {
        let is_one = self.passwords.iter().fold(false, |found, kept| found | are_same(asked, kept));
        self.is_on && (self.has_nopass || is_one)
    }

    /// Applies a rule, or says what is wrong with it and changes nothing.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        let word = rule.to_ascii_lowercase();
        match (&*word, rule) {
            (b"on", _) => self.is_on = true,
            (b"off", _) => self.is_on = false,
            (b"nopass", _) => (self.has_nopass, self.passwords) = (true, Vec::new()),
            (b"resetpass", _) => (self.has_nopass, self.passwords) = (false, Vec::new()),
            (b"allkeys", _) => self.add_keys(Access::BOTH, b"*")?,
            (b"resetkeys", _) => self.keys.clear(),
            (b"allchannels", _) => self.add_channels(b"*")?,
            (b"resetchannels", _) => self.channels.clear(),
            (b"allcommands", _) => self.rule("+@all")?,
            (b"nocommands", _) => self.rule("-@all")?,
            (b"sanitize-payload" | b"skip-sanitize-payload" | b"clearselectors", _) => {}
            (b"reset", _) => *self = Self::new(&self.name, self.born),
            (_, [b'>', password @ ..]) => self.add_password(hash(password))?,
            (_, [b'#', text @ ..]) => self.add_password(from_hex(text).ok_or(HASH)?)?,
            (_, [b'<', password @ ..]) => self.remove_password(&hash(password))?,
            (_, [b'!', text @ ..]) => self.remove_password(&from_hex(text).ok_or(HASH)?)?,
            (_, [b'~', pattern @ ..]) => self.add_keys(Access::BOTH, pattern)?,
            (_, [b'%', rest @ ..]) => self.add_keys_for(rest)?,
            (_, [b'&', pattern @ ..]) => self.add_channels(pattern)?,
            (_, [b'+' | b'-', ..]) => self.rule(std::str::from_utf8(&word).map_err(|_| UNKNOWN)?)?,
            _ => return Err(SYNTAX),
        }
        self.is_free = self.has_all_commands()
            && self.has_all_keys()
            && self.channels.iter().any(|pattern| pattern == b"*");
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) -> Result<(), &'static str> {
        if !self.passwords.contains(&hash) {
            if self.passwords.len() == LIST_MAX {
                return Err(TOO_MUCH);
            }
            self.passwords.push(hash);
        }
        self.has_nopass = false;
        Ok(())
    }

    fn remove_password(&mut self, hash: &Hash) -> Result<(), &'static str> {
        let at = self.passwords.iter().position(|kept| kept == hash).ok_or(NO_PASSWORD)?;
        self.passwords.remove(at);
        Ok(())
    }

    /// `R~pattern`, `W~pattern`, `RW~pattern`.
    fn add_keys_for(&mut self, rest: &[u8]) -> Result<(), &'static str> {
        if self.has_all_keys() {
            return Err(BEHIND_ALL);
        }
        let at = rest.iter().position(|byte| *byte == b'~').ok_or(SYNTAX)?;
        let (letters, pattern) = (&rest[..at], &rest[at + 1..]);
        if letters.is_empty() || !letters.iter().all(|byte| b"rRwW".contains(byte)) {
            return Err(SYNTAX);
        }
        let has = |letter: u8| letters.iter().any(|byte| byte.eq_ignore_ascii_case(&letter));
        self.add_keys(Access { reads: has(b'r'), writes: has(b'w') }, pattern)
    }

    fn add_keys(&mut self, access: Access, pattern: &[u8]) -> Result<(), &'static str> {
        let at = self.keys.iter().position(|keys| keys.pattern == pattern);
        let before = at.map_or(Access { reads: false, writes: false }, |at| self.keys[at].access);
        let access = Access { reads: before.reads || access.reads, writes: before.writes || access.writes };
        if access == Access::BOTH && pattern == b"*" {
            self.keys.clear();
        } else if self.has_all_keys() {
            return Err(BEHIND_ALL);
        }
        checked(pattern, self.keys.len())?;
        match self.keys.iter_mut().find(|keys| keys.pattern == pattern) {
            Some(keys) => keys.access = access,
            None => self.keys.push(Keys { access, pattern: pattern.into() }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), &'static str> {
        if pattern == b"*" {
            self.channels.clear();
        } else if self.channels.iter().any(|kept| kept == b"*") {
            return Err(CHANNEL_BEHIND_ALL);
        }
        checked(pattern, self.channels.len())?;
        if !self.channels.iter().any(|kept| kept == pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    /// `+command`, `-command|subcommand`, `+@category` and so on.
    fn rule(&mut self, rule: &str) -> Result<(), &'static str> {
        let (is_allowed, name) = (rule.starts_with('+'), &rule[1..]);
        if name == "@all" {
            self.commands.fill(if is_allowed { u64::MAX } else { 0 });
            self.rules = vec![rule.into()];
            return Ok(());
        }
        let mut set = |number: usize| {
            let (word, bit) = (&mut self.commands[number / 64], 1 << (number % 64));
            *word = if is_allowed { *word | bit } else { *word & !bit };
        };
        match name.strip_prefix('@') {
            Some(of) => {
                let bit = category(of).ok_or(UNKNOWN)?;
                let of = |(_, row): &(usize, &Row)| row.categories & bit != 0;
                TABLE.rows.iter().enumerate().filter(of).for_each(|(number, _)| set(number));
            }
            None => {
                let number = TABLE.find(name).ok_or(UNKNOWN)?;
                set(number);
                TABLE.rows[number].subcommands.iter().for_each(|sub| set(*sub));
            }
        }
        let below = format!("{name}|");
        self.rules.retain(|kept| &kept[1..] != name && !kept[1..].starts_with(&below));
        self.rules.push(rule.into());
        Ok(())
    }

    fn has_all_keys(&self) -> bool {
        self.keys.iter().any(|keys| keys.access == Access::BOTH && keys.pattern == b"*")
    }

    /// How many patterns a key is held against, at most.
    pub(crate) fn patterns(&self) -> usize {
        if self.is_free { 0 } else { self.keys.len() }
    }

    /// Whether it may read all keys.
    pub(crate) fn may_see_all(&self) -> bool {
        self.keys.iter().any(|keys| keys.access.reads && keys.pattern == b"*")
    }

    fn has_all_commands(&self) -> bool {
        (0..TABLE.rows.len()).all(|number| self.may_run(number))
    }

    fn may_run(&self, number: usize) -> bool {
        self.commands[number / 64] & 1 << (number % 64) != 0
    }

    /// What of a request it must not do.
    pub(crate) fn denied<'r>(&self, command: &Command, arguments: &'r [&'r [u8]]) -> Option<Denied<'r>> {
        if self.is_free {
            return None;
        }
        let Some(number) = TABLE.asked(command, arguments) else {
            return Some(Denied::Command(command.name.to_ascii_lowercase()));
        };
        let row = &TABLE.rows[number];
        if !self.may_run(number) {
            return Some(Denied::Command(row.name.clone()));
        }
        let may_use = |key: &[u8], asked: Access| {
            let fits = |keys: &Keys| keys.access.covers(asked) && glob::matches(&keys.pattern, key);
            // No key is longer, and a pattern would take its time with it.
            key.len() <= KEY_BYTES_MAX && self.keys.iter().any(fits)
        };
        // A text is read where `SET` is to tell what it was.
        let is_blind =
            command.name == "SET" && !arguments.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"GET"));
        let access = |number: usize| match is_blind {
            true => Access { reads: false, writes: true },
            false => row.access(number),
        };
        let first = if command.keys.0 == 0 { arguments.get(1..).unwrap_or_default() } else { &[] };
        let keys = command.keys_of(arguments).chain(first.iter().take(row.keys()).copied());
        let key = keys.enumerate().find(|(number, key)| !may_use(key, access(*number))).map(|(_, key)| key);
        if let Some(key) = key {
            return Some(Denied::Key(key));
        }
        let (channels, is_pattern): (&[&[u8]], bool) = match command.name {
            "PUBLISH" | "SPUBLISH" => (arguments.get(1..2).unwrap_or_default(), false),
            "SUBSCRIBE" | "SSUBSCRIBE" => (arguments.get(1..).unwrap_or_default(), false),
            "PSUBSCRIBE" => (arguments.get(1..).unwrap_or_default(), true),
            _ => (&[], false),
        };
        let channel = channels.iter().find(|channel| !self.may_use_channel(channel, is_pattern));
        channel.copied().map(Denied::Channel)
    }

    /// Whether it may use a channel, or a pattern of channels: those only as they stand in its rules.
    pub(crate) fn may_use_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let fits = |kept: &Vec<u8>| {
            kept == b"*" || if is_pattern { kept == channel } else { glob::matches(kept, channel) }
        };
        self.channels.iter().any(fits)
    }

    pub(super) fn flags(&self) -> Vec<&'static str> {
        let nopass = self.has_nopass.then_some("nopass");
        std::iter::once(if self.is_on { "on" } else { "off" }).chain(nopass).collect()
    }

    pub(super) fn shown_keys(&self) -> Vec<u8> {
        let one = |keys: &Keys| {
            let begin: &[u8] = match keys.access {
                Access { reads: true, writes: true } => b"~",
                Access { reads: true, .. } => b"%R~",
                _ => b"%W~",
            };
            [begin, &keys.pattern].concat()
        };
        self.keys.iter().map(one).collect::<Vec<_>>().join(&b' ')
    }

    pub(super) fn shown_channels(&self) -> Vec<u8> {
        self.channels.iter().map(|pattern| [&b"&"[..], pattern].concat()).collect::<Vec<_>>().join(&b' ')
    }

    pub(super) fn shown_commands(&self) -> String {
        self.rules.join(" ")
    }

    /// A line of the file of users, which makes the same one.
    pub(crate) fn shown(&self) -> Vec<u8> {
        let mut words: Vec<Vec<u8>> = vec![b"user".into(), self.name.clone()];
        words.extend(self.flags().iter().map(|flag| flag.as_bytes().to_vec()));
        words.extend(self.passwords.iter().map(|hash| format!("#{}", hex(hash)).into_bytes()));
        words.push(self.shown_keys());
        // Without it a user that was read would have what Redis gives new ones.
        if self.channels.first().is_none_or(|pattern| pattern != b"*") {
            words.push(b"resetchannels".into());
        }
        words.push(self.shown_channels());
        words.push(self.shown_commands().into_bytes());
        words.retain(|word| !word.is_empty());
        words.join(&b' ')
    }
}

/// A pattern may hold no space: it would be two words of a line.
fn checked(pattern: &[u8], count: usize) -> Result<(), &'static str> {
    if pattern.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(SYNTAX);
    }
    if pattern.len() > PATTERN_BYTES_MAX || count >= LIST_MAX {
        return Err(TOO_MUCH);
    }
    Ok(())
}
