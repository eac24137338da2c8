//! Reads what a trial recorded each second. Knows the two CSV files, nothing of charts.

use std::path::{Path, PathBuf};

use weir_model::load::{LoadResult, LoadSecond};
use weir_model::record::ResourceSecond;

use crate::run::{Run, Trial};

/// What the client saw each second of each window: from the record, or from `load.csv` where the record has none.
///
/// # Errors
///
/// A message when neither can be read.
pub fn load_seconds(run: &Run, trial: &Trial) -> Result<Vec<Vec<LoadSecond>>, String> {
    let measurement = &trial.measurement;
    let records: Vec<Option<&LoadResult>> = match measurement.points.as_slice() {
        [] => vec![measurement.load.as_ref()],
        points => points.iter().map(|point| Some(&point.load)).collect(),
    };
    let of_window = |(record, folder): (Option<&LoadResult>, PathBuf)| match record {
        Some(load) if !load.series.is_empty() => Ok(load.series.clone()),
        _ => read(&folder.join("load.csv")),
    };
    records.into_iter().zip(folders(run, trial)).map(of_window).collect()
}

/// What each role and the host used each second, of all windows.
///
/// # Errors
///
/// A message when a file cannot be read.
pub fn resource_seconds(run: &Run, trial: &Trial) -> Result<Vec<ResourceSecond>, String> {
    let mut rows = Vec::new();
    for folder in folders(run, trial) {
        rows.extend(read::<ResourceSecond>(&folder.join("resources.csv"))?);
    }
    Ok(rows)
}

/// Where the files of each window are: those of the last are the trial's own.
fn folders(run: &Run, trial: &Trial) -> Vec<PathBuf> {
    let own = run.folder.join(&trial.folder);
    let windows = trial.measurement.points.len().max(1);
    (1..=windows).map(|n| if n == windows { own.clone() } else { own.join(format!("point-{n}")) }).collect()
}

/// All rows up to the first that cannot be read: the last line of a file that was cut off is no row.
fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Vec<T>, String> {
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).from_path(file).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for row in reader.deserialize() {
        match row {
            Ok(row) => rows.push(row),
            Err(error) if rows.is_empty() => return Err(error.to_string()),
            Err(_) => break,
        }
    }
    Ok(rows)
}
