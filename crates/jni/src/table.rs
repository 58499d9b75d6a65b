//! Tables: lookups and single writes.

use std::ops::Bound;

use forebay::{Error, OrderedTable, Result};
use forebay_env::sync::Arc;
use forebay_settings::AnyTable;
use jni::Env;
use jni::objects::JByteArray;
use jni::sys::jlong;

use crate::batch::milliseconds;
use crate::failure::Outcome;
use crate::glue::{bytes, given, natives, optional, text};
use crate::handles;
use crate::items::{self, Items};
use crate::snapshot::Snapshot;

/// So many keys are looked up at a time where their values are not asked for, which may be long.
const LOOKED_UP_AT_ONCE: usize = 16;

/// A table, and the number of its database.
pub(crate) struct Table {
    handle: AnyTable,
    pub(crate) database: jlong,
}

impl Table {
    pub(crate) fn new(handle: AnyTable, database: jlong) -> Self {
        Self { handle, database }
    }

    /// For what needs an order.
    pub(crate) fn ordered(&self) -> Result<&OrderedTable> {
        self.handle.ordered()
    }
}

impl AsRef<forebay::Table> for Table {
    #[inline]
    fn as_ref(&self) -> &forebay::Table {
        self.handle.as_ref()
    }
}

/// From a key on, up to another one, which is not in it.
pub(crate) fn edges<'a>(from: Option<&'a [u8]>, to: Option<&'a [u8]>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))
}

pub(crate) fn get(table: jlong) -> Outcome<Arc<Table>> {
    handles::get(table)
}

/// The values of keys, as items, in their order.
fn many(table: &Table, snapshot: Option<&Snapshot>, keys: &[&[u8]]) -> Result<Vec<u8>> {
    let (mut values, mut places) = (Vec::new(), Vec::with_capacity(keys.len()));
    match snapshot {
        Some(snapshot) => snapshot.snapshot.multi_get_into(table, keys, &mut values, &mut places),
        None => table.as_ref().multi_get_into(keys, &mut values, &mut places),
    }?;
    if places.len() != keys.len() {
        return Err(Error::bug("a lookup of many keys answered as many others"));
    }
    let mut out = Vec::with_capacity(values.len() + size_of::<i32>() * places.len());
    places.into_iter().for_each(|place| items::push(&mut out, place.map(|place| &values[place])));
    Ok(out)
}

/// Whether there are such keys, a byte each. The values of a few keys are in memory at a time.
fn are_there(table: &forebay::Table, keys: &[&[u8]]) -> Result<Vec<u8>> {
    let (mut values, mut places, mut out) = (Vec::new(), Vec::new(), Vec::with_capacity(keys.len()));
    for some in keys.chunks(LOOKED_UP_AT_ONCE) {
        values.clear();
        table.multi_get_into(some, &mut values, &mut places)?;
        out.extend(places.iter().map(|place| u8::from(place.is_some())));
    }
    Ok(out)
}

/// The keys that Java asks for.
pub(crate) fn asked(items: &[u8]) -> Result<Vec<&[u8]>> {
    let (mut rest, mut keys) = (Items(items), Vec::new());
    while !rest.is_empty() {
        keys.push(rest.bytes()?);
    }
    Ok(keys)
}

fn value<'local>(
    env: &mut Env<'local>,
    table: &Table,
    snapshot: Option<&Snapshot>,
    key: &[u8],
) -> Outcome<JByteArray<'local>> {
    let give = |value: &[u8]| given(env, value);
    let found = match snapshot {
        Some(snapshot) => snapshot.snapshot.get_with(table, key, give),
        None => table.as_ref().get_with(key, give),
    }?;
    found.unwrap_or_else(|| Ok(JByteArray::default()))
}

