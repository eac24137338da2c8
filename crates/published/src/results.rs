//! Lays each published result beside this run's number: one line for each profile under which its product ran, or one that says why there
//! is no number. The lines become counts, a table and `published.csv`.

use weir_model::suite::Entry;
use weir_model::text::{Unit, count, csv_cell, grouped, list, short, unique};
use weir_report::run::BASELINE;
use weir_report::summary::{LEVEL, SEED};
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};
use weir_stats::{Estimate, median_interval};

use crate::figures::{Compare, Figure, FigureKind, Measure, Source, Variant};
use crate::numbers::{Numbers, unit_size};
use crate::pairs;
use crate::run_cases::Context;

/// A published result and its counterpart in this run.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub figure: &'a Figure,
    pub measure: &'a Measure,
    pub ours: Ours<'a>,
}

/// The counterpart of a published result in this run.
#[derive(Debug, Clone)]
pub(super) enum Ours<'a> {
    /// A number.
    Measured(Measured<'a>),
    /// The product or the case was not run; the sentence says which.
    NotRun(String),
    /// It was run, and there is no such thing here; the sentence says why.
    NoCounterpart(String),
    /// weir does not take this measure.
    NotTaken,
}

/// A measured number.
#[derive(Debug, Clone)]
pub(super) struct Measured<'a> {
    pub entry: &'a Entry,
    /// No other profile of the product repeats the document more closely.
    pub closest: bool,
    /// In the figure's unit.
    pub value: Estimate,
    /// Ours divided by theirs, of metrics that compare; `None` where theirs is 0.
    pub ratio: Option<Estimate>,
    /// The remark on this number.
    pub remark: String,
    /// Shown and not ranked.
    pub invalid: bool,
}

/// A transfer that was more by this share on the wire than after decryption is shown as both.
const ENCRYPTED: f64 = 0.001;

impl Line<'_> {
    /// The measured number.
    pub fn measured(&self) -> Option<&Measured<'_>> {
        match &self.ours {
            Ours::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    /// The remark on weir's number, or the reason why there is none.
    pub fn note(&self) -> String {
        match &self.ours {
            Ours::NotRun(why) | Ours::NoCounterpart(why) => why.clone(),
            Ours::NotTaken => self.measure.note.clone(),
            Ours::Measured(own) => {
                let parts = [self.measure.note.as_str(), &own.remark].into_iter().filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// A line or more for each published result, in the document's order.
pub(super) fn lines<'a>(context: &Context<'a>) -> Vec<Line<'a>> {
    let source = context.source;
    let results = source.figures.iter().filter(|figure| figure.kind == FigureKind::Result);
    let of_figure = |figure: &'a Figure| {
        let measure = source.measure(&figure.metric)?;
        let ours = if measure.compare == Compare::None {
            vec![Ours::NotTaken]
        } else {
            counterparts(context, figure, measure)
        };
        Some(ours.into_iter().map(move |ours| Line { figure, measure, ours }).collect::<Vec<_>>())
    };
    results.filter_map(of_figure).flatten().collect()
}

fn counterparts<'a>(context: &Context<'a>, figure: &'a Figure, measure: &'a Measure) -> Vec<Ours<'a>> {
    if Variant::parse(&figure.variant) == Variant::Other {
        return vec![Ours::NoCounterpart("it is of another program than the product".to_string())];
    }
    let Some(case) = context.cases.case(&figure.case) else {
        return vec![Ours::NotRun(format!("{} was not run", figure.case))];
    };
    let entries = context.cases.entries(&figure.product).into_iter();
    let entries: Vec<&Entry> = entries.filter(|entry| !case.usable_trials(entry).is_empty()).collect();
    if entries.is_empty() {
        let skipped = context.cases.run.environment.iter().flat_map(|environment| &environment.skipped);
        let why = skipped.filter(|skipped| skipped.product == figure.product).map(|skipped| &skipped.why).next();
        let because = why.map(|why| format!(": it {why}")).unwrap_or_default();
        return vec![Ours::NotRun(format!("{} was not run{because}", context.source.called(&figure.product)))];
    }
    let numbers = Numbers { context, case, figure, metric: measure.ours(&figure.metric) };
    let measured = entries.iter().enumerate().filter_map(|(place, entry)| {
        let (value, ratio) = numbers.estimates(measure, entry)?;
        let remark = numbers.on_the_wire(entry, value.value).unwrap_or_default();
        Some(Measured { entry, closest: place == 0, value, ratio, remark, invalid: case.invalid(entry) })
    });
    let measured: Vec<Ours<'_>> = measured.map(Ours::Measured).collect();
    if measured.is_empty() { vec![Ours::NoCounterpart(numbers.why_none())] } else { measured }
}

