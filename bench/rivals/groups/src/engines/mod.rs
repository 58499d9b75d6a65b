//! The engines: what each is called, what it can be set, and the one seam behind which this program's own are.

mod forebay;
mod hash;
mod hashbrown;
mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use forebay_aggregate::{Packing, TreeShape};
use forebay_base::codec::Codec;

use crate::Failure;
use crate::args::ChildArgs;
use crate::blocks::{Blocks, Keys};
use crate::inputs::Kind;

/// Counts keys.
pub(crate) trait Engine {
    fn version(&self) -> String;

    /// Counts all keys of a file.
    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure>;

    /// Shows every key once with its count, after what has to be done before.
    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure>;

    /// Seconds of processor time by stage, where they were to be counted.
    fn stages(&self) -> Option<BTreeMap<String, f64>> {
        None
    }
}

/// Where an engine is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a process of this program.
    Own,
    /// In a Python with the engine's wheel.
    Wheel,
}

/// An engine by its name.
#[derive(Clone, Copy, Debug)]
struct Known {
    name: &'static str,
    home: Home,
    threads: Threads,
    counts_numbers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    One,
    /// As many as it is told.
    Any,
}

const fn own(name: &'static str, threads: Threads) -> Known {
    Known { name, home: Home::Own, threads, counts_numbers: true }
}

const fn wheel(name: &'static str) -> Known {
    Known { name, home: Home::Wheel, threads: Threads::Any, counts_numbers: true }
}

/// In the order of results.
const ALL: [Known; 11] = [
    own("forebay", Threads::Any),
    own(THESIS, Threads::Any),
    own("forebay-hash", Threads::One),
    own("hashbrown", Threads::One),
    own("sparsehash", Threads::One),
    // A pointer to a number takes as much as the number.
    Known { counts_numbers: false, ..own("sparsehash-ptr", Threads::One) },
    own("tbb", Threads::Any),
    Known { counts_numbers: false, ..own("tbb-ptr", Threads::Any) },
    wheel("duckdb"),
    wheel("polars"),
    wheel("datafusion"),
];

const THREADS: usize = 2;
/// The Compressed Buffer Tree as the thesis has it.
const THESIS: &str = "thesis";

/// An engine with what it is set to, such as `forebay:threads=1`.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// As it was given; results call the engine so.
    label: String,
    pub(crate) name: &'static str,
    pub(crate) home: Home,
    pub(crate) threads: usize,
    /// Threads that add.
    pub(crate) adders: usize,
    /// Whether one thread adds as several do, through a shared reference.
    pub(crate) is_shared: bool,
    /// Between which keys are divided.
    pub(crate) trees: usize,
    /// How often what was added is made readable; the last time is at the end.
    pub(crate) finalizes: u64,
    /// Whether processor time is counted by stage.
    pub(crate) counts_stages: bool,
    /// Of the thesis's tree.
    pub(crate) shape: TreeShape,
}

impl Setting {
    /// Every engine that counts such keys.
    pub(crate) fn all(kind: Kind) -> Vec<Self> {
        let counts = |known: &&Known| known.name != THESIS && (kind != Kind::Numbers || known.counts_numbers);
        ALL.iter().filter(counts).map(Self::of).collect()
    }

    fn of(known: &Known) -> Self {
        let threads = if known.threads == Threads::One { 1 } else { THREADS };
        let Known { name, home, .. } = *known;
        Self {
            label: name.into(),
            name,
            home,
            threads,
            adders: 1,
            is_shared: false,
            trees: 1,
            finalizes: 1,
            counts_stages: false,
            shape: TreeShape::default(),
        }
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let names = || ALL.map(|known| known.name).join(", ");
        let known = ALL.iter().find(|known| known.name == name);
        let known = known.ok_or_else(|| format!("there is no engine `{name}`; there are {}", names()))?;
        let mut setting = Self { label: text.into(), ..Self::of(known) };
        let is_thesis = setting.name == THESIS;
        let has_trees = is_thesis || setting.name == "forebay";
        for word in words {
            let (what, value) = word.split_once('=').ok_or(format!("{word} is not WHAT=NUMBER"))?;
            if is_thesis && what == "packing" {
                setting.shape = setting.shape.packing(packing(value)?);
                continue;
            }
            let number = number(value).ok_or(format!("{word} is not a number above 0"))?;
            let count = number as usize;
            match what {
                "threads" if known.threads == Threads::Any => setting.threads = count,
                "adders" if setting.name == "forebay" => setting.adders = count,
                "shared" if setting.name == "forebay" => setting.is_shared = true,
                "trees" if has_trees => setting.trees = count,
                "finalizes" if has_trees => setting.finalizes = number,
                "stages" if has_trees => setting.counts_stages = true,
                "roots" if is_thesis => setting.shape = setting.shape.roots(count),
                "fan_out" if is_thesis => setting.shape = setting.shape.fan_out(count),
                "buffer" if is_thesis => setting.shape = setting.shape.buffer_bytes(count),
                _ => return Err(format!("{name} cannot be set {what}")),
            }
        }
        Ok(setting)
    }
}

