//! Transactions: batches that read, too. Java keeps writes until it reads or commits, and passes them along.

#![expect(clippy::too_many_arguments, reason = "natives take what Java passes, one by one")]

use forebay_env::sync::Mutex;
use jni::sys::jlong;

use crate::database;
use crate::failure::{Failure, Outcome};
use crate::glue::{bytes, front, given, given_or_null, natives, optional};
use crate::items;
use crate::options::durability;
use crate::scan::{Direction, begin};
use crate::table::{asked, edges, get};
use crate::{batch, handles};

/// A transaction until it is committed or given up, and the number of its database.
pub(crate) struct Transaction {
    begun: Mutex<Option<forebay::Transaction>>,
    database: jlong,
}

impl Transaction {
    /// Reads, once what was written before is in it. Where that fails, or the read behind it, it is over: some of
    /// what was written is in it, and Java still has all of that.
    fn read<T>(
        &self,
        writes: &[u8],
        act: impl FnOnce(&mut forebay::Transaction) -> forebay::Result<T>,
    ) -> Outcome<T> {
        let mut begun = self.begun.lock();
        let transaction = begun.as_mut().ok_or(Failure::Closed("transaction"))?;
        if let Err(failure) = batch::read_into(writes, transaction) {
            *begun = None;
            return Err(failure);
        }
        let outcome = act(transaction);
        if outcome.is_err() && !writes.is_empty() {
            *begun = None;
        }
        Ok(outcome?)
    }
}

fn held(transaction: jlong) -> Outcome<forebay_env::sync::Arc<Transaction>> {
    handles::get(transaction)
}

natives! {
    fn begin_transaction(_env, database: jlong) -> jlong {
        let transaction = database::get(database)?.with(|db| Ok(db.begin()))?;
        handles::hold(database, Transaction { begun: Mutex::new(Some(transaction)), database })
    }

    fn transaction_get(
        env,
        transaction: jlong,
        writes: [jbyte],
        write_bytes: jint,
        table: jlong,
        key: [jbyte],
    ) -> [jbyte] {
        let (held, table, key) = (held(transaction)?, get(table)?, bytes(env, &key, "key")?);
        let found =
            held.read(&front(env, &writes, write_bytes)?, |transaction| transaction.get(&*table, key))?;
        given_or_null(env, found)
    }

    fn transaction_get_many(
        env,
        transaction: jlong,
        writes: [jbyte],
        write_bytes: jint,
        table: jlong,
        keys: [jbyte],
    ) -> [jbyte] {
        let (held, table, keys) = (held(transaction)?, get(table)?, bytes(env, &keys, "keys")?);
        let keys = asked(&keys)?;
        let writes = front(env, &writes, write_bytes)?;
        let values = held.read(&writes, |transaction| transaction.multi_get(&*table, &keys))?;
        let mut out = Vec::new();
        values.iter().for_each(|value| items::push(&mut out, value.as_deref()));
        given(env, &out)
    }

    fn transaction_range(
        env,
        transaction: jlong,
        writes: [jbyte],
        write_bytes: jint,
        table: jlong,
        from: [jbyte],
        to: [jbyte],
        direction: jint,
    ) -> [jbyte] {
        let (held, table, direction) = (held(transaction)?, get(table)?, Direction::of(direction)?);
        let (from, to) = (optional(env, &from)?, optional(env, &to)?);
        let bounds = edges(from.as_deref(), to.as_deref());
        let writes = front(env, &writes, write_bytes)?;
        let scan = held.read(&writes, |transaction| match from.is_some() || to.is_some() {
            // All of a table has no bounds, so it needs no order.
            false => transaction.iter(&*table),
            true => transaction.range(table.ordered()?, bounds),
        })?;
        begin(env, &table, scan, direction)
    }

    fn commit_transaction(
        env,
        transaction: jlong,
        writes: [jbyte],
        write_bytes: jint,
        metadata: [jbyte],
        durability_number: jint,
    ) -> jlong {
        let (held, metadata) = (held(transaction)?, optional(env, &metadata)?);
        let open = database::get(held.database)?;
        let durability = durability(durability_number, open.usual)?;
        let writes = front(env, &writes, write_bytes)?;
        // It is over whatever becomes of it.
        held.read(&writes, |_| Ok(()))?;
        drop(handles::release(transaction));
        let mut begun = held.begun.lock().take().ok_or(Failure::Closed("transaction"))?;
        let sequence = open.with(|db| {
            if let Some(metadata) = metadata {
                begun.put(&open.metadata_table(db)?, [], metadata);
            }
            begun.set_durability(durability);
            begun.commit()
        })?;
        Ok(sequence.cast_signed())
    }
}
