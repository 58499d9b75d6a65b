//! Copies of a database: checkpoints and backups.

use forebay_env::sync::{Arc, Mutex};
use jni::sys::jlong;

use crate::database;
use crate::failure::Outcome;
use crate::glue::{given, natives, path};
use crate::pool::unsigned;
use crate::{handles, items};

fn get(backups: jlong) -> Outcome<Arc<Mutex<forebay::Backups>>> {
    handles::get(backups)
}

natives! {
    fn checkpoint(env, database: jlong, path_text: [jbyte]) -> [jbyte] {
        let path = path(env, &path_text)?;
        let made = database::get(database)?.with(|db| db.checkpoint(&path))?;
        let mut out = items::of([made.last_sequence.to_string()]);
        for file in &made.files {
            items::push(&mut out, Some(file.name.as_bytes()));
            items::push(&mut out, Some(file.bytes.to_string().as_bytes()));
            items::push(&mut out, file.digest.map(|digest| digest.to_string()).as_deref().map(str::as_bytes));
        }
        given(env, &out)
    }

    fn open_backups(env, path_text: [jbyte]) -> jlong {
        handles::hold(0, Mutex::new(forebay::Backups::open(path(env, &path_text)?)?))
    }

    fn take_backup(_env, backups: jlong, database: jlong) -> jlong {
        let (backups, open) = (get(backups)?, database::get(database)?);
        let taken = open.with(|db| backups.lock().take(db))?;
        Ok(taken.number.cast_signed())
    }

    fn list_backups(env, backups: jlong) -> [jbyte] {
        let list = get(backups)?.lock().list()?;
        let numbers = list.iter().flat_map(|backup| {
            [backup.number, backup.taken_at_milliseconds, backup.last_sequence, backup.bytes]
        });
        given(env, &items::of(numbers.map(|number| number.to_string())))
    }

    fn restore(env, backups: jlong, number: jlong, path_text: [jbyte]) -> void {
        let (number, path) = (unsigned(number, "number")?, path(env, &path_text)?);
        Ok(get(backups)?.lock().restore(number, path)?)
    }

    fn verify_backup(env, backups: jlong, number: jlong) -> [jbyte] {
        let problems = get(backups)?.lock().verify(unsigned(number, "number")?)?;
        given(env, &items::of(problems.iter().map(ToString::to_string)))
    }

    fn keep_backups(_env, backups: jlong, newest: jint) -> void {
        let newest = unsigned(newest.into(), "newest")? as usize;
        Ok(get(backups)?.lock().keep(newest)?)
    }
}
