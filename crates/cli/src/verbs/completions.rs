//! `weir completions`: prints completion scripts for shells. Called by `main`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, VerbResult};

/// Flags of `weir completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For bash, in new shells:
    weir completions bash > ~/.local/share/bash-completion/completions/weir
  For zsh, in a folder of $fpath:
    weir completions zsh > ~/.zfunc/_weir
  For fish:
    weir completions fish > ~/.config/fish/completions/weir.fish")]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
///
/// # Errors
/// Standard output cannot be written.
pub fn main(args: &Args) -> VerbResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    output!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Ok)
}
