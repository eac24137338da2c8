//! Finds and reads run folders. A file that is broken, or not as weir wrote it, becomes a row of the report and never a crash, so that an
//! interrupted run keeps what it has. Seals and the numbers themselves show whether a file is intact. The module knows the layout of the
//! folder, but no tables or charts.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_model::load::{Bursts, LoadResult};
use weir_model::record::{Environment, MEASUREMENT_SCHEMA, Measurement, Point, Verdict};
use weir_model::row::{COLUMNS, TRIAL};
use weir_model::seal::Seal;
use weir_model::suite::{Arrivals, Entry, Load, LoadKind, RateSpec, Series, Suite, Workload};
use weir_model::{regular, row, seal};

use crate::error::ReportError;

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

    /// The trials of an entry under one load whose numbers are shown, of all these workloads together ([`displayed`]).
    pub(crate) fn displayed_of(&self, workloads: &[Workload], load: &Load, entry: &Entry) -> Vec<&Trial> {
        let places = workloads.iter().flat_map(|workload| self.places_of(&workload.name, &load.name));
        displayed(places.filter_map(|place| self.trials.get(place)).filter(|trial| trial.is_of(entry)))
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
    if let Err(why) = rows(run, &trials) {
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
        match measurement(&file) {
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

/// The suite with every entry, workload and load that the records have. Without a readable `run.toml` it has no name and no blocks.
pub(crate) fn with_recorded(mut suite: Suite, trials: &[Trial]) -> Suite {
    // By case and not by trial: within a block the order is random, and a report must not depend on it.
    let mut by_case: Vec<&Trial> = trials.iter().collect();
    by_case.sort_by(|a, b| a.measurement.case.cmp(&b.measurement.case));
    for trial in by_case {
        let (case, measurement) = (&trial.measurement.case, &trial.measurement);
        let entry = trial.entry();
        if !suite.entries.contains(&entry) {
            suite.entries.push(entry);
        }
        if !suite.workloads.iter().any(|workload| workload.name == case.workload) {
            let (name, protocol) = (case.workload.clone(), measurement.protocol);
            suite.workloads.push(Workload { name, protocol, ..Workload::default() });
        }
        if suite.load(&case.load).is_none() {
            let of_load = trials.iter().filter(|trial| trial.measurement.case.load == case.load);
            suite.loads.push(load_of(&case.load, of_load));
        }
    }
    suite.entries.sort_by_key(|entry| entry.product != BASELINE);
    suite
}

/// Rebuilds a load from its records if `run.toml` does not describe it. The number of connections is unknown.
fn load_of<'a>(name: &str, trials: impl Iterator<Item = &'a Trial>) -> Load {
    let mut load = Load { name: name.to_string(), streams: 1, ..Load::default() };
    for measurement in trials.map(|trial| &trial.measurement) {
        if let Some(search) = &measurement.search {
            load.kind = LoadKind::Search { objective: search.conditions.clone() };
        } else if let Some(rate) = measurement.load.as_ref().and_then(|load| load.offered_rate) {
            load.kind = LoadKind::Open { rate: RateSpec::Fixed(rate), arrivals: Arrivals::Constant };
        }
        if measurement.points.len() > 1 && load.series == Series::Once {
            load.series = series_of(&measurement.points);
        }
    }
    load
}

/// What changed from point to point.
fn series_of(points: &[Point]) -> Series {
    let connections: Vec<u32> = points.iter().map(|point| point.connections).collect();
    let rates: Vec<f64> = points.iter().filter_map(|point| point.offered_rate).collect();
    if connections.windows(2).any(|pair| pair[0] != pair[1]) {
        return Series::Connections(connections);
    }
    match rates.first() {
        Some(first) if rates.iter().any(|rate| rate != first) => {
            Series::Shares(rates.iter().map(|rate| rate / first).collect())
        }
        _ => Series::Rounds(u32::try_from(points.len()).unwrap_or(u32::MAX)),
    }
}

/// How far below a folder a run may lie.
const DEEPEST: usize = 4;

/// The runs in folders, each once, in the order of the folders: a folder alone where it is a run, else the runs at any depth down to the
/// fourth, by name. Hidden folders are left out, and links are not followed, which may lead in circles.
///
/// # Errors
/// [`ReportError::NotARun`] where there is no such folder, or no run in it.
pub fn find_runs(folders: &[PathBuf]) -> Result<Vec<PathBuf>, ReportError> {
    let mut all = Vec::new();
    for folder in folders {
        let before = all.len();
        descend(folder, DEEPEST, &mut all);
        if all.len() == before {
            let is_there = folder.is_dir();
            let why = if is_there { "it is no run, and there is none in it" } else { "there is no such folder" };
            return Err(ReportError::NotARun { path: folder.clone(), why: why.to_owned() });
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|run| seen.insert(run.canonicalize().unwrap_or_else(|_| run.clone())));
    Ok(all)
}

fn descend(folder: &Path, deeper: usize, runs: &mut Vec<PathBuf>) {
    // It may be a run without any trial.
    if folder.join("run.toml").is_file() || folder.join("trials").is_dir() {
        runs.push(folder.to_path_buf());
        return;
    }
    if deeper == 0 {
        return;
    }
    let shown = |entry: &fs::DirEntry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).filter(shown);
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    below.sort();
    below.iter().for_each(|below| descend(below, deeper - 1, runs));
}

/// Beyond this nothing was ever measured: bytes of a year at 100 Gbit/s are a thousandth of it.
const MOST: f64 = 1e20;

/// The only numbers that may be negative: how the kernel schedules a process.
const SIGNED: [&str; 2] = ["nice", "priority"];

/// The share by which a rate may differ from its count over its time, which are written with fewer digits.
const ROUNDED: f64 = 1e-3;

/// What the seals of a run say.
pub(crate) struct Seals {
    /// The run has one, so that each of its trials must have one.
    sealed: bool,
    flawed: Vec<String>,
}

impl Seals {
    /// Reads a run's own seal, and checks its files.
    pub fn of_run(run: &Path, broken: &mut Vec<Broken>) -> Seals {
        let seal = Seal::read(run).unwrap_or_else(|why| {
            broken.push(Broken { file: seal::FILE.to_string(), why });
            Some(Seal::default())
        });
        let sealed = seal.is_some();
        let flaws = seal.unwrap_or_default().flaws(run);
        let flawed = flaws.iter().map(|flaw| flaw.file.clone()).collect();
        broken.extend(flaws.into_iter().map(|flaw| Broken { file: flaw.file, why: flaw.why }));
        Seals { sealed, flawed }
    }

    /// Whether a file of the run itself is as it was.
    pub fn holds(&self, file: &str) -> bool {
        self.flawed.iter().all(|flawed| flawed != file)
    }

    /// Whether a trial is as it was; else its flaws are added. `below` is its folder from the run's, `measurement` the name of its record.
    pub fn trial_holds(&self, folder: &Path, below: &str, measurement: &str, broken: &mut Vec<Broken>) -> bool {
        let flaws = seal::flaws_in(folder, measurement, self.sealed);
        let holds = flaws.is_empty();
        broken.extend(flaws.into_iter().map(|flaw| Broken { file: format!("{below}/{}", flaw.file), why: flaw.why }));
        holds
    }
}

/// Checks the rows of a run's `measurements.csv` against the trials that are intact, by number, because people read the file by other programs than
/// weir. A file with other columns is of another version of weir, and is not checked.
///
/// # Errors
/// In words: why it cannot be read, or the first cell that its trial's record does not have.
pub(crate) fn rows(run: &Path, trials: &[Trial]) -> Result<(), String> {
    let bytes = match regular::read(&run.join(row::FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| error.to_string())?,
    };
    // A last line without an end was cut off.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&bytes[..whole]);
    let names = reader.headers().map_err(|error| error.to_string())?;
    if !names.iter().eq(COLUMNS.iter().map(|(name, _)| *name)) {
        return Ok(());
    }
    let number = COLUMNS.iter().position(|(name, _)| *name == TRIAL).unwrap_or_default();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let number = record.get(number).and_then(|cell| cell.parse().ok());
        let trial = number.and_then(|n: u32| trials.binary_search_by_key(&n, |trial| trial.measurement.trial).ok());
        let Some(trial) = trial.map(|at| &trials[at]) else { continue };
        let cells = row::row(&trial.measurement).zip(COLUMNS).enumerate();
        for (at, (wanted, (name, _))) in cells {
            let found = record.get(at).unwrap_or_default();
            if !same(found, &wanted) {
                let line = record.position().map_or(0, csv::Position::line);
                return Err(format!("line {line}: {name} is {found:?}, and {wanted:?} in {}", trial.folder));
            }
        }
    }
    Ok(())
}

/// Whether two cells say the same. A number that was read back from JSON may differ in its last digit.
fn same(found: &str, wanted: &str) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    found == wanted || found.parse().ok().zip(wanted.parse().ok()).is_some_and(|(a, b)| close(a, b))
}

