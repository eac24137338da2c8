//! The exit statuses that scripts can rely on, and the report of a failure. Every verb returns them to `main`.

use std::process::ExitCode;

use weir_model::InputError;

/// How weir ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Ok = 0,
    /// Done, but something in it failed: error rows, failed requests, a machine unfit to measure.
    Failed = 1,
    /// Bad input: nothing was started.
    Input = 2,
    /// Something weir needs is missing: a product that is not installed, a file that cannot be written.
    Missing = 3,
    /// Ctrl-C; finished measurements are kept.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A message and the status that goes with it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    exit: Exit,
    message: String,
}

/// What every verb returns.
pub type VerbResult = Result<Exit, Failure>;

impl Failure {
    /// Bad input.
    pub fn input(error: impl std::fmt::Display) -> Failure {
        Failure { exit: Exit::Input, message: error.to_string() }
    }

    /// Bad input: where (a flag, an argument, a verb), what was found, and what would be right.
    pub fn wrong(source: impl Into<String>, found: impl Into<String>, wanted: impl Into<String>) -> Failure {
        Failure::input(InputError::of(source, found, wanted))
    }

    /// Something is missing.
    pub fn missing(error: impl std::fmt::Display) -> Failure {
        Failure { exit: Exit::Missing, message: error.to_string() }
    }

    /// Something is missing, and this command or action brings it.
    pub fn to_fix(error: impl std::fmt::Display, action: impl std::fmt::Display) -> Failure {
        Failure::missing(format!("{error}\n  to fix it: {action}"))
    }

    /// Ctrl-C before there was anything to keep.
    pub fn interrupted(message: impl std::fmt::Display) -> Failure {
        Failure { exit: Exit::Interrupted, message: message.to_string() }
    }

    /// Prints it on standard error and returns the status.
    pub fn report(self) -> Exit {
        let fix = limit_of_processes(&self.message).unwrap_or_default();
        remark!("{} {}{fix}", console::style("weir:").red().bold().for_stderr(), self.message);
        self.exit
    }
}

/// What to do where no process or thread may be started: any part of weir, on any host, may meet that limit, and the kernel's words for
/// it name no limit.
fn limit_of_processes(message: &str) -> Option<&'static str> {
    let met = message.contains("Resource temporarily unavailable (os error 11)");
    met.then_some("\n  to fix it: a higher `ulimit -u` (processes and threads of this user), or a higher pids.max of the container")
}

/// The error text of a flag's value: what was found, and what would be right.
pub fn wrong_value(found: impl std::fmt::Display, wanted: &str) -> String {
    format!("{found}\n  expected: {wanted}")
}

/// The same, where clap names the flag.
pub fn value_error(error: InputError) -> String {
    wrong_value(error.found, &error.wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_the_status_that_the_help_promises() {
        assert_eq!(Failure::input("x").report() as u8, 2);
        assert_eq!(Failure::missing("x").report() as u8, 3);
        assert_eq!(Failure::interrupted("x").report() as u8, 130);
        assert_eq!([Exit::Ok as u8, Exit::Failed as u8], [0, 1]);
    }

    #[test]
    fn a_limit_of_processes_is_named() {
        let full = std::io::Error::from_raw_os_error(11);
        assert!(limit_of_processes(&format!("the client does not start: {full}")).is_some());
        assert_eq!(limit_of_processes("No such file or directory (os error 2)"), None);
    }
}
