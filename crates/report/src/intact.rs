//! Whether a run's files are as weir wrote them: by the seals of the run and of each trial, and by the numbers themselves, which a run of
//! an older weir, without seals, has too. `run` asks for every file that it reads. What is not intact is a row of the report and no number.
//! The module knows the layout of the folder, but no tables or charts.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;
use weir_model::load::{Bursts, LoadResult};
use weir_model::record::{MEASUREMENT_SCHEMA, Measurement};
use weir_model::regular;
use weir_model::row::{self, COLUMNS, TRIAL};
use weir_model::seal::{self, Seal};

use crate::run::{Broken, Trial};

/// Beyond this nothing was ever measured: bytes of a year at 100 Gbit/s are a thousandth of it.
const MOST: f64 = 1e20;

/// The only numbers that may be negative: how far one clock went from another.
const SIGNED: &str = "drift_us";

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
            let least = if key.ends_with(SIGNED) { -MOST } else { 0.0 };
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

/// Whether a load's rate is its count of right answers over the time in which requests became due.
fn balanced(load: &LoadResult) -> Result<(), String> {
    let time_s = load.window_s * load.bursts.map_or(1.0, Bursts::share);
    let (counted, said) = (load.window.right_in_window as f64, load.rate * time_s);
    if (counted - said).abs() <= ROUNDED * counted.max(said) + 1.0 {
        return Ok(());
    }
    let (rate, are) = (load.rate, counted / time_s);
    Err(format!("rate: {rate} a second, where {counted} right answers in {time_s} s are {are}"))
}
