//! What several commands take. What one takes alone stands beside that command.

pub(crate) mod key_list;
pub(crate) mod key_range;
pub(crate) mod moment;
pub(crate) mod parse;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::form::Form;
use forebay_units::sizes;
use parse::parse_ttl;

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Print one JSON object a line; progress and messages go to standard error
    #[arg(long, global = true)]
    json: bool,
    /// Print answers and errors only: no progress, and nothing of what the work came to
    #[arg(long, short, global = true)]
    quiet: bool,
    /// The file with the key of an encrypted database: 32 bytes, or 64 hexadecimal digits. A database that is made is
    /// encrypted by it
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// What [`Memory`], [`Reading`] or [`Writing`] say, where the command takes them.
    #[arg(skip)]
    pub(crate) memory: Option<u64>,
    #[arg(skip)]
    pub(crate) wait: Option<Duration>,
    #[arg(skip)]
    pub(crate) keep_changes: Option<u64>,
    #[arg(skip)]
    pub(crate) log: LogUse,
}

/// Whether what is written goes to the log before it is in lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogUse {
    #[default]
    Usual,
    /// As far as nobody asks for more.
    None,
}

/// What every command takes that works in memory of a given size.
#[derive(Debug, Clone, Args)]
pub(crate) struct Memory {
    /// The most memory the database uses in all, or the groups of an aggregation, such as 64M or 2G; a database takes
    /// 256M where nothing is said, and works in no less than 1M; `aggregate` takes 512M, and works in no less than 2M, or
    /// 64M with --store
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    memory: Option<u64>,
}

/// What every command takes that opens a database.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reading {
    #[command(flatten)]
    memory: Memory,
    /// How long to wait while another process keeps this one out, such as 30s; without it that is an error at once
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    wait: Option<Duration>,
}

/// What every command takes that writes to a database.
#[derive(Debug, Clone, Args)]
pub(crate) struct Writing {
    #[command(flatten)]
    reading: Reading,
    /// How much of the log to leave for `changes` from now on, such as 1G; the database keeps this number
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    keep_changes: Option<u64>,
}

impl Memory {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { memory: self.memory, ..common.clone() }
    }
}

impl Reading {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { wait: self.wait, ..self.memory.of(common) }
    }
}

impl Writing {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { keep_changes: self.keep_changes, ..self.reading.of(common) }
    }
}

impl Common {
    /// The same, for what is to go by the log, or not.
    pub(crate) fn with_log(&self, log: LogUse) -> Self {
        Self { log, ..self.clone() }
    }

    /// Whether answers are text or JSON.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Whether a person is told how the work goes and what it came to.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

/// The database, and one of its tables.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The database's directory
    pub(crate) db: PathBuf,
    /// The table's name
    pub(crate) table: String,
}

/// The database, and perhaps one of its tables.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// The database's directory
    pub(crate) db: PathBuf,
    /// One table instead of all of them
    pub(crate) table: Option<String>,
}
