//! The examples of the encrypted format: what is written where the random numbers are known.

use std::sync::atomic::AtomicU64;

use forebay::encryption::{Key, OneKey};

use super::*;

/// An environment whose n-th random number has n in each of its bytes.
fn counting(fs: &Arc<MemoryFs>) -> Env {
    let drawn = AtomicU64::new(0);
    let entropy = move || (1 + drawn.fetch_add(1, Ordering::Relaxed)) * 0x0101_0101_0101_0101;
    Env { entropy: Arc::new(entropy), ..Env::simulated(fs.clone(), 1) }
}

#[test]
fn the_encrypted_examples_are_what_is_written() {
    let fs = MemoryFs::new();
    let provider = Arc::new(OneKey::new("2026", Key::new([7; 32])));
    let options =
        Options::default().memory_limit(1 << 20).write_buffer(BUFFER_BYTES as u64).encryption(provider);
    let db = Database::open(DIR, options.env(counting(&fs))).unwrap();
    let people = db.table("people").layout(Layout::wb_tree_ordered()).node_bytes(128 << 10).open().unwrap();
    put(&people, &[("ada", "1815")]);
    let files = fs.snapshot_files();
    let shown = |name: &str| print(&files[&Path::new(DIR).join(name)]);
    let [superblock, keys, log] = examples("encryption.md").try_into().unwrap_or_else(|_| {
        panic!("{}\n{}\n{}", shown("FOREBAY"), shown("FOREBAY.keys"), shown("00000002.log"))
    });
    assert_written(&fs, "FOREBAY", superblock.len(), &superblock);
    assert_written(&fs, "FOREBAY.keys", keys.len(), &keys);
    assert_written(&fs, "FOREBAY.keys.spare", keys.len(), &keys);
    assert_written(&fs, "00000002.log", BUFFER_BYTES, &log);
}
