//! One file a command, and what several of them need: a database opened the right way, and keys.

pub(crate) mod aggregate;
pub(crate) mod bench;
pub(crate) mod changes;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod destroy;
pub(crate) mod get;
mod key_list;
mod key_range;
pub(crate) mod layout;
pub(crate) mod load;
mod made;
pub(crate) mod man;
mod progress;
pub(crate) mod put;
pub(crate) mod rescue;
pub(crate) mod rollback;
pub(crate) mod savepoint;
pub(crate) mod savepoints;
pub(crate) mod scan;
pub(crate) mod simulate;
pub(crate) mod stats;
pub(crate) mod ttl;
pub(crate) mod verify;

use std::path::Path;

use forebay::{Database, Durability, Error, Layout, Options, Snapshot, Table};
use forebay_aggregate::names::similar;

use crate::args::{Cli, Command, Common};
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let common = &cli.common;
    match &cli.command {
        Command::Load(args) => load::run(args, &args.writing.of(common)),
        Command::Put(args) => put::run(args, &args.writing.of(common)),
        Command::Get(args) => get::run(args, &args.reading.of(common)),
        Command::Delete(args) => delete::run(args, &args.writing.of(common)),
        Command::Scan(args) => scan::run(args, &args.reading.of(common)),
        Command::Changes(args) => changes::run(args, &args.reading.of(common)),
        Command::Stats(args) => stats::run(args, &args.reading.of(common)),
        Command::Describe(args) => describe::run(args, &args.reading.of(common)),
        Command::Verify(args) => verify::run(args, &args.reading.of(common)),
        Command::Rescue(args) => rescue::run(args, &args.reading.of(common)),
        Command::Compact(args) => compact::run(args, &args.writing.of(common)),
        Command::Layout(args) => layout::run(args, &args.writing.of(common)),
        Command::Checkpoint(args) => checkpoint::run(args, &args.writing.of(common)),
        Command::Savepoint(args) => savepoint::run(args, &args.writing.of(common)),
        Command::Savepoints(args) => savepoints::run(args, &args.reading.of(common)),
        Command::Rollback(args) => rollback::run(args, &args.writing.of(common)),
        Command::Destroy(args) => destroy::run(args, &args.writing.of(common)),
        Command::Aggregate(args) => aggregate::run(args, &args.reading.of(common)),
        Command::Bench(args) => bench::run(args, &args.reading.of(common)),
        Command::Simulate(args) => simulate::run(args, &args.reading.of(common)),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// What a command will do to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Look.
    Read,
    /// Change what is there.
    Write,
    /// Change it, and make it where it is missing.
    Create,
}

fn open(path: &Path, common: &Common, access: Access) -> Result<Database, Failure> {
    let mut options =
        Options::default().create_if_missing(access == Access::Create).read_only(access == Access::Read);
    if let Some(bytes) = common.memory {
        options = options.memory_limit(bytes);
    }
    if let Some(bytes) = common.keep_changes {
        options = options.keep_changes(bytes);
    }
    patiently(common, || Database::open(path, options.clone())).map_err(|error| match error {
        // Options are judged before the database is looked at, so the command line alone is at fault.
        Error::Invalid(reason) => Failure::Usage(reason),
        error => error.into(),
    })
}

/// What opens a database, tried again for as long as `--wait` says while that is open elsewhere.
fn patiently<T>(common: &Common, open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let watch = Stopwatch::start();
    loop {
        match open() {
            Err(Error::Locked { .. }) if common.wait.is_some_and(|wait| watch.elapsed() < wait) => pause(),
            opened => return opened,
        }
    }
}

/// A table that must be there.
fn existing_table(db: &Database, name: &str) -> Result<Table, Failure> {
    known_table(db, name)?;
    Ok(db.table(name).existing(true).open()?)
}

/// Sees to it that a table is not one that tells which files were counted into groups: what anybody else writes there
/// makes the next count wrong.
fn writable(db: &Database, name: &str) -> Result<(), Failure> {
    let Some(groups) = name.strip_suffix(aggregate::INPUTS) else { return Ok(()) };
    let tells_inputs = db.tables().iter().any(|(table, _)| table == name)
        && db.snapshot().table(name)?.get(aggregate::SHAPE)?.is_some();
    match tells_inputs {
        true => Err(Failure::work(format!(
            "table `{name}` tells which files were counted into `{groups}`, and forebay aggregate --store alone writes to it"
        ))),
        false => Ok(()),
    }
}

/// A table that must be there, whatever it keeps: to look at, or to look after.
fn known_table(db: &Database, name: &str) -> Result<Table, Failure> {
    db.snapshot().table(name).map_err(|error| match error {
        Error::NotFound(_) => missing("table", name, db.tables().iter().map(|(name, _)| &name[..])),
        error => error.into(),
    })
}

/// There is nothing of this name, but perhaps of another.
fn missing<'a>(what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> Failure {
    let hint = similar(name, names).map_or(String::new(), |like| format!("; did you mean `{like}`?"));
    Failure::work(format!("there is no {what} `{name}`{hint}"))
}

/// A table that must be there, now or at a savepoint, and the moment at which it is to be read.
fn table_at(db: &Database, name: &str, savepoint: Option<&str>) -> Result<(Snapshot, Table), Failure> {
    let Some(savepoint) = savepoint else {
        let table = known_table(db, name)?;
        return Ok((db.snapshot(), table));
    };
    let snapshot = db.open_savepoint(savepoint).map_err(|error| match error {
        Error::NotFound(_) => {
            missing("savepoint", savepoint, db.savepoints().iter().map(|savepoint| &savepoint.name[..]))
        }
        error => error.into(),
    })?;
    let table = snapshot.table(name)?;
    Ok((snapshot, table))
}

/// What `--layout` takes.
const LAYOUT_HELP: &str = "How a new table is organised [default: wb-tree]. In hash order: wb-tree. In key \
    order, from cheap writes to cheap reads: no-merge, tiering[:t=10], wb-tree:ordered, geometric:r=3, geometric:p=2, \
    leveling[:t=10], jungle[:c=3], range-merge, immediate";

/// What the names of layouts begin with.
const LAYOUTS: [&str; 8] =
    ["no-merge", "immediate", "geometric", "range-merge", "leveling", "tiering", "jungle", "wb-tree"];

/// Reads `--max-space-amplification`.
fn parse_space_amplification(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.25);
    ratio.ok_or_else(|| "give a ratio of at least 1.25".into())
}

/// Reads `--layout`.
fn parse_layout(text: &str) -> Result<Layout, String> {
    text.parse::<Layout>().map_err(|error| {
        let name = text.split(':').next().unwrap_or_default();
        let like = similar(name, LAYOUTS)
            .filter(|_| !LAYOUTS.contains(&name))
            .map_or(String::new(), |like| format!("; did you mean {like}?"));
        format!("{error}{like}")
    })
}

/// Reads `--durability`.
fn parse_durability(text: &str) -> Result<Durability, String> {
    text.parse::<Durability>().map_err(|error| error.to_string())
}
