//! Real data for the figures, `make data`: text, reads and images out of Debian's packages, below
//! `target/figures/data`.
//!
//! 1. Packages are fetched and unpacked, not installed. What is there is not fetched again.
//! 2. The pages of documentation become one text. Reads are unpacked.
//!
//! **Invariant:** a file of the data is whole, or not there under its name.

mod markup;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the data are, from the workspace's root.
pub(crate) const FOLDER: &str = "target/figures/data";
/// Prose of documentation, one page after the other.
pub(crate) const TEXT: &str = "text.txt";
/// Long reads of a bacterium.
pub(crate) const READS: &str = "reads.fastq";
/// Where packages are unpacked, a folder each.
pub(crate) const PACKAGES: &str = "packages";
/// The packages of images.
pub(crate) const IMAGES: [&str; 6] = [
    "faenza-icon-theme",
    "gnome-icon-theme",
    "mate-backgrounds",
    "mate-icon-theme",
    "moka-icon-theme",
    "oxygen-icon-theme",
];
/// Documentation whose pages are the text.
const DOCUMENTATION: [&str; 5] =
    ["debian-handbook", "linux-doc-6.1", "openjdk-17-doc", "python3.11-doc", "rust-doc"];
const READS_PACKAGE: &str = "wtdbg2-examples";
/// In that package.
const READS_ARCHIVE: &str = "usr/share/doc/wtdbg2-examples/selfSampleData.tar.gz";
const READS_MEMBER: &str = "selfSampleData/pacbio_filtered.fastq";

/// Fetches what is missing.
pub fn run() -> Result<(), String> {
    let folder = crate::workspace_root().join(FOLDER);
    let packages = folder.join(PACKAGES);
    std::fs::create_dir_all(&packages).map_err(told("make", &packages))?;
    for package in IMAGES {
        unpack(&packages, package)?;
    }
    let text = folder.join(TEXT);
    if !text.exists() {
        let folders = DOCUMENTATION.iter().map(|package| unpack(&packages, package));
        write_text(&folders.collect::<Result<Vec<_>, _>>()?, &text)?;
    }
    let reads = folder.join(READS);
    if !reads.exists() {
        let archive = unpack(&packages, READS_PACKAGE)?.join(READS_ARCHIVE);
        whole(&reads, |part| {
            let out = File::create(part).map_err(told("write", part))?;
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--to-stdout").arg("--file").arg(&archive).arg(READS_MEMBER);
            succeed(tar.stdout(out))
        })?;
    }
    for path in [&text, &reads] {
        let bytes = std::fs::metadata(path).map_err(told("read", path))?.len();
        println!("{} MB  {}", bytes / 1_000_000, path.display());
    }
    println!("images in {} packages", IMAGES.len());
    Ok(())
}

/// The folder of a package's files.
fn unpack(packages: &Path, package: &str) -> Result<PathBuf, String> {
    let folder = packages.join(package);
    if folder.is_dir() {
        return Ok(folder);
    }
    println!("fetching {package}");
    let fetched = packages.join(format!("{package}.fetched"));
    std::fs::create_dir_all(&fetched).map_err(told("make", &fetched))?;
    succeed(Command::new("apt-get").args(["download", package]).current_dir(&fetched))
        .map_err(|error| format!("{error}; the data are packages of Debian 12, after `apt-get update`"))?;
    let archives = std::fs::read_dir(&fetched).map_err(told("read", &fetched))?.flatten();
    let archive =
        archives.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "deb"));
    let archive = archive.ok_or_else(|| format!("apt-get download {package} left no archive"))?;
    whole(&folder, |part| succeed(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(part)))?;
    std::fs::remove_dir_all(&fetched).map_err(told("remove", &fetched))?;
    Ok(folder)
}

/// Writes the pages below these folders without their markup, in the order of their paths.
fn write_text(folders: &[PathBuf], path: &Path) -> Result<(), String> {
    let mut pages = Vec::new();
    folders.iter().for_each(|folder| find_pages(folder, &mut pages));
    pages.sort();
    whole(path, |part| {
        let mut out = BufWriter::new(File::create(part).map_err(told("write", part))?);
        for page in &pages {
            let page = std::fs::read(page).map_err(told("read", page))?;
            out.write_all(&markup::text(&page)).map_err(told("write", part))?;
        }
        out.flush().map_err(told("write", part))
    })
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find_pages(&path, pages),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "html") => {
                pages.push(path)
            }
            _ => {}
        }
    }
}

/// Makes what stands under this name elsewhere first.
fn whole(path: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let part = path.with_extension("part");
    make(&part)?;
    std::fs::rename(&part, path).map_err(told("rename", &part))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}

fn told(what: &str, path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("cannot {what} {}: {error}", path.display())
}
