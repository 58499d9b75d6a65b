//! How many lines of code there are for each assertion, library crate by library crate. `tidy` prints the table.

use std::fmt;

use super::code::{code_of, numbered};
use super::{Finding, Source};

/// Each library crate, and the most lines for an assertion. A ceiling only goes down.
const CEILINGS: [(&str, usize); 8] = [
    ("base", 60),
    ("env", 90),
    ("store", 70),
    ("buffer-tree", 75),
    ("cow-tree", 90),
    ("aggregate", 90),
    ("layouts", 80),
    ("forebay", 90),
];

/// Each begins with one of these, whatever comes behind it: `_eq`, `_ne`.
const MACROS: [&str; 2] = ["assert", "debug_assert"];

/// What one crate has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Density {
    name: &'static str,
    lines: usize,
    assertions: usize,
    ceiling: usize,
}

impl Density {
    fn exceeds(&self) -> bool {
        self.lines > self.ceiling * self.assertions
    }
}

impl fmt::Display for Density {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, lines, assertions, ceiling } = self;
        write!(f, "{name:<12} {lines:>6} lines of code, {assertions:>4} assertions")?;
        match lines.checked_div(*assertions) {
            Some(each) => write!(f, ", one for {each:>3} lines")?,
            None => write!(f, ", none")?,
        }
        write!(f, " ({ceiling} at most)")
    }
}

/// The table, in the order of the crates.
pub(super) fn densities(sources: &[Source]) -> Vec<Density> {
    let count = |&(name, ceiling)| {
        let folder = format!("crates/{name}/src/");
        let codes = sources.iter().filter(|source| source.path.starts_with(&folder)).filter_map(code_of);
        let (mut lines, mut assertions) = (0, 0);
        for code in codes {
            lines += code.lines().filter(|line| !line.trim().is_empty()).count();
            assertions += numbered(&code).filter(|(_, line)| asserts(line)).count();
        }
        Density { name, lines, assertions, ceiling }
    };
    CEILINGS.iter().map(count).collect()
}

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let this = Source { path: "xtask/src/tidy/assertions.rs".into(), text: String::new() };
    let exceeding = densities(sources).into_iter().filter(Density::exceeds);
    exceeding
        .map(|density| Finding::new(&this, 1, format!("{density}: state what must hold where it is made")))
        .collect()
}

/// Whether a line of masked code begins an assertion.
fn asserts(line: &str) -> bool {
    let name = line.split('!').next().unwrap_or_default();
    let name = name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let name = name.strip_suffix("_eq").or_else(|| name.strip_suffix("_ne")).unwrap_or(name);
    line.contains('!') && MACROS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "crates/base/src/a.rs".into(), text: text.into() }
    }

    #[test]
    fn assertions_are_counted_outside_of_tests_and_comments() {
        let text = "//! A.\n// assert!(no)\nconst _: () = assert!(A < B);\nfn f() {\n    debug_assert_eq!(a, b);\n    \
                    assert_ne!(a, b);\n    reassert!(x);\n    \"assert!(no)\";\n}\n#[cfg(test)]\nmod tests {\n    \
                    assert!(no);\n}\n";
        let found = &densities(&[source(text)])[0];
        assert_eq!((found.lines, found.assertions), (7, 3));
    }

    #[test]
    fn a_crate_with_too_few_is_found() {
        let line = "const A: u8 = 0;\n";
        let few =
            |lines: usize| source(&format!("//! A.\nconst _: () = assert!(true);\n{}", line.repeat(lines)));
        let ceiling = CEILINGS[0].1;
        let findings = |lines| check(&[few(lines)]).len();
        assert_eq!((findings(ceiling - 1), findings(ceiling)), (0, 1));
    }
}
