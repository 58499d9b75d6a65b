//! The memory of the process: all that is its own, not only what groups are accounted for.

use std::process::Stdio;

use super::Draws;
use crate::tool::Folder;

const LIMIT_BYTES: u64 = 24 << 20;

/// The most anonymous memory that the command was seen to hold.
fn peak_bytes(folder: &Folder, words: &str) -> u64 {
    let arguments: Vec<&str> = words.split(' ').collect();
    let mut child = folder.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        peak = peak.max(kibibytes.unwrap_or(0) << 10);
        std::thread::yield_now();
    };
    assert!(ended.success(), "forebay {words}");
    peak
}

#[test]
fn the_process_keeps_to_its_limit() {
    let folder = Folder::new("process-memory");
    let mut draws = Draws::new(21);
    let mut wide = String::from("key,text\n");
    for row in 0..60_000 {
        let text: String = (0..800).map(|_| char::from(b'a' + draws.below(26) as u8)).collect();
        wide.push_str(&format!("{},{text}\n", row ^ 0x2a5a));
    }
    std::fs::write(folder.path("wide.csv"), wide).unwrap();
    for (name, distinct) in [("many", 1_500_000), ("few", 40_000)] {
        let mut words = String::new();
        for _ in 0..3_000_000 {
            words.push_str(&format!("{:x} ", draws.below(distinct) * 0x9e37_79b9));
        }
        std::fs::write(folder.path(name), words).unwrap();
    }
    for words in ["--by column:key --fn any:text wide.csv", "--by word many", "--by ngram:2 few --top 9"] {
        let peak = peak_bytes(&folder, &format!("aggregate {words} --memory {LIMIT_BYTES}"));
        assert!((LIMIT_BYTES / 3..=LIMIT_BYTES).contains(&peak), "{words}: {peak} bytes");
    }
}
