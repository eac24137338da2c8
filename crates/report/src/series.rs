//! Reads what a trial recorded each second. Knows the two CSV files, nothing of charts.

use std::path::Path;

use weir_model::load::LoadSecond;
use weir_model::record::ResourceSecond;

use crate::run::{Run, Trial};

/// What the client saw each second: from the record, or from `load.csv` where the record has none.
///
/// # Errors
///
/// A message when neither can be read.
pub fn load_seconds(run: &Run, trial: &Trial) -> Result<Vec<LoadSecond>, String> {
    match &trial.measurement.load {
        Some(load) if !load.series.is_empty() => Ok(load.series.clone()),
        _ => read(&run.folder.join(&trial.folder).join("load.csv")),
    }
}

/// What each role and the host used each second.
///
/// # Errors
///
/// A message when the file cannot be read.
pub fn resource_seconds(run: &Run, trial: &Trial) -> Result<Vec<ResourceSecond>, String> {
    read(&run.folder.join(&trial.folder).join("resources.csv"))
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
