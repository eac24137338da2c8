//! Reads what was published of each suite: figures with their variants, products and versions, measures, and differences between suite
//! and document. The files are built in from `suites/published/`, whose `README.md` explains them. The module knows no run.

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_model::metric::Window;
use weir_model::record::Measurement;
use weir_model::text::unique;
use weir_model::version::is_below;

use crate::layout::{Layout, fits};
use crate::machines::Machine;

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
    pub documents: Vec<SourceDocument>,
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
pub struct SourceDocument {
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

/// A row: the metrics that its pattern matches.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Measure {
    /// The name of the metric; a star matches anything.
    metric: String,
    /// The metrics that stand together in lists and in the picture.
    pub group: String,
    /// How the published number and ours compare.
    pub compare: Compare,
    /// The metric that ours is taken of; empty: the same.
    #[serde(rename = "as")]
    stands_for: String,
    /// The meaning of weir's figure where it differs, or the reason why there is none.
    pub note: String,
}

/// How a published number and ours compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// By their ratio.
    Value,
    /// By the ratio of their shares of the requests, of which there may be another number here.
    Share,
    /// Not at all: they stand side by side.
    Beside,
    /// weir does not take it.
    None,
}

impl Measure {
    /// The metric that ours is taken of.
    pub fn ours<'a>(&'a self, metric: &'a str) -> &'a str {
        if self.stands_for.is_empty() { metric } else { &self.stands_for }
    }
}

impl Source {
    /// Returns weir's counterpart of a metric: the first row that matches it. `None` for a metric of no figure.
    pub fn measure(&self, metric: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| fits(&measure.metric, metric))
    }

    /// Why weir does not take a metric; `None` where it does.
    pub fn not_taken(&self, metric: &str) -> Option<&str> {
        let measure = self.measure(metric).filter(|measure| measure.compare == Compare::None)?;
        Some(&measure.note)
    }
}

/// The difference between figures of the same case and product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Variant {
    /// Nothing: the figure is for the whole case.
    Whole,
    /// `4c`: the number of cores of the proxy's machine.
    Cores(u32),
    /// `round 3`: the third measurement without a restart, or the third point of another series.
    Round(u32),
    /// `50000 connections`: a point of a curve, which `points` finds.
    Connections(u32),
    /// `10000 requests/s`: the same.
    Rate(f64),
    /// `top`: the proxy's machine, at a moment of the measurement.
    Machine,
    /// `pid 33301`: one process of the product, at such a moment.
    Process(u32),
    /// A variant without a counterpart in a measurement, such as a process of another program.
    Other,
}

impl Variant {
    pub fn parse(text: &str) -> Variant {
        let number = |prefix: &str, suffix: &str| text.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok();
        let known = match text {
            "" => Some(Variant::Whole),
            "top" => Some(Variant::Machine),
            _ => number("", "c").map(Variant::Cores),
        };
        let known = known.or_else(|| number("round ", "").map(Variant::Round));
        let known = known.or_else(|| number("", " connections").map(Variant::Connections));
        let known = known.or_else(|| number("pid ", "").map(Variant::Process));
        let rate = text.strip_suffix(" requests/s").and_then(|number| number.parse().ok());
        known.or(rate.map(Variant::Rate)).unwrap_or(Variant::Other)
    }

    /// The part of a measurement that the variant belongs to; `None` when there is none.
    pub fn window(self, measurement: &Measurement) -> Option<Window<'_>> {
        match self {
            Variant::Whole | Variant::Cores(_) | Variant::Machine => Window::of_trial(measurement),
            Variant::Round(round) => measurement.points.iter().find(|point| point.point == round).map(Window::of_point),
            Variant::Connections(_) | Variant::Rate(_) | Variant::Process(_) | Variant::Other => None,
        }
    }
}

const FILE: &str = "differences.toml";

/// One difference between the suites and their documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The suites that it holds for; empty: all that repeat a document.
    #[serde(default)]
    suites: Vec<String>,
    /// Sentences, with code in backticks.
    text: String,
    /// Metrics of published conditions that the suites do not ask for, for that reason.
    #[serde(default)]
    pub conditions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    difference: Vec<Difference>,
}

impl Difference {
    /// The sentences as plain text.
    pub fn plain(&self) -> String {
        self.text.replace('`', "")
    }
}

