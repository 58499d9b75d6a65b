//! What commands are, for rules: categories, and what each does with its keys. `commands.txt` has a line for each command and
//! each subcommand: name, categories, and of each key (the last stands for all behind it) what may be read of it and written
//! to it: as in Redis, a command that only counts, or tells whether something is there, asks for neither.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::commands::{Command, Use, all_commands};

/// Their place is their bit.
pub(super) const CATEGORIES: [&str; 22] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "aggregates",
];

/// What is done with a key, or may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Access {
    pub(super) const BOTH: Self = Self { reads: true, writes: true };

    fn parse(text: &str) -> Self {
        Self { reads: text.contains('R'), writes: text.contains('W') }
    }

    pub(super) fn covers(self, asked: Self) -> bool {
        (self.reads || !asked.reads) && (self.writes || !asked.writes)
    }
}

/// A command, or a subcommand.
#[derive(Debug)]
pub(super) struct Row {
    /// As Redis shows it: `config|get`.
    pub(super) name: String,
    pub(super) categories: u32,
    /// Of its keys.
    accesses: Vec<Access>,
    /// Where the registry names no keys these are its first arguments.
    pub(super) subcommands: Vec<usize>,
}

impl Row {
    /// What is done with a key of this number.
    pub(super) fn access(&self, number: usize) -> Access {
        self.accesses.get(number).or(self.accesses.last()).copied().unwrap_or(Access::BOTH)
    }

    /// How many of its first arguments are keys, if the registry names none.
    pub(super) fn keys(&self) -> usize {
        self.accesses.len()
    }
}

/// All of them, and their numbers by name.
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    by_name: HashMap<String, usize>,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

/// The bit of a category.
pub(super) fn category(name: &str) -> Option<u32> {
    CATEGORIES.iter().position(|category| category.eq_ignore_ascii_case(name)).map(|place| 1 << place)
}

/// Whether a command of this name writes, as its categories say.
pub(crate) fn is_write(name: &str) -> bool {
    let write = category("write").unwrap_or_default();
    TABLE.find(name).is_some_and(|number| TABLE.rows[number].categories & write != 0)
}

impl Table {
    fn new() -> Self {
        let mut rows: Vec<Row> = include_str!("commands.txt").lines().map(row).collect();
        let has = |rows: &[Row], name: &str| rows.iter().any(|row| row.name == name);
        let known: Vec<String> = all_commands().map(|command| command.name.to_ascii_lowercase()).collect();
        rows.retain(|row| known.iter().any(|name| row.name.split('|').next() == Some(name)));
        for command in all_commands()
            .filter(|command| !has(&rows, &command.name.to_ascii_lowercase()))
            .collect::<Vec<_>>()
        {
            rows.push(unlisted(command));
        }
        for at in 0..rows.len() {
            let begin = format!("{}|", rows[at].name);
            rows[at].subcommands =
                (0..rows.len()).filter(|sub| rows[*sub].name.starts_with(&begin)).collect();
        }
        let by_name = rows.iter().enumerate().map(|(number, row)| (row.name.clone(), number)).collect();
        Self { rows, by_name }
    }

    /// The number of a command, or of a subcommand by `command|subcommand`.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(&name.to_ascii_lowercase()).copied()
    }

    /// The number of what is asked: of a subcommand, where that is one.
    pub(super) fn asked(&self, command: &Command, arguments: &[&[u8]]) -> Option<usize> {
        let number = self.find(command.name)?;
        let subcommands = &self.rows[number].subcommands;
        let Some(word) = arguments.get(1).filter(|_| !subcommands.is_empty()) else { return Some(number) };
        let is_it = |sub: &&usize| {
            let name = self.rows[**sub].name.as_bytes();
            name[command.name.len() + 1..].eq_ignore_ascii_case(word)
        };
        Some(subcommands.iter().find(is_it).copied().unwrap_or(number))
    }
}

fn row(line: &str) -> Row {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    let categories =
        words.next().unwrap_or_default().split(',').filter_map(category).fold(0, |all, one| all | one);
    let accesses = words.next().map(|text| text.split(',').map(Access::parse).collect()).unwrap_or_default();
    Row { name, categories, accesses, subcommands: Vec::new() }
}

/// One that has no line: whoever may not do what is dangerous may not use it.
fn unlisted(command: &Command) -> Row {
    let name = command.name.to_ascii_lowercase();
    let categories =
        ["slow", "dangerous", "read", "write"].into_iter().filter_map(category).fold(0, |all, one| all | one);
    let accesses = if command.uses == Use::Nothing { Vec::new() } else { vec![Access::BOTH] };
    Row { name, categories, accesses, subcommands: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is one that rules can name, and each command has one.
    #[test]
    fn all_commands_have_categories() {
        let lines: Vec<Row> = include_str!("commands.txt").lines().map(row).collect();
        // Those that there are in tests only have none.
        let is_for_tests = |name| crate::loops::tests::COMMANDS.iter().any(|command| command.name == name);
        for command in all_commands().filter(|command| !is_for_tests(command.name)) {
            let found = lines.iter().find(|row| row.name.eq_ignore_ascii_case(command.name));
            let found = found.unwrap_or_else(|| panic!("{} has no line in commands.txt", command.name));
            assert_ne!(found.categories, 0, "{}", command.name);
        }
        assert!(lines.iter().all(|row| !row.name.is_empty() && row.categories != 0));
    }
}
