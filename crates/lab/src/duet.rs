//! A duet: two products under load in short turns, compared pair by pair, until the difference is known well enough or the time is
//! over. `weir duet` calls it.
//!
//! Both products are started alike, and measured together: while one has its turn the other is idle. What each did in all turns of a
//! pair is a slice, which is a trial of its own, with its own audit, in a run's folder like any other, so that `weir report` reads it.
//! What the slices say is decided in [`judged`]; this module knows only when to start, to measure, to leave out, and to end.

pub mod judged;
pub mod pairs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use weir_host::Clock;
use weir_host::files::{FileError, pretty};
use weir_host::stop::Stop;
use weir_model::At;
use weir_model::record::{CaseId, Finding, Measurement, Severity, TrialError};
use weir_model::suite::{Load, LoadKind, RateSpec, Suite, Workload};
use weir_product::failure::Failure;

use crate::hosts::Reach;
use crate::journal::{Journal, JournalError};
use crate::plan::Planned;
use crate::run::{Setup, TOPOLOGY, context, environment};
use crate::trial::{Abort, Side, SideSlice, TrialContext, TrialSpec, measure_pair};
use judged::{Change, Pair, Slice, Who, enough, judge, metrics};

/// Version of `duet.json` and `result.json`.
pub const DUET_SCHEMA: u32 = 2;

/// Both products are started anew after a pair when their pairs took this many times as long as their start, so that starts take at
/// most a quarter of the time.
const PAIRS_TO_START: f64 = 3.0;

/// Checks whose finding says that something else used the machine during a slice: its pair is left out, and it is no fault of a product.
const DISTURBED: [&str; 4] = ["other-processes", "stalls", "steal", "vitals-late"];

/// The longest median of responses, as a share of a turn.
const MOST_OF_A_TURN: f64 = 0.5;

/// After so many pairs in a row with a slice that failed or is invalid, the duet ends: it is not chance.
const FAILED_IN_A_ROW: u32 = 2;

/// Time of a pair besides its warm-up and window, until pairs were timed: the clients' start, connecting, settling and the audit took
/// 210 ms (150 of them between the order to begin and the beginning), and a start of both light products 360 ms.
const OVERHEAD: Duration = Duration::from_millis(600);

/// What a duet is asked. `duet.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// [`DUET_SCHEMA`].
    pub schema: u32,
    /// The products as the user named them: A, B.
    pub labels: [String; 2],
    /// The difference to find, as a share: 0.03.
    pub find: f64,
    /// Longest time, seconds.
    pub budget_s: f64,
    /// Length of a turn, seconds.
    pub turn_s: f64,
    /// Unmeasured load on each product after each start, seconds.
    pub warmup_s: f64,
    /// Slices count, too, during which something else used the machine.
    pub busy: bool,
}

/// Why a duet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// A difference is sure.
    Sure,
    /// There is none as large as asked for.
    Same,
    /// The time is over.
    Budget,
    /// A stop was requested.
    Stopped,
    /// A product failed.
    Failed,
}

/// What came of a duet, so far or in the end. `result.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// [`DUET_SCHEMA`].
    pub schema: u32,
    /// The products as the user named them: A, B.
    pub labels: [String; 2],
    /// The run's folder.
    pub folder: PathBuf,
    /// Why it ended; null before.
    pub ended: Option<Ended>,
    /// How a product failed, if one did.
    pub error: Option<TrialError>,
    /// The difference that was asked for, as a share.
    pub find: f64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// How often both were started.
    pub starts: u32,
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that were left out, by the check that saw why.
    pub omitted: BTreeMap<String, u32>,
    /// In how many slices of A and of B each check found something, of those that count.
    pub findings: BTreeMap<String, [u32; 2]>,
    /// What changed from A to B, the metric that decides first.
    pub changes: Vec<Change>,
}

