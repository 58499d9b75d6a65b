//! What no client can have happen, by commands that are here in tests alone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Options};

use crate::commands::{Answer, Call, Command, Use};
use crate::{Config, Server};

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "FB.PANIC", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: |_| panic!("as asked") },
    Command { name: "FB.WAIT", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: wait },
];

/// A job that lasts until nobody waits for it.
fn wait(call: &mut Call<'_, '_>) -> Answer {
    call.later(0, |_, slot| {
        while slot.check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        slot.check()
    })
}

/// A server while `with` runs, which it has to outlive in order.
fn serve(loops: usize, with: impl FnOnce(SocketAddr)) {
    let env = Env::simulated(MemoryFs::new(), 1);
    let database = Database::open("/db", Options::default().env(env)).expect("it opens");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(database, Config { listen, loops, ..Config::default() }).expect("it listens");
    let (address, stopper) = (server.address(), server.stopper());
    let running = std::thread::spawn(move || server.run());
    with(address);
    stopper.stop();
    running.join().expect("no loop has ended").expect("it ends in order");
}

fn asking(address: SocketAddr, lines: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    socket.write_all(lines.as_bytes()).expect("it is there");
    socket
}

/// All that comes for a line until the server closes the connection, which the client asks for at its end.
fn answers(address: SocketAddr, lines: &str) -> String {
    let mut all = String::new();
    asking(address, &format!("{lines}QUIT\r\n")).read_to_string(&mut all).expect("it is text");
    all
}

/// The loop ended with the command, all other loops with that, and so the server.
#[test]
fn a_command_that_fails_inside_ends_its_connection_and_nothing_else() {
    serve(2, |address| {
        for _ in 0..4 {
            let told = answers(address, "SET lost 1\r\nFB.PANIC\r\nPING\r\n");
            // The write was in the turn, and is not kept.
            assert_eq!(told.matches("-ERR").count(), 2, "{told}");
            assert!(told.contains("failed inside") && !told.contains("PONG"), "{told}");
            assert_eq!(answers(address, "GET lost\r\n"), "$-1\r\n+OK\r\n");
        }
    });
}

/// Jobs of clients that had gone kept the threads that do them.
#[test]
fn a_job_ends_with_its_connection() {
    serve(1, |address| {
        for _ in 0..4 {
            let mut gone = asking(address, "PING\r\nFB.WAIT\r\n");
            // What it has not read of the answers has the connection be reset.
            gone.read_exact(&mut [0; 1]).expect("an answer comes");
        }
        assert_eq!(answers(address, "DBSIZE\r\n"), ":0\r\n+OK\r\n");
    });
}

/// One that has said all it has to say gets its answer, but many of them do not keep all threads for ever.
#[test]
fn jobs_of_those_that_only_listen_are_few() {
    serve(1, |address| {
        let half = |lines| {
            let socket = asking(address, lines);
            socket.shutdown(Shutdown::Write).expect("it is there");
            socket
        };
        let mut told = String::new();
        half("DBSIZE\r\n").read_to_string(&mut told).expect("it is text");
        assert_eq!(told, ":0\r\n");
        let mut all: Vec<TcpStream> = (0..9).map(|_| half("FB.WAIT\r\n")).collect();
        // The last one is one too many.
        assert_eq!(all.pop().expect("nine").read(&mut [0; 1]).ok(), Some(0));
        let mut first = all.swap_remove(0);
        first.set_nonblocking(true).expect("it is a socket");
        assert!(first.read(&mut [0; 1]).is_err(), "it still waits");
    });
}