/// The differences of a suite, in the file's order. A suite that repeats no document has only those that hold for all.
pub fn differences(suite: &str) -> Vec<Difference> {
    let all = read_built_in(FILE).and_then(|text| parse(text).ok()).unwrap_or_default();
    all.into_iter().filter(|one| one.suites.is_empty() || one.suites.iter().any(|own| own == suite)).collect()
}

fn parse(text: &str) -> Result<Vec<Difference>, toml::de::Error> {
    toml::from_str::<File>(text).map(|file| file.difference)
}

/// A document in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// The revision that was read.
    pub address: String,
    /// The products whose versions it gives, each as `Nginx 1.18.0`.
    pub products: Vec<String>,
    /// Its machines, each as `proxy (4c): c5a.xlarge (4 vCPUs, ...)`.
    pub machines: Vec<String>,
    /// The differences between the suite and the document, a few sentences each.
    pub differences: Vec<String>,
}

/// The document that a suite repeats; `None` where nothing was published of it.
pub fn document(suite: &str) -> Option<Document> {
    let source = source(suite)?;
    let first = source.documents.first()?;
    Some(Document {
        title: first.title.clone(),
        address: first.address.clone(),
        products: published(&source.products),
        machines: source.machines.iter().map(|one| format!("{}: {}", one.roles(), one.words())).collect(),
        differences: differences(suite).iter().map(Difference::plain).collect(),
    })
}

/// The products of a suite's document that are here in another version, each as `Nginx 1.18.0, here 1.22.1`. `here` returns the
/// version of a product of the run by its name; products that the run does not have, and those whose version the document does
/// not give, are not among them. Empty when nothing was published of the suite.
pub fn other_versions<'a>(suite: &str, here: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    source(suite).map_or_else(Vec::new, |source| differing(&source.products, here))
}

/// The products and their versions as published, where the document gives them.
pub(super) fn published(products: &[PublishedProduct]) -> Vec<String> {
    let with_version = products.iter().filter(|product| !product.version.is_empty());
    with_version.map(|product| format!("{} {}", product.called, product.version)).collect()
}

pub(super) fn differing<'a>(products: &[PublishedProduct], here: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let differs = |product: &&PublishedProduct| !product.version.is_empty();
    let words = |product: &PublishedProduct| {
        let (published, here) = (product.version.as_str(), here(&product.product)?);
        let other = is_below(published, here) || is_below(here, published);
        other.then(|| format!("{} {published}, here {here}", product.called))
    };
    products.iter().filter(differs).filter_map(words).collect()
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

#[cfg(test)]
mod measures_tests {
    use super::*;

    const SUITES: [&str; 5] = ["monolake", "easegress", "juno", "spring-cloud-gateway", "loggly"];

    #[test]
    fn every_result_has_a_measure_and_every_measure_a_result() {
        let sources = SUITES.map(|suite| source(suite).unwrap());
        let mut used: Vec<&Measure> = Vec::new();
        for source in &sources {
            for figure in source.figures.iter().filter(|figure| figure.kind == FigureKind::Result) {
                let measure = source.measure(&figure.metric).unwrap_or_else(|| panic!("{}", figure.metric));
                assert_eq!(measure.compare == Compare::None, source.not_taken(&figure.metric).is_some());
                assert!(measure.compare != Compare::None || !measure.note.is_empty(), "{measure:?}");
                used.push(measure);
            }
        }
        for measure in sources.iter().flat_map(|source| &source.measures) {
            assert!(used.contains(&measure), "no result is of {measure:?}");
        }
    }

    /// The numbers in `suites/published/README.md`.
    #[test]
    fn most_published_results_are_of_measures_that_weir_takes() {
        let counts = SUITES.map(|suite| {
            let source = source(suite).unwrap();
            let results = || source.figures.iter().filter(|figure| figure.kind == FigureKind::Result);
            let others = results().filter(|figure| figure.variant.contains("another program")).count();
            let none = results().filter(|figure| source.not_taken(&figure.metric).is_some()).count();
            (suite, results().count(), results().count() - others - none)
        });
        let expected = [
            ("monolake", 128, 128),
            ("easegress", 453, 436),
            ("juno", 82, 82),
            ("spring-cloud-gateway", 77, 76),
            ("loggly", 206, 166),
        ];
        assert_eq!(counts, expected);
        let text = include_str!("../../../suites/published/README.md");
        for (suite, all, taken) in counts {
            assert!(text.contains(&format!("| {suite} | {all} | {taken} |")), "README.md: {suite} {all} {taken}");
        }
    }
}

