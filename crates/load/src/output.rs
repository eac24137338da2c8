//! Writes the files of a load: histograms by second, and one row a second. The paths come from `weir load` or `weir
//! client`.
//!
//! Nothing is written while the load runs, since writing and compressing would take CPU time from what is measured on
//! this host. Serialised histograms (some kilobytes a second) stay in memory until the end. The files are opened at the
//! start: an hour's load should not end with the news that its folder cannot be written.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
use weir_model::load::LoadSecond;

use crate::clock::to_secs;
use crate::error::LoadError;
use crate::interval::{Histo, Merged};

/// Which files to write.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    /// LogInterval log of HdrHistogram, V2 compressed, `latency.hlog` in a trial's folder. Tags are `latency`, `service`,
    /// `lag` and `first_byte`; values are **nanoseconds**; only requests due in the window are in it, in the second in which they
    /// ended, and one last interval has those that ended after the window. All intervals of a tag together are the
    /// histogram of the result. The log of a part of a load also has, once, what [`crate::merge()`] needs beside: `connect`,
    /// `handshake`, `request-<n>` (the latency of the n-th of the load's requests, from 0), and of open loads `own-lag` and
    /// `own-latency` (the result's `lateness`).
    pub hlog: Option<PathBuf>,
    /// The window's [`LoadSecond`]s as CSV with a header line, `load.csv` in a trial's folder.
    pub series: Option<PathBuf>,
}

/// The histograms of one interval, serialised.
#[derive(Debug)]
pub(crate) struct LogInterval {
    start: u64,
    end: u64,
    histos: Vec<(Cow<'static, str>, Vec<u8>)>,
}

/// The tags of what is recorded by second.
pub(crate) const TAGS: [&str; 4] = ["latency", "service", "lag", "first_byte"];

impl LogInterval {
    pub(crate) fn new(start: u64, end: u64, merged: &Merged) -> LogInterval {
        let histos = TAGS.into_iter().map(Cow::Borrowed).zip(merged.by_tag());
        LogInterval::of(start, end, histos)
    }

    /// Any histograms, by their tags.
    pub(crate) fn of<'a>(
        start: u64,
        end: u64,
        histos: impl Iterator<Item = (Cow<'static, str>, &'a Histo)>,
    ) -> LogInterval {
        LogInterval { start, end, histos: histos.map(|(tag, histo)| (tag, serialised(histo))).collect() }
    }
}

fn serialised(histo: &Histo) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histo, &mut bytes)
        .expect("memory takes any number of bytes, and the histogram is far below what the format can hold");
    bytes
}

/// The files of a load. They are opened before it begins, so that a path that cannot be written is reported before
/// anything is sent.
#[derive(Debug)]
pub(crate) struct Sinks {
    pub hlog: Option<Sink>,
    pub series: Option<Sink>,
}

impl Outputs {
    /// Opens the files.
    ///
    /// # Errors
    /// [`LoadError::Output`].
    pub(crate) fn open(&self) -> Result<Sinks, LoadError> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
        Ok(Sinks { hlog: open(&self.hlog)?, series: open(&self.series)? })
    }
}

/// A file to write when the load is over. Its old content stays until then. A new file that is never written is
/// removed.
#[derive(Debug)]
pub(crate) struct Sink {
    path: PathBuf,
    file: File,
    /// This process created it, and it is still empty.
    fresh: bool,
}

