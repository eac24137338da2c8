//! Reads an HdrHistogram interval log. The latency charts (`charts::section`) call it for each trial.
//! The module knows the format, but not what a log is used for.

use std::path::Path;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

/// The intervals of one tag, added up, and what stopped the reading early.
#[derive(Debug, Clone)]
pub struct Merged {
    /// All intervals that could be read.
    pub histogram: Histogram<u64>,
    /// How many microseconds one of its values is.
    pub us_per_value: f64,
    /// A log that was cut off keeps its whole lines; this says where it ended.
    pub broken: Option<String>,
}

/// Adds up the intervals of `tag`.
///
/// # Errors
///
/// A message when the file cannot be read, or holds no readable interval of that tag.
pub fn read(file: &Path, tag: &str) -> Result<Merged, String> {
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
    Ok(Merged { histogram, us_per_value: us_per_value(log), broken })
}

fn decode(base64_text: &str, deserializer: &mut Deserializer) -> Result<Histogram<u64>, String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64_text).map_err(|error| error.to_string())?;
    deserializer.deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

/// The unit from a comment in the header, such as `#Values are nanoseconds`; microseconds if there is none.
fn us_per_value(log: &[u8]) -> f64 {
    // The header is text; what follows is base64, so a few kilobytes from the start are more than it has.
    let text = String::from_utf8_lossy(&log[..log.len().min(4_096)]).to_ascii_lowercase();
    let header = text.lines().take_while(|line| line.starts_with('#'));
    let about_units = header.filter(|line| line.contains("unit") || line.contains("values"));
    let mut words = about_units.flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    let unit = words.find_map(|word| match word {
        "ns" | "nanosecond" | "nanoseconds" => Some(0.001),
        "us" | "microsecond" | "microseconds" => Some(1.0),
        _ => None,
    });
    unit.unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

    fn log(values: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        let mut writer = builder.add_comment("[Unit: us]").begin_log_with(&mut bytes, &mut serializer).unwrap();
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
        assert_eq!(merged.us_per_value, 1.0);
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

    #[test]
    fn the_unit_comes_from_the_header() {
        assert_eq!(us_per_value(b"#[Unit: ns]\n"), 0.001);
        assert_eq!(us_per_value(b"#[x]\n#Values are nanoseconds; the maximum is in milliseconds.\n"), 0.001);
        assert_eq!(us_per_value(b"#[StartTime: 1 (seconds since epoch)]\n"), 1.0);
    }
}
