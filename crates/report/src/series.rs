//! Reads what a trial recorded beside its record: values of each second (`load.csv`, `resources.csv`, `monitor-<part>.csv`), and
//! histograms (`latency.hlog`, an HdrHistogram interval log).

use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde::Deserialize;
use weir_model::record::ResourceSecond;

use crate::run::{Broken, Run, Trial, relative};

/// What each role and the host used each second, of all windows.
///
/// # Errors
///
/// The first file that could not be read.
pub fn resource_seconds(run: &Run, trial: &Trial) -> Result<Vec<ResourceSecond>, Broken> {
    let mut rows = Vec::new();
    for folder in window_folders(run, trial) {
        rows.extend(read_rows::<ResourceSecond>(&run.folder, &folder.join("resources.csv"))?);
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
            all.extend(read_rows::<MonitorSecond>(&run.folder, &file)?.into_iter().map(|told| (part.to_owned(), told)));
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
fn read_rows<T: serde::de::DeserializeOwned>(run: &Path, file: &Path) -> Result<Vec<T>, Broken> {
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

/// The intervals of one tag, added up, and what stopped the reading early. Values are nanoseconds.
#[derive(Debug, Clone)]
pub struct Merged {
    /// All intervals that could be read.
    pub histogram: Histogram<u64>,
    /// A log that was cut off keeps its whole lines; this says where it ended.
    pub broken: Option<String>,
}

/// Adds up the intervals of `tag`.
///
/// # Errors
///
/// A message when the file cannot be read, or holds no readable interval of that tag.
pub fn histogram(file: &Path, tag: &str) -> Result<Merged, String> {
    let bytes = weir_model::regular::read(file).map_err(|error| error.to_string())?;
    merge(&bytes, tag)
}

fn merge(log: &[u8], tag: &str) -> Result<Merged, String> {
    let mut histogram = Histogram::<u64>::new(3).map_err(|error| error.to_string())?;
    let mut deserializer = Deserializer::new();
    let (mut intervals, mut broken) = (0, None);
    for entry in IntervalLogIterator::new(log) {
        let interval = match entry {
            Ok(LogEntry::Interval(interval)) => interval,
            Ok(_) => continue,
            Err(_) => {
                broken = Some(format!("not a line of an interval log, after {intervals} intervals"));
                break;
            }
        };
        if interval.tag().map(|tag| tag.as_str()) != Some(tag) {
            continue;
        }
        let decoded = decode(interval.encoded_histogram(), &mut deserializer);
        match decoded.and_then(|part| histogram.add(&part).map_err(|error| error.to_string())) {
            Ok(()) => intervals += 1,
            Err(why) => {
                broken = Some(format!("{why}, after {intervals} intervals"));
                break;
            }
        }
    }
    if intervals == 0 {
        return Err(broken.unwrap_or_else(|| format!("holds no interval tagged {tag}")));
    }
    Ok(Merged { histogram, broken })
}

fn decode(base64_text: &str, deserializer: &mut Deserializer) -> Result<Histogram<u64>, String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64_text).map_err(|error| error.to_string())?;
    deserializer.deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
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

    fn rows<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.csv");
        std::fs::write(&file, text).unwrap();
        read_rows(folder.path(), &file).unwrap()
    }

    #[test]
    fn empty_cells_are_none() {
        let resources: Vec<ResourceSecond> = rows(RESOURCES);
        let [client, host] = resources.as_slice() else { panic!("two rows") };
        assert_eq!((client.fds, client.connections_open, client.tcp_established), (Some(74), Some(64), None));
        assert_eq!((host.fds, host.connections_open, host.tcp_established), (None, None, Some(128)));
    }
}

#[cfg(test)]
mod hlog_tests {
    use super::*;
    use std::time::Duration;

    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

    fn log(values: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let builder = IntervalLogWriterBuilder::new();
        let mut writer = builder.begin_log_with(&mut bytes, &mut serializer).unwrap();
        for (second, value) in values.iter().enumerate() {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            histogram.record(*value).unwrap();
            let at = Duration::from_secs(second as u64);
            for tag in ["latency", "lag"] {
                writer.write_histogram(&histogram, at, Duration::from_secs(1), Tag::new(tag)).unwrap();
            }
        }
        drop(writer);
        bytes
    }

    #[test]
    fn intervals_of_one_tag_are_added() {
        let merged = merge(&log(&[100, 200, 300]), "latency").unwrap();
        assert_eq!(merged.histogram.len(), 3);
        assert_eq!(merged.histogram.value_at_quantile(0.5), 200);
        assert_eq!(merged.broken, None);
    }

    #[test]
    fn a_log_that_was_cut_off_keeps_its_whole_lines() {
        let mut bytes = log(&[100, 200, 300]);
        bytes.truncate(bytes.len() * 3 / 4);
        let merged = merge(&bytes, "latency").unwrap();
        assert_eq!(merged.histogram.len(), 2);
        assert!(merge(b"#nothing\n", "latency").is_err());
    }
}
