//! Filters in files: how they are told, and that nothing that is no filter is taken for one.

use std::ops::Range;
use std::path::Path;

use forebay_base::combine::Depth;
use forebay_base::wire::u32_at;
use forebay_base::{Kind, LastWriterWins, Order, Record};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, FileSystem};
use forebay_store::list::{FilterLevel, Lookup};
use forebay_store::{Cause, ValueFiles};

use super::*;
use crate::root::{Root, Version};
use crate::{NodeCache, TreeOptions, TreeWriter};

#[test]
fn blocks_are_told_apart_by_as_few_bytes_as_can_be() {
    let cases = [(1, 0), (2, 1), (256, 1), (257, 2), (1 << 16, 2), ((1 << 16) + 1, 3), (1 << 24, 3)];
    for (blocks, bytes) in cases {
        assert_eq!(block_bytes(blocks), bytes, "{blocks}");
    }
    assert_eq!((block_bytes(0), block_bytes(u32::MAX)), (0, 4));
}

#[test]
fn hashes_are_kept_in_order_and_what_they_take_is_told() {
    let mut hashes = Hashes::default();
    let grown: Vec<u64> = (0..200_000).filter(|&hash| hashes.push(hash << 40)).collect();
    assert_eq!(grown[..4], [0, 512, 1024, 2048]);
    assert!(grown.windows(2).all(|pair| pair[1] - pair[0] <= HASHES_MAX as u64));
    assert!((0..200_000).map(|hash| Mark::of(hash << 40, 300)).eq(hashes.marks(300)));
    let bytes = hashes.memory_bytes();
    assert!((200_000 * 8..=(200_000 + HASHES_MAX as u64) * 8).contains(&bytes), "{bytes}");
}

#[test]
fn no_bytes_make_a_part_that_leads_on_or_marks_what_is_not_there() {
    let filter = GrowingFilter::new(300);
    let before = Extent { at: 100, bytes: 50, sum: 7 };
    let mut added = vec![ADDED];
    before.encode(&mut added);
    let head = added.len();
    for mark in [1, 2, 3].map(|hash| Mark::of(hash, 300)) {
        added.extend_from_slice(&mark.block.to_le_bytes()[..2]);
        added.extend_from_slice(&mark.half.to_le_bytes());
    }
    assert_eq!(add_part(&added, 150, &filter), Some(Some(before)));
    assert!([1, 2, 3].iter().all(|&hash| filter.may_contain(hash)));
    assert_eq!(add_part(&added, 149, &filter), None, "it leads to what is not before it");
    for cut in 0..added.len() {
        let is_entry = cut >= head && (cut - head) % 6 == 0;
        assert_eq!(add_part(&added[..cut], 150, &filter).is_some(), is_entry, "{cut}");
    }
    for block in [299u16, 300, 0xffff] {
        added[head..head + 2].copy_from_slice(&block.to_le_bytes());
        assert_eq!(add_part(&added, 150, &filter).is_some(), block < 300, "{block}");
    }
    let mut whole = vec![WHOLE];
    filter.encode(&mut whole);
    let other = GrowingFilter::new(300);
    assert_eq!(add_part(&whole, 0, &other), Some(None));
    assert!([1, 2, 3].iter().all(|&hash| other.may_contain(hash)));
    assert_eq!(add_part(&whole[..whole.len() - 1], 0, &other), None);
    assert_eq!(add_part(&whole, 0, &GrowingFilter::new(301)), None);
    whole[0] = 2;
    assert_eq!(add_part(&whole, 0, &other), None);
}

/// A version of the same file with this root, whose checksum is right.
fn forged(tree: &Tree, root: Root) -> Tree {
    let version = tree.version();
    let block = root.encode(version.file_id, version.root_at);
    let file = tree.store().fs.open(tree.path(), Access::Buffered).unwrap();
    file.write_at(version.root_at, &block).unwrap();
    let store = TreeStore { files: Arc::default(), ..tree.store().clone() };
    Tree::named(&store, Version { digest: u32_at(&block, 0), ..version }, &Default::default())
}

#[test]
fn a_root_that_does_not_fit_its_chain_is_refused() {
    let (fs, trash, metrics): (Arc<dyn FileSystem>, _, _) = (MemoryFs::new(), Arc::default(), Arc::default());
    let store = TreeStore {
        values: ValueFiles::new(&fs, Path::new("/"), &trash, &metrics),
        fs,
        dir: "/".into(),
        next_id: Arc::default(),
        cache: Arc::new(NodeCache::new(0)),
        metrics,
        trash,
        disk: Arc::default(),
        files: Arc::default(),
        options: TreeOptions::new(Order::Lexical),
        expiry: None,
        salvage: None,
        filter_level: Arc::new(FilterLevel::new(None)),
    };
    let put = |mut writer: TreeWriter<LastWriterWins>, numbers: Range<u64>| {
        for number in numbers {
            let key = &number.to_be_bytes();
            writer.push(number, &Record { kind: Kind::Put, key, value: b"" }).unwrap();
        }
        writer.finish().unwrap()
    };
    let (rule, depth, cause) = (LastWriterWins, Depth::Bottom, Cause::Spill);
    let first = put(TreeWriter::build(&store, rule, depth, cause).unwrap(), 0..1000);
    let tree = put(TreeWriter::append(&first, rule, depth, cause).unwrap(), 1000..1050);
    let root = *tree.root().unwrap();
    let (old, new) = (first.root().unwrap().filter.unwrap(), root.filter.unwrap());
    assert_eq!((old.parts, new.parts), (1, 2));
    let with = |chain: Chain| {
        let live_bytes = root.live_bytes - new.bytes + chain.bytes;
        forged(&tree, Root { filter: Some(chain), live_bytes, ..root })
    };
    assert!(with(new).verify().is_ok());
    let find = |tree: &Tree| {
        tree.find(&Lookup::new(Order::Lexical, &1007u64.to_be_bytes()), |_| ()).map(|found| found.is_some())
    };
    assert!(find(&with(new)).unwrap());
    let refused = |chain: Chain, reason: &str| {
        let error = with(chain).verify().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    for chain in [Chain { parts: 3, ..new }, Chain { bytes: new.bytes + 1, ..new }] {
        refused(chain, "counters are not those of its filter");
        assert!(find(&with(chain)).unwrap(), "a lookup has no need to count");
    }
    for chain in [Chain { parts: 1, ..new }, Chain { blocks: new.blocks - 1, ..new }] {
        assert!(with(chain).verify().is_err());
        assert!(find(&with(chain)).unwrap_err().is_corruption());
    }
    refused(old, "the filter denies a key");
    // Versions of one file that do not agree.
    let other = with(Chain { blocks: new.blocks - 1, ..new });
    assert!(find(&Tree::named(other.store(), first.version(), &Default::default())).is_ok());
    assert!(find(&other).unwrap_err().is_corruption());
}
