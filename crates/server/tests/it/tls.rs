//! Connections that are encrypted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use forebay_server::{Config, Server, Source, SourceTls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Got, Running, encode};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("it signs")
}

/// A certificate and its key in PEM, good before a year.
fn signed(by: &Authority, until: i32) -> (String, String) {
    let mut params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().expect("a key");
    (params.signed_by(&key, by).expect("it signs").pem(), key.serialize_pem())
}

/// A folder with what a server needs.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, authority: &Authority) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("forebay-tls-{name}-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        folder.write("ca", &authority.pem());
        folder.renew(&signed(authority, 4000));
        folder
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("it is written");
    }

    fn renew(&self, (certificate, key): &(String, String)) {
        self.write("certificate", certificate);
        self.write("key", key);
    }

    fn config(&self, asks: bool) -> Config {
        let tls = TlsFiles {
            certificate: self.0.join("certificate"),
            key: self.0.join("key"),
            client_ca: asks.then(|| self.0.join("ca")),
            are_clients_optional: false,
        };
        Config { tls: Some(tls), ..Config::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn connection(trusted: &Authority, shown: Option<&(String, String)>) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).expect("a certificate");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("they belong together")
        }
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").expect("a name"))
        .expect("it begins")
}

fn connected(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("it is a socket");
    socket
}

fn client(
    server: &Running,
    trusted: &Authority,
    shown: Option<&(String, String)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    StreamOwned::new(connection(trusted, shown), connected(server.address))
}

/// Whether one is let in, and is answered.
fn is_let_in(server: &Running, trusted: &Authority, shown: Option<&(String, String)>) -> bool {
    let mut client = client(server, trusted, shown);
    let mut answer = [0; 7];
    client.write_all(b"PING\r\n").and_then(|()| client.read_exact(&mut answer)).is_ok()
        && &answer == b"+PONG\r\n"
}

#[test]
fn certificates_say_who_comes_in() {
    let (ours, others) = (authority(), authority());
    let folder = Folder::new("certificates", &ours);
    let server = Running::new(folder.config(true));
    let good = signed(&ours, 4000);
    assert!(is_let_in(&server, &ours, Some(&good)));
    assert!(!is_let_in(&server, &ours, None), "it shows none");
    assert!(!is_let_in(&server, &ours, Some(&signed(&others, 4000))), "of somebody else");
    assert!(!is_let_in(&server, &ours, Some(&signed(&ours, 2000))), "it has expired");
    assert!(!is_let_in(&server, &others, Some(&good)), "the client takes another server only");
}

#[test]
fn certificates_are_read_again() {
    let (ours, others) = (authority(), authority());
    let folder = Folder::new("again", &ours);
    let database = Running::open(&Running::files());
    let config = Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..folder.config(false) };
    let server = Server::bind(database, config).expect("it listens");
    let certificates = server.certificates().expect("it has some");
    let server = Running::from_server(server);
    let mut old = client(&server, &ours, None);
    old.write_all(b"PING\r\n").expect("it is there");
    folder.write("certificate", "none");
    let told = certificates.reload().expect_err("there is none").to_string();
    assert!(told.contains("certificate"), "{told}");
    assert!(is_let_in(&server, &ours, None));
    folder.renew(&(signed(&others, 4000).0, signed(&others, 4000).1));
    certificates.reload().expect_err("they do not belong together");
    assert!(is_let_in(&server, &ours, None));
    folder.renew(&signed(&others, 4000));
    certificates.reload().expect("they are good");
    assert!(is_let_in(&server, &others, None) && !is_let_in(&server, &ours, None));
    let mut answer = [0; 7];
    old.read_exact(&mut answer).expect("it stays");
}

/// What was decrypted and not taken counts as there, and what the socket has not taken yet as to be sent.
#[test]
fn long_requests_and_replies_are_whole() {
    let ours = authority();
    let folder = Folder::new("long", &ours);
    let server = Running::new(folder.config(false));
    let mut client = client(&server, &ours, None);
    let value: Vec<u8> = (0..9_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    client.write_all(&encode(&[b"SET", b"long", &value])).expect("it is read");
    client.read_exact(&mut [0; 5]).expect("+OK");
    let asked = [encode(&[b"GET", b"long"]).repeat(3), encode(&[b"PING"]).repeat(20_000)].concat();
    client.write_all(&asked).expect("it is read");
    for _ in 0..3 {
        let mut reply = vec![0; value.len() + format!("${}\r\n\r\n", value.len()).len()];
        client.read_exact(&mut reply).expect("a reply comes");
        assert!(reply.ends_with(&[&value[..], b"\r\n"].concat()));
    }
    let mut pongs = vec![0; 20_000 * 7];
    client.read_exact(&mut pongs).expect("replies come");
    assert!(pongs == b"+PONG\r\n".repeat(20_000));
    // The end is said, and is no cut.
    client.write_all(b"QUIT\r\n").expect("it is there");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("the end is said");
    assert_eq!(rest, b"+OK\r\n");
}

#[test]
fn bytes_may_come_one_by_one() {
    let ours = authority();
    let folder = Folder::new("pieces", &ours);
    let server = Running::new(folder.config(false));
    let (mut tls, mut socket) = (connection(&ours, None), connected(server.address));
    socket.set_nodelay(true).expect("it is a socket");
    tls.writer().write_all(b"PING\r\nPING\r\n").expect("it waits");
    let mut answer: Vec<u8> = Vec::new();
    while answer.len() < 14 {
        let mut bytes = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut bytes).expect("memory");
        }
        bytes.iter().for_each(|byte| socket.write_all(&[*byte]).expect("it is there"));
        if tls.read_tls(&mut socket).expect("it answers") == 0 {
            panic!("it has ended");
        }
        tls.process_new_packets().expect("it is sound");
        let mut some = [0; 64];
        if let Ok(bytes) = tls.reader().read(&mut some) {
            answer.extend(&some[..bytes]);
        }
    }
    assert_eq!(answer, b"+PONG\r\n+PONG\r\n");
}

