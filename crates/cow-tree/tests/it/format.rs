//! The example of `docs/format/cow_tree.md`, to the byte.

use forebay_base::Order;
use forebay_base::wire::Reader;
use forebay_cow_tree::{TreeOptions, Version};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, FileSystem};

use crate::common::{Batch, build, store};

/// What is not zero in it: offsets and bytes.
const EXAMPLE: &[(usize, &str)] = &[
    (0x50, "00 03 02 6d 61 08 65 04 31 39 32 30 14 72 79 00"),
    (0x60, "50 7d 59 4c 82 08 78 04 31 38 37 39 00 00 04 00"),
    (0x70, "02 84 00 00 20 00 e0 00 00 40 00 08 10 80 00 88"),
    (0x80, "00 00 00 03 01 08 00 88 00 80 00 08 10"),
    (0x1000, "ec 68 48 85 46 42 43 4f 57 54 0d 0a 01 00 00 00"),
    (0x1010, "07"),
    (0x1020, "03 00 00 00 00 00 00 00 8d 10"),
    (0x1030, "71 06 a7 5b 01 00 00 00 01 00 00 00 1c 00 00 00"),
    (0x1040, "4d 9c 76 03 50 00 00 00 00 00 00 00 21 00 00 00"),
    (0x1050, "5c 88 76 25 6c 00 00 00 00 00 00 00 01 00 00 00"),
    (0x1060, "01 00 00 00 21"),
];

#[test]
fn the_example_of_the_format_is_what_is_written() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), TreeOptions::new(Order::Lexical));
    let record = |key: &str, value: &[u8]| (key.as_bytes().to_vec(), value.to_vec());
    let records = [record("mae", b"1920"), record("mary", &[b'.'; 80]), record("max", b"1879")];
    let tree = build(&store, &Batch::puts(Order::Lexical, records)).unwrap();
    let mut wanted = vec![0; 0x2000];
    wanted[..80].fill(b'.');
    for (at, text) in EXAMPLE {
        let bytes = text.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap());
        bytes.enumerate().for_each(|(index, byte)| wanted[at + index] = byte);
    }
    let file = fs.open_read(tree.path(), Access::Random).unwrap();
    let mut bytes = vec![0; 0x2001];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), wanted.len());
    assert!(bytes[..0x2000] == wanted[..]);
    let version = [0x07, 0x01, 0xec, 0x68, 0x48, 0x85];
    assert_eq!(Version::decode(&mut Reader::new(&version)), Some(tree.version()));
}
