//! The access log of a running product: how many lines and bytes it has. `weir-lab` asks before and after a load. The host counts,
//! because a log can be larger than what should cross a network. This module does not know what the lines say.

use std::path::Path;
use std::time::Duration;

use weir_host::stop::Stop;
use weir_host::transport::command_line;
use weir_host::{Host, ProgramSpec};
use weir_model::gateway::AccessLog;

use crate::failure::Failure;
use crate::running::{Running, run_to_end};

/// How long counting may take. A gigabyte takes a second.
const COUNTED_WITHIN: Duration = Duration::from_secs(60);

/// How much of a log is kept for readers, bytes: logs of a run can be larger than all else of it.
const KEPT: usize = 1 << 20;

/// The file with the count, beside the log.
const COUNT: &str = "access-log-count.txt";

impl Running {
    /// What is in the access log by now; `None` where the profile has none. A log that is not there yet is empty.
    ///
    /// # Errors
    /// When it cannot be counted.
    pub fn access_log(&self, stop: &Stop) -> Result<Option<AccessLog>, Failure> {
        let Some((file, front)) = self.log.as_ref().zip(self.parts.last()) else { return Ok(None) };
        let (host, path, output) = (&front.host, front.base.dir.join(file), front.base.dir.join(COUNT));
        if host.read_part(&path, 0, 1).is_err() {
            return Ok(Some(AccessLog::default()));
        }
        let argv = ["wc", "-l", "-c"].map(str::to_owned).into_iter().chain([path.display().to_string()]).collect();
        let spec = ProgramSpec {
            argv,
            env: front.base.env.clone(),
            dir: front.base.dir.clone(),
            output: output.clone(),
            ..ProgramSpec::default()
        };
        host.remove(&output);
        let done = run_to_end(host.as_ref(), &spec, COUNTED_WITHIN, stop);
        let text = host.last_lines(&output, 1);
        match done.ok().and_then(|()| parse(&text)) {
            Some(log) => Ok(Some(log)),
            None if stop.is_requested() => Err(Failure::Stopped),
            None => {
                let evidence = format!("{}\n{text}", command_line(&spec.argv));
                let remedy = "see that its host has the program wc, and its disk room";
                Err(Failure::at("load", "the access log could not be counted", evidence, remedy))
            }
        }
    }
}

/// Keeps the beginning of a log in a folder.
pub(crate) fn shorten(host: &dyn Host, log: &Path) {
    if let Ok(beginning) = host.read_part(log, 0, KEPT + 1)
        && beginning.len() > KEPT
    {
        // Whole lines; where that fails the log stays as it is.
        let end = beginning[..KEPT].iter().rposition(|byte| *byte == b'\n').map_or(KEPT, |at| at + 1);
        let _ = host.write(log, &beginning[..end], false);
    }
}

/// Reads what `wc -l -c` says.
fn parse(text: &str) -> Option<AccessLog> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (lines, bytes) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(AccessLog { lines, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes_are_read() {
        assert_eq!(parse("  12  3456 /trial/access.log"), Some(AccessLog { lines: 12, bytes: 3456 }));
        for text in ["", "wc: /x: No such file or directory", "12"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
