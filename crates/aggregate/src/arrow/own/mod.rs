//! [`OwnFunctions`]: functions that are not built in, for groups of record batches.
//!
//! Such a function reads one column of bytes, which is called as the function is, and answers with bytes. What they stand
//! for knows whoever brings the function: it makes the column, and reads the answers. [`StateList`] is one for states that
//! a program merges many groups at a time; [`StateRows`] are the bytes of such states.

mod list;
mod rows;

use std::fmt;

use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use crate::function::Function;

pub use crate::lists::{put_list, split_list};
pub use list::{Shorten, StateList};
pub use rows::StateRows;

/// What the text of such a function begins with.
const PREFIX: &str = "own:";

/// Makes the function that reads the column at a place.
type Make = Arc<dyn Fn(usize) -> Box<dyn Function> + Send + Sync>;

/// Functions that a program brings, by their texts, each of which begins with `own:`.
#[derive(Clone, Default)]
pub struct OwnFunctions(Vec<(String, Make)>);

impl OwnFunctions {
    /// Adds one. `make` is told the place of its column among those that functions read.
    #[must_use]
    pub fn with(
        mut self,
        text: &str,
        make: impl Fn(usize) -> Box<dyn Function> + Send + Sync + 'static,
    ) -> Self {
        debug_assert!(Self::is_own(text), "{text}");
        self.0.push((text.into(), Arc::new(make)));
        self
    }

    /// Whether this is the text of such a function.
    pub fn is_own(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// An error that tells of the first of these functions which is one of a program's own and is not here.
    pub fn check<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Result<()> {
        let mut texts = texts.into_iter().filter(|text| Self::is_own(text));
        texts.try_for_each(|text| self.find(text).map(drop))
    }

    /// The function of a text, where it reads the column at this place.
    pub(super) fn make(&self, text: &str, place: usize) -> Result<Box<dyn Function>> {
        Ok(self.find(text)?(place))
    }

    fn find(&self, text: &str) -> Result<&Make> {
        let found = self.0.iter().find(|(known, _)| known == text).map(|(_, make)| make);
        found.ok_or_else(|| {
            let name = text.strip_prefix(PREFIX).unwrap_or(text);
            Error::invalid(format!("`{name}` is a function of a program's own, and is not given"))
        })
    }
}

impl fmt::Debug for OwnFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(text, _)| text)).finish()
    }
}
