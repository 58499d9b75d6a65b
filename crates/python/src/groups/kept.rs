//! What a database keeps of an aggregator besides its states, which [`forebay_groups::kept`] reads and writes, where some
//! functions are written in Python.

use forebay::{Database, Error, Result, Snapshot};
use forebay_aggregate::arrow::PartialSchema;
use forebay_env::sync::Arc;
use forebay_groups::kept::{self, ENDING};

use super::asked::Asked;
use super::held::{Held, Opens};
use super::own::{self, Own};
use crate::failure::{Failure, Outcome};

pub(super) use forebay_groups::kept::{Shape, begin, forget, opened, shape};

/// What is kept, with those of these functions that are asked for.
pub(super) fn with_own(core: forebay_groups::Asked, own: &[Arc<Own>]) -> Asked {
    let is_asked = |one: &&Arc<Own>| core.functions.iter().any(|function| function == one.text());
    let own = own.iter().filter(is_asked).cloned().collect();
    Asked::of_core(core, own)
}

/// What is kept of an aggregator, of whose functions these are written in Python; nothing where it was never added to.
pub(super) fn load(db: &Database, name: &str, own: &[Arc<Own>]) -> Result<Option<(PartialSchema, Asked)>> {
    let kept = kept::load(db, name, &own::functions(own))?;
    Ok(kept.map(|(schema, core)| (schema, with_own(core, own))))
}

/// An error unless these groups were there when a snapshot was taken: by then a name may have been that of others.
pub(super) fn check_at<G: Opens>(snapshot: &Snapshot, held: &Held<G>, schema: &PartialSchema) -> Outcome<()> {
    let (name, noun, asked) = (&held.name, G::NOUN, &held.asked);
    let not_there = || Error::NotFound(format!("there was no {noun} `{name}` at that moment"));
    let table = snapshot.table(&format!("{name}{ENDING}")).map_err(|error| match error {
        Error::NotFound(_) => not_there(),
        error => error,
    })?;
    let get = |key: &[u8]| snapshot.get(&table, key);
    let (kept, were) = kept::read(name, &asked.own_functions(), get)?.ok_or_else(not_there)?;
    asked.agrees(&kept)?;
    if were != *asked.core() {
        return Err(Failure::invalid(format!("{noun} `{name}` had aggs {:?} at that moment", were.named())));
    }
    if kept::read_shape(get)? != Some(G::shape(&held.means)) {
        return Err(Failure::invalid(format!("`{name}` was another {noun}, or none, at that moment")));
    }
    Ok(schema.check(kept.schema())?)
}
