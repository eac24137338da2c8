//! Lays runs of one suite beside each other, by machine: what each product did in a case on each of them. `weir report RUN RUN ...` calls
//! [`machines`].
//!
//! A product's numbers on two machines compare machines, with all else that differs between the runs; products are compared within one
//! run. This module knows several runs and no history, and judges nothing: that is `weir-compare`'s.

mod cases;
mod facts;
mod page;

use std::path::Path;

use weir_model::suite::{Entry, Suite};
use weir_model::text::unique;

use crate::error::ReportError;
use crate::extra::ExtraSection;
use crate::make::{Made, Options};
use crate::run::{self, Run};
use crate::summary::{Section, Summary};

/// A run and the machine that it stands for.
pub(crate) struct Machine<'a> {
    /// As a reader knows it: the host's name, with the run's where several have it.
    pub label: String,
    pub run: &'a Run,
    pub summary: &'a Summary,
}

impl Machine<'_> {
    /// A case: a workload under a load.
    pub fn section(&self, workload: &str, load: &str) -> Option<&Section> {
        self.summary.sections.iter().find(|section| section.workload == workload && section.load == load)
    }
}

/// Several machines, and what their runs have in common.
pub(crate) struct Machines<'a> {
    pub machines: Vec<Machine<'a>>,
    /// What ran on any of them: the direct path first.
    pub entries: Vec<Entry>,
}

impl<'a> Machines<'a> {
    fn of(runs: &[(&'a Run, &'a Summary)]) -> Machines<'a> {
        let host = |run: &Run| run.environment.as_ref().map(|it| it.host.clone()).filter(|host| !host.is_empty());
        let names: Vec<Option<String>> = runs.iter().map(|(run, _)| host(run)).collect();
        let label = |run: &Run, own: &Option<String>| match own {
            None => run.name.clone(),
            Some(own) if names.iter().flatten().filter(|other| *other == own).count() > 1 => {
                format!("{own} ({})", run.name)
            }
            Some(own) => own.clone(),
        };
        let machine = |(&(run, summary), name): (&(&'a Run, &'a Summary), &Option<String>)| Machine {
            label: label(run, name),
            run,
            summary,
        };
        let entries = unique(runs.iter().flat_map(|(run, _)| run.suite.entries.iter().cloned()));
        Machines { machines: runs.iter().zip(&names).map(machine).collect(), entries }
    }

    /// The cases of all runs, in the order in which they come first: workload and load.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let sections = self.machines.iter().flat_map(|machine| &machine.summary.sections);
        unique(sections.map(|section| (section.workload.as_str(), section.load.as_str())))
    }

    /// How a reader knows an entry: with its profile where products have several.
    pub fn label_of(&self, entry: &Entry) -> String {
        let title = self.machines.iter().map(|machine| machine.run.title_of(&entry.product));
        let title = title.clone().find(|title| *title != entry.product).unwrap_or(&entry.product);
        run::label(title, entry, &self.entries)
    }
}

/// Makes a report of several runs of one suite in `folder`, which is made, or replaced where it is such a report.
///
/// # Errors
/// When two runs are of different suites, ask something else by the same name, or are the same; when the folder is something else; when
/// it cannot be written, or drawing fails (a defect of weir).
pub fn machines(runs: &[(Run, Summary)], folder: &Path, options: &Options) -> Result<Made, ReportError> {
    for (nth, (run, _)) in runs.iter().enumerate() {
        for (other, _) in &runs[..nth] {
            comparable(other, run)?;
        }
    }
    let runs: Vec<(&Run, &Summary)> = runs.iter().map(|(run, summary)| (run, summary)).collect();
    page::make(&Machines::of(&runs), folder, options)
}

/// The sections of such a report. The runs must be comparable to the first of them.
pub(crate) fn sections(runs: &[(&Run, &Summary)]) -> Vec<ExtraSection> {
    page::sections(&Machines::of(runs))
}

/// Fails where the second run cannot stand beside the first.
pub(crate) fn comparable(first: &Run, second: &Run) -> Result<(), ReportError> {
    let refuse = |why: String, wanted: &str| {
        let (path, first) = (second.folder.clone(), first.folder.clone());
        Err(ReportError::NotBeside { path, first, why, wanted: wanted.to_owned() })
    };
    let place = |run: &Run| run.folder.canonicalize().unwrap_or_else(|_| run.folder.clone());
    if place(first) == place(second) {
        return refuse("it is the same run".to_owned(), "each run once");
    }
    let (a, b) = (&first.suite, &second.suite);
    let wanted = "runs of one suite, such as `weir run NAME` on several machines";
    if a.name != b.name {
        return refuse(format!("it is of the suite {}, and the other of {}", b.name, a.name), wanted);
    }
    match asks_otherwise(a, b) {
        Some(what) => refuse(format!("its {what} is not what it is in the other"), wanted),
        None => Ok(()),
    }
}

/// The first workload or load that means something else in the two.
fn asks_otherwise(a: &Suite, b: &Suite) -> Option<String> {
    let workload = a.workloads.iter().find(|own| {
        let other = b.workloads.iter().find(|other| other.name == own.name);
        other.is_some_and(|other| !own.differs_in(other).is_empty())
    });
    let load = a.loads.iter().find(|own| {
        let other = b.loads.iter().find(|other| other.name == own.name);
        other.is_some_and(|other| !own.differs_in(other).is_empty())
    });
    let workload = workload.map(|workload| format!("workload {}", workload.name));
    workload.or_else(|| load.map(|load| format!("load {}", load.name)))
}
