//! What the engine has and Redis has not: numbers, layouts, checkpoints, savepoints, and what was changed.
//!
//! **Invariant:** a rollback is alone: no turn writes meanwhile, and whoever holds anything of the database looks again.

mod changes;
mod following;

use forebay::{Error, Layout, Stats, Table};
use serde::Serialize;

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, is};
use crate::observe;

pub(crate) use following::{commit_bytes, push_commit, push_end};
pub(super) use following::{is_following, stop_following};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "FB.STATS", arity: -1, keys: (0, 0, 0), uses: Use::Nothing, run: stats },
    Command { name: "FB.LAYOUT", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: layout },
    Command { name: "FB.CHECKPOINT", arity: 2, keys: (0, 0, 0), uses: Use::Nothing, run: checkpoint },
    Command { name: "FB.SAVEPOINT", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: savepoint },
    Command { name: "FB.ROLLBACK", arity: 2, keys: (0, 0, 0), uses: Use::Whole, run: rollback },
    Command { name: "FB.CHANGES", arity: -2, keys: (0, 0, 0), uses: Use::Nothing, run: changes::changes },
];

fn text(argument: &[u8]) -> Result<String, Refusal> {
    let text = std::str::from_utf8(argument);
    text.map(str::to_string).map_err(|_| "ERR a name is a text in UTF-8".into())
}

/// A table by its name.
fn table(call: &Call<'_, '_>, name: &[u8]) -> Result<Table, Refusal> {
    let snapshot = call.turn.shared.database.snapshot();
    snapshot.table(&text(name)?).map_err(|error| match error {
        Error::NotFound(_) => {
            format!("ERR there is no table `{}`", String::from_utf8_lossy(&name[..name.len().min(64)])).into()
        }
        error => error.into(),
    })
}

/// What `FB.STATS` tells.
#[derive(Serialize)]
struct Numbers {
    #[serde(flatten)]
    stats: Stats,
    #[serde(flatten)]
    server: Option<observe::Shown>,
}

/// `FB.STATS [table]`: counters and gauges as JSON, of all tables or of one.
fn stats(call: &mut Call<'_, '_>) -> Answer {
    let wanted = match &call.arguments[1..] {
        [] => None,
        [name] => Some(table(call, name)?.name().to_string()),
        _ => return Err(SYNTAX.into()),
    };
    let shared = call.turn.shared;
    let server = wanted.is_none().then(|| observe::server(shared, true, true));
    let database = std::sync::Arc::clone(&shared.database);
    call.later(0, move |reply, _| {
        let mut stats = database.stats();
        stats.tables.retain(|table| wanted.as_ref().is_none_or(|wanted| *wanted == table.name));
        let json = serde_json::to_string(&Numbers { stats, server });
        reply.bulk(json.map_err(|error| Error::bug(format!("numbers as JSON: {error}")))?.as_bytes());
        Ok(())
    })
}

/// `FB.LAYOUT table [layout]`: how a table is organised, and how it is to be from now on.
fn layout(call: &mut Call<'_, '_>) -> Answer {
    let table = table(call, call.arguments[1])?;
    let before = table.layout()?;
    let asked = match &call.arguments[2..] {
        [] => {
            call.reply.bulk(before.to_string().as_bytes());
            return Ok(());
        }
        [asked] => text(asked)?.parse::<Layout>()?,
        _ => return Err(SYNTAX.into()),
    };
    if asked.is_ordered() != before.is_ordered() {
        return Err(format!(
            "ERR table `{}` is {before}, and the server needs its order: give a layout of the same, or stop it and use \
             `forebay layout`",
            table.name()
        )
        .into());
    }
    call.later(0, move |reply, _| {
        table.set_layout(asked)?;
        reply.ok();
        Ok(())
    })
}

/// `FB.CHECKPOINT name`: a copy of the database as it is now, in a new folder of the one that the server was told.
fn checkpoint(call: &mut Call<'_, '_>) -> Answer {
    let name = text(call.arguments[1])?;
    let shared = call.turn.shared;
    let Some(folder) = &shared.config.checkpoints else {
        return Err(
            "ERR the server was not told where checkpoints may be: give `--checkpoints FOLDER`".into()
        );
    };
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.bytes().all(is_sound) || name.starts_with('.') || name.is_empty() || name.len() > 200 {
        return Err(
            "ERR a checkpoint's name has letters, digits and `_-.`, and begins with none such as `.`".into(),
        );
    }
    let path = folder.join(name);
    call.turn.write_out()?;
    let database = std::sync::Arc::clone(&shared.database);
    call.later(0, move |reply, _| {
        let made = database.checkpoint(path)?;
        reply.map(3);
        let bytes = made.files.iter().map(|file| file.bytes).sum::<u64>();
        for (name, number) in
            [("last_sequence", made.last_sequence), ("files", made.files.len() as u64), ("bytes", bytes)]
        {
            reply.bulk(name.as_bytes());
            reply.int(number.cast_signed());
        }
        Ok(())
    })
}

/// `FB.SAVEPOINT CREATE name | DROP name | LIST`: moments that stay inside the database.
fn savepoint(call: &mut Call<'_, '_>) -> Answer {
    let database = std::sync::Arc::clone(&call.turn.shared.database);
    match &call.arguments[1..] {
        [word, name] if is(word, "CREATE") => {
            let name = text(name)?;
            call.turn.write_out()?;
            call.later(0, move |reply, _| {
                reply.int(database.savepoint(&name)?.cast_signed());
                Ok(())
            })
        }
        [word, name] if is(word, "DROP") => {
            let name = text(name)?;
            call.later(0, move |reply, _| {
                database.drop_savepoint(&name)?;
                reply.ok();
                Ok(())
            })
        }
        [word] if is(word, "LIST") => {
            let all = database.savepoints();
            call.reply.array(all.len());
            for one in all {
                call.reply.map(4);
                call.reply.bulk(b"name");
                call.reply.bulk(one.name.as_bytes());
                for (name, number) in [
                    ("sequence", one.sequence),
                    ("taken_at_milliseconds", one.taken_at_milliseconds),
                    ("held_bytes", one.held_bytes),
                ] {
                    call.reply.bulk(name.as_bytes());
                    call.reply.int(number.cast_signed());
                }
            }
            Ok(())
        }
        _ => Err(SYNTAX.into()),
    }
}

/// `FB.ROLLBACK name`: makes all tables what they were at a savepoint. What waits is written before, so that it is undone.
fn rollback(call: &mut Call<'_, '_>) -> Answer {
    if call.turn.is_in_transaction() {
        return Err("ERR a rollback cannot stand in a transaction".into());
    }
    let name = text(call.arguments[1])?;
    call.turn.write_out()?;
    let shared = call.turn.shared;
    let rolled_back = shared.rollback(&name);
    call.turn.forget(None);
    call.turn.stripes().for_each(crate::stripe::Stripe::all_written);
    rolled_back?;
    call.reply.ok();
    Ok(())
}