/// Reads a trial's record.
///
/// # Errors
/// In words: why it cannot be read, or which of its numbers cannot have been measured.
pub(crate) fn measurement(file: &Path) -> Result<Measurement, String> {
    let bytes = regular::read(file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let schema = &value["schema"];
    if *schema != MEASUREMENT_SCHEMA {
        return Err(format!("another weir wrote it: it has schema {schema}, and this weir knows {MEASUREMENT_SCHEMA}"));
    }
    let measurement: Measurement = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    in_range(&value, "")?;
    for (at, load) in measurement.windows().into_iter().enumerate() {
        let key = if measurement.points.is_empty() { "load".to_string() } else { format!("points[{at}].load") };
        balanced(load).map_err(|why| format!("{key}.{why}"))?;
    }
    Ok(measurement)
}

/// Whether every number below `key` can have been measured.
fn in_range(value: &Value, key: &str) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let least = if SIGNED.contains(&key.rsplit('.').next().unwrap_or(key)) { -MOST } else { 0.0 };
            match (least..=MOST).contains(&number) {
                true => Ok(()),
                false => Err(format!("{key}: {number:e} cannot have been measured, only {least} to {MOST:e}")),
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| in_range(item, &format!("{key}[{at}]")))
        }
        Value::Object(entries) => entries.iter().try_for_each(|(name, value)| {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            in_range(value, &key)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Whether a load's rate is its count of successful responses over the time in which requests became due.
fn balanced(load: &LoadResult) -> Result<(), String> {
    let time_s = load.window_s * load.bursts.map_or(1.0, Bursts::share);
    let (counted, said) = (load.window.successful_in_window as f64, load.rate * time_s);
    if (counted - said).abs() <= ROUNDED * counted.max(said) + 1.0 {
        return Ok(());
    }
    let (rate, are) = (load.rate, counted / time_s);
    Err(format!("rate: {rate} a second, where {counted} successful responses in {time_s} s are {are}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_is_ahead_of_others_has_negative_numbers() {
        let process =
            |nice: i64, used: f64| serde_json::json!({"owners": [{"nice": nice, "priority": nice - 20, "used": used}]});
        assert_eq!(in_range(&process(-15, 0.5), ""), Ok(()));
        let refused = in_range(&process(19, -0.5), "").unwrap_err();
        assert!(refused.starts_with("owners[0].used: -5e-1 cannot have been measured"), "{refused}");
    }
}
