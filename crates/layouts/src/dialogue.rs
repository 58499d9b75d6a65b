//! What text dialogues have in common: a state, and what is decided in it. A file has a head, and then blocks of a state,
//! a line of dashes, and the decisions. A change of what is decided is reviewed as a change of these texts:
//! `FOREBAY_REWRITE=1 cargo test -p forebay-layouts dialogue` writes what is decided now.
//!
//! Lines that begin with `#` are for readers. `k` behind a number is for a thousand.

use std::fmt::Write as _;
use std::path::Path;

use forebay_base::{Bound, Range};

/// Sees that each of these texts, in a folder of the crate's source, says what is decided: `told` is given a file's head
/// and the lines of a state.
#[expect(clippy::disallowed_methods, reason = "the dialogues are files of the repository")]
pub(crate) fn check(folder: &str, names: &[&str], told: impl Fn(&[&str], &[&str]) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut differing = Vec::new();
    for name in names {
        let path = folder.join(name).with_extension("txt");
        let text = std::fs::read_to_string(&path).unwrap();
        let now = tell(&text, &told);
        if std::env::var_os("FOREBAY_REWRITE").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else if now != text {
            let at = now.lines().zip(text.lines()).position(|(now, then)| now != then);
            differing.push(format!(
                "{} differs at line {:?}; now:\n{now}",
                path.display(),
                at.map(|at| at + 1)
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The file with what is decided now.
fn tell(text: &str, told: impl Fn(&[&str], &[&str]) -> String) -> String {
    let first = text.lines().next().unwrap();
    let head: Vec<&str> = first.split_whitespace().collect();
    let mut now = format!("{first}\n");
    for block in text.split("\n\n").skip(1) {
        let state: Vec<&str> = block.lines().take_while(|line| *line != "----").collect();
        let lines: Vec<&str> = state.iter().filter(|line| !line.starts_with('#')).copied().collect();
        write!(now, "\n{}\n----\n{}", state.join("\n"), told(&head, &lines)).unwrap();
    }
    now
}

pub(crate) fn number(text: &str) -> u64 {
    let (text, unit) = text.strip_suffix('k').map_or((text, 1), |text| (text, 1000));
    unit * text.parse::<u64>().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// A range by its keys, or by shares of all prefixes, where it is not all.
pub(crate) fn shown(range: &Range) -> String {
    if *range == Range::all() {
        return String::new();
    }
    format!(" of {}", ends(range))
}

/// What a range begins with, and what it ends with.
pub(crate) fn ends(range: &Range) -> String {
    format!("{}-{}", place(&range.low), range.high.as_ref().map(place).unwrap_or_default())
}

/// A bound's key; its share of all prefixes, where there is none.
pub(crate) fn place(bound: &Bound) -> String {
    match bound.key.is_empty() {
        true if bound.prefix == 0 => String::new(),
        true => format!("{:02}%", (bound.prefix as f64 / u64::MAX as f64 * 100.0).round()),
        false => String::from_utf8_lossy(&bound.key).into_owned(),
    }
}
