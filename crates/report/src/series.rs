//! Reads the values that a trial recorded for each second, from `load.csv`, `resources.csv` and `monitor-<part>.csv`.
//! `charts::section`, `weir-compare` and `weir-published` call it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use weir_model::load::{LoadResult, LoadSecond};
use weir_model::record::ResourceSecond;

use crate::run::{Broken, Run, Trial, relative};

/// What the client saw each second of each window: from the record, or from `load.csv` where the record has none.
///
/// # Errors
///
/// The file that could not be read when neither could.
pub fn load_seconds(run: &Run, trial: &Trial) -> Result<Vec<Vec<LoadSecond>>, Broken> {
    let of_window = |(load, folder): (&LoadResult, PathBuf)| match load.series.as_slice() {
        [] => read(&run.folder, &folder.join("load.csv")),
        seconds => Ok(seconds.to_vec()),
    };
    trial.measurement.windows().into_iter().zip(window_folders(run, trial)).map(of_window).collect()
}

/// What each role and the host used each second, of all windows.
///
/// # Errors
///
/// The first file that could not be read.
pub fn resource_seconds(run: &Run, trial: &Trial) -> Result<Vec<ResourceSecond>, Broken> {
    let mut rows = Vec::new();
    for folder in window_folders(run, trial) {
        rows.extend(read::<ResourceSecond>(&run.folder, &folder.join("resources.csv"))?);
    }
    Ok(rows)
}

/// A number that a part of a product told about itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MonitorSecond {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Its name.
    pub name: String,
    /// The number.
    pub value: f64,
}

/// What the parts of a trial's product told about themselves, of all windows: each with the name of the part.
///
/// # Errors
///
/// The first file that could not be read.
pub fn monitor_seconds(run: &Run, trial: &Trial) -> Result<Vec<(String, MonitorSecond)>, Broken> {
    let mut all = Vec::new();
    for folder in window_folders(run, trial) {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let Some(part) = name.strip_prefix("monitor-").and_then(|rest| rest.strip_suffix(".csv")) else { continue };
            all.extend(read::<MonitorSecond>(&run.folder, &file)?.into_iter().map(|told| (part.to_owned(), told)));
        }
    }
    Ok(all)
}

/// Where the files of each window are: those of the last are the trial's own.
pub fn window_folders(run: &Run, trial: &Trial) -> Vec<PathBuf> {
    let own = run.folder.join(&trial.folder);
    let windows = trial.measurement.points.len().max(1);
    (1..=windows).map(|n| if n == windows { own.clone() } else { own.join(format!("point-{n}")) }).collect()
}

/// All rows up to the first that cannot be read, because the last line of a file that was cut off is not a complete row.
fn read<T: serde::de::DeserializeOwned>(run: &Path, file: &Path) -> Result<Vec<T>, Broken> {
    let broken = |error: csv::Error| Broken { file: relative(run, file), why: error.to_string() };
    let opened = weir_model::regular::open(file).map_err(|error| broken(error.into()))?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(opened);
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

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCES: &str = "\
time_ms,length_s,who,cpu_user,cpu_system,cpu_idle,cpu_iowait,cpu_irq,cpu_steal,rss_bytes,pss_bytes,threads,processes,fds,\
switches_voluntary,switches_involuntary,psi_cpu,psi_memory,psi_io,tcp_established,tcp_time_wait,tcp_retransmits,\
listen_overflows,net_in_bytes,net_out_bytes,connections_open
1000,1.0,client,0.5,0.25,,,,,4096,,2,1,74,10,2,,,,,,,,,,64
1000,1.0,host,1.5,0.5,0.0,0.0,0.0,0.0,8192,,,,,,,0.5,0.0,0.0,128,1,0,0,99,98,
";
    const LOAD: &str = "\
second,length_s,due,sent,right,errors,bytes_in,p50_us,p99_us,max_us,lag_max_us,connections_open,stalled_us
0,1.0,9,9,9,0,999,100.0,200.0,300.0,1.0,,5
";

    fn rows<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.csv");
        std::fs::write(&file, text).unwrap();
        read(folder.path(), &file).unwrap()
    }

    #[test]
    fn empty_cells_are_none() {
        let resources: Vec<ResourceSecond> = rows(RESOURCES);
        let [client, host] = resources.as_slice() else { panic!("two rows") };
        assert_eq!((client.fds, client.connections_open, client.tcp_established), (Some(74), Some(64), None));
        assert_eq!((host.fds, host.connections_open, host.tcp_established), (None, None, Some(128)));
        let load: Vec<LoadSecond> = rows(LOAD);
        assert_eq!((load[0].right, load[0].connections_open, load[0].stalled_us), (9, None, 5));
    }
}
