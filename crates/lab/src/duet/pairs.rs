//! `pairs.csv`: every pair of a duet in a row, so that it can be judged again. [`super`] writes it; whoever draws duets from recorded
//! pairs reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_host::Storage;
use weir_host::files::FileError;
use weir_model::metric::Metric;

use super::judged::{Pair, Slice, Who};

/// Name of the file.
const FILE: &str = "pairs.csv";

/// The file, row by row.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    metrics: &'static [Metric],
}

impl Table {
    /// A new file with its header: `start`, `first` (who had the first turn), `omitted`, and each metric of both, such as `cpu_a`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(folder: &Path, metrics: &'static [Metric], storage: Arc<dyn Storage>) -> Result<Table, FileError> {
        let table = Table { path: folder.join(FILE), storage, metrics };
        let header = ["start", "first", "omitted"].map(str::to_owned).into_iter().chain(columns(metrics));
        table.add(header)?;
        Ok(table)
    }

    /// Adds a pair, and why it was left out.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn append(&self, pair: &Pair, omitted: Option<&str>) -> Result<(), FileError> {
        let first = pair.slices.first().map(|slice| format!("{:?}", slice.who)).unwrap_or_default();
        let value = |metric: &Metric, who: Who| pair.value(*metric, who).map(|v| v.to_string()).unwrap_or_default();
        let values = self.metrics.iter().flat_map(|metric| Who::BOTH.map(|who| value(metric, who)));
        let row = [pair.start.to_string(), first, omitted.unwrap_or_default().to_owned()].into_iter().chain(values);
        self.add(row)
    }

    fn add(&self, row: impl Iterator<Item = String>) -> Result<(), FileError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let bytes = writer.write_record(row).map_err(std::io::Error::from);
        let bytes = bytes.and_then(|()| writer.into_inner().map_err(|e| e.into_error()));
        bytes.and_then(|bytes| self.storage.append(&self.path, &bytes)).map_err(FileError::at(&self.path))
    }
}

/// The pairs of a duet's folder that counted, in order.
///
/// # Errors
/// When the file cannot be read or is no such table.
pub fn read(folder: &Path, metrics: &[Metric]) -> Result<Vec<Pair>, String> {
    let path = folder.join(FILE);
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut reader = csv::Reader::from_path(&path).map_err(|e| wrong(&e))?;
    let mut pairs = Vec::new();
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let row = row.map_err(|e| wrong(&e))?;
        let cell = |name: &str| row.get(name).map(String::as_str).unwrap_or_default();
        if !cell("omitted").is_empty() {
            continue;
        }
        let slice = |who| {
            let value = |metric: &Metric| Some((*metric, cell(&column(*metric, who)).parse().ok()?));
            Slice { who, values: metrics.iter().filter_map(value).collect() }
        };
        let first = if cell("first") == "A" { Who::A } else { Who::B };
        let start = cell("start").parse().map_err(|_| wrong(&"start is no number"))?;
        pairs.push(Pair { start, slices: vec![slice(first), slice(first.other())] });
    }
    Ok(pairs)
}

fn columns(metrics: &[Metric]) -> impl Iterator<Item = String> {
    metrics.iter().flat_map(|metric| Who::BOTH.map(|who| column(*metric, who)))
}

fn column(metric: Metric, who: Who) -> String {
    format!("{}_{who:?}", metric.compared_name()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let slice = |who, cpu: f64| Slice { who, values: [(Metric::Cpu, cpu), (Metric::Rate, 50_000.25)].into() };
        let whole = Pair { start: 3, slices: vec![slice(Who::B, 12.5), slice(Who::A, 12.25)] };
        let part = Pair { start: 4, slices: vec![slice(Who::A, 0.1)] };
        let metrics = &[Metric::Cpu, Metric::Rate];
        let table = Table::create(folder.path(), metrics, Arc::new(weir_host::LocalStorage)).expect("made");
        table.append(&whole, None).expect("written");
        table.append(&part, Some("steal")).expect("written");
        table.append(&Pair { start: 5, ..whole.clone() }, None).expect("written");
        let pairs = read(folder.path(), metrics).expect("read");
        assert_eq!(pairs, [whole.clone(), Pair { start: 5, ..whole }]);
        let text = std::fs::read_to_string(folder.path().join(FILE)).expect("there");
        assert!(text.contains("\n4,A,steal,0.1,,50000.25,\n"), "{text}");
        assert!(read(&folder.path().join("no"), metrics).is_err());
    }
}
