//! Reads a run folder. `weir run`, `weir report`, `weir-compare` and `weir-published` call [`load_run`].
//! A broken file becomes a row of the report and never a crash, so an interrupted run keeps what it has.
//! The module knows the layout of the folder, but no tables or charts.

use std::fs;
use std::path::{Path, PathBuf};

use weir_model::record::{Environment, Measurement, Verdict};
use weir_model::regular;
use weir_model::row;
use weir_model::seal;
use weir_model::suite::{Entry, Suite};

use crate::error::ReportError;
use crate::intact::{self, Seals};
use crate::plan::with_recorded;

/// The product that is no proxy: the baseline of every suite.
pub const BASELINE: &str = "direct";

const ENVIRONMENT: &str = "environment.json";
const MEASUREMENT: &str = "measurement.json";
const RUN_TOML: &str = "run.toml";

/// A run, as read from its folder.
#[derive(Debug, Clone)]
pub struct Run {
    /// The folder.
    pub folder: PathBuf,
    /// Its name, such as `2026-01-02T03-04-05-loggly`.
    pub name: String,
    /// What was asked: the direct path first, then as written. Without blocks where `run.toml` could not be read.
    pub suite: Suite,
    /// The part of the run that is shown, in words; empty for the whole run.
    pub part: String,
    /// The trials that ended, by number.
    pub trials: Vec<Trial>,
    /// Files that could not be read, or are not as weir wrote them. A trial of which one is such is not among the trials.
    pub broken: Vec<Broken>,
    /// Where it took place; `None` when the file is missing or broken.
    pub environment: Option<Environment>,
}

/// One trial that ended.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Folder relative to the run's, such as `trials/1-nginx-tuned-plain-max`.
    pub folder: String,
    /// Its record.
    pub measurement: Measurement,
}

/// A file of the run that could not be read, or is not as weir wrote it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Broken {
    /// Relative to the run's folder.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl Trial {
    /// True when the numbers may be ranked.
    pub fn counts(&self) -> bool {
        self.measurement.load.is_some() && matches!(self.measurement.verdict, Verdict::Valid | Verdict::Suspect)
    }

    /// True of trials of this product and profile.
    pub fn is_of(&self, entry: &Entry) -> bool {
        let case = &self.measurement.case;
        case.product == entry.product && case.profile == entry.profile
    }

    /// Product and profile.
    pub fn entry(&self) -> Entry {
        let case = &self.measurement.case;
        Entry { product: case.product.clone(), profile: case.profile.clone() }
    }
}

impl Run {
    /// Where the trials of one workload under one load stand in [`Run::trials`].
    pub(crate) fn places_of(&self, workload: &str, load: &str) -> Vec<usize> {
        let of = |trial: &Trial| trial.measurement.case.workload == workload && trial.measurement.case.load == load;
        self.trials.iter().enumerate().filter(|(_, trial)| of(trial)).map(|(place, _)| place).collect()
    }

    /// How a reader knows a product: as its makers write it, where the run recorded that.
    pub fn title_of<'a>(&'a self, product: &'a str) -> &'a str {
        let facts = self.environment.iter().flat_map(|e| &e.products).find(|facts| facts.name == product);
        facts.map(|facts| facts.title.as_str()).filter(|title| !title.is_empty()).unwrap_or(product)
    }

    /// Title, with the profile where the run has more than one of them.
    pub fn label_of(&self, entry: &Entry) -> String {
        label(self.title_of(&entry.product), entry, &self.suite.entries)
    }
}

/// The title of an entry's product, with the profile where products of `entries` have more than one.
pub(crate) fn label(title: &str, entry: &Entry, entries: &[Entry]) -> String {
    let mut profiles = entries.iter().filter(|e| e.product != BASELINE).map(|e| &e.profile);
    let first = profiles.next();
    if entry.product == BASELINE || profiles.all(|profile| Some(profile) == first) {
        title.to_string()
    } else {
        format!("{title} {}", entry.profile)
    }
}

