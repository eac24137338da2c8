//! Reads the published figures of each suite, built in from `suites/published/`, whose `README.md` explains the
//! columns. All other modules of this crate get the figures from here. It knows these files and no run.

use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use weir_model::text::unique;

use super::layout::Layout;
use super::machines::Machine;
use super::measures::Measure;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/figures");

/// Everything that is published of one suite.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The published numbers, one per row.
    pub figures: Vec<Figure>,
    /// The products measured, in the document's order.
    pub products: Vec<PublishedProduct>,
    /// The pictures and their axes.
    pub pictures: Vec<Picture>,
    /// The sources. The first is the published document; others are scripts beside it.
    pub documents: Vec<Document>,
    /// The machines on which it was measured.
    pub machines: Vec<Machine>,
    /// What weir has beside each metric.
    pub measures: Vec<Measure>,
    /// How its tables and pictures are laid out.
    pub layout: Layout,
}

/// One published number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Figure {
    /// The workload's name; empty in a condition that holds for all.
    pub case: String,
    /// The product's name; empty in a condition that holds for all.
    pub product: String,
    /// What else distinguishes the figure, such as `4c` or `round 3`.
    pub variant: String,
    /// Whether it was measured or asked for.
    pub kind: FigureKind,
    /// The name of the metric.
    pub metric: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The document that contains it.
    pub document: String,
    /// The line in the document.
    pub line: u32,
    /// What a reader must know.
    pub remark: String,
}

/// Whether a number was measured or asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// A result of the measurement.
    Result,
    /// A condition that was asked for.
    Condition,
}

/// A product that was measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedProduct {
    /// weir's name of the product.
    pub product: String,
    /// The document's name of the product.
    pub called: String,
    /// The product's version; empty when the document does not give it.
    pub version: String,
}

/// A published picture.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Picture {
    /// File name in the document.
    pub picture: String,
    /// The picture's title.
    pub title: String,
    /// What the vertical axis shows.
    pub y_axis: String,
    /// Its unit.
    pub y_unit: String,
    /// Its range, such as `0 to 80000`; empty when there is none.
    pub y_range: String,
    /// `linear`, `log` ...
    pub y_scale: String,
    /// The document that contains it.
    pub document: String,
    /// The line in the document.
    pub line: u32,
}

/// A source of figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Document {
    /// The name by which the other files refer to it.
    pub document: String,
    /// Its title.
    pub title: String,
    /// The revision that was read.
    pub address: String,
}

/// Everything published of the suite of that name; `None` when there is nothing.
pub fn source(suite: &str) -> Option<Source> {
    read_built_in(&format!("{suite}.csv"))?;
    Source::parse(suite, &read_built_in).ok()
}

pub(super) fn read_built_in(name: &str) -> Option<&'static str> {
    FILES.get_file(name).and_then(|file| file.contents_utf8())
}

/// The rows of a file that belong to the suite, or to all of them.
fn rows<T: DeserializeOwned>(suite: &str, name: &str, text: &str) -> Result<Vec<T>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let read = |reader: &mut csv::Reader<&[u8]>| -> Result<Vec<T>, csv::Error> {
        let header = reader.headers()?.clone();
        let column = header.iter().position(|name| name == "suite").unwrap_or(0);
        let records = reader.records().collect::<Result<Vec<_>, _>>()?;
        let own = records.iter().filter(|record| record.get(column).is_some_and(|of| of == suite || of.is_empty()));
        own.map(|record| record.deserialize(Some(&header))).collect()
    };
    read(&mut reader).map_err(|error| format!("{name}: {error}"))
}

