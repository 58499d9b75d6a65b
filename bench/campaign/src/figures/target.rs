//! Targets, and whether they are reached. A miss is told like a success, only in bold.

use super::table::{Table, short};

/// What is wanted of a figure.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) what: String,
    pub(super) bound: Bound,
    /// `None` where it was not measured.
    pub(super) found: Option<f64>,
    /// Behind both numbers.
    pub(super) unit: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// How a target came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reached,
    Missed,
    Unmeasured,
}

impl Target {
    pub(super) fn at_least(
        what: impl Into<String>,
        bound: f64,
        unit: &'static str,
        found: Option<f64>,
    ) -> Self {
        Self { what: what.into(), bound: Bound::AtLeast(bound), found, unit }
    }

    pub(super) fn at_most(
        what: impl Into<String>,
        bound: f64,
        unit: &'static str,
        found: Option<f64>,
    ) -> Self {
        Self { what: what.into(), bound: Bound::AtMost(bound), found, unit }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let reached = self.found.map(|found| match self.bound {
            Bound::AtLeast(bound) => found >= bound,
            Bound::AtMost(bound) => found <= bound,
        });
        match reached {
            Some(true) => Outcome::Reached,
            Some(false) => Outcome::Missed,
            None => Outcome::Unmeasured,
        }
    }

    /// The bound and what was found, as text.
    pub(super) fn sides(&self) -> (String, String) {
        let (word, bound) = match self.bound {
            Bound::AtLeast(bound) => ("at least", bound),
            Bound::AtMost(bound) => ("at most", bound),
        };
        let with_unit = |figure: f64| format!("{}{}", short(figure), self.unit);
        let found = self.found.map_or_else(|| "-".into(), with_unit);
        (format!("{word} {}", with_unit(bound)), found)
    }
}

/// A table of targets; empty of none.
pub(super) fn table(targets: &[Target]) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["target", "wanted", "found", ""]);
    for target in targets {
        let (wanted, found) = target.sides();
        let outcome = match target.outcome() {
            Outcome::Reached => "reached",
            Outcome::Missed => "**not reached**",
            Outcome::Unmeasured => "not measured",
        };
        table.row([target.what.clone(), wanted, found, outcome.into()]);
    }
    table.finish()
}
