//! Inputs that can be read once only.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use crate::tool::Folder;

/// It was opened three times, and what was written for those who had closed it again was lost.
#[test]
fn a_named_pipe_is_read_once_and_whole() {
    let folder = Folder::new("pipes-named");
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
    for _ in 0..20 {
        let shown = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = File::options().write(true).open(folder.path("pipe")).unwrap();
                // Whoever reads may go away, and is found out by what it shows.
                (0..2000).try_for_each(|_| pipe.write_all(b"x y\n")).ok();
            });
            folder.ok("aggregate --by word pipe")
        });
        assert_eq!(shown, "x\t2000\ny\t2000\n");
    }
}

/// Bytes of it went to somebody who looked whether it was a file.
#[test]
fn parquet_comes_by_a_pipe_that_has_a_name() {
    let folder = Folder::new("pipes-parquet");
    std::fs::write(folder.path("f.csv"), "k\na\nb\na\n").unwrap();
    folder.ok("aggregate --by column:k f.csv --out f.parquet");
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&std::fs::read(folder.path("f.parquet")).unwrap()).unwrap();
    drop(writer);
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let shown = folder
        .command(&["aggregate", "--format", "parquet", "--by", "column:k", "--fn", "sum:count", "/dev/stdin"])
        .stdin(Stdio::from(reader))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned() + &String::from_utf8_lossy(&shown.stderr);
    assert_eq!(shown, "k\tsum:count\na\t2\nb\t1\n", "{path}");
}
