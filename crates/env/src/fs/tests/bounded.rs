//! How many files are open, and which.

use std::path::Path;

use forebay_base::Error;

use super::{put, read_all};
use crate::fs::{Access, BoundedFs, FileSystem, LimitedFs, MemoryFs, ReadRequest, TracedFs};
use crate::sync::Arc;

const FILES: usize = 40;

/// A file system of `FILES` files, each of which holds its number; of those a process may open `limit`, and counts.
fn files(limit: usize) -> (Arc<LimitedFs>, Arc<TracedFs>) {
    let memory = MemoryFs::new();
    memory.create_dir_all(Path::new("/")).unwrap();
    for number in 0..FILES {
        put(&*memory, &path(number), &[number as u8; 100]).unwrap();
    }
    let limited = LimitedFs::new(memory, limit);
    (Arc::clone(&limited), TracedFs::new(limited))
}

fn path(number: usize) -> std::path::PathBuf {
    Path::new("/").join(number.to_string())
}

#[test]
fn any_number_of_files_is_read_with_few_open() {
    let (limited, traced) = files(8);
    let fs = BoundedFs::new(traced, 8);
    let open = |number| fs.open_read(&path(number), Access::Random).unwrap();
    let files: Vec<_> = (0..FILES).map(open).collect();
    for round in 0..3 {
        for (number, file) in files.iter().enumerate() {
            let mut byte = [0];
            assert_eq!(file.read_at(round, &mut byte).unwrap(), 1);
            assert_eq!((byte[0], file.len().unwrap()), (number as u8, 100));
        }
    }
    let mut buffers = vec![[0; 10]; FILES];
    let reads = files.iter().zip(&mut buffers);
    let mut reads: Vec<_> = reads.map(|(file, into)| ReadRequest::new(&**file, 50, into)).collect();
    fs.read_many(&mut reads);
    assert!(reads.into_iter().all(|read| read.outcome.unwrap() == 10));
    assert!(buffers.iter().enumerate().all(|(number, bytes)| *bytes == [number as u8; 10]));
    assert_eq!((limited.open_files_most(), fs.open_files(), limited.open_files()), (8, 8, 8));
    drop(files);
    assert_eq!((fs.open_files(), limited.open_files()), (0, 0));
}

#[test]
fn what_is_read_often_stays_open() {
    let (_, traced) = files(FILES);
    let fs = BoundedFs::new(Arc::<TracedFs>::clone(&traced), 8);
    let files: Vec<_> = (0..FILES).map(|n| fs.open_read(&path(n), Access::Random).unwrap()).collect();
    let before = traced.counts().opens;
    for file in &files {
        file.read_at(0, &mut [0]).unwrap();
        files[3].read_at(0, &mut [0]).unwrap();
    }
    assert_eq!(traced.counts().opens - before, FILES as u64, "each once, and none for the one in between");
}

#[test]
fn what_is_written_stays_open_and_counts() {
    let (limited, _) = files(6);
    let fs = BoundedFs::new(Arc::<LimitedFs>::clone(&limited), 6);
    let written: Vec<_> =
        (0..5).map(|n| put(&*fs, Path::new(&format!("/w{n}")), b"written").unwrap()).collect();
    let read: Vec<_> = (0..FILES).map(|n| fs.open_read(&path(n), Access::Random).unwrap()).collect();
    assert!(read.iter().all(|file| file.read_at(0, &mut [0]).unwrap() == 1));
    assert_eq!((limited.open_files(), limited.open_files_most()), (6, 6));
    written.iter().for_each(|file| file.write_at(7, b" more").unwrap());
    drop(written);
    assert_eq!(read_all(&*fs, Path::new("/w4")).unwrap(), b"written more");
    // Around the page cache each has two.
    let direct: Vec<_> = (0..3).map(|n| fs.open(&path(n), Access::Direct).unwrap()).collect();
    assert_eq!(fs.open_files(), 6);
    drop(direct);
}

#[test]
fn where_the_process_has_no_files_left_those_go_that_can() {
    // Others have taken what this one counted on.
    let (limited, traced) = files(8);
    let others: Vec<_> = (0..4).map(|n| limited.open_read(&path(n), Access::Random).unwrap()).collect();
    let fs = BoundedFs::new(traced, 100);
    let files: Vec<_> = (0..FILES).map(|n| fs.open_read(&path(n), Access::Random).unwrap()).collect();
    assert!(files.iter().all(|file| file.read_at(0, &mut [0]).unwrap() == 1));
    assert!(fs.sync_dir(Path::new("/")).is_ok() && !fs.list(Path::new("/")).unwrap().is_empty());
    let written: Vec<_> = (0..4).map(|n| fs.open(&path(n), Access::Buffered).unwrap()).collect();
    let Err(error) = fs.open(&path(9), Access::Buffered) else { panic!("there was none left") };
    assert!(matches!(error, Error::TooManyFiles { operation: "open", .. }), "{error}");
    assert!(
        error.to_string().contains("/9") && error.to_string().contains("100 (open_files_max)"),
        "{error}"
    );
    let error = files[20].read_at(0, &mut [0]).unwrap_err();
    assert!(error.is_too_many_files(), "{error}");
    drop(others);
    assert_eq!(files[20].read_at(0, &mut [0]).unwrap(), 1, "it passes");
    drop(written);
}
