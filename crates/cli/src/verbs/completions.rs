//! `weir completions`: what a shell needs to complete weir's verbs and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Done, Exit};

/// Flags of `weir completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For bash, from the next shell on:
    weir completions bash > ~/.local/share/bash-completion/completions/weir
  For zsh, in a folder of $fpath:
    weir completions zsh > ~/.zfunc/_weir
  For fish:
    weir completions fish > ~/.config/fish/completions/weir.fish")]
pub struct Args {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
///
/// # Errors
/// Standard output cannot be written.
pub fn main(args: &Args) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Ok)
}
