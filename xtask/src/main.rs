//! `cargo run -p xtask -- CHORE`.

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p xtask -- CHORE

  tidy                 check the house rules that a machine can check (see STYLE.md)
  demo [FILE]          load real text, read it back, report; needs `cargo build --release`
  demo-input           print the demonstration's input: every line of the sources Cargo fetched
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy(),
        ["demo"] => report(xtask::demo::run(None)),
        ["demo", file] => report(xtask::demo::run(Some(&PathBuf::from(file)))),
        ["demo-input"] => report(xtask::demo::input::print()),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let root = xtask::workspace_root();
    xtask::tidy::densities(&root).iter().for_each(|density| println!("{density}"));
    let findings = xtask::tidy::check(&root);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
