//! `quads.csv`: every quad of a duet in a row, so that it can be judged again. [`super`] writes it; whoever draws duets from recorded
//! quads reads it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use weir_host::files::FileError;
use weir_model::metric::Metric;

use super::judged::{Quad, Slice, Who};

/// Name of the file.
const FILE: &str = "quads.csv";

/// The file, row by row.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    csv: csv::Writer<File>,
    metrics: &'static [Metric],
}

impl Table {
    /// A new file with its header: `start`, `order`, `omitted`, and for each metric the four slices, such as `cpu_1` to `cpu_4`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(folder: &Path, metrics: &'static [Metric]) -> Result<Table, FileError> {
        let path = folder.join(FILE);
        let mut csv = csv::Writer::from_path(&path).map_err(|e| FileError::at(&path)(e.into()))?;
        let header = ["start", "order", "omitted"].map(str::to_owned).into_iter().chain(columns(metrics));
        csv.write_record(header).map_err(|e| FileError::at(&path)(e.into()))?;
        Ok(Table { path, csv, metrics })
    }

    /// Adds a quad, and why it was left out.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn append(&mut self, quad: &Quad, omitted: Option<&str>) -> Result<(), FileError> {
        let order: String = quad.slices.iter().map(|slice| format!("{:?}", slice.who)).collect();
        let value = |metric: &Metric, nth: usize| {
            let value = quad.slices.get(nth).and_then(|slice| slice.values.get(metric));
            value.map(ToString::to_string).unwrap_or_default()
        };
        let values = self.metrics.iter().flat_map(|metric| (0..4).map(move |nth| value(metric, nth)));
        let row = [quad.start.to_string(), order, omitted.unwrap_or_default().to_owned()].into_iter().chain(values);
        let io = FileError::at(&self.path);
        self.csv.write_record(row).map_err(|e| io(e.into()))?;
        self.csv.flush().map_err(FileError::at(&self.path))
    }
}

/// The quads of a duet's folder that counted, in order.
///
/// # Errors
/// When the file cannot be read or is no such table.
pub fn read(folder: &Path, metrics: &[Metric]) -> Result<Vec<Quad>, String> {
    let path = folder.join(FILE);
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut reader = csv::Reader::from_path(&path).map_err(|e| wrong(&e))?;
    let mut quads = Vec::new();
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let row = row.map_err(|e| wrong(&e))?;
        let cell = |name: &str| row.get(name).map(String::as_str).unwrap_or_default();
        if !cell("omitted").is_empty() {
            continue;
        }
        let slice = |(nth, letter): (usize, char)| {
            let value = |metric: &Metric| Some((*metric, cell(&column(*metric, nth)).parse().ok()?));
            let who = if letter == 'A' { Who::A } else { Who::B };
            Slice { who, values: metrics.iter().filter_map(value).collect() }
        };
        let start = cell("start").parse().map_err(|_| wrong(&"start is no number"))?;
        quads.push(Quad { start, slices: cell("order").chars().enumerate().map(slice).collect() });
    }
    Ok(quads)
}

fn columns(metrics: &[Metric]) -> impl Iterator<Item = String> {
    metrics.iter().flat_map(|metric| (0..4).map(|nth| column(*metric, nth)))
}

fn column(metric: Metric, nth: usize) -> String {
    format!("{}_{}", metric.compared_name(), nth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let slice = |who, cpu: f64| Slice { who, values: [(Metric::Cpu, cpu), (Metric::Rate, 50_000.25)].into() };
        let whole = Quad { start: 3, slices: [Who::B, Who::A, Who::A, Who::B].map(|who| slice(who, 12.5)).to_vec() };
        let part = Quad { start: 4, slices: vec![slice(Who::A, 0.1)] };
        let metrics = &[Metric::Cpu, Metric::Rate];
        let mut table = Table::create(folder.path(), metrics).expect("made");
        table.append(&whole, None).expect("written");
        table.append(&part, Some("steal")).expect("written");
        table.append(&Quad { start: 5, ..whole.clone() }, None).expect("written");
        let quads = read(folder.path(), metrics).expect("read");
        assert_eq!(quads, [whole.clone(), Quad { start: 5, ..whole }]);
        let text = std::fs::read_to_string(folder.path().join(FILE)).expect("there");
        assert!(text.contains("\n4,A,steal,0.1,,,,50000.25,,,\n"), "{text}");
        assert!(read(&folder.path().join("no"), metrics).is_err());
    }
}
