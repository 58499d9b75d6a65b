//! The example of `docs/format/cow_tree.md`: it is what is written, and it can be read.

#[path = "../../../forebay/tests/it/format/document.rs"]
mod document;

use std::path::Path;

use forebay_base::combine::Depth;
use forebay_base::wire::Reader;
use forebay_base::{LastWriterWins, Order};
use forebay_cow_tree::{Tree, TreeOptions, Version};
use forebay_env::fs::MemoryFs;

use crate::common::{Batch, Model, build, content, store};
use document::{examples, print};

#[test]
fn the_example_of_the_format_is_what_is_written_and_can_be_read() {
    let mut example = examples("cow_tree.md").remove(0);
    example.resize(8 << 10, 0);
    let record = |key: &str, value: &[u8]| (key.as_bytes().to_vec(), value.to_vec());
    let records = [record("mae", b"1920"), record("mary", &[b'.'; 80]), record("max", b"1879")];
    let records = Batch::puts(Order::Lexical, records);
    let options = TreeOptions::new(Order::Lexical);

    let fs = MemoryFs::new();
    let written = build(&store(fs.clone(), options), &records).unwrap();
    let files = fs.snapshot_files();
    assert!(files[written.path()] == example, "{}", print(&files[written.path()]));
    let version = [0x07, 0x01, 0xec, 0x68, 0x48, 0x85];
    let version = Version::decode(&mut Reader::new(&version)).unwrap();
    assert_eq!(version, written.version());

    let fs = MemoryFs::new();
    let store = store(fs.clone(), options);
    fs.replace_file(Path::new("/db/00000007.tree"), example);
    let mut expected = Model::new();
    records.apply(&mut expected, &LastWriterWins, Depth::Bottom);
    let tree = Tree::open(&store, version).unwrap();
    tree.verify().unwrap();
    assert_eq!(content(&tree).unwrap(), expected);
}