impl Numbers<'_, '_> {
    /// Names the bytes on the wire of a transfer over TLS; `None` for all else.
    fn on_the_wire(&self, entry: &Entry, plaintext: f64) -> Option<String> {
        let (figure, cases) = (self.figure, self.context.cases);
        if figure.metric != "transfer" {
            return None;
        }
        let wire = cases.estimate(self.case, Variant::parse(&figure.variant), entry, "transfer-wire")?;
        let wire = wire.value / unit_size(&figure.unit)?;
        (wire > plaintext * (1.0 + ENCRYPTED)).then(|| format!("on the wire {} {}", short(wire), figure.unit))
    }

    /// The number of an entry in the figure's unit, and its ratio to the published one.
    fn estimates(&self, measure: &Measure, entry: &Entry) -> Option<(Estimate, Option<Estimate>)> {
        let (figure, cases) = (self.figure, self.context.cases);
        let size = unit_size(&figure.unit)?;
        let by_block = cases.each_block(self.case, entry, &|trial| self.of_trial(trial));
        let value = median_interval(&scaled(&by_block, size), LEVEL, SEED)?;
        let published = figure.value * size;
        let ratios = match measure.compare {
            Compare::Value => scaled(&by_block, published),
            Compare::Share => {
                let requests = pairs::requests(self.context.source, &figure.case, &figure.product, &figure.variant)?;
                let own = cases.each_block(self.case, entry, &|trial| self.requests(trial));
                let shares: Vec<f64> = by_block.iter().zip(own).map(|(value, requests)| value / requests).collect();
                scaled(&shares, published / requests)
            }
            Compare::Beside | Compare::None => Vec::new(),
        };
        let ratio = Some(ratios).filter(|ratios| published > 0.0 && !ratios.is_empty());
        Some((value, ratio.and_then(|ratios| median_interval(&ratios, LEVEL, SEED))))
    }
}

fn scaled(values: &[f64], size: f64) -> Vec<f64> {
    values.iter().map(|value| value / size).collect()
}

/// Things by the group of the line that each belongs to, in the order of the table of measures.
pub(super) fn by_group<'l, T>(
    source: &'l Source,
    things: impl Iterator<Item = (&'l Line<'l>, T)>,
) -> Vec<(&'l str, Vec<T>)> {
    let mut groups = grouped(things.map(|(line, thing)| (line.measure.group.as_str(), thing)));
    groups.sort_by_key(|(group, _)| source.measures.iter().position(|measure| measure.group == *group));
    groups
}

/// The file of all published results beside ours, in the report's folder.
pub(super) const FILE: &str = "published.csv";

/// How many published results there are, by what stands beside them: measured, not run, no counterpart, not taken.
type Counts = [u64; 4];

/// Counts each figure once, whatever the number of its lines.
fn count_kinds<'l>(lines: impl Iterator<Item = &'l Line<'l>>) -> Counts {
    let mut counts = Counts::default();
    for line in lines {
        match &line.ours {
            Ours::Measured(measured) => counts[0] += u64::from(measured.closest),
            Ours::NotRun(_) => counts[1] += 1,
            Ours::NoCounterpart(_) => counts[2] += 1,
            Ours::NotTaken => counts[3] += 1,
        }
    }
    counts
}

