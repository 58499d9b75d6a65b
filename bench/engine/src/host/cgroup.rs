//! A memory cgroup for one run, below the one that this process is in, removed behind it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The files of one version of cgroups.
#[derive(Clone, Copy, Debug)]
struct Version {
    limit: &'static str,
    peak: &'static str,
}

const V1: Version = Version { limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" };
const V2: Version = Version { limit: "memory.max", peak: "memory.peak" };

/// A cgroup with a limit.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    version: Version,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) struct NoCgroup(String);

impl fmt::Display for NoCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory cgroup: {}", self.0)
    }
}

impl Cgroup {
    /// Makes a cgroup that holds this many bytes, page cache included.
    #[expect(clippy::disallowed_methods, reason = "switches of the kernel, not files of the database")]
    pub(crate) fn new(name: &str, limit_bytes: u64) -> Result<Self, NoCgroup> {
        let told = |path: &Path, error: io::Error| NoCgroup(format!("{}: {error}", path.display()));
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (parent, version) =
            parent(&own, &mounts).ok_or_else(|| NoCgroup("none is mounted".to_string()))?;
        let path = parent.join(name);
        std::fs::create_dir(&path).map_err(|error| told(&path, error))?;
        let group = Self { path, version };
        let limit = group.path.join(version.limit);
        // Where the controller is off, the file is not there. The group is removed on the way out.
        std::fs::write(&limit, limit_bytes.to_string()).map_err(|error| told(&limit, error))?;
        Ok(group)
    }

    /// Moves a process into it. What it allocated before stays where it was.
    #[expect(clippy::disallowed_methods, reason = "a switch of the kernel, not a file of the database")]
    pub(crate) fn take(&self, process: u32) -> Result<(), NoCgroup> {
        let file = self.path.join("cgroup.procs");
        std::fs::write(&file, process.to_string())
            .map_err(|error| NoCgroup(format!("{}: {error}", file.display())))
    }

    /// The file that tells the most memory it held, and forgets it when written to.
    pub(crate) fn peak_file(&self) -> PathBuf {
        self.path.join(self.version.peak)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The most memory that the group of this file held.
pub(crate) fn peak_bytes(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Begins a new peak, where the kernel can.
#[expect(clippy::disallowed_methods, reason = "a switch of the kernel, not a file of the database")]
pub(crate) fn reset_peak(file: &Path) {
    let _ = std::fs::write(file, "0");
}

/// The directory of this process's memory cgroup.
fn parent(own: &str, mounts: &str) -> Option<(PathBuf, Version)> {
    let place = |controllers: &str| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let matches = fields.next()?.split(',').any(|name| name == controllers);
            fields.next().filter(|_| matches)
        })
    };
    // Mount point, then behind a dash: type, source, options.
    let mount = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (before, behind) = line.split_once(" - ")?;
            let mut behind = behind.split(' ');
            let right = behind.next() == Some(kind)
                && behind.nth(1).is_some_and(|options| options.split(',').any(|name| name == option));
            let mut fields = before.split(' ').skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            right.then_some((root, point))
        })
    };
    let join = |(root, point): (&str, &str), place: &str| {
        let inside = place.strip_prefix(root.trim_end_matches('/')).unwrap_or(place);
        Path::new(point).join(inside.trim_start_matches('/'))
    };
    match (place("memory"), mount("cgroup", "memory")) {
        (Some(place), Some(mounted)) => Some((join(mounted, place), V1)),
        _ => Some((join(mount("cgroup2", "rw")?, place("")?), V2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn the_own_group_is_found() {
        let (path, version) = parent("4:memory:/a/b\n1:cpu:/c\n0::/\n", V1_MOUNTS).unwrap();
        assert_eq!((path.to_str(), version.peak), (Some("/sys/fs/cgroup/memory/a/b"), V1.peak));
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let (path, version) = parent("0::/user.slice/s\n", v2).unwrap();
        assert_eq!((path.to_str(), version.limit), (Some("/sys/fs/cgroup/user.slice/s"), V2.limit));
        // In a container the mount's root is the container's group.
        let inside = v2.replace("0:26 / ", "0:26 /user.slice ");
        assert_eq!(parent("0::/user.slice/s\n", &inside).unwrap().0.to_str(), Some("/sys/fs/cgroup/s"));
        assert!(parent("", "").is_none());
    }
}