impl Sink {
    fn open(path: &Path) -> Result<Sink, LoadError> {
        let fresh = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| failed(path, source))?;
        Ok(Sink { path: path.to_owned(), file, fresh })
    }

    /// Replaces its content.
    fn write(&mut self, fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<(), LoadError> {
        self.fresh = false;
        let written = self.empty().and_then(|()| {
            let mut out = BufWriter::new(&self.file);
            fill(&mut out)?;
            out.flush()
        });
        written.map_err(|source| failed(&self.path, source))
    }

    /// Pipes and terminals have no length to set.
    fn empty(&self) -> io::Result<()> {
        if self.file.metadata()?.is_file() { self.file.set_len(0) } else { Ok(()) }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if self.fresh {
            // The load has already failed with its own error; an empty file left behind is not reported.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes the interval log. `window` is the window's start on the run's clock, `unix_ns` the same as wall time.
///
/// # Errors
/// [`LoadError::Output`].
pub(crate) fn write_log(
    sink: &mut Sink,
    intervals: &[LogInterval],
    window: u64,
    unix_ns: u64,
) -> Result<(), LoadError> {
    sink.write(|out| log_to(out, intervals, window, unix_ns))
}

fn log_to(out: &mut impl Write, intervals: &[LogInterval], window: u64, unix_ns: u64) -> io::Result<()> {
    let unix = UNIX_EPOCH + Duration::from_nanos(unix_ns);
    let mut deserializer = Deserializer::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("Written by weir. Values are nanoseconds; the maximum in each line is in milliseconds.")
        .add_comment("Tags: latency (due to answered), service (sent to answered), lag (due to sent),")
        .add_comment("first_byte (sent to the response's first byte).")
        .add_comment("Requests due in the measured window, in the second in which they ended; the last")
        .add_comment("interval has those that ended after the window. Times are since the window's start.")
        .with_start_time(unix)
        .with_base_time(unix)
        .with_max_value_divisor(1e6)
        .begin_log_with(out, &mut serializer)?;
    for interval in intervals {
        let start = Duration::from_nanos(interval.start.saturating_sub(window));
        let length = Duration::from_nanos(interval.end.saturating_sub(interval.start));
        for (tag, bytes) in &interval.histos {
            let histo: Histo = deserializer.deserialize(&mut bytes.as_slice()).map_err(io::Error::other)?;
            log.write_histogram(&histo, start, length, Tag::new(tag)).map_err(io::Error::other)?;
        }
    }
    Ok(())
}

/// Writes the rows.
///
/// # Errors
/// [`LoadError::Output`].
pub(crate) fn write_series(sink: &mut Sink, rows: &[LoadSecond]) -> Result<(), LoadError> {
    sink.write(|out| {
        let mut table = csv::Writer::from_writer(out);
        for row in rows {
            table.serialize(row)?;
        }
        table.flush()
    })
}

fn failed(path: &Path, source: io::Error) -> LoadError {
    LoadError::Output { path: path.to_owned(), source }
}

/// Seconds between two times of the run's clock, never negative.
pub(crate) fn span_s(from: u64, to: u64) -> f64 {
    to_secs(to.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use crate::interval::Interval;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn the_log_reads_back_as_what_was_recorded() {
        let window = 7 * SECOND;
        let mut intervals = Vec::new();
        for second in 0..3 {
            let mut interval = Interval::new(crate::interval::Kinds::default());
            let start = window + second * SECOND;
            for i in 0..100 {
                interval.sample(0, start, start + i, start + 1_000_000 * (i + 1), false);
            }
            let mut merged = Merged::new();
            merged.take(&interval);
            intervals.push(LogInterval::new(start, start + SECOND, &merged));
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("latency.hlog");
        write_log(&mut Sink::open(&path).unwrap(), &intervals, window, 1_700_000_000_000_000_000).unwrap();
        let text = std::fs::read(&path).unwrap();
        let head = String::from_utf8_lossy(&text);
        assert!(head.starts_with("#[Histogram log format version 1.3]\n"));
        assert!(head.contains("Values are nanoseconds"));

        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(interval) = entry.unwrap() else {
                continue;
            };
            let tag = interval.tag().unwrap().as_str().to_owned();
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histo: Histo = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            assert_eq!(histo.len(), 100);
            if tag == "latency" {
                assert!((histo.value_at_quantile(0.5) as f64 - 5e7).abs() < 1e5);
            }
            tags.push((tag, interval.start_timestamp().as_secs()));
        }
        assert_eq!(tags.len(), 12);
        assert_eq!(tags[0], ("latency".to_owned(), 0));
        assert_eq!(tags[11], ("first_byte".to_owned(), 2));
    }

    #[test]
    fn rows_are_csv_with_a_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("load.csv");
        let row = LoadSecond { second: 3, length_s: 1.0, successful: 9, ..LoadSecond::default() };
        write_series(&mut Sink::open(&path).unwrap(), std::slice::from_ref(&row)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let header = "second,length_s,due,sent,successful,errors,bytes_in,p50_us,p99_us,max_us,in_flight,lag_max_us,";
        assert!(text.starts_with(&format!("{header}connections_open,stalled_us\n3,1.0,")), "{text}");
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let back: Vec<LoadSecond> = reader.deserialize().collect::<Result<_, _>>().unwrap();
        assert_eq!(back, [row]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = Sink::open(Path::new("/nowhere/load.csv")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/load.csv"), "{error}");
    }

    #[test]
    fn a_load_that_fails_leaves_files_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old.csv"), dir.path().join("new.csv"));
        std::fs::write(&old, "of a load before").unwrap();
        let outputs = Outputs { hlog: Some(new.clone()), series: Some(old.clone()) };
        drop(outputs.open().unwrap());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "of a load before");
        assert!(!new.exists());
        // A shorter file leaves nothing of the old content.
        write_series(&mut Sink::open(&old).unwrap(), &[]).unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "");
    }
}
