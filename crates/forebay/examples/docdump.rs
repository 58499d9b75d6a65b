//! Throwaway.
use forebay::{Database, Options, Layout};
fn main() {
    let dir = "/tmp/reads-doc";
    let _ = std::fs::remove_dir_all(dir);
    let db = Database::open(dir, Options::default().memory_limit(1 << 20)).unwrap();
    let t = db.table("people").layout(Layout::write_buffer_ordered()).lists_max(64).filter_bits_per_key(14).open_ordered().unwrap();
    t.put(b"ada", b"1815").unwrap(); t.put(b"alan", b"1912").unwrap(); t.put(b"ada", b"1816").unwrap();
    db.flush().unwrap(); t.compact().unwrap();
    db.close().unwrap();
}