#[cfg(test)]
mod variant_tests {
    use super::*;

    #[test]
    fn variants_are_told_apart() {
        use Variant::{Connections, Cores, Machine, Other, Process, Rate, Round, Whole};
        let all = ["", "4c", "16c", "round 3", "200 connections", "5e3 requests/s"].map(Variant::parse);
        assert_eq!(all, [Whole, Cores(4), Cores(16), Round(3), Connections(200), Rate(5e3)]);
        let listed = ["top", "pid 34028", "pid 491 (another program)", "c"].map(Variant::parse);
        assert_eq!(listed, [Machine, Process(34_028), Other, Other]);
    }
}

#[cfg(test)]
mod differences_tests {
    use super::*;
    use weir_model::text::{list, wrapped};

    fn all() -> Vec<Difference> {
        parse(include_str!("../../../suites/published/differences.toml")).expect("valid")
    }

    const HEAD: &str = "# Differences between the suites and their documents

Made from `differences.toml` (`WEIR_BLESS=1 cargo test -p weir-published`). `weir run SUITE --as-published --dry-run` and the reports show
these sentences, too.

";

    /// `WEIR_BLESS=1` writes the page.
    #[test]
    fn the_page_has_every_difference() {
        let item = |one: &Difference| {
            let suites: Vec<String> = one.suites.iter().map(|suite| format!("`{suite}`")).collect();
            let head = if suites.is_empty() { String::new() } else { format!("{}: ", list(&suites)) };
            wrapped(&format!("- {head}{}", one.text), 128, 2) + "\n"
        };
        let wanted = all().iter().map(item).fold(HEAD.to_owned(), |page, item| page + &item);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/published/DIFFERENCES.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&path, &wanted).expect("written");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("read"), wanted, "WEIR_BLESS=1 writes it");
    }

    #[test]
    fn each_is_of_suites_with_a_document_and_says_something() {
        for one in all() {
            assert!(one.suites.iter().all(|suite| source(suite).is_some()), "{one:?}");
            assert!(one.text.ends_with('.') && one.text.matches('`').count() % 2 == 0, "{one:?}");
        }
        assert!(parse("[[difference]]\nsuites = []\ntxt = \"\"").is_err());
    }

    #[test]
    fn a_suite_has_its_own_and_those_of_all() {
        let own = differences("juno");
        assert!(own.iter().any(|one| one.suites.is_empty()) && own.iter().any(|one| one.suites == ["juno"]));
        assert!(own.iter().all(|one| one.suites.is_empty() || one.suites.contains(&"juno".to_owned())));
        assert!(own.iter().all(|one| !one.plain().contains('`')));
    }
}

#[cfg(test)]
mod document_tests {
    use super::*;

    #[test]
    fn it_has_what_a_reader_needs_before_the_run() {
        let monolake = document("monolake").expect("published");
        assert!(monolake.address.starts_with("https://"), "{monolake:?}");
        assert_eq!(monolake.products, ["traefik 3.0.0-rc1", "envoy 1.31.0"]);
        assert_eq!(monolake.machines[2], "proxy (4c): c5a.xlarge (4 vCPUs, 8 GiB, up to 10 Gbit/s)");
        assert!(!monolake.differences.is_empty());
        assert_eq!(document("quick"), None);
    }
}

#[cfg(test)]
mod versions_tests {
    use super::*;

    #[test]
    fn only_other_versions_are_named() {
        let here = |product: &str| match product {
            "nginx" => Some("1.18.0"),
            "traefik" => Some("3.7.15"),
            _ => None,
        };
        assert_eq!(other_versions("easegress", here), ["Traefik 2.4.9, here 3.7.15"]);
        assert!(other_versions("easegress", |_| None).is_empty());
        assert!(other_versions("quick", here).is_empty(), "nothing was published of it");
    }

    #[test]
    fn a_version_that_the_document_does_not_give_is_no_other() {
        assert!(other_versions("monolake", |product| (product == "nginx").then_some("1.31.3")).is_empty());
    }
}
