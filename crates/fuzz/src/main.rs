//! `make fuzz`, or `fuzz --seeds N [--first N]` for all fuzzers; `fuzz --only NAME --seed N` for one seed of one.

use std::io::Write as _;
use std::process::ExitCode;

use forebay_testkit::CountingHeap;
use fuzz::{FUZZERS, Fuzzer, find_canary, keep_panics};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

const USAGE: &str = "\
usage: fuzz [--seeds N] [--first N] [--only NAME]   run N seeds (300) of each fuzzer, or of one, from the first (0)
       fuzz --only NAME --seed N                    run one seed

A fuzzer that is killed, or does not end: `--tell yes` names each seed before it runs.
";

/// This many failures of a fuzzer are told, and others counted.
const TOLD_MAX: usize = 10;

/// What the command line asks for.
struct Asked {
    first: u64,
    seeds: u64,
    only: Option<&'static Fuzzer>,
    tell: bool,
}

fn parse(words: &[String]) -> Option<Asked> {
    let mut asked = Asked { first: 0, seeds: 300, only: None, tell: false };
    for pair in words.chunks(2) {
        let [word, value] = pair else { return None };
        match word.as_str() {
            "--first" => asked.first = value.parse().ok()?,
            "--seeds" => asked.seeds = value.parse().ok()?,
            "--seed" => (asked.first, asked.seeds) = (value.parse().ok()?, 1),
            "--only" => asked.only = Some(Fuzzer::named(value)?),
            "--tell" => asked.tell = value == "yes",
            _ => return None,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = parse(&words) else {
        let names: Vec<_> = FUZZERS.iter().map(|fuzzer| fuzzer.name).collect();
        eprint!("{USAGE}\nFuzzers: {}\n", names.join(", "));
        return ExitCode::from(2);
    };
    keep_panics();
    let Some(seed) = find_canary() else {
        println!("canary: NOT found: what follows says nothing");
        return ExitCode::FAILURE;
    };
    println!("canary: found at seed {seed}");
    let chosen = FUZZERS.iter().filter(|fuzzer| asked.only.is_none_or(|only| only.name == fuzzer.name));
    match chosen.map(|fuzzer| run_seeds(fuzzer, &asked)).sum::<usize>() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// How many of the seeds failed.
fn run_seeds(fuzzer: &Fuzzer, asked: &Asked) -> usize {
    let (name, Asked { first, seeds, .. }) = (fuzzer.name, asked);
    print!("{name}: {seeds} seeds from {first}: ");
    let mut failed = 0;
    for seed in *first..first + seeds {
        if asked.tell {
            print!("{seed} ");
        }
        let _ = std::io::stdout().flush();
        if let Err(message) = fuzzer.attempt(seed) {
            failed += 1;
            if failed > TOLD_MAX {
                continue;
            }
            println!("\n    FAILED: {message}\n    fuzz --only {name} --seed {seed}");
        }
    }
    println!("{failed} failed");
    failed
}
