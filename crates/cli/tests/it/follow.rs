//! `changes --stream`, `--listen`, `follow`, and `restore --changes`.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::json;

use crate::tool::{Folder, Outcome};

fn stream(folder: &Folder, words: &str) -> Vec<u8> {
    let arguments: Vec<&str> = words.split(' ').collect();
    let output = folder.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn follow(folder: &Folder, words: &str, stream: &[u8]) -> Outcome {
    folder.run_on(words, stream)
}

#[test]
fn a_copy_follows_by_streams_and_is_promoted_by_the_first_write() {
    let folder = Folder::new("follow");
    folder.ok_on("load db t - --format csv --batch 2 --keep-changes 1M", b"a,1\nb,2\nc,3\n");
    folder.ok("put db other k v");
    let first = stream(&folder, "changes db --stream");
    let told = folder.ok_on("follow copy", &first);
    assert_eq!(told, "3 commits up to record 4\n");
    assert_eq!((&*folder.ok("get copy t b"), &*folder.ok("get copy other k")), ("2\n", "v\n"));
    folder.ok("delete db t a");
    let second = stream(&folder, "changes db --stream --since 4");
    std::fs::write(folder.path("first"), &first).unwrap();
    std::fs::write(folder.path("second"), &second).unwrap();
    let object = folder.object("follow copy first second --json");
    assert_eq!(
        (&object["position"], &object["batches"], &object["end"]),
        (&json!(5), &json!(1), &json!("finished"))
    );
    assert_eq!(folder.ok("scan copy t").lines().count(), 2);

    let cut = follow(&folder, "follow other-copy", &first[..first.len() - 40]);
    cut.refused(1, &["cut off", "--since"]);
    let mut damaged = first.clone();
    damaged[60] ^= 1;
    follow(&folder, "follow third-copy", &damaged)
        .refused(1, &["standard input is damaged at byte", "up to record 0"]);
    follow(&folder, "follow third-copy", b"a,b,c\n").refused(1, &["no change stream"]);
    follow(&folder, "follow db", &first).refused(1, &["db", "writes of its own"]);
    follow(&folder, "follow fourth-copy", &second).refused(1, &["after record 4", "--since 0"]);
    assert_eq!(folder.run("changes db --stream --hex").code, 2);
    assert_eq!(folder.run("changes db --on").code, 2);

    folder.ok("put copy t own 1");
    folder.run("follow copy second").refused(1, &["copy", "writes of its own"]);
}

#[test]
fn a_backup_goes_on_to_a_moment() {
    let folder = Folder::new("follow-moment");
    folder.ok("put db t a 1 --keep-changes 1M");
    folder.ok("backup db kept");
    for value in 2..6 {
        folder.ok(&format!("put db t a {value}"));
    }
    let archive = stream(&folder, "changes db --stream");
    std::fs::write(folder.path("archive"), &archive).unwrap();
    folder.ok("put db t a 9");
    let object = folder.object("restore kept then --changes archive --until 3 --json");
    assert_eq!((&object["changes"]["position"], &object["changes"]["end"]), (&json!(3), &json!("reached")));
    folder
        .run("restore kept early --changes archive --until 2001-01-01T00:00:00Z")
        .refused(1, &["backup 1", "later"]);
    let told = folder.ok("restore kept late --changes archive --until 2999-01-01T00:00:00Z");
    let begins = "backup 1 and changes up to record 5, which end at 20";
    assert!(told.starts_with(begins) && told.contains("Z, before --until, is late"), "{told}");
    let found = ["then", "late"].map(|db| folder.ok(&format!("get {db} t a")));
    assert_eq!(found, ["3\n", "5\n"]);
    folder.run("restore kept none --changes archive --until 6").refused(1, &["record 5", "before 6"]);
    // Of several backups it is one that has nothing later.
    folder.ok("backup db kept");
    folder.ok("restore kept second --changes archive --until 4");
    assert_eq!(folder.ok("get second t a"), "4\n");
    folder
        .run("restore kept third --changes archive --until 4 --backup 2")
        .refused(1, &["backup 2", "later", "6"]);
    folder.run("restore kept third --changes archive --until 0").refused(1, &["backup 1", "later"]);
    std::fs::write(folder.path("cut"), &archive[..archive.len() - 30]).unwrap();
    folder.run("restore kept fourth --changes cut --backup 1").refused(1, &["cut off", "as of then"]);
    folder.ok("restore kept alone --until 3");
    assert_eq!(folder.ok("get alone t a"), "1\n");
    // What has the backup alone is told as that, and nothing is made where it is known before.
    std::fs::write(folder.path("other"), "no stream of changes, but long enough to be one\n").unwrap();
    folder.run("restore kept fifth --changes missing").refused(1, &["missing"]);
    assert!(!folder.path("fifth").exists());
    let told = ["other", "fifth is the backup and nothing behind it", "`forebay destroy fifth`"];
    folder.run("restore kept fifth --changes other").refused(1, &told);
    folder.ok("destroy fifth");
    assert_eq!(folder.run("restore kept more --changes archive --until soon").code, 2);
    // It is a database from the first write on.
    folder.ok("put then t b 1");
    assert_eq!(folder.ok("changes then --since 3"), "4\tt\tput\tb\t1\n");
}

#[test]
fn a_follower_connects_and_goes_on_as_commits_come() {
    let folder = Folder::new("follow-connect");
    folder.ok("put db t a 1 --keep-changes 1M");
    let mut source = folder
        .command(&["changes", "db", "--listen", "0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(source.stderr.take().unwrap()).read_line(&mut told).unwrap();
    let address = told.trim().strip_prefix("forebay: listening at ").unwrap().to_string();
    folder.ok(&format!("follow copy --connect {address} --until 1"));
    let mut copy = folder
        .command(&["follow", "copy", "--connect", &address, "--until", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for value in ["b", "c"] {
        folder.ok(&format!("put db t {value} 1 --wait 30s"));
    }
    assert!(copy.wait().unwrap().success());
    // Whoever comes with what the listener has not looked at yet is no stranger.
    folder.ok("put db t d 1 --wait 30s");
    folder.ok("backup db kept");
    folder.ok("restore kept late");
    folder.ok(&format!("follow late --connect {address} --until 4"));
    source.kill().unwrap();
    source.wait().unwrap();
    assert_eq!(folder.ok("scan copy t").lines().count(), 3);
}

/// Whoever takes nothing of a stream, and whoever connects and asks for nothing, keep nobody from writing.
#[test]
fn who_reads_a_stream_slowly_keeps_nobody_from_writing() {
    let folder = Folder::new("follow-slowly");
    let rows: String = (0..20_000).map(|key| format!("{key},{key:0>40}\n")).collect();
    folder.ok_on("load db t - --format csv --keep-changes 64M", rows.as_bytes());
    let start =
        |words: &[&str]| folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stalled = start(&["changes", "db", "--stream", "--on"]);
    let mut listening = start(&["changes", "db", "--listen", "0"]);
    let mut told = String::new();
    BufReader::new(listening.stderr.take().unwrap()).read_line(&mut told).unwrap();
    let address = told.trim().strip_prefix("forebay: listening at ").unwrap();
    let silent = TcpStream::connect(address).unwrap();
    // What it has begun to write is more than the pipe takes.
    let mut out = stalled.stdout.take().unwrap();
    out.read_exact(&mut [0; 8]).unwrap();
    for key in ["a", "b"] {
        folder.ok(&format!("put db t {key} 1"));
    }
    folder.ok(&format!("follow copy --connect {address} --until 20002"));
    assert_eq!(folder.ok("get copy t b"), "1\n");
    drop((out, silent));
    for mut child in [stalled, listening] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
