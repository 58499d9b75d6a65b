//! [`StateType`]: the name by which states know whether they may be merged.
//!
//! **Invariant:** two states may be merged if and only if their types are equal, and the text of a type
//! tells all of it: it can be stored and compared.

use std::fmt::{self, Display, Write as _};

use forebay_base::Error;

/// A stable name, a version of the bytes, and those parameters that must agree, printed as
/// `top_k/1(k=10)`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct StateType(String);

impl StateType {
    /// A type without parameters.
    pub fn new(name: &str, version: u16) -> Self {
        Self(format!("{name}/{version}"))
    }

    /// Of a text that another one gave.
    pub(crate) fn of_text(text: &str) -> Self {
        Self(text.to_string())
    }

    /// With one more parameter.
    #[must_use]
    pub fn with(self, parameter: &str, value: impl Display) -> Self {
        let mut text = self.0;
        match text.strip_suffix(')').map(str::len) {
            Some(bytes) => {
                text.truncate(bytes);
                text.push(',');
            }
            None => text.push('('),
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{parameter}={value})");
        Self(text)
    }

    /// All of it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The error that these bytes are not a state of this type.
    pub fn malformed(&self, state: &[u8]) -> Error {
        Error::invalid(format!(
            "{} bytes are not a state of {self}; they were damaged, or made by another function",
            state.len()
        ))
    }
}

impl Display for StateType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_prints_all_that_must_agree() {
        assert_eq!(StateType::new("count", 1).to_string(), "count/1");
        assert_eq!(StateType::new("x", 2).with("a", 1).with("b", "c").as_str(), "x/2(a=1,b=c)");
    }
}
