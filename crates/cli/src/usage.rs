//! What is wrong with a command line, said as every other failure is.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use forebay_aggregate::names::similar;

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
    let reason = reason(&error.to_string());
    let meant = meant(error, &known).filter(|_| !reason.contains("similar"));
    let meant = meant.map_or(String::new(), |like| format!(" (did you mean {like}?)"));
    Failure::Usage(format!("{reason}{meant}; see {help}")).report(form)
}

/// The command that was meant, where letters are swapped, left out or too many.
fn meant(error: &clap::Error, known: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    similar(word, known.get_subcommands().map(|command| command.get_name())).map(String::from)
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
