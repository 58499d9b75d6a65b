//! `top`, of a server in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::tool::Folder;

/// A server that ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn new(folder: &Folder, more: &[&str]) -> Self {
        let arguments = [&["serve", "db", "--listen", "127.0.0.1:0"], more].concat();
        let mut child = folder.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        let stderr = child.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut told).unwrap();
        let address = told.trim().rsplit(' ').next().unwrap().to_string();
        Self { child, address }
    }

    /// Sends lines, and waits for the last answer, which ends the connection.
    fn ask(&self, lines: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.write_all(format!("{lines}QUIT\r\n").as_bytes()).unwrap();
        let mut told = String::new();
        socket.read_to_string(&mut told).unwrap();
        told
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_server_is_seen_at_a_glance() {
    let folder = Folder::new("top");
    let serving = Serving::new(&folder, &[]);
    let told = serving.ask(&"SET user:1042 value\r\n".repeat(2000));
    assert_eq!(told.matches("+OK").count(), 2001);
    serving.ask("AGG.CREATE visits KEY page FUNCTIONS count\r\n");
    let seen = folder.ok(&format!("top {} --once --every 20ms", serving.address));
    for part in [
        &format!("forebay  {} at {}", env!("CARGO_PKG_VERSION"), serving.address)[..],
        "\n\nTables\n",
        "\nvisits  wb-tree, 0 records, 0 B\n  L1 ",
        "\n\nMemory  ",
        "  write buffers     ",
        "\n\nWritten  by cause, of ",
        "100 % writes  0: user:1042\n",
        "\n\nSlow requests  ",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    // Nothing shows it, so nothing is told how.
    assert!(seen.chars().all(|letter| letter == '\n' || !letter.is_control()), "{seen:?}");
    let told: Value =
        serde_json::from_str(&folder.ok(&format!("top {} --once --json", serving.address))).unwrap();
    assert_eq!((&told["type"], &told["hottest_keys"][0]["key"]), (&"top".into(), &"user:1042".into()));
    assert_eq!(told["tables"][0]["name"], "0");
}

#[test]
fn a_server_may_ask_who_looks() {
    let folder = Folder::new("top-password");
    std::fs::write(folder.path("secret"), "open sesame\n").unwrap();
    std::fs::write(folder.path("wrong"), "guess\n").unwrap();
    let serving = Serving::new(&folder, &["--password-file", "secret"]);
    let top = |more: &str| folder.run(&format!("top {} --once --every 1ms{more}", serving.address));
    top("").refused(1, &["FB.STATS", "NOAUTH"]);
    top(" --password-file wrong").refused(1, &["AUTH", "WRONGPASS"]);
    assert_eq!(top(" --password-file secret").code, 0);
    assert_eq!(top(" --password-file secret --user default").code, 0);
}

/// What is no server of ours is told from one; so is what is no server at all.
#[test]
fn what_is_no_server_is_told() {
    let folder = Folder::new("top-nothing");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let answers =
        ["HTTP/1.1 400 Bad Request\r\n", "$5\r\n{\"a\":\r\n", "$99999999999\r\n", "$2\r\n{}\r\n", ""];
    let answering = std::thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = other.accept().unwrap();
            socket.read_exact(&mut [0; 10]).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    for words in [
        ["is no answer", "HTTP"],
        ["another version", ""],
        ["no answer", ""],
        ["another version", ""],
        ["", ""],
    ] {
        folder.run(&format!("top {address} --once")).refused(1, &words);
    }
    answering.join().unwrap();
    folder.run(&format!("top {address} --once")).refused(1, &["no server at"]);
    folder.run("top nowhere.invalid:1 --once").refused(1, &["no server at nowhere.invalid:1"]);
}
