//! Runs a build's command below weir's supervisor, so that no compiler outlives weir (see [`weir_host::supervisor`]). A build
//! step calls it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::{InstallContext, InstallError, Notify, Progress, child, lookup};
use super::Job;
use weir_host::supervisor::Supervised;
use weir_host::tail::last_lines;
use weir_host::{Ended, Process, ProcessSpec};

/// The longest builds take ten minutes on two cores; what takes this long hangs.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// Between two looks at what it says and whether the user wants to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);
/// Lines of a failed build that go into the error.
const TAIL_LINES: usize = 15;
/// A disk with less room is full.
const FULL: u64 = 1 << 20;

/// Runs it to its end. `work` is a folder that is removed afterwards, where its output goes.
pub(super) fn run(
    job: &Job,
    work: &Path,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let output = work.join("output");
    let shown = child::command_line(&job.command);
    notify(Progress::Action(&shown));
    let failed = |outcome: String| {
        let tail = last_lines(&output, TAIL_LINES).lines().map(|line| format!("    {line}\n")).collect::<String>();
        InstallError::Failed { command: shown.clone(), outcome, tail: tail.trim_end().to_owned() }
    };
    let scraps = work.join("tmp");
    std::fs::create_dir_all(&scraps).map_err(InstallError::io(&scraps))?;
    let spec = ProcessSpec {
        argv: argv(job),
        env: environment(job, &scraps),
        dir: job.dir.clone(),
        output: output.clone(),
        ..ProcessSpec::default()
    };
    let mut lines =
        Lines::of(File::create(&output).and_then(|_| File::open(&output)).map_err(InstallError::io(&output))?);
    let mut process = Box::new(Supervised::start(context.weir, &spec).map_err(|error| failed(error.to_string()))?);
    let deadline = Instant::now() + LIMIT;
    loop {
        let ended = process.wait(POLL_INTERVAL);
        if !lines.pass(notify) {
            notify(Progress::Tick);
        }
        if let Some(ended) = ended {
            return judge(&ended, work).map_err(|outcome| match outcome {
                Outcome::Failed(outcome) => failed(outcome),
                Outcome::Full => {
                    InstallError::Io { path: work.to_owned(), error: std::io::ErrorKind::StorageFull.into() }
                }
            });
        }
        if context.stop.is_requested() {
            process.stop(GRACE);
            return Err(InstallError::Interrupted);
        }
        if Instant::now() >= deadline {
            process.stop(GRACE);
            return Err(failed(format!("took longer than {} h and was ended", LIMIT.as_secs() / 3600)));
        }
    }
}

enum Outcome {
    Failed(String),
    Full,
}

fn judge(ended: &Ended, work: &Path) -> Result<(), Outcome> {
    match ended.code {
        Some(0) => Ok(()),
        // Programs report a full disk in different ways, or not at all, because their output goes to that disk.
        _ if room(work).is_some_and(|bytes| bytes < FULL) => Err(Outcome::Full),
        _ => Err(Outcome::Failed(ended.to_string())),
    }
}

/// Bytes free where `path` is.
fn room(path: &Path) -> Option<u64> {
    let fs = rustix::fs::statvfs(path).ok()?;
    fs.f_bavail.checked_mul(fs.f_frsize)
}

/// The program by its path: weir looks in more folders than the supervisor's `exec` does.
fn argv(job: &Job) -> Vec<String> {
    let mut argv = job.command.clone();
    let path = argv.first().and_then(|program| lookup::on_path(program));
    if let (Some(program), Some(path)) = (argv.first_mut(), path.as_ref().and_then(|path| path.to_str())) {
        path.clone_into(program);
    }
    argv
}

/// The user's environment, so that the user's proxies, registries and mirrors apply. The temporary folder is one that is removed
/// with the rest, because a killed compiler leaves files in it.
fn environment(job: &Job, scraps: &Path) -> BTreeMap<String, String> {
    let users =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut environment: BTreeMap<String, String> = users.collect();
    for name in job.unset {
        environment.remove(*name);
    }
    environment.insert("TMPDIR".to_owned(), scraps.display().to_string());
    for (name, value) in &job.set {
        environment.insert((*name).to_owned(), value.clone());
    }
    environment
}

/// What a growing file says, line by line.
struct Lines {
    file: File,
    begun: Vec<u8>,
}

impl Lines {
    fn of(file: File) -> Lines {
        Lines { file, begun: Vec::new() }
    }

    /// Passes on the lines that were completed since; whether there were any.
    fn pass(&mut self, notify: &mut Notify<'_>) -> bool {
        let mut more = Vec::new();
        // What cannot be read now is read next time, or by whoever asks for the last lines.
        let _ = self.file.read_to_end(&mut more);
        self.begun.extend_from_slice(&more);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return false };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        let mut any = false;
        for line in String::from_utf8_lossy(&whole).lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            notify(Progress::Line(line));
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_passed_once_they_are_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut lines = Lines::of(file.reopen().unwrap());
        let mut seen = Vec::new();
        for (text, wanted) in [("one\ntw", &["one"][..]), ("", &[]), ("o\n\n  three  \n", &["two", "  three"])] {
            file.as_file().write_all(text.as_bytes()).unwrap();
            seen.clear();
            lines.pass(&mut |progress| {
                if let Progress::Line(line) = progress {
                    seen.push(line.to_owned());
                }
            });
            assert_eq!(seen, wanted);
        }
    }

    #[test]
    fn the_users_settings_stay_but_those_that_make_another_program() {
        let job = Job {
            command: vec!["sh".to_owned()],
            dir: "/".into(),
            set: vec![("GOBIN", "/there".to_owned())],
            unset: &["PATH"],
        };
        let environment = environment(&job, Path::new("/scraps"));
        assert_eq!(environment.get("TMPDIR").map(String::as_str), Some("/scraps"));
        assert_eq!(environment.get("GOBIN").map(String::as_str), Some("/there"));
        assert!(!environment.contains_key("PATH"));
        assert!(argv(&job)[0].ends_with("/sh"), "{:?}", argv(&job));
    }
}
