//! Options by name and text, which [`forebay_settings`] knows.

use forebay::{Durability, Options, Result, TableBuilder};
use jni::sys::jint;

use crate::failure::{Failure, Outcome};
use crate::items::Items;

/// Options of a database, and the durability of batches that say none.
pub(crate) fn of_database(texts: &[u8]) -> Result<(Options, Durability)> {
    let (mut made, mut usual, mut has_log) = (Options::default(), None, true);
    let mut texts = Items(texts);
    while !texts.is_empty() {
        let (name, text) = (texts.text()?, texts.text()?);
        made = forebay_settings::database(name, text)?(made);
        match name {
            "durability" => usual = Some(text.parse()?),
            "log" => has_log = text == "true",
            _ => {}
        }
    }
    let by_default = if has_log { Durability::Os } else { Durability::Memory };
    Ok((made, usual.unwrap_or(by_default)))
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
