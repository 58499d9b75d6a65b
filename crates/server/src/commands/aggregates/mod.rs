//! Aggregates as a service: durable aggregators of the database, to which rows are added without a look, one batch and one
//! commit for all that a turn adds.
//!
//! 1. [`declared`]: what `AGG.CREATE` says. Names, files and rules are those of the Python package's (`forebay-groups`), so
//!    that either opens what the other has made.
//! 2. [`groups`]: what is open of an aggregator, in a table or in windows ([`store`]); [`kinds`]: values as arguments.
//! 3. [`write`]: rows and states in; [`read`]: answers out. What walks through all groups, or through a long stream, is done
//!    behind the turn by a thread, of one moment.
//! 4. [`ipc`]: streams of Arrow's.
//!
//! **Invariant:** an aggregator is made and dropped only while no turn adds to any.

mod answers;
mod declared;
mod groups;
mod ipc;
mod kinds;
mod read;
mod store;
mod top;
mod write;

use std::sync::Arc;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is};
use declared::{Declared, checked_name};
use groups::Groups;
use store::Store;

pub(crate) use groups::Aggregates;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "AGG.CREATE", arity: -4, keys: (1, 1, 1), uses: Use::Whole, run: create },
    Command { name: "AGG.DROP", arity: 2, keys: (1, 1, 1), uses: Use::Whole, run: drop_one },
    Command { name: "AGG.LIST", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: list },
    Command { name: "AGG.INFO", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: info },
    Command { name: "AGG.ADD", arity: -2, keys: (1, 1, 1), uses: Use::Adds, run: write::add },
    Command { name: "AGG.COMMIT", arity: -3, keys: (1, 1, 1), uses: Use::Adds, run: write::commit },
    Command { name: "AGG.LOAD", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: write::load },
    Command { name: "AGG.MERGE", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: write::merge },
    Command { name: "AGG.EXPIRE", arity: 3, keys: (0, 0, 0), uses: Use::Nothing, run: write::expire },
    Command { name: "AGG.METADATA", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: read::metadata },
    Command { name: "AGG.GET", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: read::get },
    Command { name: "AGG.MGET", arity: -3, keys: (0, 0, 0), uses: Use::Nothing, run: read::mget },
    Command { name: "AGG.TOP", arity: -3, keys: (0, 0, 0), uses: Use::Nothing, run: read::top },
    Command { name: "AGG.RESULT", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: read::result },
];

/// The aggregator that a command names.
fn found(call: &Call<'_, '_>, name: &[u8]) -> Result<Arc<Groups>, Refusal> {
    let shared = call.turn.shared;
    shared.aggregates.find(&shared.database, name)
}

fn create(call: &mut Call<'_, '_>) -> Answer {
    let name = String::from_utf8_lossy(call.arguments[1]).into_owned();
    checked_name(&name)?;
    let declared = Declared::parse(&call.arguments[2..])?;
    let shared = call.turn.shared;
    shared.aggregates.create(&shared.database, &name, &declared)?;
    call.reply.ok();
    Ok(())
}

fn drop_one(call: &mut Call<'_, '_>) -> Answer {
    // What was added before would have no table.
    call.turn.write_out()?;
    let shared = call.turn.shared;
    shared.aggregates.forget(&shared.database, call.arguments[1])?;
    call.reply.ok();
    Ok(())
}

fn list(call: &mut Call<'_, '_>) -> Answer {
    let names = groups::names(&call.turn.shared.database);
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

/// What an aggregator is.
fn info(call: &mut Call<'_, '_>) -> Answer {
    let groups = found(call, call.arguments[1])?;
    let window = match &groups.store {
        Store::Plain(_) => String::new(),
        Store::Windows(_, shape) => shape.to_string(),
    };
    let columns = groups.columns().unwrap_or_default();
    let keys = groups.schema.keys().iter().map(|key| format!("{}:{}", key.name(), key.data_type()));
    let columns = columns.iter().map(|column| format!("{}:{}", column.name, column.kind));
    let functions = groups.asked.named().into_iter().map(|(name, function)| match name == function {
        true => name.to_string(),
        false => format!("{name}={function}"),
    });
    let lists: [(&str, Vec<String>); 3] =
        [("key", keys.collect()), ("columns", columns.collect()), ("functions", functions.collect())];
    let reply = &mut *call.reply;
    reply.map(2 + lists.len());
    for (name, text) in [("name", &groups.name), ("window", &window)] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (name, texts) in &lists {
        reply.bulk(name.as_bytes());
        reply.array(texts.len());
        texts.iter().for_each(|text| reply.bulk(text.as_bytes()));
    }
    Ok(())
}