impl Source {
    /// What the files have of a suite. `text` returns a file by its name.
    fn parse(suite: &str, text: &dyn Fn(&str) -> Option<&'static str>) -> Result<Source, String> {
        let file = |name: &str| text(name).ok_or_else(|| format!("{name} is not there"));
        let figures = format!("{suite}.csv");
        Ok(Source {
            figures: rows(suite, &figures, file(&figures)?)?,
            products: rows(suite, "products.csv", file("products.csv")?)?,
            pictures: rows(suite, "pictures.csv", file("pictures.csv")?)?,
            documents: rows(suite, "documents.csv", file("documents.csv")?)?,
            machines: rows(suite, "machines.csv", file("machines.csv")?)?,
            measures: rows(suite, "measures.csv", file("measures.csv")?)?,
            layout: Layout::parse(suite, file("layout.toml")?)?,
        })
    }

    /// The document's name of a product.
    pub fn called<'a>(&'a self, product: &'a str) -> &'a str {
        let known = self.products.iter().find(|measured| measured.product == product);
        known.map_or(product, |measured| measured.called.as_str())
    }

    /// The results of one metric.
    pub fn results<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Figure> {
        self.figures.iter().filter(move |figure| figure.kind == FigureKind::Result && figure.metric == metric)
    }

    /// A result by its full key.
    pub fn result(&self, case: &str, product: &str, variant: &str, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| {
            f.kind == FigureKind::Result
                && f.metric == metric
                && f.case == case
                && f.product == product
                && f.variant == variant
        })
    }

    /// A condition that was asked for. Where several apply, the one closest to the case, product and variant.
    pub fn condition(&self, case: &str, product: &str, variant: &str, metric: &str) -> Option<&Figure> {
        let holds = |own: &str, asked: &str| own.is_empty() || own == asked;
        let exact = |f: &Figure| {
            usize::from(f.case == case) + usize::from(f.product == product) + usize::from(f.variant == variant)
        };
        self.figures
            .iter()
            .filter(|f| f.kind == FigureKind::Condition && f.metric == metric)
            .filter(|f| holds(&f.case, case) && holds(&f.product, product) && holds(&f.variant, variant))
            .max_by_key(|f| exact(f))
    }

    /// Names of the cases that have a result, in the document's order.
    pub fn cases(&self) -> Vec<&str> {
        let results = self.figures.iter().filter(|figure| figure.kind == FigureKind::Result);
        unique(results.map(|figure| figure.case.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_files_can_be_read() {
        let suites = ["monolake", "easegress", "juno", "spring-cloud-gateway", "loggly"];
        let sources = suites.map(|suite| Source::parse(suite, &read_built_in).unwrap());
        let sum = |of: fn(&Source) -> usize| sources.iter().map(of).sum::<usize>();
        assert!(sum(|s| s.figures.len()) > 1_000 && sum(|s| s.products.len()) > 15 && sum(|s| s.pictures.len()) > 25);
        assert!(sources.iter().all(|source| !source.products.is_empty() && !source.documents.is_empty()));
        assert!(source("quick").is_none() && source("").is_none());
    }

    #[test]
    fn a_file_that_is_missing_or_broken_is_named() {
        let with = |other: &str, text: Option<&'static str>| {
            Source::parse("loggly", &|name| if name == other { text } else { read_built_in(name) }).unwrap_err()
        };
        assert_eq!(with("pictures.csv", None), "pictures.csv is not there");
        assert!(with("products.csv", Some("suite\nloggly\n")).starts_with("products.csv: "));
        assert!(with("layout.toml", Some("[[tabel]]")).contains("tabel"));
    }

    #[test]
    fn the_closest_condition_is_found() {
        let source = source("monolake").unwrap();
        let offered = |case, product| source.condition(case, product, "4c", "rate-offered").map(|f| f.value);
        assert_eq!(offered("http-tiny", "nginx"), Some(210_000.0));
        assert_eq!(offered("http-tiny", "nobody"), None);
        assert_eq!(source.condition("http-tiny", "nginx", "4c", "cores").map(|f| f.value), Some(4.0));
        assert_eq!(source.condition("http-tiny", "nginx", "16c", "cores").map(|f| f.value), Some(16.0));
        assert_eq!(source.called("nginx"), "nginx");
        assert_eq!(source.cases()[..2], ["http-tiny", "http-small"]);
    }
}