/// Progress of a duet.
#[derive(Debug)]
pub enum DuetEvent<'a> {
    /// It begins.
    Begin(&'a Path),
    /// A product starts.
    Start(Who),
    /// A pair is measured.
    Measure,
    /// A pair is over: what is known so far, and the time left.
    Pair(&'a Outcome, Duration),
}

/// A duet that is ready to begin.
#[derive(Debug)]
pub struct Duet {
    context: TrialContext,
    /// Let go after the hosts.
    _reach: Box<dyn Reach>,
    parts: Parts,
    book: Book,
}

/// What each slice asks.
#[derive(Debug)]
struct Parts {
    workload: Workload,
    load: Load,
    cases: [CaseId; 2],
}

/// What was measured, and what is known from it.
#[derive(Debug)]
struct Book {
    journal: Journal,
    asked: Asked,
    outcome: Outcome,
    pairs: Vec<Pair>,
    table: pairs::Table,
    random: ChaCha8Rng,
    clock: Arc<dyn Clock>,
    begun: At,
    /// Pairs so far.
    measured: u32,
    /// How long a pair takes.
    pair_takes: Duration,
    failed_in_a_row: u32,
}

/// Why no more slices come.
enum Break {
    Ended(Ended),
    Failed(TrialError),
    Journal(JournalError),
}

impl From<Failure> for Break {
    fn from(failure: Failure) -> Break {
        match failure {
            Failure::Stopped => Break::Ended(Ended::Stopped),
            Failure::Trial(error) => Break::Failed(error),
            Failure::File(error) => Break::Journal(error.into()),
        }
    }
}

impl From<Abort> for Break {
    fn from(abort: Abort) -> Break {
        match abort {
            Abort::Stopped => Break::Ended(Ended::Stopped),
            Abort::Journal(error) => Break::Journal(error),
        }
    }
}

impl From<JournalError> for Break {
    fn from(error: JournalError) -> Break {
        Break::Journal(error)
    }
}

impl From<FileError> for Break {
    fn from(error: FileError) -> Break {
        Break::Journal(error.into())
    }
}

impl Duet {
    /// A new duet in a new folder. The suite has two entries, A and B, one workload and one load.
    ///
    /// # Errors
    /// When the folder cannot be made or is not empty, or the suite is not such a one.
    pub fn create(dir: &Path, setup: Setup, asked: Asked) -> Result<Duet, JournalError> {
        let seed = setup.seed();
        let suite = Suite { seed: Some(seed), ..setup.suite.clone() };
        let parts = Parts::of(&suite).ok_or_else(|| JournalError::Broken {
            path: dir.join("run.toml"),
            why: "a duet has two entries, one workload and one load".to_owned(),
        })?;
        let files = [
            ("environment.json", pretty(&environment(&setup, seed))?),
            ("duet.json", pretty(&asked)?),
            (TOPOLOGY, setup.topology.clone().into_bytes()),
            // Last: a folder with this file is a run folder, and has the others.
            ("run.toml", suite.to_toml().into_bytes()),
        ];
        let journal = Journal::create(dir, &files, setup.hosts.storage())?;
        let (context, reach) = context(setup, seed);
        let book = Book {
            outcome: Outcome {
                schema: DUET_SCHEMA,
                labels: asked.labels.clone(),
                folder: journal.dir().to_owned(),
                find: asked.find,
                ..Outcome::default()
            },
            table: pairs::Table::create(journal.dir(), metrics(&parts.load), context.hosts.storage())?,
            journal,
            asked,
            pairs: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
            begun: context.hosts.clock().now(),
            clock: context.hosts.clock(),
            measured: 0,
            pair_takes: pair_takes(&parts.load),
            failed_in_a_row: 0,
        };
        Ok(Duet { context, _reach: reach, parts, book })
    }

    /// Measures until it is enough, and writes what came of it.
    ///
    /// # Errors
    /// When something cannot be written; all finished slices are safe.
    pub fn execute(mut self, stop: &Stop, notify: &mut dyn FnMut(DuetEvent<'_>)) -> Result<Outcome, JournalError> {
        notify(DuetEvent::Begin(self.book.journal.dir()));
        self.book.begun = self.book.clock.now();
        let ended = loop {
            match self.start(stop, notify) {
                Ok(()) => {}
                Err(Break::Ended(ended)) => break ended,
                Err(Break::Failed(error)) => {
                    self.book.outcome.error = Some(error);
                    break Ended::Failed;
                }
                Err(Break::Journal(error)) => return Err(error),
            }
        };
        let Book { mut outcome, journal, .. } = self.book.judged(&self.parts.load);
        outcome.ended = Some(match (ended, enough(&outcome.changes)) {
            // The last pairs, of a start that was not over, decided it.
            (Ended::Budget, Some(judged::Verdict::Sure)) => Ended::Sure,
            (Ended::Budget, Some(_)) => Ended::Same,
            _ => ended,
        });
        journal.write_once("result.json", &pretty(&outcome)?)?;
        Ok(outcome)
    }

    /// Starts both, and measures pairs until they are due for another start.
    fn start(&mut self, stop: &Stop, notify: &mut dyn FnMut(DuetEvent<'_>)) -> Result<(), Break> {
        let Duet { context, parts, book, .. } = self;
        book.in_time()?;
        let clock = context.hosts.clock();
        let began = clock.now();
        book.outcome.starts += 1;
        let folders = book.folders()?;
        let planned = Who::BOTH.map(|who| parts.slice(who, 0, 0));
        let specs = Who::BOTH.map(|who| parts.spec(&planned[who as usize], &folders[who as usize]));
        let mut open = |who: Who| {
            notify(DuetEvent::Start(who));
            Side::start(context, &specs[who as usize], stop)
        };
        let first = drawn(&mut book.random);
        let (one, two) = (open(first)?, open(first.other())?);
        let mut sides = if first == Who::A { [one, two] } else { [two, one] };
        book.warm_up(&mut sides, parts)?;
        let (took, began) = (clock.since(began), clock.now());
        loop {
            let whole = book.pair(&mut sides, parts, notify)?;
            if !whole || clock.since(began).as_secs_f64() >= PAIRS_TO_START * took.as_secs_f64() {
                break;
            }
        }
        sides.into_iter().for_each(Side::stop);
        // Only now: a start is one number, whatever its pairs have said so far.
        match enough(&book.outcome.changes) {
            Some(judged::Verdict::Sure) => Err(Break::Ended(Ended::Sure)),
            Some(_) => Err(Break::Ended(Ended::Same)),
            None => Ok(()),
        }
    }
}

impl Parts {
    fn of(suite: &Suite) -> Option<Parts> {
        let ([workload], [load], [a, b]) =
            (suite.workloads.as_slice(), suite.loads.as_slice(), suite.entries.as_slice())
        else {
            return None;
        };
        let cases = [a, b].map(|entry| CaseId::of(entry, workload, &load.name));
        Some(Parts { workload: workload.clone(), load: load.clone(), cases })
    }

    /// A slice as a trial of a run.
    fn slice(&self, who: Who, trial: u32, block: u32) -> Planned {
        Planned { trial, block, case: self.cases[who as usize].clone() }
    }

    fn spec<'p>(&'p self, planned: &'p Planned, folder: &'p Path) -> TrialSpec<'p> {
        let rate = match &self.load.kind {
            LoadKind::Open { rate: RateSpec::Fixed(rate), .. } => Some(*rate),
            _ => None,
        };
        TrialSpec { planned, workload: &self.workload, load: &self.load, rate, folder, watched: None, chain: None }
    }
}

impl Book {
    /// Folders of A and B for the files of a start.
    fn folders(&self) -> Result<[PathBuf; 2], Failure> {
        let starts = self.journal.dir().join("starts");
        let folders = ["a", "b"].map(|side| starts.join(format!("{:03}-{side}", self.outcome.starts)));
        for folder in &folders {
            self.journal.storage().create_dir(folder).map_err(FileError::at(folder))?;
        }
        Ok(folders)
    }

    /// Pairs that do not count, until each had so much load.
    fn warm_up(&mut self, sides: &mut [Side<'_>; 2], parts: &Parts) -> Result<(), Break> {
        let folders = self.folders()?;
        let mut warmed = 0.0;
        while warmed < self.asked.warmup_s {
            let planned = Who::BOTH.map(|who| parts.slice(who, 0, 0));
            let folders = Who::BOTH.map(|who| folders[who as usize].join("warm-up"));
            let slices = [0, 1].map(|nth| SideSlice { planned: &planned[nth], folder: &folders[nth] });
            let warmed_up = measure_pair(sides, slices, self.turn(), drawn(&mut self.random) as usize)?;
            let error = warmed_up.into_iter().flatten().find_map(|slice| slice.error);
            error.map_or(Ok(()), |error| Err(Break::Failed(error)))?;
            warmed += (parts.load.warmup + parts.load.duration).as_secs_f64() / 2.0;
        }
        Ok(())
    }

    /// Ends the duet when no further pair fits into the budget. The first one is always measured.
    fn in_time(&self) -> Result<(), Break> {
        let over = self.measured > 0 && self.left() < self.pair_takes;
        if over { Err(Break::Ended(Ended::Budget)) } else { Ok(()) }
    }

    fn turn(&self) -> Duration {
        Duration::try_from_secs_f64(self.asked.turn_s).unwrap_or_default()
    }

    /// Measures a pair. False when it was not whole: a slice failed.
    fn pair(
        &mut self,
        sides: &mut [Side<'_>; 2],
        parts: &Parts,
        notify: &mut dyn FnMut(DuetEvent<'_>),
    ) -> Result<bool, Break> {
        self.in_time()?;
        notify(DuetEvent::Measure);
        let began = self.clock.now();
        let first = drawn(&mut self.random);
        let number = |who: Who| 2 * self.measured + if who == first { 1 } else { 2 };
        let planned = Who::BOTH.map(|who| parts.slice(who, number(who), self.measured + 1));
        self.measured += 1;
        let [a, b] = &planned;
        let folders = [self.journal.trial_folder(&a.folder())?, self.journal.trial_folder(&b.folder())?];
        let slices = [0, 1].map(|nth| SideSlice { planned: &planned[nth], folder: &folders[nth] });
        let both = measure_pair(sides, slices, self.turn(), first as usize);
        let mut both = both.inspect_err(|_| folders.iter().for_each(|folder| self.journal.forget(folder)))?;
        let mut measured = Vec::new();
        for who in [first, first.other()] {
            let folder = &folders[who as usize];
            match both[who as usize].take() {
                Some(slice) => {
                    self.journal.finish(folder, &slice)?;
                    measured.push((who, slice));
                }
                None => self.journal.forget(folder),
            }
        }
        let whole = measured.len() == 2 && measured.iter().all(|(_, slice)| slice.error.is_none());
        if whole {
            self.pair_takes = self.clock.since(began);
        }
        self.take(&measured, &parts.load)?;
        self.judge(&parts.load);
        notify(DuetEvent::Pair(&self.outcome, self.left()));
        Ok(whole)
    }

    /// Counts a pair, or leaves it out.
    fn take(&mut self, measured: &[(Who, Measurement)], load: &Load) -> Result<(), Break> {
        let omitted = measured.iter().find_map(|(who, slice)| self.why_not(*who, slice));
        let slices = measured.iter().map(|(who, slice)| Slice::of(*who, slice, metrics(load))).collect();
        let pair = Pair { start: self.outcome.starts, slices };
        self.table.append(&pair, omitted.as_ref().map(|(why, _)| why.as_str()))?;
        let Some((why, failed)) = omitted else {
            self.failed_in_a_row = 0;
            for (who, finding) in
                measured.iter().flat_map(|(who, slice)| slice.findings.iter().map(move |one| (who, one)))
            {
                if finding.severity > Severity::Note {
                    self.outcome.findings.entry(finding.check.clone()).or_default()[*who as usize] += 1;
                }
            }
            self.pairs.push(pair);
            return Ok(());
        };
        *self.outcome.omitted.entry(why).or_default() += 1;
        let Some(error) = failed else { return Ok(()) };
        self.failed_in_a_row += 1;
        if self.failed_in_a_row < FAILED_IN_A_ROW { Ok(()) } else { Err(Break::Failed(error)) }
    }

    /// Why a pair with this slice is left out, and the error if that is the product's fault.
    fn why_not(&self, who: Who, slice: &Measurement) -> Option<(String, Option<TrialError>)> {
        if let Some(error) = &slice.error {
            return Some((error.stage.clone(), Some(error.clone())));
        }
        if let Some(error) = self.turn_is_short(who, slice) {
            return Some((error.stage.clone(), Some(error)));
        }
        let (disturbed, own): (Vec<&Finding>, Vec<&Finding>) = (slice.findings.iter())
            .filter(|finding| finding.severity > Severity::Note)
            .partition(|finding| DISTURBED.contains(&finding.check.as_str()));
        if let Some(finding) = disturbed.first().filter(|_| !self.asked.busy) {
            return Some((finding.check.clone(), None));
        }
        let fatal = own.into_iter().find(|finding| finding.severity == Severity::Fatal)?;
        let message = format!("slices of {} are invalid: {}", self.asked.labels[who as usize], fatal.message);
        let error = TrialError::new("audit", message, self.place_of(slice), fatal.remedy.clone());
        Some((fatal.check.clone(), Some(error)))
    }

    /// What to say when most responses did not come within their turn: the rate would be that of a load that waits.
    fn turn_is_short(&self, who: Who, slice: &Measurement) -> Option<TrialError> {
        let response_s = slice.load.as_ref()?.service.p50_us / 1e6;
        let turn_s = self.asked.turn_s;
        (response_s > turn_s * MOST_OF_A_TURN).then(|| {
            let label = &self.asked.labels[who as usize];
            let (response_ms, turn_ms) = (response_s * 1e3, turn_s * 1e3);
            let message = format!(
                "half of the responses of {label} took more than {response_ms:.0} ms, and a turn is {turn_ms:.0} ms"
            );
            let remedy = format!("longer turns: --turn {:.0}ms", (response_s * 1e4).ceil());
            TrialError::new("turn", message, self.place_of(slice), remedy)
        })
    }

    fn place_of(&self, slice: &Measurement) -> String {
        format!("{}, slice {}", self.outcome.folder.display(), slice.trial)
    }

    fn left(&self) -> Duration {
        let budget = Duration::try_from_secs_f64(self.asked.budget_s).unwrap_or(Duration::MAX);
        budget.saturating_sub(self.clock.since(self.begun))
    }

    /// What is known from all pairs so far.
    fn judge(&mut self, load: &Load) {
        self.outcome.changes = judge(&self.pairs, metrics(load), 1.0 + self.asked.find);
        self.outcome.pairs = self.pairs.len();
        self.outcome.took_s = self.clock.since(self.begun).as_secs_f64();
    }

    fn judged(mut self, load: &Load) -> Book {
        self.judge(load);
        self
    }
}

/// Estimated time of a pair, until one was measured.
pub fn pair_takes(load: &Load) -> Duration {
    load.warmup + load.duration + OVERHEAD
}

/// A or B, by chance.
fn drawn(random: &mut ChaCha8Rng) -> Who {
    if random.random() { Who::A } else { Who::B }
}
