//! The rows of the db-benchmark's group-by (its table G1 with K = 100, without nulls, unsorted), drawn anew: the same
//! for the same number of them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::figures::draws::Draws;

/// Groups of the columns that have few, K; the others have one for each K rows.
pub(super) const FEW: u32 = 100;
const SEED: u64 = 108;

/// Writes a csv file.
pub(super) fn write(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut draws = Draws::new(SEED);
    let (few, many) = (u64::from(FEW), (rows / u64::from(FEW)).max(1));
    writeln!(out, "id1,id2,id3,id4,id5,id6,v1,v2,v3")?;
    for _ in 0..rows {
        let mut below = |bound| draws.below(bound);
        let texts = [below(few), below(few), below(many)].map(|draw| draw + 1);
        let ids = [below(few), below(few), below(many)].map(|draw| draw + 1);
        let values = [below(5), below(15)].map(|draw| draw + 1);
        let share = below(100_000_000);
        writeln!(
            out,
            "id{:03},id{:03},id{:010},{},{},{},{},{},{}.{:06}",
            texts[0],
            texts[1],
            texts[2],
            ids[0],
            ids[1],
            ids[2],
            values[0],
            values[1],
            share / 1_000_000,
            share % 1_000_000,
        )?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_are_the_same_each_time_and_have_as_many_groups_as_asked() {
        let path = std::env::temp_dir().join(format!("forebay-rows-{}", std::process::id()));
        let text = |rows| {
            write(&path, rows).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        let (text, again) = (text(20_000), text(20_000));
        assert_eq!(text, again);
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 20_000);
        let groups = [0, 1, 2, 3, 4, 5, 6, 7]
            .map(|at: usize| rows.iter().map(|row| row[at]).collect::<HashSet<_>>().len());
        assert_eq!(groups, [100, 100, 200, 100, 100, 200, 5, 15]);
        for row in &rows {
            let value: f64 = row[8].parse().unwrap();
            assert!((0.0..100.0).contains(&value) && row[8].split_once('.').unwrap().1.len() == 6, "{row:?}");
            assert!(row[0].len() == 5 && row[2].len() == 12, "{row:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