natives! {
    fn get_value(env, table: jlong, snapshot: jlong, key: [jbyte]) -> [jbyte] {
        let (table, snapshot) = (get(table)?, handles::optional::<Snapshot>(snapshot)?);
        let key = bytes(env, &key, "key")?;
        value(env, &table, snapshot.as_deref(), &key)
    }

    fn contains(env, table: jlong, snapshot: jlong, key: [jbyte]) -> jboolean {
        let (table, key) = (get(table)?, bytes(env, &key, "key")?);
        Ok(match handles::optional::<Snapshot>(snapshot)? {
            Some(snapshot) => snapshot.snapshot.contains_key(&*table, key)?,
            None => table.as_ref().as_ref().contains_key(key)?,
        })
    }

    fn get_many(env, table: jlong, snapshot: jlong, keys: [jbyte]) -> [jbyte] {
        let (table, snapshot) = (get(table)?, handles::optional::<Snapshot>(snapshot)?);
        let keys = bytes(env, &keys, "keys")?;
        let values = many(&table, snapshot.as_deref(), &asked(&keys)?)?;
        given(env, &values)
    }

    fn contains_many(env, table: jlong, keys: [jbyte]) -> [jbyte] {
        let (table, keys) = (get(table)?, bytes(env, &keys, "keys")?);
        let there = are_there(table.as_ref().as_ref(), &asked(&keys)?)?;
        given(env, &there)
    }

    fn put(env, table: jlong, key: [jbyte], value: [jbyte]) -> void {
        let (key, value) = (bytes(env, &key, "key")?, bytes(env, &value, "value")?);
        Ok(get(table)?.as_ref().as_ref().put(key, value)?)
    }

    fn put_with_ttl(env, table: jlong, key: [jbyte], value: [jbyte], ttl: jlong) -> void {
        let (key, value) = (bytes(env, &key, "key")?, bytes(env, &value, "value")?);
        Ok(get(table)?.as_ref().as_ref().put_with_ttl(key, value, milliseconds(ttl)?)?)
    }

    fn merge(env, table: jlong, key: [jbyte], operand: [jbyte]) -> void {
        let (key, operand) = (bytes(env, &key, "key")?, bytes(env, &operand, "operand")?);
        Ok(get(table)?.as_ref().as_ref().merge(key, operand)?)
    }

    fn delete(env, table: jlong, key: [jbyte]) -> void {
        let key = bytes(env, &key, "key")?;
        Ok(get(table)?.as_ref().as_ref().delete(key)?)
    }

    fn delete_range(env, table: jlong, from: [jbyte], to: [jbyte]) -> void {
        let (from, to) = (optional(env, &from)?, optional(env, &to)?);
        Ok(get(table)?.ordered()?.delete_range(edges(from.as_deref(), to.as_deref()))?)
    }

    fn delete_prefix(env, table: jlong, prefix: [jbyte]) -> void {
        let prefix = bytes(env, &prefix, "prefix")?;
        Ok(get(table)?.ordered()?.delete_prefix(prefix)?)
    }

    fn compare_and_swap(env, table: jlong, key: [jbyte], expected: [jbyte], new: [jbyte]) -> jboolean {
        let (key, expected, new) = (bytes(env, &key, "key")?, optional(env, &expected)?, optional(env, &new)?);
        let table = get(table)?;
        Ok(table.as_ref().as_ref().compare_and_swap(key, expected.as_deref(), new.as_deref())?)
    }

    fn count(_env, table: jlong, snapshot: jlong) -> jlong {
        let table = get(table)?;
        let count = match handles::optional::<Snapshot>(snapshot)? {
            Some(snapshot) => snapshot.snapshot.count(&*table)?,
            None => table.as_ref().as_ref().count()?,
        };
        Ok(count.cast_signed())
    }

    fn approximate_count(env, table: jlong, from: [jbyte], to: [jbyte]) -> jlong {
        let (from, to) = (optional(env, &from)?, optional(env, &to)?);
        let about = get(table)?.ordered()?.approximate(edges(from.as_deref(), to.as_deref()))?;
        Ok(about.records.cast_signed())
    }

    fn layout(env, table: jlong) -> [jbyte] {
        let layout = get(table)?.as_ref().as_ref().layout()?.to_string();
        given(env, layout.as_bytes())
    }

    fn set_layout(env, table: jlong, layout: [jbyte]) -> void {
        let layout = text(env, &layout, "layout")?.parse()?;
        Ok(get(table)?.as_ref().as_ref().set_layout(layout)?)
    }

    fn compact(_env, table: jlong) -> void {
        Ok(get(table)?.as_ref().as_ref().compact()?)
    }
}
