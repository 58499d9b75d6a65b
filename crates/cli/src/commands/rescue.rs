//! `rescue`: what is intact of a damaged database, in a new one.
//!
//! **Invariant:** the new one has its name only once all of it is there, and groups that lack something are marked:
//! what tells which files were counted into them knows nothing of that.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Args;
use forebay::{Batch, Damage, Database, Durability, Error, Options, Rescue, RescueReport};
use serde_json::{Map, Value};

use super::aggregate::{INPUTS, RESCUED, may_have_told};
use crate::args::{Common, Reading};
use crate::database::{by_key, patiently};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::{Output, counted};
use crate::screen;
use crate::temporary::Temporary;

/// What is behind the new database's name until all of it is there.
const ASIDE: &str = ".rescuing";

/// Copy what is intact of a damaged database to a new one, and tell what is not
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 where anything could not be read; the new database is there all the same.\n\n\
    Example:\n  forebay rescue users.db rescued.db"
)]
pub(crate) struct RescueArgs {
    /// The damaged database's directory; it is not changed
    db: PathBuf,
    /// The directory to make
    destination: PathBuf,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &RescueArgs, common: &Common) -> Result<(), Failure> {
    let options = common.memory.map_or_else(Options::default, |bytes| Options::default().memory_limit(bytes));
    let report = rescue(args, common, &by_key(common, options))?;
    let records: u64 = report.tables.iter().map(|table| table.records).sum();
    let (tables, place) = (report.tables.len() as u64, args.destination.display());
    let text = format!("{}, {} in {place}", counted(tables, "table"), counted(records, "record"));
    Output::summary(common, &object(&report)?, text)?;
    for damage in &report.damage {
        tell!("forebay: {}", screen::message(&damage.to_string()));
    }
    let mut is_whole = report.damage.is_empty();
    for table in &report.tables {
        if let Some(why) = &table.left_out {
            tell!("forebay: left out: {}", screen::message(why));
            is_whole = false;
        }
    }
    for file in &report.unnamed_files {
        tell!(
            "forebay: {} is named by no table; left where it is",
            screen::message(&file.display().to_string())
        );
    }
    for name in &report.savepoints {
        tell!("forebay: savepoint {} is not in the new database", screen::message(name));
    }
    if is_whole { Ok(()) } else { Err(Failure::Said) }
}

/// The report, with keys as other objects have them.
fn object(report: &RescueReport) -> Result<Value, Failure> {
    let failed = |error: serde_json::Error| Failure::work(error.to_string());
    let mut object = serde_json::to_value(report).map_err(failed)?;
    for (place, damage) in report.damage.iter().enumerate() {
        for (name, key) in [("low", &damage.low), ("high", &damage.high)] {
            let Some(key) = key else { continue };
            let mut text = b"{".to_vec();
            Notation::Plain.write_json(name, key, &mut text).map_err(|error| Failure::output(&error))?;
            text.push(b'}');
            let shown: Map<String, Value> = serde_json::from_slice(&text).map_err(failed)?;
            if let Some(Value::Object(told)) = object["damage"].get_mut(place) {
                told.remove(name);
                told.extend(shown);
            }
        }
    }
    Ok(object)
}

/// Whether what is made at a path would be in a directory, by whatever names the two go.
fn is_within(dir: &Path, path: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let there = path.ancestors().skip(1).find_map(|above| match above.as_os_str().is_empty() {
        true => Path::new(".").canonicalize().ok(),
        false => above.canonicalize().ok(),
    });
    there.is_some_and(|above| above.starts_with(dir))
}

/// Makes the new database, whole, or not at all.
#[expect(clippy::disallowed_methods, reason = "a directory that nobody has open gets its name")]
fn rescue(args: &RescueArgs, common: &Common, options: &Options) -> Result<RescueReport, Failure> {
    let target = &args.destination;
    if target.symlink_metadata().is_ok() {
        let target = target.display();
        return Err(Failure::work(format!("{target} exists already; name a new directory")));
    }
    // Without a slash at its end.
    let target: PathBuf = target.components().collect();
    if is_within(&args.db, &target) {
        let (db, target) = (args.db.display(), target.display());
        return Err(Failure::work(format!(
            "{target} is within {db}, which is not changed; name a directory elsewhere"
        )));
    }
    let mut aside: OsString = target.clone().into();
    aside.push(ASIDE);
    if Path::new(&aside).exists() {
        // One that was killed has left it; one that is under way has it open, which is an error.
        Database::destroy(&aside)?;
    }
    let (aside, known) = Temporary::make(|| Ok(PathBuf::from(aside)), |aside| aside)
        .map_err(|error| Failure::work(error.to_string()))?;
    let rescue = Rescue::new(options.clone());
    let report =
        patiently(common, || rescue.run(&args.db, &aside, &mut |_, _| ())).map_err(|error| match error {
            Error::Invalid(reason) => Failure::Usage(reason),
            // Of no use is the advice to call what has just failed.
            Error::Corruption { file, offset, reason } => Failure::work(format!(
                "nothing was saved: corruption in {} at offset {offset}: {reason}; restore the database from a checkpoint",
                file.display()
            )),
            error => error.into(),
        })?;
    mark(&aside, &report, options).inspect_err(|_| drop(Database::destroy(&aside)))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    known
        .keep(|| fs::rename(&aside, &target).and_then(|()| File::open(parent)?.sync_all()))
        .map_err(|error| Failure::work(format!("cannot rename {}: {error}", aside.display())))?;
    Ok(report)
}

/// Notes with groups that something may be missing.
fn mark(path: &Path, report: &RescueReport, options: &Options) -> Result<(), Failure> {
    let lost: Vec<(&str, usize)> =
        (report.tables.iter().filter(|table| table.left_out.is_none()).map(|table| &table.name[..]))
            .filter(|inputs| inputs.ends_with(INPUTS))
            .map(|inputs| (inputs, report.damage.iter().filter(|damage| concerns(damage, inputs)).count()))
            .filter(|(_, places)| *places > 0)
            .collect();
    if lost.is_empty() {
        return Ok(());
    }
    let db = Database::open(path, options.clone())?;
    let mut batch = Batch::new();
    for (inputs, places) in lost {
        // A user's own tables may be called so, too, and stay as they are.
        if may_have_told(&db, inputs)? {
            batch.put(&db.table(inputs).existing(true).open()?, RESCUED, places.to_string().as_bytes());
        }
    }
    db.commit(batch, Durability::Disk)?;
    Ok(db.close()?)
}

/// Whether damage may be to groups, or to what tells which files are in them.
fn concerns(damage: &Damage, inputs: &str) -> bool {
    match (&damage.table, &damage.file) {
        (Some(table), _) => table == inputs || inputs.strip_suffix(INPUTS) == Some(table),
        // Superblocks have no records; logs and manifests have those of any table.
        (None, Some(file)) => file.file_stem().is_none_or(|name| name != "FOREBAY"),
        (None, None) => true,
    }
}
