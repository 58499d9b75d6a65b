//! Finds images that look alike: the application of two jobs in the thesis on the Compressed Buffer Tree, as a user of
//! the library would write it.
//!
//! ```text
//! image_neighbours FOLDER... [--check]
//! ```
//!
//! Prints each image's nearest neighbours, `image<TAB>neighbour<TAB>distance`, and on standard error what it came to,
//! as JSON. `--check` compares the result with all pairs, compared one by one.
//!
//! 1. Images are decoded and [hashed](hash), on two threads.
//! 2. Two jobs [group and compare](neighbours) the hashes.

#![expect(clippy::disallowed_methods, reason = "a program of its own reads its files and the clock itself")]

mod hash;
mod naive;
mod neighbours;
mod picture;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use neighbours::{Found, Settings};
use picture::Picture;

const THREADS: usize = 2;
const SETTINGS: Settings = Settings { prefix_bits: 16, nearest: 5, memory_bytes: 256 << 20 };

fn main() -> Result<(), Box<dyn Error>> {
    let (options, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let checks = match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => return Err("usage: image_neighbours FOLDER... [--check]".into()),
    };
    let mut paths = Vec::new();
    folders.iter().for_each(|folder| find_images(Path::new(folder), &mut paths));
    paths.sort();
    let started = Instant::now();
    let (paths, hashes) = hash_all(&paths);
    let hashing = started.elapsed().as_secs_f64();

    let found = neighbours::find(&hashes, SETTINGS)?;
    let finding = started.elapsed().as_secs_f64() - hashing;
    print(&paths, &found)?;
    eprintln!(
        "{{\"images\":{},\"hash_seconds\":{hashing:.3},\"seconds\":{finding:.3},\"clusters\":{},\"pairs\":{},\
         \"memory_bytes\":{}}}",
        paths.len(),
        found.clusters,
        found.pairs,
        found.memory_bytes
    );
    if checks {
        eprintln!("{}", naive::check(&hashes, SETTINGS, &found)?);
    }
    Ok(())
}

fn find_images(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find_images(&path, paths),
            Ok(kind) if kind.is_file() && is_image(&path) => paths.push(path),
            _ => {}
        }
    }
}

fn is_image(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| ["png", "jpg", "jpeg"].iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// The hash of each image that can be decoded.
fn hash_all(paths: &[PathBuf]) -> (Vec<&Path>, Vec<u64>) {
    let hash = |path: &Path| Picture::read(path).map(|picture| hash::of(&picture)).ok();
    std::thread::scope(|scope| {
        let parts = paths.chunks(paths.len().div_ceil(THREADS).max(1));
        let threads: Vec<_> = parts
            .map(|part| {
                scope.spawn(move || {
                    part.iter().filter_map(|path| Some((path.as_path(), hash(path)?))).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().unzip()
    })
}

fn print(paths: &[&Path], found: &Found) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for (image, nearest) in &found.nearest {
        for neighbour in nearest {
            let name = |image: u32| paths[image as usize].display();
            writeln!(out, "{}\t{}\t{}", name(*image), name(neighbour.image), neighbour.distance)?;
        }
    }
    out.flush()
}
