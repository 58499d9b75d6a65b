//! Memory: how much there is, the most that was held, and touching it once.
//!
//! A virtual machine gets a page from its host at the first touch, for microseconds. Whoever runs first would
//! pay for all who follow.

use std::hint::black_box;

use forebay_env::process::peak_memory_bytes;

/// All memory of the machine.
pub(crate) fn total_bytes() -> Option<u64> {
    meminfo("MemTotal:")
}

/// Writes once through this many bytes, at most half of what is available, and gives them back.
pub(crate) fn touch(bytes: u64) {
    let most = meminfo("MemAvailable:").unwrap_or(0) / 2;
    let mut memory: Vec<u8> = Vec::new();
    let bytes = usize::try_from(bytes.min(most)).unwrap_or(0);
    // What cannot be had is not touched.
    if memory.try_reserve_exact(bytes).is_ok() {
        memory.resize(bytes, 1);
        black_box(&memory);
    }
}

/// The most memory that the process held since the last [`reset_peak`].
pub(crate) fn peak_bytes() -> Option<u64> {
    peak_memory_bytes()
}

/// Forgets the peak, where the kernel can; elsewhere it is that of the process's life.
#[expect(clippy::disallowed_methods, reason = "a switch of the kernel, not a file of the database")]
pub(crate) fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_seen_and_forgotten() {
        let most = 64 << 20;
        touch(most);
        let peak = peak_bytes().unwrap();
        assert!(peak >= most, "{peak}");
        assert!(total_bytes().unwrap() > most);
        reset_peak();
        assert!(peak_bytes().unwrap() <= peak);
    }
}
