//! A merge rule of your own: the largest value of a key, without reading what is there.

use forebay::{Database, MergeRule, Options};

/// Keeps the largest operand, a number of eight bytes in big-endian order, which compare as the numbers do.
struct Largest;

impl MergeRule for Largest {
    /// It is kept with the table, which opens with no other rule again: name a new version when it does other things.
    fn name(&self) -> &str {
        "largest/1"
    }

    fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer.max(older));
    }
}

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-merge-rule-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
    let peaks = db.table("peaks").merge_rule(Largest).open()?;
    for (sensor, value) in [("attic", 31_u64), ("cellar", 12), ("attic", 44), ("attic", 29)] {
        peaks.merge(sensor, value.to_be_bytes())?;
    }
    assert_eq!(peaks.get("attic")?, Some(44_u64.to_be_bytes().to_vec()));
    assert_eq!(peaks.get("cellar")?, Some(12_u64.to_be_bytes().to_vec()));
    drop(peaks);
    db.close()?;
    Database::destroy(&dir)
}