/// How many of the published results stand beside a number of this run, and why the others do not.
pub(super) fn sentence(lines: &[Line<'_>]) -> String {
    let counts = count_kinds(lines.iter());
    let [measured, not_run, no_counterpart, not_taken] = counts;
    let others = [
        (not_run, "of products or cases that were not run"),
        (no_counterpart, "without a counterpart here"),
        (not_taken, "of measures that weir does not take"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", count(n)));
    let others: Vec<String> = others.collect();
    let rest = if others.is_empty() { String::new() } else { format!(": {}", list(&others)) };
    let more = match not_run {
        0 => String::new(),
        _ => format!(" With every product and case it could be {}.", count(measured + not_run)),
    };
    let (all, measured) = (count(counts.iter().sum()), count(measured));
    format!("Of {all} published results {measured} stand beside a number of this run{rest}.{more}")
}

/// The published results of each kind of measure, by what stands beside them.
pub(super) fn counts(context: &Context<'_>, lines: &[Line<'_>]) -> Table {
    let by_group = by_group(context.source, lines.iter().map(|line| (line, line)));
    let rows: Vec<(&str, Counts)> =
        by_group.into_iter().map(|(group, lines)| (group, count_kinds(lines.into_iter()))).collect();
    let mut table = TableOf::<(&str, Counts)>::new();
    table.add(Column::text("Measure"), |(group, _)| *group);
    table.add(Column::number("Published", ""), |(_, counts)| Cell::count(counts.iter().sum::<u64>()));
    for (place, name) in ["Beside ours", "Not run", "No counterpart here", "Not taken"].into_iter().enumerate() {
        table.add(Column::number(name, ""), move |(_, counts)| Cell::count(counts[place]));
    }
    let title = "Published results, and how many stand beside a number of this run";
    table.table("published-counts", title, &rows, |_| RowKind::Plain).with_notes([context.scaled])
}

/// Every published result with what stands beside it.
pub(super) fn all_results(context: &Context<'_>, lines: &[Line<'_>]) -> Table {
    let run = context.cases.run;
    let mut table = TableOf::<Line<'_>>::new();
    table.add(Column::text("Measure"), |line| line.measure.group.clone());
    table.add(Column::text("Metric"), |line| line.figure.metric.clone());
    table.add(Column::text("Case"), |line| {
        [line.figure.case.as_str(), &line.figure.variant].join(" ").trim_end().to_string()
    });
    table.add(Column::text("Product"), |line| run.title_of(&line.figure.product).to_string());
    table.add(Column::text("Profile"), |line| match line.measured() {
        Some(_) if line.figure.product == BASELINE => "no proxy".to_string(),
        Some(measured) => measured.entry.profile.clone(),
        None => String::new(),
    });
    table.add(Column::number("Published", ""), |line| {
        Cell::number(format!("{} {}", short(line.figure.value), line.figure.unit), line.figure.value)
    });
    table.add(Column::number("Here", "").with_details(), |line| {
        let measured = line.measured()?;
        let mut cell = estimate_cell(Some(measured.value), Unit::NONE);
        cell.main.push_str(if measured.invalid { " invalid" } else { "" });
        Some(cell)
    });
    table.add(Column::number("Here / published", "").with_details(), |line| {
        estimate_cell(line.measured().and_then(|measured| measured.ratio), Unit::NONE)
    });
    table.add(Column::text("Note"), |line| line.note());
    let kind = |line: &Line<'_>| match line.measured() {
        Some(Measured { invalid: true, .. }) => RowKind::Unranked,
        _ => RowKind::Plain,
    };
    let title = "Every published result and what stands beside it";
    table.table("published-all", title, lines, kind).with_notes([
        "In the unit of the published number. Ours are medians over blocks with their intervals; counts that grow with the number \
         of requests are compared as shares of it.",
        context.scaled,
    ])
}

/// The measures that weir does not take, and why. `None` where the document has none of them.
pub(super) fn not_taken(lines: &[Line<'_>]) -> Option<Table> {
    let own = lines.iter().filter(|line| matches!(line.ours, Ours::NotTaken));
    let rows = grouped(own.map(|line| (line.measure.note.as_str(), line.figure)));
    let mut table = TableOf::<(&str, Vec<&Figure>)>::new();
    table.add(Column::text("Metrics"), |(_, figures)| {
        unique(figures.iter().map(|figure| figure.metric.as_str())).join(", ")
    });
    table.add(Column::number("Published results", ""), |(_, figures)| Cell::count(figures.len() as u64));
    table.add(Column::text("Why not"), |(why, _)| (*why).to_string());
    (!rows.is_empty()).then(|| {
        table.table("published-not-taken", "Published measures that weir does not take", &rows, |_| RowKind::Plain)
    })
}

/// The columns of the CSV file.
const COLUMNS: &str = "suite case product variant metric published unit standing profile ours low high ratio note";

/// The same as a CSV file: a row for each line, with all digits.
pub(super) fn csv(suite: &str, lines: &[Line<'_>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: &[&str]| writer.write_record(row.iter().map(|cell| csv_cell(cell))).expect("a row in memory");
    write(&COLUMNS.split(' ').collect::<Vec<_>>());
    for line in lines {
        let Figure { case, product, variant, metric, value, unit, .. } = line.figure;
        let (published, measured) = (value.to_string(), line.measured());
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let end = |of: fn(&Estimate) -> f64| number(measured.filter(|own| own.value.n > 1).map(|own| of(&own.value)));
        let standing = match &line.ours {
            Ours::Measured(own) if own.invalid => "invalid",
            Ours::Measured(_) => "beside",
            Ours::NotRun(_) => "not run",
            Ours::NoCounterpart(_) => "no counterpart",
            Ours::NotTaken => "not taken",
        };
        write(&[
            suite,
            case,
            product,
            variant,
            metric,
            &published,
            unit,
            standing,
            measured.map_or("", |own| &own.entry.profile),
            &number(measured.map(|own| own.value.value)),
            &end(|estimate| estimate.low),
            &end(|estimate| estimate.high),
            &number(measured.and_then(|own| own.ratio).map(|ratio| ratio.value)),
            &line.note(),
        ]);
    }
    String::from_utf8(writer.into_inner().expect("rows in memory")).expect("UTF-8")
}
