//! What tools have counted, read from what they write.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::Hasher;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::shell;
use crate::figures::watch::{Cost, watch};

/// What a tool counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) groups: u64,
    pub(super) records: u64,
    /// Over all lines, in any order; nought where there are no lines.
    checksum: u64,
}

pub(super) fn last_object(output: &str) -> Result<Value, String> {
    let line = output.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{line:?} is no JSON: {error}"))
}

pub(super) fn of_forebay(cost: &Cost, _: &Path) -> Result<Tally, String> {
    let object = last_object(&cost.output)?;
    let number = |name: &str| object[name].as_u64().ok_or_else(|| format!("forebay told no {name}"));
    Ok(Tally { groups: number("groups")?, records: number("records")?, checksum: 0 })
}

pub(super) fn of_kmc(cost: &Cost, _: &Path) -> Result<Tally, String> {
    numbers(&cost.output, "No. of unique counted k-mers", "Total no. of k-mers")
}

pub(super) fn of_jellyfish(_: &Cost, folder: &Path) -> Result<Tally, String> {
    let stats = watch(&mut shell(folder, "jellyfish stats mers.jf")?)?;
    numbers(&stats.output, "Distinct", "Total")
}

/// The numbers of the lines `groups: N` and `records: N`.
fn numbers(output: &str, groups: &str, records: &str) -> Result<Tally, String> {
    let number = |name: &str| {
        let line =
            output.lines().filter_map(|line| line.trim().split_once(':')).find(|line| line.0.trim() == name);
        line.and_then(|(_, number)| number.trim().parse().ok())
            .ok_or_else(|| format!("no {name} in {output}"))
    };
    Ok(Tally { groups: number(groups)?, records: number(records)?, checksum: 0 })
}

/// Lines of `group<TAB>count`.
pub(super) fn of_tsv(_: &Cost, folder: &Path) -> Result<Tally, String> {
    tally(&folder.join("groups.tsv"), |line| {
        let tab = line.iter().rposition(|byte| *byte == b'\t')?;
        Some((&line[..tab], &line[tab + 1..]))
    })
}

/// Lines of `  count group`.
pub(super) fn of_uniq(_: &Cost, folder: &Path) -> Result<Tally, String> {
    tally(&folder.join("groups.txt"), |line| {
        let line = line.trim_ascii_start();
        let space = line.iter().position(|byte| *byte == b' ')?;
        Some((&line[space + 1..], &line[..space]))
    })
}

/// Divides a line into group and count.
type Split = fn(&[u8]) -> Option<(&[u8], &[u8])>;

fn tally(path: &Path, split: Split) -> Result<Tally, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut tally = Tally::default();
    for line in BufReader::new(File::open(path).map_err(cannot)?).split(b'\n') {
        let line = line.map_err(cannot)?;
        let parts = split(&line).and_then(|(group, count)| Some((group, std::str::from_utf8(count).ok()?)));
        let counted = parts.and_then(|(group, count)| Some((group, count.parse::<u64>().ok()?)));
        let (group, count) = counted.ok_or_else(|| format!("{}: {line:?} is no count", path.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(group);
        hasher.write_u64(count);
        tally.groups += 1;
        tally.records += count;
        tally.checksum = tally.checksum.wrapping_add(hasher.finish());
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_tools_are_read_alike() {
        let folder = std::env::temp_dir().join(format!("forebay-applications-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let cost =
            |output: &str| Cost { seconds: 0.0, cpu_seconds: 0.0, anonymous_bytes: 0, output: output.into() };
        std::fs::write(folder.join("groups.tsv"), "a b\t2\nc\td\t13\n").unwrap();
        std::fs::write(folder.join("groups.txt"), "     13 c\td\n      2 a b\n").unwrap();
        let counted = of_tsv(&cost(""), &folder).unwrap();
        assert_eq!(counted, of_uniq(&cost(""), &folder).unwrap());
        assert_eq!((counted.groups, counted.records), (2, 15));
        std::fs::write(folder.join("groups.txt"), "     12 c\td\n      3 a b\n").unwrap();
        assert_ne!(counted, of_uniq(&cost(""), &folder).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();

        let expected = Tally { groups: 7, records: 9, checksum: 0 };
        let kmc =
            "Stats:\n   No. of unique counted k-mers       :            7\n   Total no. of k-mers  :   9\n";
        assert_eq!(of_kmc(&cost(kmc), &folder), Ok(expected));
        assert_eq!(of_forebay(&cost("{}\n{\"groups\":7,\"records\":9}\n"), &folder), Ok(expected));
        assert_eq!(numbers("Unique:    5\nDistinct:  7\nTotal:     9\n", "Distinct", "Total"), Ok(expected));
        assert!(of_kmc(&cost("out of memory"), &folder).is_err());
    }
}
