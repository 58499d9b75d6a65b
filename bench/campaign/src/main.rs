//! `make figures`, `make data`.

use std::process::ExitCode;

use forebay_campaign::{data, figures};

const USAGE: &str = "\
usage: cargo run --release -p forebay-campaign -- figures [WORD...]
       cargo run --release -p forebay-campaign -- data

  figures  measure, and write docs/figures.md; needs `cargo build --release`. Words are
           scale=NUMBER, only=PART,PART, minutes=NUMBER (of open loops that are as long as one
           likes) and draw, which draws what was measured before
  data     fetch real text, reads and images for the figures into target/figures/data
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["figures", words @ ..] => figures::Options::parse(words).and_then(|options| figures::run(&options)),
        ["data"] => data::run(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("forebay-campaign: {reason}");
            ExitCode::FAILURE
        }
    }
}
