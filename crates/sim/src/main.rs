//! `cargo run --profile sim -p forebay-sim -- --seeds 10000 [--first N]`, or `--seed N` for one seed, told in full.

use std::process::ExitCode;

use sim::{Part, attempt, attempt_threads, keep_panics, run};

const USAGE: &str = "\
usage: sim [--seeds N] [--first N]     run N seeds (1000) from the first (0); what fails is shrunk
       sim --twice N [--first N]       run N seeds twice, which must do the same
       sim --threads N [--first N]     run N seeds of real threads
       sim --planted all|NAME          plant bugs, and tell when each is found: `make planted`
       sim --seed N [--only PART]      run one seed, or the part of it that a failure named, and tell what happens
";

/// What the command line asks for.
struct Asked {
    first: u64,
    seeds: u64,
    one: Option<u64>,
    part: Part,
    twice: bool,
    threads: bool,
    planted: Option<String>,
}

fn parse(words: &[String]) -> Option<Asked> {
    let mut asked = Asked {
        first: 0,
        seeds: 1000,
        one: None,
        part: Part::default(),
        twice: false,
        threads: false,
        planted: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--first" => asked.first = value.parse().ok()?,
            "--seeds" => asked.seeds = value.parse().ok()?,
            "--seed" => asked.one = Some(value.parse().ok()?),
            "--twice" => (asked.seeds, asked.twice) = (value.parse().ok()?, true),
            "--threads" => (asked.seeds, asked.threads) = (value.parse().ok()?, true),
            "--planted" => asked.planted = Some(value.clone()),
            "--only" => asked.part = value.parse().inspect_err(|error| eprintln!("{error}")).ok()?,
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
    if let Some(name) = &asked.planted {
        return plant(name);
    }
    match asked.one {
        Some(seed) => {
            run(seed, &asked.part, true, &mut |_| ());
            ExitCode::SUCCESS
        }
        None if asked.threads => run_threads(&asked),
        None => run_all(&asked),
    }
}

#[cfg(planted)]
fn plant(name: &str) -> ExitCode {
    keep_panics();
    let missed = sim::run_planted(name);
    println!("{missed} bugs were not found");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(planted))]
fn plant(name: &str) -> ExitCode {
    eprintln!("this build has no bugs to plant such as `{name}`: use `make planted`");
    ExitCode::from(2)
}

fn run_all(asked: &Asked) -> ExitCode {
    keep_panics();
    let (mut failed, mut crashes, mut operations) = (Vec::new(), 0, 0);
    for seed in asked.first..asked.first + asked.seeds {
        match attempt(seed, &asked.part) {
            Ok(outcome) => {
                if asked.twice && attempt(seed, &asked.part).is_ok_and(|again| again != outcome) {
                    println!("seed {seed} does not do the same twice");
                    failed.push(seed);
                }
                crashes += outcome.crashes;
                operations += outcome.operations.len();
            }
            Err(failure) => {
                let failure = failure.shrunk();
                println!("seed {seed} FAILED: {}", failure.message);
                println!("    sim --seed {seed} --only {}", failure.part);
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
    verdict(&failed)
}

fn run_threads(asked: &Asked) -> ExitCode {
    keep_panics();
    let (mut failed, mut batches, mut acts) = (Vec::new(), 0, 0);
    for seed in asked.first..asked.first + asked.seeds {
        match attempt_threads(seed) {
            Ok(outcome) => {
                batches += outcome.batches;
                acts += outcome.acts;
            }
            Err(message) => {
                println!("threads of seed {seed} FAILED: {message}");
                failed.push(seed);
            }
        }
    }
    println!(
        "{} seeds of threads from {}: {} failed, {batches} batches, {acts} acts and reads",
        asked.seeds,
        asked.first,
        failed.len()
    );
    verdict(&failed)
}

fn verdict(failed: &[u64]) -> ExitCode {
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}
