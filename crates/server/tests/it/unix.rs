//! A socket in the file system.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use forebay_server::{Config, Server};

use crate::client::Running;

fn answers(path: &std::path::Path) -> bool {
    let mut socket = UnixStream::connect(path).expect("it listens");
    let mut reply = [0; 7];
    socket.write_all(b"PING\r\n").and_then(|()| socket.read_exact(&mut reply)).is_ok()
        && &reply == b"+PONG\r\n"
}

#[test]
fn a_socket_of_a_file_is_the_owners_and_replaces_a_dead_one() {
    let folder = std::env::temp_dir().join(format!("forebay-unix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("socket");
    let config = || Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        unix: Some(path.clone()),
        ..Config::default()
    };
    let refused = || {
        Server::bind(Running::open(&Running::files()), config()).map(drop).map_err(|error| error.to_string())
    };
    std::fs::write(&path, "no socket").expect("it is written");
    assert!(refused().expect_err("a file is there").contains("no socket"));
    std::fs::remove_file(&path).expect("it is there");
    // One that is left behind.
    drop(UnixListener::bind(&path).expect("it is free"));
    let server = Running::new(config());
    assert!(answers(&path));
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(refused().expect_err("one answers").contains("another server"));
    assert!(answers(&path), "it stays");
    drop(server);
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0, "nothing is left");
    std::fs::remove_dir_all(&folder).expect("it is there");
}
