//! The runs of a site, and the questions that they answer. A run is its summary and all that was recorded but the trials, which would not
//! fit into memory a thousand times. A question is a workload under a load, whatever suite asks it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use weir_model::metric::Metric;
use weir_model::record::Environment;
use weir_model::suite::{Load, Tls, Workload};
use weir_model::text::{counted, unique};

use super::{SkippedRun, safe, untaken, words};
use crate::error::ReportError;
use crate::run::{Run, find_runs, load_run};
use crate::summary::{Row, Section, Summary, host_words, summary};
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

/// Reads all runs, newest first, and says what of those that turned up in a folder could not be read. `whole` of the newest runs of
/// each suite on each machine keep their whole report.
///
/// # Errors
/// The first run that was given by name and cannot be read.
pub(super) fn read(given: &[PathBuf], whole: usize) -> Result<(Vec<Recorded>, Vec<SkippedRun>), ReportError> {
    let found = find_runs(given)?;
    let read: Vec<Result<Recorded, ReportError>> = found.par_iter().map(|folder| Recorded::read(folder)).collect();
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    for (folder, read) in found.into_iter().zip(read) {
        match read {
            Ok(run) => runs.push(run),
            Err(error) if given.contains(&folder) => return Err(error),
            Err(error) => skipped.push(SkippedRun { folder, why: error.to_string() }),
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

/// A question, and what runs answer.
pub(super) struct Question<'a> {
    /// In plain words.
    pub words: String,
    /// Newest first.
    pub answers: Vec<Answer<'a>>,
    asked: Asked<'a>,
}

/// What one run says.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub run: &'a Recorded,
    pub section: &'a Section,
}

/// The case that a question is about.
#[derive(Clone, Copy, PartialEq)]
struct Asked<'a> {
    workload: &'a Workload,
    load: &'a Load,
    /// How TLS is spoken; `None`: it is not.
    tls: Option<Tls>,
}

impl<'a> Asked<'a> {
    fn by(run: &'a Recorded, section: &Section) -> Option<Asked<'a>> {
        let suite = &run.run.suite;
        let workload = suite.workloads.iter().find(|workload| workload.name == section.workload)?;
        Some(Asked { workload, load: suite.load(&section.load)?, tls: suite.tls_of(workload) })
    }

    fn is_alike(&self, other: &Asked<'_>) -> bool {
        self == other
            || (self.tls == other.tls
                && self.workload.differs_in(other.workload).is_empty()
                && self.load.differs_in(other.load).is_empty())
    }
}

/// The questions of all runs, in the order in which the newest runs ask them.
pub(super) fn all(runs: &[Recorded]) -> Vec<Question<'_>> {
    let mut all: Vec<Question<'_>> = Vec::new();
    for run in runs {
        for section in &run.summary.sections {
            let Some(asked) = Asked::by(run, section) else { continue };
            let answer = Answer { run, section };
            match all.iter_mut().find(|question| question.asked.is_alike(&asked)) {
                Some(question) => question.answers.push(answer),
                None => {
                    let words = words::of(asked.workload, asked.load);
                    all.push(Question { words, answers: vec![answer], asked });
                }
            }
        }
    }
    all
}

impl<'a> Answer<'a> {
    /// The products that the run ranks first; several: it cannot tell them apart. None: nothing may be ranked.
    pub fn first(&self) -> Vec<&'a Row> {
        self.section.rows.iter().filter(|row| row.rank.is_some_and(|(best, _)| best == 1)).collect()
    }

    /// The address of the section on the run's page, from the site's folder; of a page without sections the page's.
    pub fn address(&self) -> String {
        let page = self.run.page();
        if self.run.whole { format!("{page}#{}", self.section.slug()) } else { page }
    }
}

impl<'a> Question<'a> {
    /// The newest response of each machine, and how many of its runs have one. A run may ask the same twice, and rank nobody in one of them.
    pub fn by_machine(&self) -> Vec<(Answer<'a>, usize)> {
        let mut newest: Vec<(Answer<'a>, usize)> = Vec::new();
        let mut counted = BTreeSet::new();
        for answer in &self.answers {
            let run = usize::from(counted.insert(&answer.run.id));
            match newest.iter_mut().find(|(known, _)| known.run.machine == answer.run.machine) {
                Some((known, _)) if known.run.id == answer.run.id && known.first().is_empty() => *known = *answer,
                Some((_, runs)) => *runs += run,
                None => newest.push((*answer, run)),
            }
        }
        newest
    }

    /// The metric by which the newest response ranks.
    pub fn ranked_by(&self) -> Metric {
        self.answers.first().map_or(Metric::Rate, |answer| answer.section.ranked_by)
    }
}
