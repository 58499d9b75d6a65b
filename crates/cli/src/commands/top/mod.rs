//! `top`: what a server does, at a glance.

mod numbers;
mod picture;
mod server;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::Common;
use crate::args::parse::with_host;
use crate::clock::{Stopwatch, pause};
use crate::commands::serve::password;
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;
use numbers::Numbers;
use server::Server;

/// Watch what a server does: rates, tables, memory, hottest keys, slow requests
///
/// It asks a server of `forebay serve` by FB.STATS, and is not for a directory. Where no terminal shows it, pictures come one
/// below the other, without colours.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay top\n  forebay top 10.0.0.7:6379 --password-file secret.txt\n  \
    forebay top --once --json"
)]
pub(crate) struct TopArgs {
    /// The server: ADDRESS:PORT, or a port of this machine
    #[arg(default_value = "6379")]
    address: String,
    /// The file whose first line is the password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Who gives the password, where the server has users
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// Look once, and end
    #[arg(long)]
    once: bool,
    /// How long to wait between looks
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = forebay_units::times::parse)]
    every: Duration,
}

pub(crate) fn run(args: &TopArgs, common: &Common) -> Result<(), Failure> {
    let password = args.password_file.as_ref().map(|path| password(path)).transpose()?;
    let mut server = Server::connect(&with_host(&args.address), args.user.as_deref(), password.as_deref())?;
    match common.form() {
        Form::Json => tell_json(&mut server, args, common),
        Form::Text => show(&mut server, args),
    }
}

/// Whether somebody wants it to end.
fn ending() -> Result<Arc<AtomicBool>, Failure> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ends))
            .map_err(|error| Failure::work(format!("signals cannot be waited for: {error}")))?;
    }
    Ok(ends)
}

/// Waits until the next look. `false` once it is to end.
fn wait(every: Duration, ends: &AtomicBool) -> bool {
    let since = Stopwatch::start();
    while since.elapsed() < every && !ends.load(Ordering::Relaxed) {
        pause();
    }
    !ends.load(Ordering::Relaxed)
}

fn tell_json(server: &mut Server, args: &TopArgs, common: &Common) -> Result<(), Failure> {
    let ends = ending()?;
    loop {
        let mut output = Output::new(common.form());
        output.json("top", &server.stats::<serde_json::Value>()?)?;
        output.flush()?;
        if args.once || !wait(args.every, &ends) {
            return Ok(());
        }
    }
}

/// The terminal's other page, until this is dropped.
struct Page;

impl Page {
    fn open() -> io::Result<Self> {
        io::stdout().write_all(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut out = io::stdout();
        let _ = out.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
}

fn show(server: &mut Server, args: &TopArgs) -> Result<(), Failure> {
    let (ends, is_terminal) = (ending()?, io::stdout().is_terminal());
    let told = |error: io::Error| Failure::output(&error);
    let _page = (is_terminal && !args.once).then(Page::open).transpose().map_err(told)?;
    let mut before = server.stats::<Numbers>()?;
    // Rates are of the time between two looks.
    while wait(args.every, &ends) {
        let now = server.stats::<Numbers>()?;
        let lines = picture::lines(&now, &now.rates(&before), server.address());
        let (height, width) = match is_terminal {
            true => console::Term::stdout().size(),
            false => (u16::MAX, picture::WIDTH),
        };
        let lines = lines.iter().map(|line| line.shown(usize::from(width), is_terminal));
        let mut out = io::stdout().lock();
        let written = match is_terminal && !args.once {
            true => {
                let shown: Vec<String> = lines.take(usize::from(height).saturating_sub(1)).collect();
                write!(out, "\x1b[H{}\x1b[K\x1b[J", shown.join("\x1b[K\r\n"))
            }
            false => write!(out, "{}\n\n", lines.collect::<Vec<_>>().join("\n")),
        };
        written.and_then(|()| out.flush()).map_err(told)?;
        if args.once {
            break;
        }
        before = now;
    }
    Ok(())
}
