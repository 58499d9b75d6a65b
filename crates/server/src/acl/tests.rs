//! Files of users: what is saved, what is read, and what neither may do.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder with a file of users.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, text: &str) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("forebay-acl-{name}-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        std::fs::write(folder.file(), text).expect("it is written");
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.join("users")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).expect("it is there")
    }

    fn config(&self) -> Config {
        Config { acl_file: Some(self.file()), ..Config::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn what_is_saved_is_read_again() {
    let folder = Folder::new("saved", "");
    let acl = Acl::new(&folder.config()).expect("it is read");
    let rules: [&[u8]; 3] = [b"%R~*", b"~a", b"%W~*"];
    assert_eq!(acl.set(b"ann", &rules), Ok(()));
    assert_eq!((acl.save(), acl.load()), (Ok(()), Ok(())));
    assert!(folder.text().contains("user ann off ~* resetchannels"), "{}", folder.text());
    let patterns: Vec<Vec<u8>> = (0..1000).map(|number| format!("~{number:01000}").into_bytes()).collect();
    let patterns: Vec<&[u8]> = patterns.iter().map(Vec::as_slice).collect();
    (0..17).for_each(|number| assert_eq!(acl.set(&[b'a' + number], &patterns), Ok(())));
    let before = folder.text();
    assert!(acl.save().is_err_and(|reason| reason.contains("more than")));
    assert_eq!(folder.text(), before);
}

#[test]
fn what_lies_beside_the_file_has_no_say() {
    let folder = Folder::new("beside", "");
    let acl = Acl::new(&folder.config()).expect("it is read");
    let (other, beside) = (folder.0.join("other"), folder.0.join("users.new"));
    std::fs::write(&other, "precious").expect("it is written");
    std::os::unix::fs::symlink(&other, &beside).expect("it is made");
    assert_eq!(acl.save(), Ok(()));
    std::fs::write(&beside, "open").expect("it is written");
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o644)).expect("it is there");
    assert_eq!(acl.save(), Ok(()));
    assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "precious");
    let found = std::fs::symlink_metadata(folder.file()).expect("it is there");
    assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o600);
    assert!(!beside.exists());
}

#[test]
fn a_password_that_is_given_otherwise_is_not_saved() {
    let folder = Folder::new("password", "");
    let acl = |password: &str| {
        Acl::new(&Config { password: Some(password.into()), ..folder.config() }).expect("it is read")
    };
    let before = acl("before");
    assert_eq!(before.set(DEFAULT, &[b">other"]), Ok(()));
    assert_eq!(before.save(), Ok(()));
    let after = acl("after");
    let takes = |password: &[u8]| after.log_in(DEFAULT, password).is_some();
    assert_eq!([&b"before"[..], b"after", b"other"].map(takes), [false, true, true]);
}

#[test]
fn a_server_that_others_reach_is_not_opened() {
    let folder = Folder::new("opened", "user default off\nuser ann on >a +@all\n");
    let beyond = Config { listen: SocketAddr::from(([0, 0, 0, 0], 6379)), ..folder.config() };
    let acl = Acl::new(&beyond).expect("it is read");
    assert!(acl.set(DEFAULT, &[b"on", b"nopass"]).is_err_and(|reason| reason.contains("others")));
    std::fs::write(folder.file(), "").expect("it is written");
    assert!(acl.load().is_err_and(|reason| reason.contains("others")));
    assert!(!acl.default_user().is_open() && acl.find(b"ann").is_some(), "all stay");
    assert_eq!(acl.set(DEFAULT, &[b"on", b">secret"]), Ok(()));
    let here = Acl::new(&folder.config()).expect("it is read");
    assert_eq!((here.load(), here.set(DEFAULT, &[b"nopass"])), (Ok(()), Ok(())));
}

#[test]
fn what_is_wrong_with_a_file_tells_no_password() {
    let reason = parse(b"\nuser ann on secret", || 0).map(drop).expect_err("it has no sign");
    assert_eq!(reason, "line 2: word 4: Syntax error");
}
