//! Tree files: values, nodes, filters and roots, several versions in one file.

use std::path::Path;
use std::sync::Arc;

use forebay_base::checksum::checksum;
use forebay_base::combine::Depth;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::wire::{u32_at, u64_at};
use forebay_base::{Kind, LastWriterWins, Order, Range, Record, Result};
use forebay_cow_tree::{
    NodeCache, Reading, Tree, TreeCursor, TreeOptions, TreeStore, TreeWriter, Version, last_root,
};
use forebay_env::fs::MemoryFs;
use forebay_env::{FileSystem, Rng};
use forebay_store::list::{FilterLevel, Lookup};
use forebay_store::{Cause, ValueFiles, names};

use crate::answers::Answers;
use crate::damage::{DIR, bytes_of, damage, damage_in_place};
use crate::draws::{self, Model, one_of};

const ROOT_BYTES: usize = 4096;
/// Where in a root the references to the topmost node and to the newest part of the filter are: their lengths. Behind
/// each stands its checksum, and behind that where it is.
const REFERENCES_AT: [usize; 2] = [60, 76];
const STEPS_MAX: usize = 1 << 20;

pub(crate) fn fuzz(rng: &mut Rng) {
    let fs = MemoryFs::new();
    let store = store(rng, &fs);
    let order = store.options.order;
    let count = one_of(rng, &[1, 5, 80, 300]);
    let mut model = draws::records(rng, order, count);
    let mut tree = append(None, &store, &model);
    for _ in 0..rng.below(3) {
        let mut batch = draws::records(rng, order, 20);
        // Operands would be folded into what is there.
        batch.values_mut().filter(|change| change.0 == Kind::Merge).for_each(|change| change.0 = Kind::Put);
        tree = append(Some(&tree), &store, &batch);
        model.extend(batch);
    }
    let version = tree.version();
    let path = names::tree(Path::new(DIR), version.file_id);
    let intact = bytes_of(&fs, &path);
    let answers = read(&store, version, &model);
    answers.assert_right_or_damaged(&model);
    assert!(answers.errors.is_empty(), "it is intact: {:?}", answers.errors);
    for _ in 0..8 {
        let mut bytes = intact.clone();
        damage(rng, &mut bytes);
        fs.replace_file(&path, bytes);
        read(&store, version, &model).assert_right_or_damaged(&model);
        if let Ok(Some(root)) = last_root(&store, version.file_id, u64::MAX) {
            read(&store, root, &model).errors.iter().for_each(crate::damage::assert_named);
        }
    }
    for _ in 0..8 {
        let mut bytes = intact.clone();
        let version = reseal(rng, version, &mut bytes);
        fs.replace_file(&path, bytes);
        read(&store, version, &model);
    }
}

pub(crate) fn store(rng: &mut Rng, fs: &Arc<MemoryFs>) -> TreeStore {
    fs.create_dir_all(Path::new(DIR)).expect("memory takes it");
    let (fs, trash, metrics): (Arc<dyn FileSystem>, _, _) = (fs.clone(), Arc::default(), Arc::default());
    TreeStore {
        values: ValueFiles::new(&fs, Path::new(DIR), &trash, &metrics),
        fs,
        dir: DIR.into(),
        next_id: Arc::new(rng.below(1000).into()),
        cache: Arc::new(NodeCache::new(0)),
        metrics,
        trash,
        disk: Arc::default(),
        files: Arc::default(),
        options: TreeOptions {
            order: draws::order(rng),
            node_bytes_max: one_of(rng, &[64, 200, 1000, 4096]),
            inline_value_bytes_max: one_of(rng, &[0, 16, 64, 5000]),
            filter_bits_per_key: one_of(rng, &[0, 1, 10, 200]),
            codec: draws::codec(rng),
        },
        expiry: None,
        salvage: None,
        filter_level: Arc::new(FilterLevel::new(one_of(rng, &[Some(1.0), Some(15.0), Some(22.0), None]))),
    }
}

