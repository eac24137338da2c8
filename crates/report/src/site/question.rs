//! The questions of all runs: a workload under a load, whatever suite asks it. Runs whose workload and load differ in what they ask are
//! answers to different questions, although they use the same names.

use weir_model::metric::Metric;
use weir_model::suite::{Load, Tls, Workload};

use super::recorded::Recorded;
use super::words;
use crate::summary::{Row, Section};

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

/// What is asked.
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
        let tls = workload.protocol.is_tls().then_some(suite.tls);
        Some(Asked { workload, load: suite.load(&section.load)?, tls })
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
    /// The newest answer of each machine, and how many that machine has given.
    pub fn by_machine(&self) -> Vec<(Answer<'a>, usize)> {
        let mut newest: Vec<(Answer<'a>, usize)> = Vec::new();
        for answer in &self.answers {
            match newest.iter_mut().find(|(known, _)| known.run.machine == answer.run.machine) {
                Some((_, runs)) => *runs += 1,
                None => newest.push((*answer, 1)),
            }
        }
        newest
    }

    /// What the newest answer ranks by.
    pub fn ranked_by(&self) -> Metric {
        self.answers.first().map_or(Metric::Rate, |answer| answer.section.ranked_by)
    }
}
