//! A small disk of its own: an image, by a loop device, with ext4 on it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay::{Error, Result};
use tempfile::TempDir;

use crate::kernel::{Journal, shut_down};

/// A file system that is mounted for as long as this lives.
pub(crate) struct Disk {
    folder: TempDir,
    is_mounted: bool,
}

impl Disk {
    /// Makes and mounts one of this many mebibytes.
    pub(crate) fn new(under: &Path, mebibytes: u64) -> Result<Self> {
        let folder = TempDir::with_prefix_in("torture-disk-", under).map_err(|error| at(under, &error))?;
        let mut disk = Self { folder, is_mounted: false };
        let image = disk.image();
        let made = File::create(&image).and_then(|file| file.set_len(mebibytes << 20));
        made.map_err(|error| at(&image, &error))?;
        // No lazy initialisation: it would write in the background for a while.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        call(Command::new("mkfs.ext4").args(["-q", "-F", "-E", options]).arg(&image))?;
        let root = disk.root();
        std::fs::create_dir(&root).map_err(|error| at(&root, &error))?;
        disk.mount()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn mount(&mut self) -> Result<()> {
        call(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(self.root()))?;
        self.is_mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<()> {
        call(Command::new("umount").arg(self.root()))?;
        self.is_mounted = false;
        Ok(())
    }

    /// The power goes: what has not reached the device never will.
    pub(crate) fn cut(&self, journal: Journal) -> Result<()> {
        let root = File::open(self.root()).map_err(|error| at(&self.root(), &error))?;
        shut_down(&root, journal).map_err(|error| at(&self.root(), &error))
    }

    /// The power comes again. Nobody may have a file of it open.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // What is still open keeps the mount; then the folder stays, and the next start of the system clears it.
            let _ = self.unmount();
        }
    }
}

fn at(path: &Path, error: &io::Error) -> Error {
    Error::Invalid(format!("{}: {error}", path.display()))
}

fn call(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let invalid = |why: &dyn std::fmt::Display| {
        Error::Invalid(format!("{name}: {why}; this campaign needs root and loop devices"))
    };
    let output = command.output().map_err(|error| invalid(&error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(invalid(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}
