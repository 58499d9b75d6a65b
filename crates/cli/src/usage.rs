//! What is wrong with a command line, said as every other failure is.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::Failure;
use crate::form::Form;

/// Shows the help that was asked for, or says what is wrong.
pub(crate) fn report(error: &clap::Error, mut known: clap::Command) -> ExitCode {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_help || !error.use_stderr() {
        // Whoever reads it may have gone away.
        let _ = error.print();
        return ExitCode::from(if is_help { 2 } else { 0 });
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if matches!(&words[..], [help, of] if help == "help" && matches!(&of[..], "--help" | "-h" | "help")) {
        let _ = known.print_help();
        return ExitCode::SUCCESS;
    }
    let form = if words.iter().any(|word| word == "--json") { Form::Json } else { Form::Text };
    let command =
        words.iter().find(|word| known.get_subcommands().any(|command| command.get_name() == *word));
    let help = command.map_or_else(|| "forebay --help".into(), |name| format!("forebay {name} --help"));
    Failure::Usage(format!("{}; see {help}", reason(&error.to_string()))).report(form)
}

/// What an error says, without the usage behind it.
fn reason(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let before_usage = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let lines = before_usage.map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| line.replacen("tip: ", "(", 1) + if line.starts_with("tip: ") { ")" } else { "" })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_told_in_one_line() {
        let text = "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: '--json'\n\nUsage: x\n";
        assert_eq!(reason(text), "unexpected argument '--jsn' found (a similar argument exists: '--json')");
    }
}