/// A server follows another one by TLS, as a user, with a certificate; a source of somebody else is not believed.
#[test]
fn a_follower_comes_by_tls() {
    let (ours, others) = (authority(), authority());
    let folder = Folder::new("follower", &ours);
    folder.write("others", &others.pem());
    let files = || forebay::env::Env { fs: forebay::env::fs::MemoryFs::new(), ..forebay::env::Env::real() };
    let options = || forebay::Options::default().keep_changes(64 << 20).env(files());
    let database = forebay::Database::open("/db", options()).expect("it opens");
    let source = Running::of(database, Config { password: Some("secret".into()), ..folder.config(true) });
    let mut writer = client(&source, &ours, Some(&signed(&ours, 4000)));
    writer.write_all(b"AUTH secret\r\nSET k v\r\n").expect("it is there");
    writer.read_exact(&mut [0; 10]).expect("it is answered");
    let follow = |ca: &str, password: &str| {
        let certificate = Some((folder.0.join("certificate"), folder.0.join("key")));
        let tls = Some(SourceTls { ca: folder.0.join(ca), certificate });
        let password = Some(password.into());
        let of = Source { host: "localhost".into(), port: source.address.port(), user: None, password, tls };
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let follower = forebay::Follower::open("/copy", options()).expect("it opens");
        let config = Config { listen, source: Some(of), ..Config::default() };
        Running::from_server(Server::follow(follower, config).expect("it listens"))
    };
    for (ca, password, told) in [
        ("ca", "secret", "master_link_status:up"),
        ("ca", "wrong", "WRONGPASS"),
        ("others", "secret", "certificate"),
    ] {
        let running = follow(ca, password);
        let reader = &mut running.client();
        let has = |asked: &Got, told: &str| matches!(asked, Got::Bulk(text) if text.windows(told.len()).any(|part| part == told.as_bytes()));
        let value = if told.ends_with("up") { Got::bulk("v") } else { Got::Null };
        let is_so = (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            has(&reader.ask("INFO"), told) && reader.ask("GET k") == value
        });
        assert!(is_so, "{ca}, {password}: {told}");
    }
}

/// Bytes that come until the end, or nothing more is to be read.
fn ended(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

#[test]
fn half_a_handshake_has_little_time_and_room() {
    let ours = authority();
    let folder = Folder::new("half", &ours);
    let server = Running::new(Config { silence_seconds_max: 0, ..folder.config(false) });
    let mut hello = Vec::new();
    connection(&ours, None).write_tls(&mut hello).expect("memory");
    for begun in [0, 1, 5, hello.len() - 1, hello.len()] {
        let mut socket = connected(server.address);
        socket.write_all(&hello[..begun]).expect("it is there");
        // It comes to an end: else the test waits for a minute, and fails.
        let error = socket.read_to_end(&mut Vec::new()).err().map(|error| error.kind());
        assert_ne!(error, Some(std::io::ErrorKind::WouldBlock), "{begun} bytes");
    }
    // A hello that claims 60,000 bytes, in records of 16 KiB.
    let mut socket = connected(server.address);
    let record = |begin: &[u8]| {
        let mut record = [&[22, 3, 1, 0x40, 0][..], begin].concat();
        record.resize(5 + 0x4000, 0);
        record
    };
    let sent = [record(&[1, 0, 0xea, 0x60, 3, 3]), record(&[]), record(&[])].concat();
    let _ = socket.write_all(&sent);
    ended(socket);
}

#[test]
fn plain_bytes_are_not_answered_where_tls_is_spoken() {
    let ours = authority();
    let folder = Folder::new("plain", &ours);
    let server = Running::new(folder.config(false));
    let mut socket = connected(server.address);
    socket.write_all(b"PING\r\n*1\r\n$4\r\nPING\r\n").expect("it is there");
    let told = ended(socket);
    assert!(!told.windows(4).any(|bytes| bytes == b"PONG"), "{}", told.escape_ascii());
}

#[test]
fn others_than_this_machine_need_a_password_or_a_certificate() {
    let ours = authority();
    let folder = Folder::new("others", &ours);
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let bound = |config: Config| Server::bind(Running::open(&Running::files()), config).map(drop);
    let told = bound(Config { listen: everywhere, ..folder.config(false) }).expect_err("anybody comes in");
    assert!(told.to_string().contains("needs a password"), "{told}");
    bound(Config { listen: everywhere, ..folder.config(true) }).expect("certificates are asked for");
    let beside = |tls_listen| Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls_listen,
        ..folder.config(true)
    };
    bound(beside(Some(everywhere))).expect("certificates are asked for there");
    let plain = Config { listen: everywhere, ..beside(Some(everywhere)) };
    bound(plain).expect_err("anybody comes in by the plain one");
}
