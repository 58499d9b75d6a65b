//! `cargo run --profile sim -p sim -- --seeds 10000 [--first N]`, or `--seed N` for one seed, told in full.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

const USAGE: &str = "\
usage: sim [--seeds N] [--first N]     run N seeds (1000) from the first (0); each is run in turn
       sim --seed N                    run one seed and tell what happens
";

/// What the command line asks for.
struct Asked {
    first: u64,
    seeds: u64,
    verbose: bool,
}

fn parse(words: &[String]) -> Option<Asked> {
    let mut asked = Asked { first: 0, seeds: 1000, verbose: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = words.next()?.parse().ok()?;
        match word.as_str() {
            "--first" => asked.first = number,
            "--seeds" => asked.seeds = number,
            "--seed" => asked = Asked { first: number, seeds: 1, verbose: true },
            _ => return None,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = parse(&words) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let (mut failed, mut crashes, mut operations) = (Vec::new(), 0, 0);
    for seed in asked.first..asked.first + asked.seeds {
        match catch_unwind(AssertUnwindSafe(|| sim::run(seed, asked.verbose))) {
            Ok(outcome) => {
                crashes += outcome.crashes;
                operations += outcome.operations;
            }
            Err(_) => {
                println!("seed {seed} FAILED; `sim --seed {seed}` tells what happens");
                failed.push(seed);
            }
        }
    }
    println!(
        "{} seeds from {}: {} failed, {crashes} crashes, {operations} operations",
        asked.seeds,
        asked.first,
        failed.len()
    );
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}
