//! `serve`: a database for clients of Redis.

mod source;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use forebay::Durability;
use forebay_server::{Certificates, Config, Server, Stopper, Teller, TlsFiles, Watchers};
use forebay_units::sizes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::parse::{parse_durability, parse_listen};
use crate::args::{Common, Writing};
use crate::commands::follow::open_follower;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::screen;
use source::SourceArgs;

/// Answer clients of Redis, of a database that may be far larger than memory
///
/// Keys of the databases that SELECT names are in the tables 0 to 15 of DB. SIGINT and SIGTERM end the server in order:
/// what it has read is answered, and the log is synced.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay serve app.db\n  \
    forebay serve app.db --listen 0.0.0.0:6379 --password-file secret.txt --memory 2G\n  \
    forebay serve app.db --tls-listen 0.0.0.0:6380 --tls-cert cert.pem --tls-key key.pem --tls-client-ca ca.pem\n  \
    forebay serve copy.db --listen 127.0.0.1:6380 --follow 10.0.0.7:6379 --follow-password-file secret.txt\n  \
    redis-cli -p 6379 set greeting hello")]
pub(crate) struct ServeArgs {
    /// The directory of the database; made where it is missing
    db: PathBuf,
    /// Where to listen; beyond this machine only with a password, users, or certificates of clients
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6379", value_parser = parse_listen)]
    listen: SocketAddr,
    /// Listen at a socket in the file system, too; a file that is left of a server that has gone is replaced
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Who may use that socket, in octal digits as chmod takes them
    #[arg(long, value_name = "MODE", default_value = "700", value_parser = mode, requires = "unix")]
    unix_mode: u32,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// The file whose first line is the password of the user `default`, whom AUTH asks for it
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The file of users and their rights, as Redis has it; ACL SAVE writes it
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// Threads that answer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    loops: u16,
    /// The most connections at a time
    #[arg(long, value_name = "N", default_value_t = Config::default().connections_max)]
    connections_max: usize,
    /// What requests and replies of all connections may take together, such as 64M; beyond, those are closed that have most
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, default_value = "256M")]
    buffers: u64,
    /// The longest argument, and text that SETRANGE and the like make
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, default_value = "64M")]
    argument_max: u64,
    /// What a reply says to have survived: memory, os (a crash of the process), disk (of the machine); a connection
    /// chooses its own by FB.DURABILITY
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
    /// Where to listen for browsers and Prometheus: a page at /, and /metrics, /stats.json, /healthz
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    metrics: Option<SocketAddr>,
    /// Let others than this machine look; what they see are numbers, names of tables, and slow requests
    #[arg(long, requires = "metrics")]
    metrics_for_anyone: bool,
    /// The folder in which FB.CHECKPOINT makes copies of the database; it has to be on the same file system
    #[arg(long, value_name = "FOLDER")]
    checkpoints: Option<PathBuf>,
    /// Of which writes subscribers are told, by Redis's letters such as KEA: channels K (__keyspace@N__:key) and
    /// E (__keyevent@N__:event); kinds g$lshzx, or A for all
    #[arg(long, value_name = "LETTERS", default_value = "")]
    notify: String,
    /// What takes longer stands in the slow log
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = forebay_units::times::parse)]
    slow: Duration,
    /// After so many seconds without a word the system asks whether a client is still there; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = Config::default().keepalive_seconds)]
    tcp_keepalive: u64,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("`{text}` are no rights of a file; give three octal digits, such as 770"))
}

/// Certificates, and where they are asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// The server's certificate, with those that vouch for it, in PEM. `--listen` is TLS then; SIGHUP reads the files again
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Where to listen for TLS; `--listen` stays plain then
    #[arg(long, value_name = "ADDRESS:PORT", requires = "tls_cert", value_parser = parse_listen)]
    tls_listen: Option<SocketAddr>,
    /// Who vouches for clients, in PEM: they have to show a certificate then
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Take clients without a certificate, too
    #[arg(long, requires = "tls_client_ca")]
    tls_clients_optional: bool,
}

impl TlsArgs {
    fn files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            client_ca: self.tls_client_ca.clone(),
            are_clients_optional: self.tls_clients_optional,
        })
    }
}

pub(crate) fn run(args: &ServeArgs, common: &Common) -> Result<(), Failure> {
    crate::kernel::give_back_long_blocks();
    let password = args.password_file.as_ref().map(|path| password(path)).transpose()?;
    let source = args.source.source()?;
    let is_quiet = common.is_quiet();
    let teller = Teller(Arc::new(move |text: &str| {
        if !is_quiet {
            tell!("forebay: {}", screen::message(text));
        }
    }));
    let config = Config {
        source: source.clone(),
        teller: Some(teller),
        listen: args.listen,
        tls_listen: args.tls.tls_listen,
        tls: args.tls.files(),
        unix: args.unix.clone(),
        unix_mode: args.unix_mode,
        loops: args.loops.into(),
        durability: args.durability,
        password,
        acl_file: args.acl_file.clone(),
        connections_max: args.connections_max,
        metrics: args.metrics,
        watchers: if args.metrics_for_anyone { Watchers::Anyone } else { Watchers::ThisMachine },
        checkpoints: args.checkpoints.clone(),
        events: args.notify.clone(),
        keepalive_seconds: args.tcp_keepalive,
        slow_microseconds: u64::try_from(args.slow.as_micros()).unwrap_or(u64::MAX),
        buffers_bytes_max: usize::try_from(args.buffers).unwrap_or(usize::MAX),
        argument_bytes_max: usize::try_from(args.argument_max).unwrap_or(usize::MAX),
        apart_bytes_min: Config::default().apart_bytes_min.filter(|_| common.key_file.is_none()),
        ..Config::default()
    };
    let server = match source {
        Some(_) => Server::follow(open_follower(&args.db, common)?, config),
        None => Server::bind(open(&args.db, common, Access::Create)?, config),
    };
    let server = server.map_err(|error| Failure::Usage(error.to_string()))?;
    heed_signals(server.stopper(), server.certificates())?;
    if !common.is_quiet() {
        tell!("forebay: listening at {}", server.address());
        if let Some(address) = server.tls_address() {
            tell!("forebay: listening for TLS at {address}");
        }
        if let Some(address) = server.metrics_address() {
            tell!("forebay: to look at by http://{address}/");
        }
    }
    Ok(server.run()?)
}

#[expect(clippy::disallowed_methods, reason = "a file of the user's, outside of any database")]
pub(super) fn password(path: &std::path::Path) -> Result<String, Failure> {
    let told = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
    let text = std::fs::read(path).map_err(|error| told(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| told("the password is no UTF-8".into()))?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(told("its first line is to be a password, and is empty".into())),
        password => Ok(password.into()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the thread sleeps until a signal comes, outside all simulation"
)]
fn heed_signals(stopper: Stopper, certificates: Option<Certificates>) -> Result<(), Failure> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals =
        signals.map_err(|error| Failure::work(format!("signals cannot be waited for: {error}")))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            match (signal, &certificates) {
                (SIGHUP, Some(certificates)) => match certificates.reload() {
                    Ok(()) => tell!("forebay: new connections are shown the certificates as they are now"),
                    Err(error) => tell!("forebay: the certificates stay as they were: {error}"),
                },
                // Without anything to read again it says that nobody is at the terminal any more.
                _ => stopper.stop(),
            }
        }
    });
    Ok(())
}
