//! Runs the benchmarks of `forebay-bench` on Forebay and on the engines of this crate.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use forebay_bench::{Forebay, Kind};
use forebay_bench_rivals::{KINDS, ReadAhead};

/// With any of these nothing is measured; or it is by a process that was started for one run, and finds
/// everything prepared.
const PREPARE_NOTHING: [&str; 6] = ["--child", "--list", "--help", "-h", "--version", "-V"];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let kinds: Vec<&dyn Kind> = [&Forebay as &dyn Kind].into_iter().chain(KINDS).collect();
    if args.iter().any(|arg| PREPARE_NOTHING.iter().any(|word| arg == word)) {
        return forebay_bench::main(&kinds, args);
    }
    let read_ahead = ReadAhead::lower(Path::new("/sys/block"), &mut |line| eprintln!("{line}"));
    let when_stopped = read_ahead.clone();
    let stopped = move || {
        when_stopped.restore();
        std::process::exit(130);
    };
    if let Err(error) = ctrlc::set_handler(stopped) {
        eprintln!("read-ahead is not put back when this is interrupted: {error}");
    }
    let code = forebay_bench::main(&kinds, args);
    read_ahead.restore();
    code
}