/// The trials whose numbers are shown: those that count, else the invalid ones.
pub fn displayed<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Vec<&'a Trial> {
    let trials: Vec<&Trial> = trials.into_iter().filter(|trial| trial.measurement.load.is_some()).collect();
    let some_count = trials.iter().any(|trial| trial.counts());
    trials.into_iter().filter(|trial| trial.counts() || !some_count).collect()
}

/// Reads a run folder; it may still be growing.
///
/// # Errors
///
/// [`ReportError::NotARun`] when there is no such folder or no `trials` in it, [`ReportError::Empty`] when no trial
/// has ended. A file that is broken is no error but a row in [`Run::broken`].
pub fn load_run(run: &Path) -> Result<Run, ReportError> {
    let not_a_run = |why: &str| ReportError::NotARun { path: run.to_path_buf(), why: why.to_string() };
    if !run.is_dir() {
        return Err(not_a_run("there is no such folder"));
    }
    let trials_folder = run.join("trials");
    if !trials_folder.is_dir() {
        let started = run.join("run.toml").is_file();
        let empty = ReportError::Empty { path: run.to_path_buf() };
        return Err(if started { empty } else { not_a_run("it has neither a run.toml nor a folder `trials`") });
    }
    let mut broken = Vec::new();
    let seals = Seals::of_run(run, &mut broken);
    let trials = read_trials(run, &trials_folder, &seals, &mut broken)?;
    if trials.is_empty() && broken.is_empty() {
        return Err(ReportError::Empty { path: run.to_path_buf() });
    }
    if let Err(why) = intact::rows(run, &trials) {
        broken.push(Broken { file: row::FILE.to_string(), why });
    }
    let environment = match seals.holds(ENVIRONMENT) {
        true => read_json(&run.join(ENVIRONMENT)),
        false => Ok(None),
    };
    let environment = environment.unwrap_or_else(|why| {
        broken.push(Broken { file: ENVIRONMENT.to_string(), why });
        None
    });
    let suite = match seals.holds(RUN_TOML) {
        true => Suite::read_run(&run.join(RUN_TOML)),
        false => Ok(Suite::default()),
    };
    let suite = suite.unwrap_or_else(|why| {
        broken.push(Broken { file: RUN_TOML.to_string(), why });
        Suite::default()
    });
    let suite = with_recorded(suite, &trials);
    let canonical = run.canonicalize().unwrap_or_else(|_| run.to_path_buf());
    let name = canonical.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Run { folder: run.to_path_buf(), name, suite, part: String::new(), trials, broken, environment })
}

fn read_trials(run: &Path, folder: &Path, seals: &Seals, broken: &mut Vec<Broken>) -> Result<Vec<Trial>, ReportError> {
    let entries = fs::read_dir(folder).map_err(|error| ReportError::io(folder, "read", error))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort_by_key(|path| number_first(path));
    let mut trials = Vec::new();
    for path in folders {
        let (file, below) = (path.join(MEASUREMENT), relative(run, &path));
        // A trial without a measurement is under way, or was cut off: it is done again on resume.
        if !file.exists() {
            continue;
        }
        if !seals.trial_holds(&path, &below, MEASUREMENT, broken) {
            continue;
        }
        match intact::measurement(&file) {
            Ok(measurement) => trials.push(Trial { folder: below, measurement }),
            Err(why) => broken.push(Broken { file: relative(run, &file), why }),
        }
    }
    trials.sort_by_key(|trial| trial.measurement.trial);
    Ok(trials)
}

/// By the number that a folder begins with, then by name: `1000-a` comes after `999-a`.
fn number_first(path: &Path) -> (u64, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    (name[..digits].parse().unwrap_or(u64::MAX), name)
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, String> {
    let text = regular::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// A path below the run's folder, with `/` between its parts.
pub fn relative(run: &Path, path: &Path) -> String {
    let below = path.strip_prefix(run).unwrap_or(path);
    seal::in_words(below)
}
