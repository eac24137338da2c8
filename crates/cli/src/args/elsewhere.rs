//! The verbs that measure, where there is no Linux: each says why it cannot, and what can be done instead. `args` has them in its table
//! in the place of `measuring`.

use clap::Subcommand;

use crate::exit::{Failure, VerbResult};

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Measuring {
    /// Needs Linux: run a suite
    Run(Words),
    /// Needs Linux: generate load
    Load(Words),
    /// Needs Linux: run only the origin
    Origin(Words),
    /// Needs Linux: list, show, install and test products
    Products(Words),
    /// Needs Linux: list and show suites
    Suites(Words),
    /// Needs Linux: check this machine
    Doctor(Words),
    /// Needs Linux: check the hosts of a topology
    Hosts(Words),
    /// Needs Linux: compare two products in turns
    Duet(Words),
}

/// Whatever is said to such a verb, a request for help too.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

impl Measuring {
    /// Says why not.
    ///
    /// # Errors
    /// Always.
    pub fn main(&self) -> VerbResult {
        let (verb, _) = match self {
            Measuring::Run(words) => ("run", words),
            Measuring::Load(words) => ("load", words),
            Measuring::Origin(words) => ("origin", words),
            Measuring::Products(words) => ("products", words),
            Measuring::Suites(words) => ("suites", words),
            Measuring::Doctor(words) => ("doctor", words),
            Measuring::Hosts(words) => ("hosts", words),
            Measuring::Duet(words) => ("duet", words),
        };
        Err(Failure::to_fix(
            format!(
                "`weir {verb}` needs Linux, and this is {}: weir sends and answers by io_uring or epoll, pins processes to CPUs, \
                 and reads from /proc what they cost",
                std::env::consts::OS
            ),
            "use it on Linux, and bring the run's folder here: report, site, compare and history read it",
        ))
    }
}

/// Nothing is needed for that here.
pub fn full_files_are_errors() {}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        verb: Measuring,
    }

    #[test]
    fn each_verb_says_why_it_cannot_whatever_its_flags() {
        full_files_are_errors();
        for verb in ["run", "load", "origin", "products", "suites", "doctor", "hosts", "duet"] {
            let line = ["weir", verb, "quick", "--scale", "smoke", "-h"];
            let said = Cli::try_parse_from(line).expect("taken").verb.main().expect_err("refused").to_string();
            assert!(said.starts_with(&format!("`weir {verb}` needs Linux")) && said.contains("/proc"), "{said}");
            assert!(Cli::try_parse_from(["weir", verb, "--help"]).is_ok(), "{verb} --help");
        }
        assert!(Cli::try_parse_from(["weir", "laod"]).is_err());
    }
}
