//! The page of a product: its versions, and for each question how it stood in every run, as a table and, over several runs, a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_model::metric::Metric;
use weir_model::suite::Entry;
use weir_model::text::{Unit, counted, csv_cell, grouped};
use weir_stats::Estimate;

use super::recorded::{Answer, Question, Recorded};
use super::{SHOWN, SHOWN_METRICS, safe, shortened, untaken};
use crate::charts::axis::Axis;
use crate::charts::{Chart, ChartKind, CurvePoint, Line, better};
use crate::error::{DrawError, ReportError};
use crate::extra::{ExtraSection, Item};
use crate::page::{ChartFiles, Links, SectionsPage};
use crate::palette::style;
use crate::summary::Row;
use crate::tables::{Cell, Column, RowKind, Table, TableOf, metric_cell, rank_words, row_kind, short_hash};

/// The way from a product's page to the site's folder.
const ROOT: &str = "../";

/// A product in all runs.
pub(super) struct Product<'a> {
    /// As a part of a path.
    pub name: String,
    /// As its makers write it, in the newest run.
    pub title: String,
    /// Newest first.
    pub runs: Vec<&'a Recorded>,
    /// What it did, by question.
    asked: Vec<(&'a Question<'a>, Vec<Stood<'a>>)>,
}

/// How a product stood in a run.
#[derive(Clone, Copy)]
struct Stood<'a> {
    answer: Answer<'a>,
    row: &'a Row,
}

/// The products of all runs by name, without the direct path.
pub(super) fn all<'a>(questions: &'a [Question<'a>]) -> Vec<Product<'a>> {
    let mut by_name: BTreeMap<String, Vec<(usize, Stood<'a>)>> = BTreeMap::new();
    for (nth, question) in questions.iter().enumerate() {
        for answer in &question.answers {
            for row in &answer.section.rows {
                by_name.entry(safe(&row.entry.product)).or_default().push((nth, Stood { answer: *answer, row }));
            }
        }
    }
    let product = |(name, stood): (String, Vec<(usize, Stood<'a>)>)| {
        let mut runs: Vec<&Recorded> = Vec::new();
        let mut seen = BTreeSet::new();
        runs.extend(stood.iter().map(|(_, stood)| stood.answer.run).filter(|run| seen.insert(run.id.as_str())));
        runs.sort_by(|a, b| (b.started(), &b.id).cmp(&(a.started(), &a.id)));
        let newest = stood.iter().max_by_key(|(_, stood)| stood.answer.run.started());
        let title = newest.map(|(_, stood)| stood.row.title.clone()).unwrap_or_default();
        let asked = grouped(stood).into_iter().map(|(nth, stood)| (&questions[nth], stood)).collect();
        Product { name, title, runs, asked }
    };
    by_name.into_iter().map(product).collect()
}

impl Product<'_> {
    /// The address of its page, from the site's folder.
    pub fn address(&self) -> String {
        address(&self.name)
    }

    /// Its version in its newest run; empty where that is not known.
    pub fn version(&self) -> &str {
        self.runs.first().and_then(|run| version_in(run, &self.name)).unwrap_or_default()
    }
}

/// The address of a product's page, from the site's folder.
pub(super) fn address(product: &str) -> String {
    format!("products/{}.html", safe(product))
}

fn version_in<'a>(run: &'a Recorded, product: &str) -> Option<&'a str> {
    let products = run.run.environment.iter().flat_map(|environment| &environment.products);
    products.into_iter().find(|facts| safe(&facts.name) == product).map(|facts| facts.version.as_str())
}

