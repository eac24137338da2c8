//! What a site knows of a run: its summary, and all that was recorded but the trials, which would not fit into memory a thousand times.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use weir_model::record::Environment;
use weir_model::text::{counted, unique};

use super::{SkippedRun, safe, untaken};
use crate::error::ReportError;
use crate::found::runs_in;
use crate::run::{Run, load_run};
use crate::summary::{Summary, host_words, summary};
use crate::tables::Cell;

/// A run of the site.
pub(super) struct Recorded {
    /// The name of its folder in the site.
    pub id: String,
    /// Its whole report is kept.
    pub whole: bool,
    /// What tells its machine apart from others, as a reader knows it.
    pub machine: String,
    /// Without its trials.
    pub run: Run,
    pub summary: Summary,
}

impl Recorded {
    fn read(folder: &Path) -> Result<Recorded, ReportError> {
        let mut run = load_run(folder)?;
        let summary = summary(&run);
        run.trials = Vec::new();
        Ok(Recorded { id: String::new(), whole: false, machine: machine(run.environment.as_ref()), run, summary })
    }

    /// When it began, RFC 3339; empty where that is not known.
    pub fn started(&self) -> &str {
        self.run.environment.as_ref().map(|environment| environment.started.as_str()).unwrap_or_default()
    }

    /// Day and minute of its beginning, for people.
    pub fn date(&self) -> String {
        match self.started().get(..16) {
            Some(minute) => minute.replace('T', " "),
            None => "not known".to_owned(),
        }
    }

    /// Its suite, as a part of a path.
    pub fn suite(&self) -> String {
        safe(&self.summary.suite)
    }

    /// The address of its page, from the site's folder.
    pub fn page(&self) -> String {
        format!("runs/{}/index.html", self.id)
    }

    /// Its date, with a link to its page; `root` is the way to the site's folder.
    pub fn date_cell(&self, root: &str) -> Cell {
        Cell::from(self.date()).link(format!("{root}{}", self.page()))
    }
}

/// Hosts' names may be given twice, and hosts may get other CPUs: both together tell machines apart.
fn machine(environment: Option<&Environment>) -> String {
    match environment {
        None => "not known".to_owned(),
        Some(it) if it.hosts.is_empty() => {
            format!("{}: {}, {}", it.host, counted(u64::from(it.cpus), "CPU"), it.cpu_model)
        }
        Some(it) => format!("{}: {}", it.host, host_words(&it.hosts)),
    }
}

/// The machines of all runs, each once, the one with the newest run first.
pub(super) fn machines(runs: &[Recorded]) -> Vec<&str> {
    unique(runs.iter().map(|run| run.machine.as_str()))
}

/// A run's folder.
pub(super) struct Found {
    folder: PathBuf,
    /// It was given by name, and did not turn up in another folder.
    named: bool,
}

/// The runs of all folders, each once, in the order in which they were given.
///
/// # Errors
/// A folder that is no run and has none.
pub(super) fn find(given: &[PathBuf]) -> Result<Vec<Found>, ReportError> {
    let mut all: Vec<Found> = Vec::new();
    let mut seen = BTreeSet::new();
    for folder in given {
        let runs = runs_in(folder)?;
        if runs.is_empty() {
            let why = "it is no run, and there is none in it".to_owned();
            return Err(ReportError::NotARun { path: folder.clone(), why });
        }
        let new = runs.into_iter().filter(|run| seen.insert(run.canonicalize().unwrap_or_else(|_| run.clone())));
        all.extend(new.map(|run| Found { named: run == *folder, folder: run }));
    }
    Ok(all)
}

/// Reads all runs, newest first, and says what of those that turned up in a folder could not be read. `whole` of the newest runs of
/// each suite on each machine keep their whole report.
///
/// # Errors
/// The first run that was given by name and cannot be read.
pub(super) fn read(found: Vec<Found>, whole: usize) -> Result<(Vec<Recorded>, Vec<SkippedRun>), ReportError> {
    let read: Vec<(Found, Result<Recorded, ReportError>)> = found
        .into_par_iter()
        .map(|found| {
            let read = Recorded::read(&found.folder);
            (found, read)
        })
        .collect();
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    for (found, read) in read {
        match read {
            Ok(run) => runs.push(run),
            Err(error) if found.named => return Err(error),
            Err(error) => skipped.push(SkippedRun { folder: found.folder, why: error.to_string() }),
        }
    }
    runs.sort_by(|a, b| (a.started(), &a.run.name, &a.run.folder).cmp(&(b.started(), &b.run.name, &b.run.folder)));
    // Oldest first: a run keeps its address when newer ones come.
    let mut taken = BTreeSet::new();
    for run in &mut runs {
        run.id = untaken(safe(&run.run.name), &mut taken);
    }
    runs.reverse();
    let mut seen = BTreeSet::new();
    let newest = runs.iter_mut().filter(|run| seen.insert((run.suite(), run.machine.clone())));
    newest.take(whole).for_each(|run| run.whole = true);
    Ok((runs, skipped))
}
