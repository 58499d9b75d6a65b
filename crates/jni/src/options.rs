//! Options by name and text, which [`forebay_settings`] knows.

use forebay::{Durability, Options, Result, TableBuilder};
use jni::sys::jint;

use crate::failure::{Failure, Outcome};
use crate::items::Items;

/// A transaction is tried so many times where nothing else is said.
const ATTEMPTS: u32 = 1000;

/// Options of a database, the durability of batches that say none, and how many times a transaction is tried.
pub(crate) fn of_database(texts: &[u8]) -> Result<(Options, Durability, u32)> {
    let (mut made, mut usual, mut has_log, mut attempts) = (Options::default(), None, true, ATTEMPTS);
    let mut texts = Items(texts);
    while !texts.is_empty() {
        let (name, text) = (texts.text()?, texts.text()?);
        made = forebay_settings::database(name, text)?(made);
        match name {
            "durability" => usual = Some(text.parse()?),
            "log" => has_log = text == "true",
            name if forebay_settings::is_named(name, "transaction_attempts") => {
                // What is no number the setting has refused.
                let number =
                    forebay_units::amounts::parse(text).ok().and_then(|number| number.try_into().ok());
                attempts = number.unwrap_or(attempts);
            }
            _ => {}
        }
    }
    let by_default = if has_log { Durability::Os } else { Durability::Memory };
    Ok((made, usual.unwrap_or(by_default), attempts))
}

/// What opens, makes or alters a table with these options.
pub(crate) fn builder(db: &forebay::Database, name: &str, texts: &[u8]) -> Result<TableBuilder> {
    let (mut table, mut texts) = (db.table(name), Items(texts));
    while !texts.is_empty() {
        table = forebay_settings::table(texts.text()?, texts.text()?)?(table);
    }
    Ok(table)
}

/// Of `dev.forebay.Durability`, by its ordinal; -1 for the usual one.
pub(crate) fn durability(number: jint, usual: Durability) -> Outcome<Durability> {
    match number {
        -1 => Ok(usual),
        0 => Ok(Durability::Memory),
        1 => Ok(Durability::Os),
        2 => Ok(Durability::Disk),
        _ => Err(Failure::invalid(format!("there is no durability {number}"))),
    }
}
