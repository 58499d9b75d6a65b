//! The feed of changes, commit by commit. Each comes by blocks, as it may be longer than an array of Java's: the number of
//! its last record, 1 where another block of the commit follows, and for each change its number, what it is, when it expires
//! (0 for never), table, key and value. `dev.forebay.Changes` reads them.

use forebay::{Change, Operation, Result};
use forebay_env::sync::Mutex;

use crate::database::get;
use crate::glue::{given_or_null, natives};
use crate::pool::unsigned;
use crate::{handles, items};

/// A block ends with the change by which it is so long.
const BLOCK_BYTES: usize = 1 << 20;

/// A feed, and what of its last commit was not given yet.
pub(crate) struct Feed {
    changes: forebay::Changes,
    rest: Option<Rest>,
}

struct Rest {
    last_sequence: u64,
    changes: std::vec::IntoIter<Change>,
}

impl Feed {
    /// The next block, or nothing where there is no commit by now.
    fn block(&mut self) -> Result<Option<Vec<u8>>> {
        let rest = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.changes.next().transpose()?.map(|commit| Rest {
                last_sequence: commit.last_sequence,
                changes: commit.changes.into_iter(),
            }),
        };
        let Some(mut rest) = rest else { return Ok(None) };
        let mut out = rest.last_sequence.to_le_bytes().to_vec();
        let more = out.len();
        out.push(0);
        while out.len() < BLOCK_BYTES
            && let Some(change) = rest.changes.next()
        {
            push(&mut out, &change);
        }
        if rest.changes.len() > 0 {
            out[more] = 1;
            self.rest = Some(rest);
        }
        Ok(Some(out))
    }
}

fn push(out: &mut Vec<u8>, change: &Change) {
    let (operation, expiry_milliseconds, key, value) = match &change.operation {
        Operation::Put { key, value, expiry_milliseconds } => {
            (0, *expiry_milliseconds, &key[..], Some(value))
        }
        Operation::Delete { key } => (1, None, &key[..], None),
        Operation::Merge { key, operand, expiry_milliseconds } => {
            (2, *expiry_milliseconds, &key[..], Some(operand))
        }
        Operation::DeleteRange { low, high } => (3, None, &low[..], high.as_ref()),
        _ => (4, None, &[][..], None),
    };
    out.extend_from_slice(&change.sequence.to_le_bytes());
    out.push(operation);
    out.extend_from_slice(&expiry_milliseconds.unwrap_or(0).to_le_bytes());
    items::push(out, Some(change.table.as_bytes()));
    items::push(out, Some(key));
    items::push(out, value.map(Vec::as_slice));
}

natives! {
    fn changes(_env, database: jlong, since: jlong) -> jlong {
        let since = unsigned(since, "since")?;
        let changes = get(database)?.with(|db| db.changes(since))?;
        handles::hold(database, Mutex::new(Feed { changes, rest: None }))
    }

    fn changes_next(env, changes: jlong) -> [jbyte] {
        let held = handles::get::<Mutex<Feed>>(changes)?;
        // After an error it ends: what was taken of it would be missed.
        let ends = || drop(handles::release(changes));
        let block = held.lock().block().inspect_err(|_| ends())?;
        given_or_null(env, block).inspect_err(|_| ends())
    }
}
