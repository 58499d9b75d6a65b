//! The kernel reads files ahead by as much as the block device says, for every fault of a mapped page too. Where
//! that is megabytes, an engine that maps its files and cannot ask for less reads them for every lookup. So it is
//! lowered for all engines alike, for as long as benchmarks run.

use std::path::{Path, PathBuf};

/// Enough for reading on, and little beside the cost of a read.
const KIB_MAX: u64 = 16;

/// Devices that read ahead by less than they did before.
#[derive(Clone, Debug)]
pub struct ReadAhead(Vec<Lowered>);

#[derive(Clone, Debug)]
struct Lowered {
    file: PathBuf,
    kib_before: u64,
}

impl ReadAhead {
    /// Lowers it for all devices below `devices`, which is `/sys/block`, and tells `say` what became of each.
    #[expect(clippy::disallowed_methods, reason = "switches of the kernel, not files of a database")]
    pub fn lower(devices: &Path, say: &mut dyn FnMut(&str)) -> Self {
        let mut lowered = Vec::new();
        for device in std::fs::read_dir(devices).into_iter().flatten().flatten() {
            let file = device.path().join("queue/read_ahead_kb");
            let Some(kib_before) = kib(&file).filter(|kib| *kib > KIB_MAX) else { continue };
            let name = device.file_name();
            let name = name.to_string_lossy();
            match std::fs::write(&file, KIB_MAX.to_string()) {
                Ok(()) => {
                    say(&format!("{name} reads {KIB_MAX} KiB ahead instead of {kib_before} until the end"));
                    lowered.push(Lowered { file, kib_before });
                }
                Err(error) => say(&format!("{name} reads {kib_before} KiB ahead: {error}")),
            }
        }
        Self(lowered)
    }

    /// Puts everything back as it was.
    #[expect(clippy::disallowed_methods, reason = "switches of the kernel, not files of a database")]
    pub fn restore(&self) {
        for Lowered { file, kib_before } in &self.0 {
            if let Err(error) = std::fs::write(file, kib_before.to_string()) {
                eprintln!("{} should be {kib_before} again: {error}", file.display());
            }
        }
    }
}

fn kib(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a directory that looks like the kernel's")]
mod tests {
    use super::*;

    #[test]
    fn read_ahead_is_lowered_and_put_back() {
        let devices = tempfile::tempdir().unwrap();
        for (name, kib) in [("large", "8192\n"), ("small", "4\n")] {
            let queue = devices.path().join(name).join("queue");
            std::fs::create_dir_all(&queue).unwrap();
            std::fs::write(queue.join("read_ahead_kb"), kib).unwrap();
        }
        std::fs::create_dir(devices.path().join("odd")).unwrap();
        let both =
            || ["large", "small"].map(|name| kib(&devices.path().join(name).join("queue/read_ahead_kb")));
        let mut said = Vec::new();
        let lowered = ReadAhead::lower(devices.path(), &mut |line| said.push(line.to_string()));
        assert_eq!(both(), [Some(16), Some(4)]);
        assert_eq!(said, ["large reads 16 KiB ahead instead of 8192 until the end"]);
        lowered.restore();
        assert_eq!(both(), [Some(8192), Some(4)]);
    }
}
