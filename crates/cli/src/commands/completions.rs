//! `completions`: what a shell needs to complete command lines.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;

/// Print a script that makes a shell complete this command's words
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay completions bash > ~/.local/share/bash-completion/completions/forebay\n  \
    forebay completions fish > ~/.config/fish/completions/forebay.fish\n  \
    forebay completions zsh > ~/.zfunc/_forebay"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, mut program: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "forebay", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}