/// Writes the page of a product and its files.
///
/// # Errors
/// When a file cannot be written or drawn.
pub(super) fn write(product: &Product<'_>, site: &Path) -> Result<(), ReportError> {
    let mut sections = vec![ExtraSection::new("versions", "Versions", vec![Item::Table(versions(product))])];
    let mut taken = BTreeSet::from(["versions".to_owned()]);
    for (question, stood) in &product.asked {
        let Some(newest) = question.answers.first() else { continue };
        let id = untaken(newest.section.slug(), &mut taken);
        let all = table(&id, question, stood);
        let file = format!("{id}.csv");
        let rows = all.rows.len();
        let mut items: Vec<Item> = chart(&id, question, stood).map(Item::from).into_iter().collect();
        items.push(if rows > SHOWN {
            let csv = csv(stood).map_err(ReportError::draw(&file))?;
            Item::Listed { table: shortened(all, &format!("{file} has all")), csv, file }
        } else {
            Item::Table(all)
        });
        sections.push(ExtraSection::new(&id, &question.words, items));
    }
    let runs = counted(product.runs.len() as u64, "run");
    let page = SectionsPage {
        links: Links::of_site(ROOT, &product.name, ChartFiles::Pictures, None),
        brand: &product.title,
        heading: &product.title,
        words: vec![format!(
            "{} in {runs}. Its numbers on two machines compare the machines; its ranks are among the products of each run.",
            product.title
        )],
        sections,
        repeat: vec![(
            "Each run's page, behind its date, has the run.toml that repeats it:".to_owned(),
            "weir run run.toml".to_owned(),
        )],
        ..SectionsPage::default()
    };
    page.write(&site.join(product.address())).map(drop)
}

/// A version that was run, and in which runs.
struct Version<'a> {
    version: &'a str,
    sha256: &'a str,
    runs: Vec<&'a Recorded>,
}

fn versions(product: &Product<'_>) -> Table {
    let facts = product.runs.iter().flat_map(|run| {
        let products = run.run.environment.iter().flat_map(|environment| &environment.products);
        let own = products.filter(|facts| safe(&facts.name) == product.name);
        own.map(|facts| ((facts.version.as_str(), facts.sha256.as_str()), *run))
    });
    let rows: Vec<Version<'_>> =
        grouped(facts).into_iter().map(|((version, sha256), runs)| Version { version, sha256, runs }).collect();
    let mut table = TableOf::<Version<'_>>::new();
    table.add(Column::text("Version"), |row| row.version.to_owned());
    table.add(Column::text("SHA-256"), |row| match row.sha256 {
        "" => Cell::none(),
        hash => Cell::from(short_hash(hash)),
    });
    table.add(Column::text("First run"), |row| row.runs.last().map(|run| run.date_cell(ROOT)));
    table.add(Column::text("Newest run"), |row| row.runs.first().map(|run| run.date_cell(ROOT)));
    table.add(Column::number("Runs", ""), |row| Cell::count(row.runs.len() as u64));
    table.table("versions-table", "Versions that were run", &rows, |_| RowKind::Plain)
}

/// How the product stood in each run, newest first.
fn table(id: &str, question: &Question<'_>, stood: &[Stood<'_>]) -> Table {
    let mut table = TableOf::<Stood<'_>>::new();
    table
        .add(Column::text("Run"), |it| Cell::from(it.answer.run.date()).link(format!("{ROOT}{}", it.answer.address())));
    table.add(Column::text("Machine"), |it| it.answer.run.machine.clone());
    table.add(Column::text("Version"), |it| it.row.version.clone().map(Cell::from));
    table.add(Column::text("Profile"), |it| it.row.entry.profile.clone());
    table.add(
        Column::text("Rank").help("The best and the worst rank that the intervals allow, and of how many."),
        |it| {
            let of = it.answer.section.rows.iter().filter(|row| row.rank.is_some()).count();
            match it.row.rank {
                Some(rank) => {
                    Cell::number(format!("{} of {of}", rank_words(rank)), rank.0 as f64 + rank.1 as f64 / 1e3)
                }
                None => Cell::number("not ranked", 1e9),
            }
        },
    );
    for (metric, unit) in SHOWN_METRICS {
        let column = Column::number(metric.entry().title, unit.name).help(metric.entry().help);
        table.add(column, move |it| metric_cell(it.row, metric, unit));
    }
    table.table(format!("{id}-runs"), format!("Every run: {}", question.words), stood, |it| row_kind(it.row))
}

