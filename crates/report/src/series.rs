//! Reads what a trial recorded each second. Knows the two CSV files, nothing of charts.

use std::path::{Path, PathBuf};

use weir_model::load::{LoadResult, LoadSecond};
use weir_model::record::ResourceSecond;

use crate::run::{Broken, Run, Trial, relative};

/// What the client saw each second of each window: from the record, or from `load.csv` where the record has none.
///
/// # Errors
///
/// The file that could not be read when neither could.
pub fn load_seconds(run: &Run, trial: &Trial) -> Result<Vec<Vec<LoadSecond>>, Broken> {
    let measurement = &trial.measurement;
    let records: Vec<Option<&LoadResult>> = match measurement.points.as_slice() {
        [] => vec![measurement.load.as_ref()],
        points => points.iter().map(|point| Some(&point.load)).collect(),
    };
    let of_window = |(record, folder): (Option<&LoadResult>, PathBuf)| match record {
        Some(load) if !load.series.is_empty() => Ok(load.series.clone()),
        _ => read(run, &folder.join("load.csv")),
    };
    records.into_iter().zip(folders(run, trial)).map(of_window).collect()
}

/// What each role and the host used each second, of all windows.
///
/// # Errors
///
/// The first file that could not be read.
pub fn resource_seconds(run: &Run, trial: &Trial) -> Result<Vec<ResourceSecond>, Broken> {
    let mut rows = Vec::new();
    for folder in folders(run, trial) {
        rows.extend(read::<ResourceSecond>(run, &folder.join("resources.csv"))?);
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
fn read<T: serde::de::DeserializeOwned>(run: &Run, file: &Path) -> Result<Vec<T>, Broken> {
    let broken = |error: csv::Error| Broken { file: relative(&run.folder, file), why: error.to_string() };
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(file).map_err(broken)?;
    let mut rows = Vec::new();
    for row in reader.deserialize() {
        match row {
            Ok(row) => rows.push(row),
            Err(error) if rows.is_empty() => return Err(broken(error)),
            Err(_) => break,
        }
    }
    Ok(rows)
}
