//! A binary's version, asked of the binary itself. Finding and `weir products use` call it.

use std::path::Path;
use std::time::Duration;

use regex::Regex;
use weir_model::product::{Product, VersionProbe};
use weir_model::version::is_below;

use super::InstallError;
use super::child::{self, NoResponse};
use super::find::program_of;
use weir_product::launch::installed_folder;
use weir_product::render;

/// How long a binary may take to say its version. Large ones read 100 MB from a cold disk first.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Runs the version command and reads the version, which has to be `at_least` that; the inner error says why this binary cannot
/// be used.
///
/// # Errors
/// When the product's definition is at fault.
pub(super) fn read(
    product: &Product,
    at_least: Option<&str>,
    binary: &Path,
    limit: Duration,
) -> Result<Result<String, String>, InstallError> {
    let probe = &program_of(product)?.version;
    let pattern = pattern(product, probe)?;
    let command = render::version_command(product, binary)?;
    let folder = installed_folder(&product.name, binary);
    let response = match child::ask_product(&command, folder, limit) {
        Ok(response) => response,
        Err(NoResponse::Io(error)) => return Ok(Err(does_not_run(&command, binary, &error))),
        Err(NoResponse::TooSlow(limit)) => {
            return Ok(Err(format!(
                "`{}` did not end within {} s",
                child::command_line(&command),
                limit.as_secs_f64()
            )));
        }
    };
    let Some(version) = pattern.captures(&response).and_then(|found| found.get(1)) else {
        return Ok(Err(format!(
            "`{}` says no version that fits {}; it says: {}",
            child::command_line(&command),
            probe.pattern,
            excerpt(&response)
        )));
    };
    let version = version.as_str().to_owned();
    match at_least {
        Some(wanted) if is_below(&version, wanted) => {
            Ok(Err(format!("{} is version {version}; at least {wanted} is wanted", binary.display())))
        }
        _ => Ok(Ok(version)),
    }
}

/// What is run is the binary itself, or a program that runs it, such as `java`.
fn does_not_run(command: &[String], binary: &Path, error: &std::io::Error) -> String {
    match command.first() {
        Some(program) if Path::new(program) != binary && error.kind() == std::io::ErrorKind::NotFound => {
            format!("{program}, which runs {}, is not in PATH", binary.display())
        }
        Some(program) if Path::new(program) != binary => {
            format!("{program}, which runs {}, does not run: {error}", binary.display())
        }
        _ => format!("{} does not run: {error}", binary.display()),
    }
}

fn pattern(product: &Product, probe: &VersionProbe) -> Result<Regex, InstallError> {
    let wrong = |message: String| InstallError::definition(&product.name, "version.pattern", &message);
    let regex = Regex::new(&probe.pattern).map_err(|error| wrong(error.to_string()))?;
    if regex.captures_len() != 2 {
        let message = format!("{} groups in `{}`; exactly one is wanted", regex.captures_len() - 1, probe.pattern);
        return Err(wrong(message));
    }
    Ok(regex)
}

/// The beginning of a response, on one line.
fn excerpt(response: &str) -> String {
    let words: Vec<&str> = response.split_whitespace().collect();
    match words.join(" ") {
        text if text.is_empty() => "nothing".to_owned(),
        text if text.chars().count() > 120 => text.chars().take(120).chain("...".chars()).collect(),
        text => text,
    }
}
