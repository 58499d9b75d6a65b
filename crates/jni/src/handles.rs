//! What Java has a number for. A number is given once, so an old one never stands for something else.
//!
//! What was opened of a database is *within* it, and goes with it: whoever closes a database holds no memory and no files
//! by what was forgotten. A call that is under way keeps its part in what it uses until it returns.
//!
//! **Invariant:** nothing is within something that is closed.

use std::collections::HashMap;
use std::sync::LazyLock;

use forebay_env::sync::{Arc, Mutex, RwLock};
use jni::sys::jlong;

use crate::aggregator::Aggregator;
use crate::changes::Feed;
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::scan::Walk;
use crate::snapshot::Snapshot;
use crate::stream::Stream;
use crate::table::Table;
use crate::transaction::Transaction;

static HANDLES: LazyLock<RwLock<Handles>> = LazyLock::new(RwLock::default);

#[derive(Default)]
struct Handles {
    last: jlong,
    by_number: HashMap<jlong, Handle>,
}

struct Handle {
    /// The number of the database, or 0.
    within: jlong,
    thing: Thing,
}

/// Declares what there are numbers for.
macro_rules! things {
    ($($thing:ident($type:ty) $name:literal)*) => {
        #[derive(Clone)]
        pub(crate) enum Thing {
            $($thing(Arc<$type>)),*
        }

        $(impl Kind for $type {
            const NAME: &'static str = $name;

            fn of(thing: &Thing) -> Option<&Arc<Self>> {
                match thing {
                    Thing::$thing(thing) => Some(thing),
                    _ => None,
                }
            }

            fn as_thing(self: Arc<Self>) -> Thing {
                Thing::$thing(self)
            }
        })*
    };
}

/// A kind of thing.
pub(crate) trait Kind {
    /// As errors name it.
    const NAME: &'static str;

    fn of(thing: &Thing) -> Option<&Arc<Self>>;
    fn as_thing(self: Arc<Self>) -> Thing;
}

things! {
    Database(Open) "database"
    Table(Table) "database of this table"
    Snapshot(Snapshot) "snapshot"
    Scan(Mutex<Walk>) "scan"
    Cursor(Mutex<forebay::Cursor>) "cursor"
    Transaction(Transaction) "transaction"
    Changes(Mutex<Feed>) "feed of changes"
    Aggregator(Aggregator) "aggregator"
    Stream(Stream) "stream of record batches"
    Pool(forebay::Pool) "pool"
    Backups(Mutex<forebay::Backups>) "directory of backups"
}

/// Gives a number to what is within a database, or, for 0, by itself.
pub(crate) fn hold<T: Kind>(within: jlong, thing: T) -> Outcome<jlong> {
    let thing = Arc::new(thing).as_thing();
    let mut handles = HANDLES.write();
    if within != 0 && !handles.by_number.contains_key(&within) {
        return Err(Failure::Closed("database"));
    }
    handles.last += 1;
    let number = handles.last;
    let before = handles.by_number.insert(number, Handle { within, thing });
    debug_assert!(before.is_none(), "a number is given once");
    Ok(number)
}

/// What a number stands for.
pub(crate) fn get<T: Kind>(number: jlong) -> Outcome<Arc<T>> {
    let handles = HANDLES.read();
    let thing = handles.by_number.get(&number).and_then(|handle| T::of(&handle.thing));
    thing.cloned().ok_or(Failure::Closed(T::NAME))
}

/// The same where 0 is for none.
pub(crate) fn optional<T: Kind>(number: jlong) -> Outcome<Option<Arc<T>>> {
    if number == 0 { Ok(None) } else { get(number).map(Some) }
}

/// Takes a number back, and those of all that is within; returns what it stood for. A number that is none does nothing.
pub(crate) fn release(number: jlong) -> Option<Thing> {
    let mut handles = HANDLES.write();
    let handle = handles.by_number.remove(&number)?;
    let within = match handle.thing {
        Thing::Database(_) => handles.by_number.extract_if(|_, other| other.within == number).collect(),
        _ => Vec::new(),
    };
    debug_assert!(within.iter().all(|(other, _)| *other > number), "what is within something came after it");
    // What ends by this ends without the lock: it may have files to close.
    drop(handles);
    drop(within);
    Some(handle.thing)
}

/// How many numbers stand for something.
pub(crate) fn count() -> usize {
    HANDLES.read().by_number.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_goes_with_it_and_no_number_comes_twice() {
        let pool = || forebay::Pool::new(4 << 20, 1).unwrap();
        let first = hold(0, pool()).unwrap();
        assert!(get::<forebay::Pool>(first).is_ok());
        assert!(matches!(get::<Mutex<Walk>>(first), Err(Failure::Closed("scan"))), "another kind is none");
        let part = get::<forebay::Pool>(first).unwrap();
        assert!(release(first).is_some() && release(first).is_none());
        assert!(part.stats().databases.is_empty(), "a part is kept");
        assert!(get::<forebay::Pool>(first).is_err() && optional::<forebay::Pool>(0).unwrap().is_none());
        assert!(matches!(hold(first, pool()), Err(Failure::Closed("database"))));
        let second = hold(0, pool()).unwrap();
        assert!(second > first && release(second).is_some());
    }
}