/// The same as CSV: times in microseconds.
fn csv(stood: &[Stood<'_>]) -> Result<String, DrawError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let plain = ["run", "started", "machine", "workload", "load", "version", "profile", "rank_low", "rank_high"];
    let numbers = [(Metric::Rate, "rate"), (Metric::P99, "p99_us"), (Metric::Cpu, "cpu_us")];
    let names = numbers.iter().flat_map(|(_, name)| ["", "_low", "_high"].map(|end| format!("{name}{end}")));
    writer.write_record(plain.map(str::to_owned).into_iter().chain(names))?;
    for Stood { answer, row } in stood {
        let (run, section) = (answer.run, answer.section);
        let [low, high] =
            row.rank.map_or([String::new(), String::new()], |(low, high)| [low.to_string(), high.to_string()]);
        let plain = [run.id.as_str(), run.started(), &run.machine, &section.workload, &section.load];
        let own = [row.version.as_deref().unwrap_or_default(), &row.entry.profile, &low, &high];
        let ends = |estimate: Estimate| [estimate.value, estimate.low, estimate.high].map(|number| number.to_string());
        let values = numbers.iter().flat_map(|(metric, _)| row.of(*metric).map_or_else(Default::default, ends));
        writer.write_record(plain.into_iter().chain(own).map(csv_cell).chain(values))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// What the question ranks by over the runs of each machine; `None` where no machine has two.
fn chart(id: &str, question: &Question<'_>, stood: &[Stood<'_>]) -> Option<Chart> {
    let metric = question.ranked_by();
    let unit = if metric == Metric::Rate { Unit::PER_SECOND } else { Unit::MILLIS };
    let of = |it: &Stood<'_>| (it.answer.run.machine.clone(), it.row.entry.profile.clone());
    let series: Vec<((String, String), Vec<Stood<'_>>)> = grouped(stood.iter().rev().map(|it| (of(it), *it)));
    let profiles = series.iter().any(|((_, profile), _)| *profile != series[0].0.1);
    // A machine has the place of a product: one colour, and a profile its shade.
    let entries: Vec<Entry> = series
        .iter()
        .map(|((machine, profile), _)| Entry { product: machine.clone(), profile: profile.clone() })
        .collect();
    let curve = |(entry, (_, stood)): (&Entry, &(_, Vec<Stood<'_>>))| {
        let point = |(nth, it): (usize, &Stood<'_>)| {
            let point = CurvePoint::of(nth as f64 + 1.0, &it.row.of(metric)?, unit.size);
            Some(CurvePoint { hollow: it.row.rank.is_none(), ..point })
        };
        let newest = &stood[stood.len().saturating_sub(SHOWN)..];
        let points: Vec<CurvePoint> = newest.iter().enumerate().filter_map(point).collect();
        let name = if profiles { format!("{}, {}", entry.product, entry.profile) } else { entry.product.clone() };
        let look = style(entry, &entries);
        (points.len() > 1).then_some(Line { name, colour: look.colour, dash: look.dash, points, ..Line::default() })
    };
    let curves: Vec<Line> = entries.iter().zip(&series).filter_map(curve).collect();
    let words: Vec<String> =
        curves.iter().map(|curve| format!("{}: {}", curve.name, counted(curve.points.len() as u64, "run"))).collect();
    (!curves.is_empty()).then(|| Chart {
        name: format!("{id}-runs"),
        title: format!("{} over runs", metric.entry().title),
        subtitle: format!(
            "{} A line for each machine: its newest runs, {SHOWN} at most, the newest on the right.",
            better(metric)
        ),
        alt: format!("{} over runs, by machine. {}.", metric.entry().title, words.join("; ")),
        notes: vec![
            "Medians over the blocks of each run; whiskers are the interval of the median. Hollow: not ranked."
                .to_owned(),
        ],
        kind: ChartKind::lines(Axis::linear("Run", ""), Axis::of_metric(metric, unit), curves, Vec::new()),
    })
}
