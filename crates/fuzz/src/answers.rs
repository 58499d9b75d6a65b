//! What reading a damaged file of records gave.

use forebay_base::{Error, Kind, Result};

use crate::damage::assert_named;
use crate::draws::Model;

type Place = (u64, Vec<u8>);
type Found = (Kind, Vec<u8>);

/// Walks over all records, lookups, and errors on the way.
#[derive(Default)]
pub(crate) struct Answers {
    whole: Vec<Model>,
    /// Of walks that ended in an error, and of walks that may pass damage over.
    partial: Vec<Model>,
    lookups: Vec<(Place, Option<Found>)>,
    pub(crate) errors: Vec<Error>,
}

impl Answers {
    /// Takes in a walk, up to its end or an error.
    pub(crate) fn walk(&mut self, walk: impl FnOnce(&mut Model) -> Result<()>) {
        let mut seen = Model::new();
        match walk(&mut seen) {
            Ok(()) => self.whole.push(seen),
            Err(error) => {
                self.partial.push(seen);
                self.errors.push(error);
            }
        }
    }

    /// Takes in a lookup.
    pub(crate) fn lookup(&mut self, place: Place, found: Result<Option<Found>>) {
        match found {
            Ok(found) => self.lookups.push((place, found)),
            Err(error) => self.errors.push(error),
        }
    }

    /// Asserts that each answer is what the model has, or an error that names the damage.
    pub(crate) fn assert_right_or_damaged(&self, model: &Model) {
        self.errors.iter().for_each(assert_named);
        assert!(self.whole.iter().all(|seen| seen == model), "a walk differs from what was written");
        for (place, found) in &self.lookups {
            assert_eq!(found.as_ref(), model.get(place), "a lookup of {place:?}");
        }
        self.assert_written(model);
    }

    /// Asserts that nothing was found that was not written, whatever is missing.
    pub(crate) fn assert_written(&self, model: &Model) {
        for seen in self.whole.iter().chain(&self.partial) {
            assert!(seen.iter().all(|(place, found)| model.get(place) == Some(found)), "nobody wrote this");
        }
        for (place, found) in self.lookups.iter().filter_map(|(place, found)| Some((place, found.as_ref()?)))
        {
            assert_eq!(Some(found), model.get(place), "nobody wrote this");
        }
    }
}