/// A tree with this batch on top, or of it alone.
pub(crate) fn append(tree: Option<&Tree>, store: &TreeStore, batch: &Model) -> Tree {
    let write = || {
        let mut writer = match tree {
            Some(tree) => TreeWriter::append(tree, LastWriterWins, Depth::Partial, Cause::Spill)?,
            None => TreeWriter::build(store, LastWriterWins, Depth::Partial, Cause::Merge)?,
        };
        for ((prefix, key), (kind, value)) in batch {
            writer.push(*prefix, &Record { kind: *kind, key, value })?;
        }
        writer.finish()
    };
    write().expect("memory takes it")
}

/// Every way to read a version, as after a restart.
fn read(store: &TreeStore, version: Version, model: &Model) -> Answers {
    let cache = Arc::new(NodeCache::new(64 << 10));
    let store = &TreeStore { files: Arc::default(), cache, ..store.clone() };
    let mut answers = Answers::default();
    let tree = match Tree::open(store, version) {
        Ok(tree) => tree,
        Err(error) => {
            answers.errors.push(error);
            return answers;
        }
    };
    answers.errors.extend(tree.verify().err());
    for (direction, reading) in [
        (Direction::Forward, Reading::Job { cause: Cause::Merge, memory_bytes: 1 << 16 }),
        (Direction::Forward, Reading::Scan),
        (Direction::Backward, Reading::Scan),
    ] {
        answers.walk(|seen| walk(&tree, &Range::all(), direction, reading, seen));
    }
    let absent = b"no such key".to_vec();
    for key in model.keys().map(|(_, key)| key).step_by(model.len() / 20 + 1).chain([&absent]) {
        answers.lookup((store.options.order.prefix(key), key.clone()), find(&tree, store.options.order, key));
    }
    answers.errors.extend(tree.portion(&Range::all()).err());
    tree.middle(&Range::all());
    answers
}

pub(crate) fn walk(
    tree: &Tree,
    range: &Range,
    direction: Direction,
    reading: Reading,
    seen: &mut Model,
) -> Result<()> {
    let mut cursor = TreeCursor::new(tree, range, direction, reading)?;
    cursor.seek(None, direction)?;
    let mut steps = 0;
    while let Some(prefix) = cursor.prefix() {
        let value = cursor.value()?.into_owned();
        seen.insert((prefix, cursor.record().key.to_vec()), (cursor.kind(), value));
        steps += 1;
        assert!(steps < STEPS_MAX, "a walk does not end");
        cursor.advance()?;
    }
    Ok(())
}

pub(crate) fn find(tree: &Tree, order: Order, key: &[u8]) -> Result<Option<(Kind, Vec<u8>)>> {
    tree.find(&Lookup::new(order, key), |record| (record.kind, record.value.to_vec()))
}

/// Damages a root, or what it refers to, and makes the checksums above match. Returns the version that this is then.
fn reseal(rng: &mut Rng, version: Version, bytes: &mut [u8]) -> Version {
    let root = version.root_at as usize;
    let reference = root + one_of(rng, &REFERENCES_AT);
    let (length, at) = (u32_at(bytes, reference) as usize, u64_at(bytes, reference + 8) as usize);
    if length > 0 && rng.chance(75) {
        let damaged = one_of(rng, &[12, length]).min(length);
        damage_in_place(rng, &mut bytes[at..at + damaged]);
        let sum = checksum(version.file_id, at as u64, &bytes[at..at + length]);
        bytes[reference + 4..reference + 8].copy_from_slice(&sum.to_le_bytes());
    } else {
        damage_in_place(rng, &mut bytes[root + 4..root + 140]);
    }
    let digest = checksum(version.file_id, root as u64, &bytes[root + 4..root + ROOT_BYTES]);
    bytes[root..root + 4].copy_from_slice(&digest.to_le_bytes());
    Version { digest, ..version }
}