/// A number above 0, of which `K` and `M` make 1,024 and 1,048,576 times as much.
fn number(text: &str) -> Option<u64> {
    let units = [("K", 1 << 10), ("M", 1 << 20)];
    let unit = units.into_iter().find_map(|(unit, of)| Some((text.strip_suffix(unit)?, of)));
    let (digits, of) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(of).filter(|&number| number > 0)
}

fn packing(text: &str) -> Result<Packing, String> {
    Ok(match text {
        "off" => Packing::Off,
        "rows" => Packing::Rows(Codec::Lz4),
        "columns" => Packing::Columns(Codec::Lz4),
        "apart" => Packing::Apart { keys: Codec::Lz4, states: Codec::Lz4 },
        _ => return Err(format!("packing is off, rows, columns or apart, not {text}")),
    })
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Opens one of this program's own.
pub(crate) fn open(args: &ChildArgs) -> Result<Box<dyn Engine>, Failure> {
    let (setting, keys) = (&args.engine, args.key_bytes_max);
    let is_number = args.kind == Kind::Numbers;
    let in_place = if is_number { tables::Keys::Number } else { tables::Keys::InPlace };
    Ok(match (setting.name, is_number) {
        ("forebay", _) => Box::new(forebay::Trees::new(setting, args.adds)?),
        (THESIS, _) => Box::new(forebay::Trees::thesis(setting, args.adds)?),
        ("forebay-hash", _) => Box::new(hash::Hash::new()),
        ("hashbrown", true) => Box::new(hashbrown::Numbers::default()),
        ("hashbrown", false) => Box::new(hashbrown::Boxed::default()),
        ("sparsehash", _) => Box::new(tables::Sparse::new(in_place, keys)?),
        ("sparsehash-ptr", _) => Box::new(tables::Sparse::new(tables::Keys::Pointer, keys)?),
        ("tbb", _) => Box::new(tables::Concurrent::new(in_place, keys, setting.threads)?),
        ("tbb-ptr", _) => Box::new(tables::Concurrent::new(tables::Keys::Pointer, keys, setting.threads)?),
        (name, _) => return Err(format!("{name} is not one of this program's own").into()),
    })
}

/// Reads all blocks on one thread.
fn each_block(blocks: &Blocks, mut add: impl FnMut(&[u8])) -> Result<(), Failure> {
    let mut block = Vec::new();
    while let Some(block) = blocks.read(&mut block)? {
        add(block);
    }
    Ok(())
}

/// Reads all keys on one thread.
fn each_key(blocks: &Blocks, mut add: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut block = Vec::new();
    while let Some(block) = blocks.read(&mut block)? {
        Keys(block).try_for_each(&mut add)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn settings_are_read_where_an_engine_has_them() {
        let setting: Setting = "forebay:threads=1:trees=4:finalizes=7".parse().unwrap();
        assert_eq!((setting.name, setting.threads, setting.trees), ("forebay", 1, 4));
        assert_eq!(setting.finalizes, 7);
        assert_eq!(setting.to_string(), "forebay:threads=1:trees=4:finalizes=7");
        let thesis: Setting = "thesis:fan_out=16:buffer=30M:roots=2:packing=off:stages=1".parse().unwrap();
        assert!(thesis.counts_stages);
        let shape = format!("{:?}", thesis.shape);
        assert!(shape.contains("roots: 2, buffer_bytes: 31457280, fan_out: 16, packing: Off"), "{shape}");
        for bad in ["thesis:packing=zip", "thesis:buffer=0M", "forebay:roots=2"] {
            assert!(bad.parse::<Setting>().is_err(), "{bad}");
        }
        for bad in ["rocksdb", "forebay:threads", "tbb:shared=1", "forebay:threads=0", "hashbrown:threads=2", "tbb:trees=2"] {
            assert!(bad.parse::<Setting>().is_err(), "{bad}");
        }
    }
}
